"""A thread with a bounded queue: work waits in line, what has queued up is done together, whoever waited is told at once."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine

from fasterce.serve.store.database import Database
from fasterce.serve.store.errors import StoreError
from fasterce.serve.store.writing import Rows


@dataclass(eq=False)
class Work:
    """Rows to be written, or something else to be done in a transaction of its own; `size` is its share of the queue."""

    waiting: asyncio.Future[Any]
    rows: Rows = ()
    job: Callable[[Connection], Any] | None = None
    result: Any = None
    error: StoreError | None = None
    loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.loop = self.waiting.get_loop()

    @property
    def size(self) -> int:
        return max(1, len(self.rows))

    @property
    def given_up(self) -> bool:
        return self.waiting.done()

    def tell(self) -> None:
        if self.given_up:
            return
        if self.error is not None:
            self.waiting.set_exception(self.error)
        else:
            self.waiting.set_result(self.result)


class Lane:
    """One thread that hands all that waits to `do`, which fills in results and errors."""

    def __init__(self, name: str, most_waiting: int, do: Callable[[Sequence[Work]], None]) -> None:
        self._most, self._do = most_waiting, do
        self._queue: deque[Work] = deque()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Work) -> None:
        with self._changed:
            if self._closed:
                raise StoreError("The store of records is closed.")
            if self._size and self._size + work.size > self._most:
                raise StoreError(f"More records wait to be kept or read than may wait ({self._most}).")
            self._queue.append(work)
            self._size += work.size
            self._changed.notify()

    def close(self, seconds: float) -> None:
        """Finish what waits, as far as the time goes."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while works := self._take():
            wanted = [work for work in works if not work.given_up]
            if wanted:
                self._do(wanted)
                _tell_all(wanted)

    def _take(self) -> list[Work]:
        """All that waits; nothing once the lane is closed and empty."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            works = list(self._queue)
            self._queue.clear()
            self._size = 0
            return works


def _tell_all(works: Sequence[Work]) -> None:
    for loop in {id(work.loop): work.loop for work in works}.values():
        told = [work for work in works if work.loop is loop]
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(_tell_each, told)


def _tell_each(works: Iterable[Work]) -> None:
    for work in works:
        work.tell()


class Transactions:
    """Transactions that can be ended from another thread when they take too long."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[int, tuple[float, Any]] = {}

    @contextmanager
    def begin(self, engine: Engine) -> Iterator[Connection]:
        self._database.look()
        with engine.connect() as connection:
            key = threading.get_ident()
            self._running[key] = (time.monotonic(), connection.connection.driver_connection)
            try:
                with connection.begin():
                    yield connection
            finally:
                del self._running[key]

    def abort_older_than(self, seconds: float) -> None:
        """A database that does not answer is left, so that the next transaction can try a new connection."""
        now = time.monotonic()
        for since, connection in list(self._running.values()):
            if now - since >= seconds:
                self._database.abort(connection)
