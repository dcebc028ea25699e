"""The store of records."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.sql import ColumnElement

from fasterce.errors import InputError
from fasterce.serve.messages import StoredRecord
from fasterce.serve.store.database import Database, StoreError, UnstorableError, store_error
from fasterce.serve.store.migrate import migrate
from fasterce.serve.store.postgres import PostgreSQL
from fasterce.serve.store.queue import Task, TaskQueue
from fasterce.serve.store.sqlite import SQLite
from fasterce.serve.store.tables import (
    SUMMARY,
    check_rows,
    is_text,
    letters,
    records,
    replies,
    try_to_write,
    write_letter,
    write_reply,
    write_rows,
)

DEFAULT_URL = "sqlite:///fasterce-records.db"
# Rows waiting to be written, queries waiting to be run, and rows of one query.
MAX_WAITING = 4096
MAX_READERS = 256
MAX_FOUND = 1000
# Share of the timeout after which a transaction is aborted once somebody has waited for the whole timeout.
STALLED_SHARE = 0.75
# How long a reply is returned again to a request with the same idempotency key.
REPLIES_KEPT = timedelta(days=1)
# Records deleted in one transaction, and seconds between two, in which other servers can write to the same file.
DELETE_STEP, DELETE_PAUSE = 50, 0.01


def open_store(
    url: str = DEFAULT_URL, *, retention_days: int | None = None, timeout: float = 2.0, max_waiting: int = MAX_WAITING
) -> "Store":
    """Open the database; it is created or migrated if necessary.

    Parameters
    ----------
    url : str
        `sqlite:///relative/path`, `sqlite:////absolute/path` or `postgresql://user:password@host/name`.
    retention_days : int, optional
        How long a record is kept that names no day itself; None: until it is deleted.
    timeout : float, default=2.0
        Seconds after which an operation of the store fails.
    max_waiting : int
        Rows that may wait to be written.

    Raises
    ------
    StoreError
    """
    if retention_days is not None and retention_days < 1:
        raise StoreError("serve.retention_too_short", received=retention_days)
    if not 0 < timeout < math.inf:
        raise StoreError("serve.store_timeout_not_positive", received=timeout)
    database = _open(url, timeout)
    try:
        migrate(database)
    except (SQLAlchemyError, StoreError) as error:
        database.close()
        raise error if isinstance(error, StoreError) else store_error(database.place, "stored", error) from error
    return Store(database, retention_days, timeout, max_waiting)


def _open(url: str, timeout: float) -> Database:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The address may hold a password, so it is not repeated.
        raise StoreError("serve.store_url") from None
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return PostgreSQL(parsed, timeout)
    if parsed.drivername != "sqlite":
        raise StoreError("serve.store_driver", driver=parsed.drivername)
    if parsed.host or parsed.query or parsed.database in (None, "", ":memory:"):
        raise StoreError("serve.store_not_a_file", url=parsed.render_as_string())
    return SQLite(Path(str(parsed.database)).absolute(), timeout)


class Store:
    """Stores, finds and deletes records. Every operation ends within the timeout, with a StoreError if necessary."""

    def __init__(self, database: Database, retention_days: int | None, timeout: float, max_waiting: int) -> None:
        self._database, self._retention_days, self._timeout = database, retention_days, timeout
        self._writer = TaskQueue("records-writer", max_waiting, self._write)
        self._reader = TaskQueue("records-reader", MAX_READERS, self._read)

    @property
    def place(self) -> str:
        """Address of the database, without a password."""
        return self._database.place

    async def put(self, records_to_store: Sequence[StoredRecord]) -> None:
        """Return when all are on the disk; none is stored if this raises UnstorableError.

        The same record again is fine; another one with the same id is rejected. After a timeout the records are either
        all stored or not; to put them again is safe.
        """
        rows = check_rows([dict(vars(one)) for one in records_to_store])
        if rows:
            await self._submit(self._writer, Task(partial(write_rows, rows=rows), rows))

    async def put_reply(self, records_to_store: Sequence[StoredRecord], reply: Mapping[str, str]) -> None:
        """Store records and the reply they belong to; RepeatedKeyError, and nothing is stored, if its id has a reply."""
        rows = check_rows([dict(vars(one)) for one in records_to_store])
        await self._submit(self._writer, Task(partial(write_reply, rows=rows, reply=reply)))

    async def get_reply(self, id: str) -> Mapping[str, str] | None:
        """Return a reply, or None."""
        found = select(replies).where(replies.c.id == id)
        row = await self._submit(self._reader, Task(lambda connection: connection.execute(found).mappings().first()))
        return None if row is None else dict(row)

    async def put_letter(self, letter: Mapping[str, str | None]) -> bool:
        """Store that a letter was written, once; return whether its record is still there."""
        return bool(await self._submit(self._writer, Task(partial(write_letter, letter=letter))))

    async def get_letters(self, record: str) -> list[dict[str, Any]]:
        """Return the letters written about a record, the newest first."""
        found = select(letters).where(letters.c.record == record).order_by(letters.c.time.desc(), letters.c.id)
        rows = await self._submit(self._reader, Task(lambda connection: connection.execute(found).mappings().all()))
        return [dict(row) for row in rows]

    async def get_bodies(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the JSON text of records by id, of those that are there."""
        found = select(records.c.id, records.c.body).where(records.c.id.in_(ids))
        return dict(await self._submit(self._reader, Task(lambda connection: list(map(tuple, connection.execute(found))))))

    async def get(self, id: str, key: str | None = None) -> str | None:
        """Return the JSON text of a record, or None; of one made with the key, if one is given."""
        if not is_text(id):
            return None
        found = select(records.c.body).where(records.c.id == id)
        if key is not None:
            found = found.where(records.c.key == key)
        body = await self._submit(self._reader, Task(lambda connection: connection.execute(found).scalar()))
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
        """Return the fields of matching records, except their text, the newest first; all records without a condition."""
        if first < 0 or not 1 <= count <= MAX_FOUND:
            raise InputError("serve.page_out_of_range", expected=MAX_FOUND, received=[first, count])
        wanted = {"subject": subject, "decision": decision, "request": request}
        fitting = [records.c[name] == value for name, value in wanted.items() if value is not None]
        if not all(is_text(value) for value in wanted.values() if value is not None):
            return []
        newest = select(*SUMMARY).where(*fitting).order_by(records.c.time.desc(), records.c.id).offset(first).limit(count)
        found: Sequence[Mapping[str, Any]] = await self._submit(
            self._reader, Task(lambda connection: connection.execute(newest).mappings().all())
        )
        return [dict(row) for row in found]

    async def forget(self, subject: str) -> int:
        """Delete all records of a subject, and return how many there were."""
        if not is_text(subject):
            return 0
        return await self._delete(records.c.subject == subject)

    async def purge(self, now: datetime) -> int:
        """Delete records past the day they name, or without one, older than `retention_days`; return how many there were."""
        now = now.astimezone(UTC)
        outdated = delete(replies).where(replies.c.time < (now - REPLIES_KEPT).isoformat(timespec="microseconds"))
        await self._submit(self._writer, Task(lambda connection: connection.execute(outdated).rowcount))
        deleted = await self._delete(records.c.retain_until < now.date().isoformat())
        if self._retention_days is not None:
            before = (now - timedelta(days=self._retention_days)).isoformat(timespec="microseconds")
            deleted += await self._delete(records.c.retain_until.is_(None) & (records.c.time < before))
        return deleted

    async def check(self) -> StoreError | None:
        """Return why a record could not be written now, or None."""
        try:
            await self._submit(self._writer, Task(try_to_write))
        except StoreError as error:
            return error
        return None

    async def close(self) -> None:
        """Finish what is queued, then close the database."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for queue in (self._writer, self._reader):
            queue.close(self._timeout)
        self._database.abort_older_than(self._timeout)
        self._database.close()

    async def _delete(self, which: ColumnElement[bool]) -> int:
        """Delete in steps small enough not to delay other work."""
        deleted, step = 0, DELETE_STEP
        while step == DELETE_STEP:
            step = await self._submit(self._writer, Task(partial(delete_some, which=which)))
            deleted += step
            await asyncio.sleep(DELETE_PAUSE)
        if deleted:
            await asyncio.to_thread(self._database.after_erasing)
        return deleted

    async def _submit(self, queue: TaskQueue, task: Task) -> Any:
        queue.add(task)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(task.future), self._timeout)
        except TimeoutError:
            self._database.abort_older_than(self._timeout * STALLED_SHARE)
            raise StoreError("serve.store_timeout", place=self.place, expected=self._timeout) from None

    def _write(self, tasks: Sequence[Task]) -> None:
        """Write all rows in one transaction; where that fails because of some of them, those of each task in its own."""
        singly = [task for task in tasks if not task.rows]
        together = [task for task in tasks if task.rows]
        rows = [row for task in together for row in task.rows]
        try:
            if rows:
                self._database.write(partial(write_rows, rows=rows), lambda: any(task.wanted() for task in together))
        except UnstorableError:
            singly = [*together, *singly]
        except StoreError as error:
            for task in together:
                task.finish(error=error)
        else:
            for task in together:
                task.finish()
        for task in singly:
            task.run(self._database.write)

    def _read(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            task.run(self._database.read)


def delete_some(connection: Connection, which: ColumnElement[bool]) -> int:
    """Delete at most DELETE_STEP records with their letters, except those another server is deleting, and return how many."""
    some = select(records.c.id).where(which).limit(DELETE_STEP).with_for_update(skip_locked=True)
    ids = connection.execute(some).scalars().all()
    connection.execute(delete(letters).where(letters.c.record.in_(ids)))
    return int(connection.execute(delete(records).where(records.c.id.in_(ids))).rowcount)
