"""Give requests to workers, in batches, and return each response before its deadline or say why there is none."""

import asyncio
from collections.abc import Sequence
from time import monotonic

from fasterce.errors import Problem
from fasterce.io.processes import ForkServer, Header
from fasterce.serve.messages import (
    BatchUsage,
    DeadlineExceeded,
    Description,
    InvalidRequest,
    NotReady,
    Overloaded,
    PoolLoad,
    ReloadError,
    StoredRecord,
    UnknownArtifact,
    WorkerLost,
    WorkerRequest,
    WorkerResponse,
)
from fasterce.serve.settings import Settings
from fasterce.serve.workers import wire
from fasterce.serve.workers.pool import WorkerConnection, WorkerGoneError, WorkerPool
from fasterce.serve.workers.queue import LatencyModel, PendingRequest, RequestQueue

# Seconds a worker gets beyond the last deadline: as long as its call usually takes, within these limits.
LEAST_EXTRA, MOST_EXTRA = 0.1, 0.4
# Seconds, the limits of Retry-After.
LEAST_RETRY, MOST_RETRY = 0.1, 10.0
# A request that is likely to wait for more than this share of its time is rejected at once.
MAX_WAIT_SHARE = 0.8
# Seconds: a request cut short by the deadline of another in its batch runs again if it has this much more time.
MUCH_LATER = 0.1
# Seconds between two looks at whether all accepted requests are done.
CLOSING_STEP = 0.01


class Dispatcher:
    """Queues requests, has workers explain them, and enforces deadlines. All of it runs on one event loop and never blocks.

    Parameters
    ----------
    settings : Settings
    server : ForkServer, optional
        What `spawner.start_fork_server` returned, if it was called before.
    """

    def __init__(self, settings: Settings, server: ForkServer | None = None) -> None:
        self.settings = settings
        self._queue = RequestQueue(settings.most_batch, settings.gather_ms / 1000)
        self._pool = WorkerPool(settings, self._dispatch, server)
        self._tasks: set[asyncio.Task[None]] = set()
        self._batches: dict[WorkerConnection, list[PendingRequest]] = {}
        self._latency = LatencyModel()
        self._timer: asyncio.TimerHandle | None = None
        self._started = self._closing = False

    async def start(self) -> None:
        """Return when requests can be served; raises StartError if the artifacts cannot be loaded."""
        await self._pool.start()
        self._started = True

    @property
    def ready(self) -> bool:
        """Whether a worker is ready."""
        return self._started and not self._closing and bool(self._pool.ready)

    @property
    def _running_rows(self) -> int:
        return sum(one.rows for batch in self._batches.values() for one in batch)

    def names(self) -> list[str]:
        """Return the names of the artifacts served, the default first."""
        return [served.name for served in self.settings.artifacts]

    def describe(self, name: str | None = None) -> Description:
        """Return the description of an artifact; None means the first."""
        chosen = self.names()[0] if name is None else name
        self._check_name(chosen)
        descriptions = self._pool.generation.descriptions
        if chosen not in descriptions:
            raise NotReady("serve.loading")
        return descriptions[chosen]

    async def explain(self, request: WorkerRequest) -> WorkerResponse:
        """Return the response, or raise an error of `fasterce.serve.messages`, no later than `request.until`."""
        self._check(request)
        loop = asyncio.get_running_loop()
        try:
            pending = PendingRequest(request, loop.create_future())
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest("serve.not_plain_json") from error
        self._queue.add(pending)
        self._queue.note_load(self._queue.rows + self._running_rows)
        self._dispatch()
        try:
            async with asyncio.timeout(request.until - monotonic()):
                return await pending.future
        except TimeoutError:
            raise DeadlineExceeded("serve.deadline_exceeded") from None
        except asyncio.CancelledError:
            loop.call_later(self.settings.hang_seconds, self._abandon, pending)
            raise
        finally:
            self._queue.drop(pending)

    def _check_name(self, name: str) -> None:
        if name not in self.names():
            raise UnknownArtifact("serve.unknown_artifact", received=name)

    def _check_open(self, error: type[NotReady | ReloadError]) -> None:
        if not self._started or self._closing:
            raise error("serve.closing" if self._closing else "serve.not_started")

    def _check(self, request: WorkerRequest) -> None:
        self._check_open(NotReady)
        self._check_name(request.artifact)
        if request.until <= monotonic():
            raise DeadlineExceeded("serve.deadline_exceeded")
        rows = self._queue.rows + self._running_rows
        wait = self._expected_wait(len(request.rows))
        if rows >= self.settings.most_waiting or (rows and wait > MAX_WAIT_SHARE * (request.until - monotonic())):
            raise Overloaded("serve.overloaded", min(max(wait, LEAST_RETRY), MOST_RETRY), rows=rows)

    def _expected_wait(self, rows: int) -> float:
        """Return the seconds until `rows` more rows would be explained, behind all that are queued or running."""
        workers, most = self.settings.workers, self.settings.most_batch
        calls, rest = divmod(self._queue.rows + rows, most)
        queued = calls * self._latency.predict(most) + (self._latency.predict(rest) if rest else 0.0)
        running = self._latency.predict(self._running_rows / workers) if self._running_rows else 0.0
        return running + queued / workers

    async def reload(self) -> list[Description]:
        """Load what is on disk now, in workers beside those at work, which then take over; all or nothing."""
        self._check_open(ReloadError)
        return await self._pool.reload()

    def load(self) -> PoolLoad:
        """Return how busy the workers are."""
        ready = self._pool.ready
        return PoolLoad(
            waiting_rows=self._queue.rows,
            running_rows=self._running_rows,
            workers=len(ready),
            busy=sum(one.busy for one in ready),
            spare=len(ready) > self.settings.workers,
            restarts=self._pool.restarts,
            generation=self._pool.generation.number,
        )

    async def close(self, grace: float) -> None:
        """Accept nothing more, finish accepted requests within `grace` seconds, then end all workers."""
        self._closing = True
        until = monotonic() + grace
        while (self._queue or self._tasks) and monotonic() < until:
            await asyncio.sleep(CLOSING_STEP)
        for pending in self._queue.clear():
            _fail(pending, NotReady("serve.closing"))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        await self._pool.close()

    def _abandon(self, pending: PendingRequest) -> None:
        """Kill the worker of a cancelled request if no other request of its batch is waited for."""
        for worker, batch in self._batches.items():
            if pending in batch and not any(one.open for one in batch):
                self._pool.kill(worker)
                return

    def _dispatch(self) -> None:
        """Give queued requests to free workers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self._pool.can_take:
            pause = self._queue.hold_seconds(self.settings.workers)
            if pause > 0:
                self._timer = asyncio.get_running_loop().call_later(pause, self._dispatch)
                return
            self._start(self._pool.take(), self._queue.take())

    def _start(self, worker: WorkerConnection, batch: list[PendingRequest]) -> None:
        self._batches[worker] = batch
        task = asyncio.get_running_loop().create_task(self._run(worker, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, worker: WorkerConnection, batch: list[PendingRequest]) -> None:
        """Run one batch on one worker. A request without a response, and not expired, is tried once more."""
        began = monotonic()
        try:
            message = wire.pack_requests([one.request for one in batch])
            reply = await self._pool.request(worker, message, self._time_limit(batch))
            if "outcomes" in reply:
                self._latency.observe(sum(one.rows for one in batch), monotonic() - began)
                self._deliver(worker, batch, reply)
            else:
                self._retry(batch)
        except WorkerGoneError as gone:
            if gone.began:
                self._retry(batch)
            else:
                self._requeue(batch)
        except asyncio.CancelledError:
            for pending in batch:
                _fail(pending, NotReady("serve.closing"))
            raise
        except Exception:
            for pending in batch:
                _fail(pending, WorkerLost("serve.worker_reply_invalid"))
        finally:
            self._queue.note_done(self._queue.rows + self._running_rows, monotonic() - began)
            del self._batches[worker]
            self._pool.give_back(worker)
            self._dispatch()

    def _time_limit(self, batch: Sequence[PendingRequest]) -> float:
        """Return the seconds after which the worker is killed: when all requests have expired, or some have for long. Waiting
        for a worker that is about to finish is cheaper than replacing it."""
        ends = [one.request.until for one in batch]
        usual = self._latency.predict(sum(one.rows for one in batch))
        extra = min(max(usual, LEAST_EXTRA), MOST_EXTRA)
        return max(min(max(ends), min(ends) + self.settings.hang_seconds) - monotonic(), 0.0) + extra

    def _deliver(self, worker: WorkerConnection, batch: Sequence[PendingRequest], reply: Header) -> None:
        first_deadline = min(one.request.until for one in batch)
        for pending, outcome in zip(batch, reply["outcomes"], strict=True):
            if "invalid" in outcome:
                _fail(pending, InvalidRequest(Problem.from_dict(outcome["invalid"]), outcome["field"]))
                continue
            if reply["cut_short"] and not pending.alone and pending.request.until > first_deadline + MUCH_LATER:
                self._requeue([pending], alone=True)
            elif pending.open:
                records = tuple(StoredRecord(**one) for one in outcome["records"])
                description = worker.generation.descriptions[pending.request.artifact]
                problem = None if outcome["problem"] is None else Problem.from_dict(outcome["problem"])
                pending.future.set_result(WorkerResponse(records, description, BatchUsage(**reply["usage"]), problem))

    def _retry(self, batch: Sequence[PendingRequest]) -> None:
        """Run each request alone, so that one cannot make the others fail twice."""
        for pending in batch:
            pending.attempts += 1
            if pending.attempts > 1:
                _fail(pending, WorkerLost("serve.worker_lost"))
        self._requeue(batch, alone=True)

    def _requeue(self, batch: Sequence[PendingRequest], alone: bool = False) -> None:
        """Queue requests again, before all others and in order."""
        for pending in reversed(batch):
            if pending.open:
                pending.alone = pending.alone or alone
                self._queue.add_first(pending)


def _fail(pending: PendingRequest, error: Exception) -> None:
    if pending.open:
        pending.future.set_exception(error)
