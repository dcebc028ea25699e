"""The front's only door to the engines: ask, and get an answer, or in time the reason why there is none."""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any

from fasterce.serve.engine import wire
from fasterce.serve.engine.gathering import Queue, Waiting
from fasterce.serve.engine.nursery import Begun
from fasterce.serve.engine.pace import Pace
from fasterce.serve.engine.pool import Engine, LostError, Pool
from fasterce.serve.question import (
    Answer,
    Busy,
    Description,
    EngineLost,
    Late,
    Load,
    NoSuchArtifact,
    NotReady,
    Question,
    Refused,
    ReloadFailed,
)
from fasterce.serve.settings import Settings

LATE = "There was no answer within the time allowed."
LOST = "The process that was to answer was lost, and again when another was asked."
CLOSING = "The service is closing."
# Seconds an engine is given beyond the last deadline: as long as its call usually takes, within these.
ABOUT_TO_FINISH, MOST_TO_FINISH = 0.1, 0.4
LEAST_RETRY, MOST_RETRY = 0.1, 10.0
# Whoever is likely to wait for more than this share of their time is sent away at once, not when it is over.
IN_TIME = 0.8
# Seconds: a question cut short by its company is asked again if it has so much more time than that company had.
MUCH_LATER = 0.1


class Desk:
    """Gathers questions, has engines answer them, and sees to it that nobody waits longer than they said.

    All of it runs on one event loop; nothing here blocks. `begun` is what `nursery.begin` gave, if it was called before.
    """

    def __init__(self, settings: Settings, begun: Begun | None = None) -> None:
        self.settings = settings
        self._queue = Queue(settings.most_batch, settings.gather_ms / 1000)
        self._pool = Pool(settings, self._dispatch, begun)
        self._running: set[asyncio.Task[None]] = set()
        self._running_rows = 0
        self._at_work: dict[Engine, list[Waiting]] = {}
        self._pace = Pace()
        self._timer: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._started = self._closing = False

    async def start(self) -> None:
        """Returns when questions can be answered; raises StartFailed if the artifacts cannot be loaded."""
        await self._pool.start()
        self._started = True

    @property
    def ready(self) -> bool:
        """Whether there is an engine that can answer."""
        return self._started and not self._closing and bool(self._pool.ready)

    def names(self) -> list[str]:
        """The artifacts served, the default first."""
        return [served.name for served in self.settings.artifacts]

    def describe(self, name: str | None = None) -> Description:
        """An artifact as the engines have it; None means the first."""
        described = self._pool.generation.descriptions
        chosen = self.names()[0] if name is None else name
        if chosen not in self.names():
            raise NoSuchArtifact(f"There is no artifact {chosen!r:.100} here.")
        if chosen not in described:
            raise NotReady("The artifacts are being loaded.")
        return described[chosen]

    async def explain(self, question: Question) -> Answer:
        """The answer, or one of the errors of `fasterce.serve.question`; never later than `question.until`."""
        self._check(question)
        loop = asyncio.get_running_loop()
        try:
            waiting = Waiting(question, loop.create_future())
        except (TypeError, ValueError, RecursionError) as error:
            raise Refused("Rows, options and ids must be plain JSON.") from error
        handle = loop.call_later(max(question.until - monotonic(), 0.0), self._be_late, waiting)
        self._queue.add(waiting)
        self._queue.note_crowd(self._queue.rows + self._running_rows)
        self._dispatch()
        try:
            return await waiting.future
        except asyncio.CancelledError:
            loop.call_later(self.settings.hang_seconds, self._be_left, waiting)
            raise
        finally:
            handle.cancel()
            self._queue.drop(waiting)

    def _check(self, question: Question) -> None:
        if not self._started or self._closing:
            raise NotReady(CLOSING if self._closing else "The service has not started yet.")
        if question.artifact not in self.names():
            raise NoSuchArtifact(f"There is no artifact {question.artifact!r:.100} here.")
        if question.until <= monotonic():
            raise Late(LATE)
        rows = self._queue.rows + self._running_rows
        wait = self._likely_wait(len(question.rows))
        if rows >= self.settings.most_waiting or (rows and wait > IN_TIME * (question.until - monotonic())):
            after = min(max(wait, LEAST_RETRY), MOST_RETRY)
            raise Busy(f"{rows} rows are being explained or wait for it, and no more may wait.", after)

    def _likely_wait(self, rows: int) -> float:
        """Seconds until so many rows more would be answered, behind all that are here."""
        engines, most = self.settings.workers, self.settings.most_batch
        calls, rest = divmod(self._queue.rows + rows, most)
        queue = calls * self._pace.expected(most) + (self._pace.expected(rest) if rest else 0.0)
        running = self._pace.expected(self._running_rows / engines) if self._running_rows else 0.0
        return running + queue / engines

    async def reload(self, name: str | None = None) -> list[Description]:
        """Load what is on disk now, in engines beside those at work, and let them take over; all or nothing."""
        if name is not None and name not in self.names():
            raise NoSuchArtifact(f"There is no artifact {name!r:.100} here.")
        if not self._started or self._closing:
            raise ReloadFailed(CLOSING if self._closing else "The service has not started yet.")
        return await self._pool.reload()

    def load(self) -> Load:
        """How busy the engines are."""
        ready = self._pool.ready
        return Load(
            waiting_rows=self._queue.rows,
            running_rows=self._running_rows,
            engines=len(ready),
            busy=sum(one.busy for one in ready),
            spare=len(ready) > self.settings.workers,
            restarts=self._pool.restarts,
            generation=self._pool.generation.number,
        )

    async def close(self, grace: float) -> None:
        """Take nothing more, finish what was accepted within `grace` seconds, then end all engines."""
        self._closing = True
        try:
            async with asyncio.timeout(grace):
                while self._queue or self._running:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            pass
        for waiting in self._queue.empty():
            _fail(waiting, NotReady(CLOSING))
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        await self._pool.close()

    def _be_late(self, waiting: Waiting) -> None:
        _fail(waiting, Late(LATE))
        self._queue.drop(waiting)
        self._rest()

    def _be_left(self, waiting: Waiting) -> None:
        """An engine that still works when nobody waits for it any more is ended: others want to be answered."""
        for engine, batch in self._at_work.items():
            if waiting in batch and not any(one.open for one in batch):
                self._pool.end(engine)
                return

    def _dispatch(self) -> None:
        """Give what waits to engines that are free."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self._pool.could_take:
            pause = self._queue.patience(self.settings.workers)
            if pause > 0:
                self._timer = asyncio.get_running_loop().call_later(pause, self._dispatch)
                return
            engine = self._pool.take()
            assert engine is not None
            self._start(engine, self._queue.take())

    def _start(self, engine: Engine, batch: list[Waiting]) -> None:
        self._running_rows += sum(one.rows for one in batch)
        task = asyncio.get_running_loop().create_task(self._run(engine, batch))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._rest())

    def _rest(self) -> None:
        if not self._running and not self._queue:
            self._idle.set()

    async def _run(self, engine: Engine, batch: list[Waiting]) -> None:
        """One batch on one engine. Whoever is not answered, and not late, is asked about once more."""
        began, rows = monotonic(), sum(one.rows for one in batch)
        self._at_work[engine] = batch
        try:
            message = wire.questions_out([one.written for one in batch], [one.question.until for one in batch])
            told, texts = await self._pool.ask(engine, message, self._patience(batch))
            if "outcomes" in told:
                self._pace.note(rows, monotonic() - began)
                self._hand_out(engine, batch, told, memoryview(texts))
            else:
                self._ask_again(batch)
        except LostError as lost:
            if lost.began:
                self._ask_again(batch)
            else:
                self._ask_elsewhere(batch)
        except asyncio.CancelledError:
            for waiting in batch:
                _fail(waiting, NotReady(CLOSING))
            raise
        except Exception:
            for waiting in batch:
                _fail(waiting, EngineLost("The process that was to answer said something that cannot be understood."))
        finally:
            del self._at_work[engine]
            self._queue.note_done(self._queue.rows + self._running_rows, monotonic() - began)
            self._pool.give_back(engine)
            self._running_rows -= rows
            self._dispatch()

    def _patience(self, batch: Sequence[Waiting]) -> float:
        """Seconds until the engine is ended: when all are late, or some have been for long. One that is about to finish is
        cheaper to wait for than to replace."""
        ends = [one.question.until for one in batch]
        usual = self._pace.expected(sum(one.rows for one in batch))
        more = min(max(usual, ABOUT_TO_FINISH), MOST_TO_FINISH)
        return max(min(max(ends), min(ends) + self.settings.hang_seconds) - monotonic(), 0.0) + more

    def _hand_out(self, engine: Engine, batch: Sequence[Waiting], told: wire.Header, texts: memoryview) -> None:
        first_late = min(one.question.until for one in batch)
        for waiting, outcome in zip(batch, told["outcomes"], strict=True):
            if "refused" in outcome:
                _fail(waiting, Refused(outcome["refused"], outcome["field"]))
                continue
            kept, size = wire.records_in(outcome["records"], texts)
            texts = texts[size:]
            if told["cut_short"] and not waiting.alone and waiting.question.until > first_late + MUCH_LATER:
                self._ask_alone(waiting)
            elif waiting.open:
                description = engine.generation.descriptions[waiting.question.artifact]
                cost: list[Any] = [told[name] for name in ("calls", "rows_asked", "batch_rows", "seconds")]
                waiting.future.set_result(Answer(kept, description, *cost))

    def _ask_again(self, batch: Sequence[Waiting]) -> None:
        """Each alone, in their order, so that one question cannot spoil its neighbours' twice."""
        for waiting in reversed(batch):
            waiting.tries += 1
            if waiting.tries > 1:
                _fail(waiting, EngineLost(LOST))
            else:
                self._ask_alone(waiting)

    def _ask_elsewhere(self, batch: Sequence[Waiting]) -> None:
        """The engine was gone before it had seen them."""
        for waiting in reversed(batch):
            if waiting.open:
                self._queue.add_again(waiting)

    def _ask_alone(self, waiting: Waiting) -> None:
        if waiting.open:
            waiting.alone = True
            self._queue.add_again(waiting)


def _fail(waiting: Waiting, error: Exception) -> None:
    if waiting.open:
        waiting.future.set_exception(error)
