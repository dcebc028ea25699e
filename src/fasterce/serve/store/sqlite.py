"""Records in a SQLite file: its log is synced at every commit, deleted content overwritten, only its owner reads it."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool

from fasterce.serve.store.database import Database
from fasterce.serve.store.errors import StoreError, told

# A lock is waited for less long than whoever waits for the records, so that the sentence says what the matter is.
PATIENCE = 0.6
LOCK_SECONDS = 30.0


def open_sqlite(path: Path, timeout: float) -> Database:
    """The file, made if it is not there."""
    place = str(path)
    try:
        _create(path)
        _use_a_log(path)
    except (OSError, sqlite3.Error) as error:
        raise told(place, "kept", error) from error
    writer = _engine(path, timeout, "BEGIN IMMEDIATE")
    reader = _engine(path, timeout, "BEGIN")
    watch = _Watch(path, writer, reader)
    return Database(
        place,
        writer,
        reader,
        alone=lambda: _alone(writer, timeout),
        look=watch,
        abort=_interrupt,
        after_erasing=lambda: _empty_the_log(writer),
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


def _use_a_log(path: Path) -> None:
    """Of two that switch a new file at the same time one is told it is locked at once, whatever the timeout."""
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
    """No file is made here: one that has gone is told, not replaced by an empty one."""
    address = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA secure_delete=ON")
    return connection


def _engine(path: Path, timeout: float, begin: str) -> Engine:
    engine = create_engine(
        "sqlite://",
        creator=lambda: _connect(path, timeout * PATIENCE),
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=1,
        hide_parameters=True,
    )
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


@contextmanager
def _alone(engine: Engine, timeout: float) -> Iterator[Connection]:
    """Whoever writes is alone; another server may take its time to bring a large file up to date."""
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute(f"PRAGMA busy_timeout={round(LOCK_SECONDS * 1000)}")
        try:
            with connection.begin():
                yield connection
        finally:
            driver.execute(f"PRAGMA busy_timeout={round(timeout * PATIENCE * 1000)}")


class _Watch:
    """A file that was deleted or replaced would be written to unseen: everything is opened again."""

    def __init__(self, path: Path, *engines: Engine) -> None:
        self._path, self._engines = path, engines
        self._known = self._identity()

    def __call__(self) -> None:
        now = self._identity()
        if now != self._known:
            for engine in self._engines:
                engine.dispose()
            if now is None:
                raise StoreError(f"Records must be in {self._path}; the file is no longer there.")
            self._known = now

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _interrupt(connection: Any) -> None:
    with suppress(sqlite3.Error):
        connection.interrupt()


def _empty_the_log(engine: Engine) -> None:
    """Deleted content stays in the log until the log is emptied; where somebody is reading, the next time."""
    borrowed = engine.raw_connection()
    try:
        connection: Any = borrowed.driver_connection
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        borrowed.close()
