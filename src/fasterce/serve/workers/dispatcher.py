"""Give requests to workers, in batches, and return each response before its deadline or say why there is none."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from time import monotonic

from fasterce.errors import Problem, make_problem
from fasterce.io.processes import ForkServer, Header
from fasterce.serve.limits import FairShare
from fasterce.serve.messages import (
    BatchUsage,
    DeadlineExceeded,
    Description,
    InvalidRequest,
    Json,
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
from fasterce.serve.workers.queue import LatencyModels, PendingRequest, Piece, RequestQueue

# Seconds a worker gets beyond the last deadline: as long as its call usually takes, within these limits.
LEAST_EXTRA, MOST_EXTRA = 0.1, 0.4
# Seconds, the limits of Retry-After.
LEAST_RETRY, MOST_RETRY = 0.1, 10.0
# A request that is likely to wait for more than this share of its time is rejected at once.
MAX_WAIT_SHARE = 0.8
# Seconds: a request cut short by the deadline of another in its batch runs again if it has this much more time.
MUCH_LATER = 0.1
# Seconds after which a remote model counts as down.
MODEL_SECONDS = 3.0
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
        self._batches: dict[WorkerConnection, list[Piece]] = {}
        self._rows: dict[WorkerConnection, int] = {}
        self._latency = LatencyModels(settings.most_batch, settings.piece_ms / 1e3)
        self._share = FairShare(settings.most_waiting)
        self._timer: asyncio.TimerHandle | None = None
        self._started = self._closing = False
        self.model_problems: dict[str, Problem] = {}

    async def start(self) -> None:
        """Return when requests can be served; raises StartError if the artifacts cannot be loaded."""
        await self._pool.start()
        self._started = True

    @property
    def ready(self) -> bool:
        """Whether a worker is ready."""
        return self._started and not self._closing and bool(self._pool.ready)

    async def check_models(self) -> dict[str, Problem]:
        """Find out why remote models do not respond, by artifact, as `model_problems` says from then on."""
        remote = [name for name, one in self._pool.generation.descriptions.items() if one.is_remote]
        if remote:
            checking = asyncio.create_task(self._pool.check_models())
            try:
                await asyncio.wait([checking], timeout=MODEL_SECONDS)
                if not checking.done():
                    silent = make_problem("serve.model_silent", expected=MODEL_SECONDS)
                    self.model_problems = dict.fromkeys(remote, silent)
                found = await checking
            finally:
                checking.cancel()
            self.model_problems = self.model_problems if found is None else found
        return self.model_problems

    @property
    def _running_rows(self) -> int:
        return sum(self._rows.values())

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
        self._check_open(NotReady)
        self._check_name(request.artifact)
        loop = asyncio.get_running_loop()
        try:
            pending = PendingRequest(request, loop.create_future())
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest("serve.not_plain_json") from error
        self._check_time(pending)
        with self._share.hold(request.client, request.queue, pending.cost):
            return await self._response(pending)

    async def _response(self, pending: PendingRequest) -> WorkerResponse:
        request, loop = pending.request, asyncio.get_running_loop()
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

    @property
    def is_full(self) -> bool:
        """Whether requests of some clients may not wait."""
        return self._share.is_full

    def permits(self, client: str, queue: str) -> bool:
        """Whether a request of this client may wait, in the queue of its key or connection."""
        return self._share.permits(client, queue)

    def _check_time(self, pending: PendingRequest) -> None:
        """Reject a request that must not wait, or would wait for too much of its time."""
        left = pending.request.until - monotonic()
        if left <= 0:
            raise DeadlineExceeded("serve.deadline_exceeded")
        rows, longest = self._queue.rows + self._running_rows, MAX_WAIT_SHARE * left
        permitted = self.permits(pending.request.client, pending.request.queue)
        if permitted and (not rows or self._wait(pending, self._queue.rows_with(pending)) <= longest):
            return
        wait = self._wait(pending, self._queue.rows_before(pending))
        if not permitted or wait > longest:
            raise Overloaded("serve.overloaded", min(max(wait, LEAST_RETRY), MOST_RETRY), rows=rows)

    def _wait(self, pending: PendingRequest, before: Mapping[str, float]) -> float:
        """Return the seconds until a request would be explained, after these rows by options, its own among them."""
        self._latency.of(pending)
        running = sum(self._latency.predict(batch[0].pending, self._rows[one]) for one, batch in self._batches.items())
        return (running + self._latency.total(before)) / self.settings.workers

    def _usual_seconds(self, batch: Sequence[Piece]) -> float:
        return self._latency.predict(batch[0].pending, sum(one.rows for one in batch))

    def _most_rows(self, pending: PendingRequest) -> int:
        return self._latency.most_rows(pending, self._queue.is_shared)

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
        for piece in self._queue.clear():
            _fail(piece.pending, NotReady("serve.closing"))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        await self._pool.close()

    def _abandon(self, pending: PendingRequest) -> None:
        """Kill the worker of a cancelled request if no other request of its batch is waited for."""
        for worker, batch in self._batches.items():
            if any(one.pending is pending for one in batch) and not any(one.open for one in batch):
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
            self._start(self._pool.take(), self._queue.take(self._most_rows, self._latency.predict))

    def _start(self, worker: WorkerConnection, batch: list[Piece]) -> None:
        self._batches[worker], self._rows[worker] = batch, sum(one.rows for one in batch)
        task = asyncio.get_running_loop().create_task(self._run(worker, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, worker: WorkerConnection, batch: list[Piece]) -> None:
        """Run one batch on one worker. A request without a response, and not expired, is tried once more."""
        began = monotonic()
        try:
            message = wire.pack_requests([one.request() for one in batch])
            reply, body = await self._pool.request(worker, message, self._time_limit(batch))
            if "outcomes" in reply:
                self._latency.of(batch[0].pending).observe(sum(one.rows for one in batch), monotonic() - began)
                self._deliver(worker, batch, reply, wire.unpack_texts(reply, body))
            else:
                self._retry(batch)
        except WorkerGoneError as gone:
            if gone.began:
                self._retry(batch)
            else:
                self._requeue(batch)
        except asyncio.CancelledError:
            for piece in batch:
                _fail(piece.pending, NotReady("serve.closing"))
            raise
        except Exception:
            for piece in batch:
                _fail(piece.pending, WorkerLost("serve.worker_reply_invalid"))
        finally:
            self._queue.note_done(self._queue.rows + self._running_rows, monotonic() - began)
            del self._batches[worker], self._rows[worker]
            self._pool.give_back(worker)
            self._dispatch()

    def _time_limit(self, batch: Sequence[Piece]) -> float:
        """Return the seconds after which the worker is killed: when all requests have expired, or some have for long. Waiting
        for a worker that is about to finish is cheaper than replacing it."""
        ends = [one.until for one in batch]
        extra = min(max(self._usual_seconds(batch), LEAST_EXTRA), MOST_EXTRA)
        return max(min(max(ends), min(ends) + self.settings.hang_seconds) - monotonic(), 0.0) + extra

    def _deliver(self, worker: WorkerConnection, batch: Sequence[Piece], reply: Header, texts: Iterator[str]) -> None:
        first_deadline, usage = min(one.until for one in batch), BatchUsage(**reply["usage"])
        for piece, outcome in zip(batch, reply["outcomes"], strict=True):
            pending = piece.pending
            records = [StoredRecord(**one, body=next(texts)) for one in outcome.get("records", ())]
            if "invalid" in outcome:
                _fail(pending, InvalidRequest(Problem.from_dict(outcome["invalid"]), outcome["field"]))
            elif reply["cut_short"] and not piece.alone and piece.until > first_deadline + MUCH_LATER:
                self._requeue([piece], alone=True)
            elif pending.versions - {worker.generation.number}:
                # Another version has taken over since the first piece: all rows are explained again, by that one.
                self._queue.drop(pending)
                pending.restart()
                self._queue.add(pending)
            elif pending.open and piece.run == pending.run:
                found = outcome.get("predictions") or records
                complete = pending.add(piece, tuple(found), usage, worker.generation.number)
                if complete is not None:
                    problem = outcome["problem"] if pending.rows == 1 else None
                    pending.future.set_result(_response(worker, pending, complete, problem))

    def _retry(self, batch: Sequence[Piece]) -> None:
        """Run each piece alone, so that one cannot make the others fail twice."""
        for piece in batch:
            piece.attempts += 1
            if piece.attempts > 1:
                _fail(piece.pending, WorkerLost("serve.worker_lost"))
        self._requeue(batch, alone=True)

    def _requeue(self, batch: Sequence[Piece], alone: bool = False) -> None:
        """Queue pieces again, before all others of their clients and in order."""
        for piece in reversed(batch):
            if piece.open:
                piece.alone = piece.alone or alone
                self._queue.add_again(piece)


def _response(worker: WorkerConnection, pending: PendingRequest, found: tuple[Json, ...], problem: Json) -> WorkerResponse:
    description = worker.generation.descriptions[pending.request.artifact]
    invalid = None if problem is None else Problem.from_dict(problem)
    if pending.request.action == "predict":
        return WorkerResponse((), description, pending.usage, invalid, found)
    return WorkerResponse(found, description, pending.usage, invalid)


def _fail(pending: PendingRequest, error: Exception) -> None:
    if pending.open:
        pending.future.set_exception(error)
