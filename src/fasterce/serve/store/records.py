"""The store of records: the front's only door to the database."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.sql import ColumnElement

from fasterce.serve.question import Kept
from fasterce.serve.store import migrating, retention
from fasterce.serve.store.database import Database
from fasterce.serve.store.errors import StoreError, UnstorableError, told
from fasterce.serve.store.lanes import Lane, Transactions, Work
from fasterce.serve.store.postgres import open_postgres
from fasterce.serve.store.sqlite import open_sqlite
from fasterce.serve.store.tables import SUMMARY, records
from fasterce.serve.store.writing import is_text, storable, twice, write_new, write_or_find

DEFAULT_URL = "sqlite:///fasterce-records.db"
MOST_WAITING = 4096
MOST_READERS = 256
MOST_FOUND = 1000
# The share of the timeout after which a transaction is ended if somebody has waited for the whole of it.
STALLED = 0.75
# Between two steps of a long deletion other servers on the same file get their turn.
BREATH = 0.01


def open_store(url: str = DEFAULT_URL, *, retention_days: int | None = None, timeout: float = 2.0) -> "Store":
    """Open the database, made or brought up to date if need be.

    url : `sqlite:///relative/path`, `sqlite:////absolute/path` or `postgresql://user:password@host/name`.
    retention_days : how long a record is kept that names no day itself; None: until it is deleted.
    timeout : seconds after which whatever is asked of the store fails with a sentence.
    """
    if retention_days is not None and retention_days < 1:
        raise StoreError(f"Records must be kept for at least a day; got {retention_days} days.")
    if not 0 < timeout < math.inf:
        raise StoreError(f"The timeout of the store must be a positive number of seconds; got {timeout}.")
    database = _open(_parsed(url), timeout)
    try:
        migrating.bring_up_to_date(database)
    except SQLAlchemyError as error:
        database.let_go()
        raise told(database.place, "kept", error) from error
    except StoreError:
        database.let_go()
        raise
    return Store(database, retention_days, timeout)


def _parsed(url: str) -> URL:
    expected = "expected sqlite:///path or postgresql://user:password@host/name"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The address may hold a password, so it is not repeated.
        raise StoreError(f"Records must be kept at an address that can be read; {expected}.") from None
    if parsed.drivername not in ("sqlite", "postgresql", "postgres", "postgresql+psycopg"):
        raise StoreError(f"Records must be kept in SQLite or PostgreSQL; {expected}, got {parsed.drivername}://….")
    if parsed.drivername == "sqlite" and (parsed.host or parsed.query or parsed.database in (None, "", ":memory:")):
        raise StoreError(f"Records in SQLite must be in a file; {expected}, got {parsed.render_as_string()}.")
    return parsed


def _open(url: URL, timeout: float) -> Database:
    if url.drivername == "sqlite":
        return open_sqlite(Path(str(url.database)).absolute(), timeout)
    return open_postgres(url, timeout)


class Store:
    """Records, kept. What is asked ends within the timeout, if need be in a StoreError, and works when the database does."""

    def __init__(self, database: Database, retention_days: int | None, timeout: float) -> None:
        self._database, self._retention_days, self._timeout = database, retention_days, timeout
        self._transactions = Transactions(database)
        self._writer = Lane("records-writer", MOST_WAITING, self._write)
        self._reader = Lane("records-reader", MOST_READERS, self._read)

    @property
    def place(self) -> str:
        """Where the records are, without a password."""
        return self._database.place

    async def put(self, kept: Sequence[Kept]) -> None:
        """Return when all are on the disk; none is kept if this raises UnstorableError.

        The same record again is fine; another one with the same id is refused. After a timeout the records may or may
        not be there, whole; to put them again is safe.
        """
        rows = storable([dict(vars(one)) for one in kept])
        if rows:
            await self._ask(self._writer, rows=rows)

    async def get(self, id: str) -> str | None:
        """A record's JSON text."""
        if not is_text(id):
            return None
        found = select(records.c.body).where(records.c.id == id)
        body = await self._ask(self._reader, lambda connection: connection.execute(found).scalar())
        return None if body is None else str(body)

    async def find(
        self,
        *,
        subject: str | None = None,
        decision: str | None = None,
        request: str | None = None,
        first: int = 0,
        count: int = 50,
    ) -> list[dict[str, Any]]:
        """What all but the body says of the records that fit, the newest first; all of them if nothing is asked for."""
        if first < 0 or not 1 <= count <= MOST_FOUND:
            raise ValueError(f"first must be at least 0 and count from 1 to {MOST_FOUND}; got {first} and {count}.")
        wanted = {"subject": subject, "decision": decision, "request": request}
        fitting = [records.c[name] == value for name, value in wanted.items() if value is not None]
        if not all(is_text(value) for value in wanted.values() if value is not None):
            return []
        newest = select(*SUMMARY).where(*fitting).order_by(records.c.time.desc(), records.c.id).offset(first).limit(count)
        found: Sequence[Mapping[str, Any]] = await self._ask(
            self._reader, lambda connection: connection.execute(newest).mappings().all()
        )
        return [dict(row) for row in found]

    async def forget(self, subject: str) -> int:
        """Delete all records of a subject, and say how many there were."""
        if not is_text(subject):
            return 0
        return await self._delete(records.c.subject == subject)

    async def purge(self, now: datetime) -> int:
        """Delete the records that need not be kept any longer, and say how many there were."""
        return sum([await self._delete(passed) for passed in retention.due(now, self._retention_days)])

    async def check(self) -> bool:
        """Whether a record could be written now."""
        try:
            await self._ask(self._writer, lambda connection: connection.execute(select(records.c.id).limit(1)).all())
        except StoreError:
            return False
        return True

    async def close(self) -> None:
        """Finish what was asked for, then let the database go."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for lane in (self._writer, self._reader):
            lane.close(self._timeout)
        self._transactions.abort_older_than(self._timeout)
        self._database.let_go()

    async def _delete(self, which: ColumnElement[bool]) -> int:
        deleted, step = 0, retention.STEP
        while step == retention.STEP:
            step = await self._ask(self._writer, partial(retention.delete_some, which=which))
            deleted += step
            await asyncio.sleep(BREATH)
        if deleted:
            await asyncio.to_thread(self._database.after_erasing)
        return deleted

    async def _ask(self, lane: Lane, job: Callable[[Connection], Any] | None = None, rows: Sequence[Any] = ()) -> Any:
        work = Work(asyncio.get_running_loop().create_future(), rows, job)
        lane.add(work)
        try:
            return await asyncio.wait_for(work.waiting, self._timeout)
        except TimeoutError:
            self._transactions.abort_older_than(self._timeout * STALLED)
            raise StoreError(
                f"Records in {self.place} must be answered for within {self._timeout:g} s; got no answer."
            ) from None

    def _write(self, works: Sequence[Work]) -> None:
        """All puts in one transaction; where that fails for a reason of one of them, each in its own."""
        puts = [work for work in works if work.rows]
        self._change(lambda connection: write_new(connection, [row for put in puts for row in put.rows]), puts)
        for put in puts:
            if isinstance(put.error, UnstorableError):
                put.error = None
                self._change(partial(write_or_find, rows=put.rows), [put])
        for work in works:
            if work.job is not None:
                self._change(work.job, [work])

    def _read(self, works: Sequence[Work]) -> None:
        for work in works:
            if work.job is not None:
                self._run(self._database.reader, work.job, [work], "read")

    def _change(self, job: Callable[[Connection], Any], works: Sequence[Work]) -> None:
        if works:
            self._run(self._database.writer, job, works, "kept")

    def _run(self, engine: Engine, job: Callable[[Connection], Any], works: Sequence[Work], doing: str) -> None:
        """Whatever happens, the thread goes on and nobody is left waiting."""
        try:
            result = twice(partial(self._transactions.begin, engine), job, lambda: any(not work.given_up for work in works))
        except Exception as error:
            for work in works:
                work.error = type(error)(str(error)) if isinstance(error, StoreError) else told(self.place, doing, error)
        else:
            for work in works:
                work.result = result
