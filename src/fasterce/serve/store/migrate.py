"""Migrate a database when it is opened, in one transaction, by one server at a time."""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect

from fasterce.serve.store.database import Database, StoreError
from fasterce.serve.store.tables import VERSION, VERSION_TABLE, create

SCRIPTS = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Create the tables, or apply all versions after the present one; a database of a newer version is rejected."""
    with database.reader.connect() as connection:
        if _is_current(connection, database.place):
            return
    with database.exclusive() as connection:
        if _is_current(connection, database.place):
            return
        if version_of(connection) is None:
            create(connection)
        else:
            upgrade(connection, "head")


def _is_current(connection: Connection, place: str) -> bool:
    found = version_of(connection)
    if found is not None and (not found.isdigit() or int(found) > int(VERSION)):
        raise StoreError("serve.database_too_new", place=place, expected=VERSION, received=found)
    return found == VERSION


def version_of(connection: Connection) -> str | None:
    """Return the version, or None if there is no table yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    # The name of the table is a constant.
    return connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # nosec B608


def upgrade(connection: Connection, to: str) -> None:
    """Run the migrations within the connection's transaction. Alembic is imported only here: few starts need any."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(config, to)
