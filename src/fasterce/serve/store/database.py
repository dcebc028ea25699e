"""A database as the store needs it, whichever it is."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine

# A connection of the driver: sqlite3's or psycopg's.
DriverConnection = Any


@dataclass(frozen=True)
class Database:
    """A database with one connection for writing and one for reading.

    Parameters
    ----------
    place : str
        Its address for messages, without a password.
    writer, reader : Engine
        A transaction of the writer holds the write lock from its beginning.
    exclusive : callable
        Returns a transaction of the writer that waits for, and keeps out, other servers that migrate the database.
    check : callable
        Called before work: raises StoreError if the database is not where it was.
    abort : callable
        Ends what a connection of the driver is waiting for; called by another thread.
    after_erasing : callable
        Removes what is left of deleted records in the files.
    """

    place: str
    writer: Engine
    reader: Engine
    exclusive: Callable[[], AbstractContextManager[Connection]]
    check: Callable[[], None]
    abort: Callable[[DriverConnection], None]
    after_erasing: Callable[[], None]

    def close(self) -> None:
        """Close all connections; new ones are opened when they are needed."""
        self.writer.dispose()
        self.reader.dispose()
