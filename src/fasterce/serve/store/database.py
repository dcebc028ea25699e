"""A database as the store needs it, whichever it is, and its errors, which hold no password and nothing of a record."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fasterce.errors import FasterCEError, make_problem

# A connection of the driver: sqlite3's or psycopg's.
DriverConnection = Any
# Work within a transaction, and whether somebody still waits for it.
Job = Callable[[Connection], Any]
Wanted = Callable[[], bool]

# Names of SQLite's result codes, by their beginning, and the code of the text.
FAULTS = {
    "SQLITE_BUSY": "locked",
    "SQLITE_CANTOPEN": "not_opened",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_FULL": "disk_full",
    "SQLITE_IOERR": "disk_error",
    "SQLITE_LOCKED": "locked",
    "SQLITE_NOTADB": "not_a_database",
    "SQLITE_READONLY": "read_only",
}


class StoreError(FasterCEError):
    """Records cannot be stored, found or deleted now."""


class UnstorableError(StoreError):
    """These records can never be stored as they are: another has the id, or a field holds what no database accepts.

    `status` and `code` are those of the HTTP response.
    """

    status, code = 422, "unstorable"


class RepeatedKeyError(StoreError):
    """Another request with the same idempotency key was answered first."""


class Database:
    """A database with one connection for writing and one for reading.

    Parameters
    ----------
    place : str
        Its address for messages, without a password.
    writer, reader : Engine
        A transaction of the writer holds the write lock from its beginning.
    """

    def __init__(self, place: str, writer: Engine, reader: Engine) -> None:
        self.place, self.writer, self.reader = place, writer, reader
        self._running: dict[int, tuple[float, DriverConnection]] = {}

    def exclusive(self) -> AbstractContextManager[Connection]:
        """Return a transaction of the writer that waits for, and keeps out, other servers that migrate the database."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise StoreError if the database is not where it was; called before work."""

    def abort(self, connection: DriverConnection) -> None:
        """End what a connection of the driver is waiting for; called by another thread."""
        raise NotImplementedError

    def after_erasing(self) -> None:
        """Remove what is left of deleted records in the files."""

    def write(self, job: Job, wanted: Wanted) -> Any:
        """Return the result of a job in a transaction of the writer."""
        return self._run(self.writer, job, wanted, "stored")

    def read(self, job: Job, wanted: Wanted) -> Any:
        """Return the result of a job in a transaction of the reader."""
        return self._run(self.reader, job, wanted, "read")

    def _run(self, engine: Engine, job: Job, wanted: Wanted, operation: str) -> object:
        """Run a job, and once more if the connection was lost: the same record is stored once. Raises StoreError only."""
        try:
            try:
                return self._run_once(engine, job)
            except DBAPIError as error:
                if not error.connection_invalidated or not wanted():
                    raise
            return self._run_once(engine, job)
        except StoreError:
            raise
        except Exception as error:
            raise store_error(self.place, operation, error) from error

    def _run_once(self, engine: Engine, job: Job) -> object:
        self.check()
        with engine.connect() as connection, self._abortable(connection), connection.begin():
            return job(connection)

    @contextmanager
    def _abortable(self, connection: Connection) -> Iterator[None]:
        thread = threading.get_ident()
        self._running[thread] = (time.monotonic(), connection.connection.driver_connection)
        try:
            yield
        finally:
            del self._running[thread]

    def abort_older_than(self, seconds: float) -> None:
        """Abort transactions of a database that does not respond, so that the next one can open a new connection."""
        now = time.monotonic()
        for since, connection in list(self._running.values()):
            if now - since >= seconds:
                self.abort(connection)

    def close(self) -> None:
        """Close all connections; new ones are opened when they are needed."""
        self.writer.dispose()
        self.reader.dispose()


def store_error(place: str, operation: str, error: Exception) -> StoreError:
    """Return the error of a driver as one of ours; `operation` is "stored" or "read"."""
    return StoreError(f"serve.not_{operation}", place=place, reason=_fault(error))


def _fault(error: Exception) -> object:
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", None) or ""
        known = next((code for prefix, code in FAULTS.items() if name.startswith(prefix)), None)
        return str(cause) if known is None else make_problem(f"serve.database_{known}")
    if isinstance(cause, SQLAlchemyError):
        return type(cause).__name__
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[0].rstrip(".")
