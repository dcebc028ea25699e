"""Records in a SQLite file: synced at every commit, deleted content overwritten, readable by its owner only."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from fasterce.serve.store.database import Database, DriverConnection
from fasterce.serve.store.errors import StoreError, store_error

# Share of the store's timeout after which SQLite gives up waiting for a lock, so that the message can say why.
LOCK_SHARE = 0.6
LOCK_SECONDS = 30.0


def open_sqlite(path: Path, timeout: float) -> Database:
    """Return the database in a file, which is created if necessary."""
    place = str(path)
    try:
        _create(path)
        _use_wal(path)
    except (OSError, sqlite3.Error) as error:
        raise store_error(place, "stored", error) from error
    writer = _engine(path, timeout, "BEGIN IMMEDIATE")
    reader = _engine(path, timeout, "BEGIN")
    watch = _FileWatch(path, writer, reader)
    return Database(
        place,
        writer,
        reader,
        exclusive=lambda: _exclusive(writer, timeout),
        check=watch,
        abort=_interrupt,
        after_erasing=lambda: _empty_wal(writer),
    )


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


def _engine(path: Path, timeout: float, begin: str) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(path, timeout * LOCK_SHARE),
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=1,
        hide_parameters=True,
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


@contextmanager
def _exclusive(engine: Engine, timeout: float) -> Iterator[Connection]:
    """Yield a write transaction, which excludes all others; another server may take long to migrate a large file."""
    with engine.connect() as connection:
        driver: DriverConnection = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={round(LOCK_SECONDS * 1000)}")
        try:
            with connection.begin():
                yield connection
        finally:
            driver.execute(f"PRAGMA busy_timeout={round(timeout * LOCK_SHARE * 1000)}")


class _FileWatch:
    """Notices that the file was deleted or replaced, and has it opened again: writes to the old file would be lost."""

    def __init__(self, path: Path, *engines: Engine) -> None:
        self._path, self._engines = path, engines
        self._known = self._identity()

    def __call__(self) -> None:
        now = self._identity()
        if now != self._known:
            for engine in self._engines:
                engine.dispose()
            if now is None:
                raise StoreError("serve.database_gone", place=str(self._path))
            self._known = now

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _interrupt(connection: DriverConnection) -> None:
    with suppress(sqlite3.Error):
        connection.interrupt()


def _empty_wal(engine: Engine) -> None:
    """Empty the log, which still has deleted content; while somebody reads, that happens the next time."""
    borrowed = engine.raw_connection()
    try:
        connection: DriverConnection = borrowed.driver_connection
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        borrowed.close()
