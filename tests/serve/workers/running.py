"""A dispatcher with real workers, on an event loop of its own."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

from fasterce.serve.messages import WorkerRequest, WorkerResponse
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.workers.dispatcher import Dispatcher
from fasterce.serve.workers.spawner import start_fork_server
from tests.serve.models import as_json, refused

ROWS = as_json(refused(40))


def question(row: dict[str, Any] | int = 0, seconds: float = 20.0, mood: str = "", **options: Any) -> WorkerRequest:
    chosen = ROWS[row] if isinstance(row, int) else row
    return WorkerRequest("moody", (chosen | ({"mood": mood} if mood else {}),), options, monotonic() + seconds, "request")


class Running:
    def __init__(self, settings: Settings, early: bool = False) -> None:
        self.server = start_fork_server(settings) if early else None
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.dispatcher = self.run(self._made(settings))

    async def _made(self, settings: Settings) -> Dispatcher:
        dispatcher = Dispatcher(settings, self.server)
        await dispatcher.start()
        return dispatcher

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 60.0) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def ask(self, *questions: WorkerRequest) -> list[WorkerResponse | BaseException]:
        """All at once."""

        async def every() -> list[Any]:
            return await asyncio.gather(*map(self.dispatcher.explain, questions), return_exceptions=True)

        return list(self.run(every()))

    def pids(self) -> list[int]:
        pool = self.dispatcher._pool
        return [*(one.pid for one in pool.workers.values()), *([pool.server.process.pid] if pool.server else [])]

    def whole(self, seconds: float = 20.0) -> None:
        """Wait until all workers and the spare are there."""
        wait_for(lambda: self.dispatcher.load().spare and not self.dispatcher.load().busy, seconds)

    def stop(self, grace: float = 5.0) -> None:
        self.run(self.dispatcher.close(grace))
        left = self.run(_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        assert left == 0


async def _tasks() -> int:
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


def wait_for(there: Callable[[], Any], seconds: float = 10.0) -> None:
    until = monotonic() + seconds
    while not there():
        assert monotonic() < until, "it did not happen"
        time.sleep(0.01)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def running(folder: Path, early: bool = False, **changes: Any) -> Iterator[Running]:
    settings = Settings((ServedArtifact("moody", folder, "tests.serve.models:moody"),))
    started = Running(replace(settings, **changes), early)
    try:
        yield started
    finally:
        if not started.loop.is_closed():
            started.stop(grace=0.0)
