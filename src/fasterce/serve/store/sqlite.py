"""Records in a SQLite file: synced at every commit, deleted content overwritten, readable by its owner only."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from fasterce.serve.store.database import Database, DriverConnection, StoreError, store_error

# Share of the store's timeout after which SQLite gives up waiting for a lock, so that the message can say why.
LOCK_SHARE = 0.6
LOCK_SECONDS = 30.0


class SQLite(Database):
    """The database in a file, which is created if necessary."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path, self._lock_seconds = path, timeout * LOCK_SHARE
        try:
            _create(path)
            _use_wal(path)
        except (OSError, sqlite3.Error) as error:
            raise store_error(str(path), "stored", error) from error
        super().__init__(str(path), self._engine("BEGIN IMMEDIATE"), self._engine("BEGIN"))
        self._file = self._identity()

    def _engine(self, begin: str) -> Engine:
        engine = create_engine(
            "sqlite://",
            creator=lambda: _connect(self._path, self._lock_seconds),
            poolclass=QueuePool,
            pool_size=1,
            max_overflow=1,
            hide_parameters=True,
        )
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    @contextmanager
    def exclusive(self) -> Iterator[Connection]:
        """Any write transaction excludes all others; another server may take long to migrate a large file."""
        with self.writer.connect() as connection:
            driver: DriverConnection = connection.connection.driver_connection
            driver.execute(f"PRAGMA busy_timeout={round(LOCK_SECONDS * 1000)}")
            try:
                with connection.begin():
                    yield connection
            finally:
                driver.execute(f"PRAGMA busy_timeout={round(self._lock_seconds * 1000)}")

    def check(self) -> None:
        """Open a file again that was replaced, and report one that was deleted: writes to the old one would be lost."""
        now = self._identity()
        if now != self._file:
            self.close()
            if now is None:
                raise StoreError("serve.database_gone", place=self.place)
            self._file = now

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def abort(self, connection: DriverConnection) -> None:
        with suppress(sqlite3.Error):
            connection.interrupt()

    def after_erasing(self) -> None:
        """Empty the log, which still has deleted content; while somebody reads, that happens the next time."""
        with closing(self.writer.raw_connection()) as borrowed, suppress(sqlite3.OperationalError):
            connection: DriverConnection = borrowed.driver_connection
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _create(path: Path) -> None:
    if path.exists():
        return
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _use_wal(path: Path) -> None:
    """Switch to a write-ahead log. If two processes do so at the same time, one fails at once, whatever the timeout."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            with closing(_connect(path, 1.0)) as connection:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.02)


def _connect(path: Path, wait: float) -> sqlite3.Connection:
    """Open the file but do not create it: one that is gone is reported, not replaced by an empty one."""
    address = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")
    return connection
