"""A thread with a bounded queue, whose tasks are done together."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fasterce.serve.store.database import Job, StoreError, Wanted
from fasterce.serve.store.tables import Rows


@dataclass(eq=False)
class Task:
    """A job to run in a transaction; one that writes `rows` may share the transaction of others."""

    job: Job
    rows: Rows = ()
    future: Future[Any] = field(default_factory=Future)

    @property
    def size(self) -> int:
        """Its share of the queue."""
        return max(1, len(self.rows))

    def wanted(self) -> bool:
        """Whether somebody still waits for it."""
        return not self.future.cancelled()

    def run(self, transaction: Callable[[Job, Wanted], object]) -> None:
        """Run the job; on any error the thread continues and the caller is notified."""
        try:
            self.finish(transaction(self.job, self.wanted))
        except StoreError as error:
            self.finish(error=error)

    def finish(self, result: object = None, error: StoreError | None = None) -> None:
        with suppress(InvalidStateError):  # nobody waits any more
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)


class TaskQueue:
    """One thread that passes all queued tasks to `run`, which completes their futures."""

    def __init__(self, name: str, max_waiting: int, run: Callable[[Sequence[Task]], None]) -> None:
        self._max_waiting, self._run_tasks = max_waiting, run
        self._queue: list[Task] = []
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
            wanted = [task for task in tasks if task.wanted()]
            if wanted:
                self._run_tasks(wanted)

    def _take(self) -> list[Task]:
        """Wait for tasks and return all of them; none once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            tasks, self._queue, self._size = self._queue, [], 0
            return tasks
