"""Run by Alembic: take the steps on the connection that was handed over, within its transaction."""

from alembic import context

from fasterce.serve.store.tables import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE, transactional_ddl=True)
context.run_migrations()
