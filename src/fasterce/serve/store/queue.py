"""A thread with a bounded queue: queued tasks are done together, and their callers notified at once."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine

from fasterce.serve.store.database import Database, DriverConnection
from fasterce.serve.store.errors import StoreError
from fasterce.serve.store.write import Rows

Job = Callable[[Connection], Any]


@dataclass(eq=False)
class Task:
    """Rows to write, or a job to run in a transaction of its own."""

    future: asyncio.Future[Any]
    rows: Rows = ()
    job: Job | None = None
    result: object = None
    error: StoreError | None = None
    loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.loop = self.future.get_loop()

    @property
    def size(self) -> int:
        """Its share of the queue."""
        return max(1, len(self.rows))

    @property
    def abandoned(self) -> bool:
        return self.future.done()

    def finish(self) -> None:
        if self.abandoned:
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class TaskQueue:
    """One thread that passes all queued tasks to `run`, which fills in results and errors."""

    def __init__(self, name: str, max_waiting: int, run: Callable[[Sequence[Task]], None]) -> None:
        self._max_waiting, self._run_tasks = max_waiting, run
        self._queue: deque[Task] = deque()
        self._size = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, task: Task) -> None:
        with self._changed:
            if self._closed:
                raise StoreError("serve.store_closed")
            if self._size and self._size + task.size > self._max_waiting:
                raise StoreError("serve.store_queue_full", expected=self._max_waiting)
            self._queue.append(task)
            self._size += task.size
            self._changed.notify()

    def close(self, seconds: float) -> None:
        """Finish what is queued, within `seconds`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while tasks := self._take():
            wanted = [task for task in tasks if not task.abandoned]
            if wanted:
                self._run_tasks(wanted)
                _notify(wanted)

    def _take(self) -> list[Task]:
        """Wait for tasks and return all of them; none once the queue is closed and empty."""
        with self._changed:
            while not self._queue and not self._closed:
                self._changed.wait()
            tasks = list(self._queue)
            self._queue.clear()
            self._size = 0
            return tasks


def _notify(tasks: Sequence[Task]) -> None:
    for loop in {id(task.loop): task.loop for task in tasks}.values():
        own = [task for task in tasks if task.loop is loop]
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(_finish, own)


def _finish(tasks: Iterable[Task]) -> None:
    for task in tasks:
        task.finish()


class Transactions:
    """Transactions that another thread can abort when they take too long."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._running: dict[int, tuple[float, DriverConnection]] = {}

    @contextmanager
    def begin(self, engine: Engine) -> Iterator[Connection]:
        self._database.check()
        with engine.connect() as connection:
            key = threading.get_ident()
            self._running[key] = (time.monotonic(), connection.connection.driver_connection)
            try:
                with connection.begin():
                    yield connection
            finally:
                del self._running[key]

    def abort_older_than(self, seconds: float) -> None:
        """Abort transactions of a database that does not respond, so that the next one can open a new connection."""
        now = time.monotonic()
        for since, connection in list(self._running.values()):
            if now - since >= seconds:
                self._database.abort(connection)
