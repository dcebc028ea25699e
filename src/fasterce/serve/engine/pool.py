"""Engines: started, kept at their number, ended and replaced, and whole generations of them changed at once."""

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fasterce.serve.engine import wire
from fasterce.serve.engine.nursery import Begun, LoadError, Nursery
from fasterce.serve.engine.process import BORN, GONE
from fasterce.serve.question import Description, ReloadFailed, StartFailed
from fasterce.serve.settings import Settings

# Seconds before an engine is made again after one could not load, doubled each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0


class LostError(Exception):
    """The engine that was asked is gone; `began` if it had taken up the question, which may then be what it died of."""

    def __init__(self, began: bool = False) -> None:
        super().__init__()
        self.began = began


class HungError(LostError):
    """It was ended because it did not answer in time."""


@dataclass
class Generation:
    """Engines that loaded the same artifacts."""

    number: int
    descriptions: dict[str, Description] = field(default_factory=dict)

    def same(self, others: Sequence[Description]) -> bool:
        return [_version(one) for one in self.descriptions.values()] == [_version(one) for one in others]


def _version(description: Description) -> tuple[Any, ...]:
    return description.name, description.artifact_digest, description.model_digest


class Engine:
    """The front's end of one engine."""

    def __init__(self, number: int, generation: Generation) -> None:
        self.number = number
        self.generation = generation
        self.pid = 0
        self.ready = self.busy = self.gone = False
        self.retired = False
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self, own_end: socket.socket) -> None:
        self._reader, self._writer = await asyncio.open_unix_connection(sock=own_end, limit=1 << 22)

    async def ask(self, message: bytes) -> tuple[wire.Header, bytes]:
        """Send and wait; LostError if it is gone before it has answered."""
        assert self._writer is not None
        began = False
        try:
            self._writer.write(message)
            await self._writer.drain()
            while "taken" in (told := await self._next())[0]:
                began = True
            return told
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise LostError(began) from error

    async def _next(self) -> tuple[wire.Header, bytes]:
        assert self._reader is not None
        header, body = wire.lengths(await self._reader.readexactly(wire.LENGTHS.size))
        return json.loads(await self._reader.readexactly(header)), await self._reader.readexactly(body)

    def close(self) -> None:
        self.gone, self.ready = True, False
        if self._writer is not None:
            self._writer.transport.abort()


class Pool:
    """`workers` engines that may be busy, and a spare; whoever is lost is replaced."""

    def __init__(self, settings: Settings, changed: Callable[[], None], begun: Begun | None = None) -> None:
        self.settings = settings
        self.changed = changed
        self.generation = Generation(0)
        self.engines: dict[int, Engine] = {}
        self.restarts = 0
        self.last_failure = ""
        self.closing = False
        self._born = 0
        self._failures = 0
        self._again: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._one_reload = asyncio.Lock()
        self._nursery = Nursery(settings, self._hear, self._orphaned, begun)

    async def start(self) -> None:
        """Returns when the first engine is ready; the others follow."""
        first = Generation(1)
        try:
            self._nursery.start()
            await self._raised(self._new(first))
        except LoadError as error:
            await self.close()
            raise StartFailed(str(error), error.kind) from error
        self.generation = first
        self._fill()

    @property
    def ready(self) -> list[Engine]:
        return [one for one in self.engines.values() if one.ready and one.generation is self.generation]

    @property
    def busy(self) -> list[Engine]:
        return [one for one in self.engines.values() if one.busy]

    def take(self) -> Engine | None:
        """An engine that is free, now taken, the one made first; None if as many are busy as may be."""
        ready = self.ready
        if sum(one.busy for one in ready) >= self.settings.workers:
            return None
        free = next((one for one in ready if not one.busy), None)
        if free is not None:
            free.busy = True
        return free

    @property
    def could_take(self) -> bool:
        ready = self.ready
        busy = sum(one.busy for one in ready)
        return busy < min(self.settings.workers, len(ready))

    def give_back(self, engine: Engine) -> None:
        engine.busy = False
        if engine.retired:
            self.end(engine)

    async def ask(self, engine: Engine, message: bytes, seconds: float) -> tuple[wire.Header, bytes]:
        """What the engine says within so many seconds; if it does not, it is ended."""
        try:
            async with asyncio.timeout(seconds):
                return await engine.ask(message)
        except TimeoutError as error:
            self.end(engine)
            raise HungError(began=True) from error
        except (LostError, asyncio.CancelledError):
            self.end(engine)
            raise

    async def reload(self) -> list[Description]:
        """A new generation beside the old one, and then instead of it."""
        async with self._one_reload:
            if self.closing:
                raise ReloadFailed("The service is closing.")
            after = Generation(self.generation.number + 1)
            try:
                await self._raised(self._new(after))
                others = [self._raised(self._new(after)) for _ in range(self.settings.workers - 1)]
                failed = [one for one in await asyncio.gather(*others, return_exceptions=True) if one is not None]
                if failed:
                    raise failed[0] if isinstance(failed[0], LoadError) else LoadError("An engine could not be made.")
            except BaseException as error:
                self._drop(after)
                if isinstance(error, LoadError):
                    raise ReloadFailed(str(error)) from error
                raise
            self._change_to(after)
            return list(after.descriptions.values())

    def _change_to(self, after: Generation) -> None:
        before, self.generation = self.generation, after
        self._failures = 0
        self._drop(before)
        self._fill()
        self.changed()

    def _drop(self, generation: Generation) -> None:
        """Engines of a generation that is over: those at work finish it."""
        for engine in list(self.engines.values()):
            if engine.generation is generation:
                engine.retired = True
                if not engine.busy:
                    self.end(engine)

    async def close(self) -> None:
        """End everything that was started."""
        self.closing = True
        if self._again is not None:
            self._again.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for engine in list(self.engines.values()):
            self._forget(engine)
        await self._nursery.stop()

    def _fill(self) -> None:
        """As many engines as there should be: those that may be busy, and a spare."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self.closing:
            return
        there = sum(one.generation is self.generation for one in self.engines.values())
        for _ in range(self.settings.workers + 1 - there):
            self._spawn(self._refilled(self._new(self.generation)))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _refilled(self, engine: Engine) -> None:
        try:
            await self._raised(engine)
        except LoadError as error:
            self.last_failure = str(error)
            self._try_later()
        else:
            self._failures = 0
            self.changed()

    def _try_later(self) -> None:
        if self._again is None and not self.closing:
            pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
            self._failures += 1
            self._again = asyncio.get_running_loop().call_later(pause, self._fill)

    def _new(self, generation: Generation) -> Engine:
        self._born += 1
        engine = self.engines[self._born] = Engine(self._born, generation)
        return engine

    async def _raised(self, engine: Engine) -> None:
        """One more engine, made and ready to answer."""
        try:
            await engine.connect(self._nursery.engine(engine.number))
            async with asyncio.timeout(self.settings.load_seconds):
                told, _ = await engine.ask(wire.packed(wire.settings_out(self.settings)))
        except BaseException as error:
            self.end(engine)
            if isinstance(error, TimeoutError):
                raise LoadError(f"The artifacts were not loaded within {self.settings.load_seconds:g} seconds.") from error
            if isinstance(error, LostError):
                raise LoadError("An engine died while it loaded the artifacts.") from error
            raise
        if "ready" not in told:
            self.end(engine)
            raise LoadError(str(told.get("failed", "An engine could not load the artifacts.")), str(told.get("kind", "")))
        self._admit(engine, [wire.description_in(one) for one in told["ready"]])

    def _admit(self, engine: Engine, loaded: Sequence[Description]) -> None:
        """Engines of a generation are alike: where the files have changed since, all of them change together."""
        generation = engine.generation
        if not generation.descriptions:
            generation.descriptions = {one.name: one for one in loaded}
        elif not generation.same(loaded):
            self.end(engine)
            if generation is self.generation and not self._one_reload.locked():
                self._spawn(self._reload_unasked())
            raise LoadError("The artifacts on disk are others than those being served.")
        if engine.gone or engine.retired:
            self.end(engine)
            raise LoadError("An engine died as soon as it had loaded the artifacts.")
        engine.ready = True

    async def _reload_unasked(self) -> None:
        with suppress(ReloadFailed):
            await self.reload()

    def end(self, engine: Engine) -> None:
        """Kill it; whoever asks it is told that it is lost."""
        self._nursery.end(engine.number)
        self._forget(engine)

    def _forget(self, engine: Engine) -> None:
        """It counts no more; if it was at work or could have been, another takes its place."""
        was_ready = engine.ready
        engine.close()
        if self.engines.pop(engine.number, None) is None:
            return
        if was_ready and engine.generation is self.generation and not engine.retired and not self.closing:
            self.restarts += 1
            self._fill()
            self.changed()

    def _hear(self, what: bytes, number: int, value: int) -> None:
        engine = self.engines.get(number)
        if engine is not None and what == BORN:
            engine.pid = value
        elif engine is not None and what == GONE:
            self._forget(engine)

    def _orphaned(self) -> None:
        """The nursery is gone, and its engines with it."""
        for engine in list(self.engines.values()):
            self._forget(engine)
        if not self.closing:
            self._try_later()
