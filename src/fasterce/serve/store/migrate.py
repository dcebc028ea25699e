"""A database is brought up to date when it is opened, in one transaction, by one server at a time."""

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect

from fasterce.serve.store.database import Database
from fasterce.serve.store.errors import StoreError
from fasterce.serve.store.tables import VERSION, VERSION_TABLE

SCRIPTS = Path(__file__).parent / "migrations"


def bring_up_to_date(database: Database) -> None:
    """All versions from the one that is there to the newest; a database from the future is refused."""
    with database.reader.connect() as connection:
        found = version_of(connection)
    _refuse_newer(found, database.place)
    if found == VERSION:
        return
    with database.alone() as connection:
        found = version_of(connection)
        _refuse_newer(found, database.place)
        if found != VERSION:
            upgrade(connection, "head")


def version_of(connection: Connection) -> str | None:
    """None: there are no records here yet."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()


def upgrade(connection: Connection, to: str) -> None:
    """Run the steps within the connection's transaction. Alembic is imported for this alone: most starts need none."""
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(config, to)


def _refuse_newer(found: str | None, place: str) -> None:
    if found is not None and (not found.isdigit() or int(found) > int(VERSION)):
        raise StoreError(
            f"The records in {place} must be of version {VERSION} or older; got version {found}, which a newer fasterce made."
        )
