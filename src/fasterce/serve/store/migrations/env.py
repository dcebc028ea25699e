"""Run by Alembic: migrate on the connection that was passed, within its transaction."""

from alembic import context

from fasterce.serve.store.tables import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE, transactional_ddl=True)
context.run_migrations()
