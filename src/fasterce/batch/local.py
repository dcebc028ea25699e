"""The backend of one machine: worker processes, each with its own copy of the model; a worker that dies is replaced.

Shards go to a worker over a socket, progress and results come back.
"""

import gc
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from fasterce.batch.shard import (
    WORKER_DIED,
    Event,
    Job,
    ShardDone,
    ShardFailed,
    ShardProgress,
    ShardWorker,
    describe_error,
    limit_threads,
)
from fasterce.batch.shards import Shard
from fasterce.errors import FasterCEError, ModelError, Problem
from fasterce.io.processes import EXITED, ForkServer

TARGET = "fasterce.batch.local:run_worker"
READY, UNUSABLE, PROGRESS, DONE, FAILED = "ready", "unusable", "progress", "done", "failed"
MAX_FAILED_STARTS = 3
# Seconds to wait for an event; seconds before a failed shard is tried again (doubled each time) and their maximum.
PATIENCE, LONGEST_PAUSE = 0.5, 30.0


class ShardPool(ABC):
    """Workers that explain every shard, each at most `1 + retries` times; results do not depend on the worker."""

    def __init__(self, job: Job, shards: Sequence[Shard], size: int, retries: int) -> None:
        self.job, self.size, self.retries = job, size, retries
        self.waiting = deque(shards)
        self.attempts: Counter[int] = Counter()
        self.earliest: dict[int, float] = {}
        self.failed_starts = 0

    def run(self) -> Generator[Event, None, None]:
        """Explain the shards and yield the outcome of each."""
        try:
            while self.waiting or self.busy:
                yield from self.step()
        finally:
            self.close()

    @property
    def needed(self) -> int:
        """Number of workers that the remaining shards need."""
        return min(self.size, len(self.waiting) + self.busy)

    def take(self) -> Shard | None:
        """Return the next shard that may be tried now."""
        now = time.monotonic()
        for _ in range(len(self.waiting)):
            shard = self.waiting.popleft()
            if self.earliest.get(shard.number, 0.0) <= now:
                return shard
            self.waiting.append(shard)
        return None

    def failed(self, shard: Shard, kind: str, problem: Problem) -> ShardFailed:
        """Queue a failed shard again, if it has attempts left."""
        self.attempts[shard.number] += 1
        attempts = self.attempts[shard.number]
        if attempts <= self.retries:
            self.earliest[shard.number] = time.monotonic() + min(PATIENCE * 2**attempts, LONGEST_PAUSE)
            self.waiting.append(shard)
        return ShardFailed(shard.number, kind, problem, final=attempts > self.retries)

    @property
    @abstractmethod
    def busy(self) -> int:
        """Number of shards being explained."""

    @abstractmethod
    def step(self) -> Iterator[Event]:
        """Start workers, hand out shards, and yield what the workers report."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""


@dataclass
class PoolWorker:
    """A worker process by its number, the socket to it, and its current shard."""

    number: int
    connection: Connection
    ready: bool = False
    shard: Shard | None = None

    def send(self, value: Job | Shard) -> None:
        with suppress(OSError):  # a worker that has died is reaped
            self.connection.send(value)


class LocalPool(ShardPool):
    """The worker processes of a run."""

    server: ForkServer | None = None
    spawned = 0

    def __init__(self, job: Job, shards: Sequence[Shard], size: int, retries: int) -> None:
        super().__init__(job, shards, size, retries)
        self.workers: dict[int, PoolWorker] = {}

    @property
    def busy(self) -> int:
        return sum(worker.shard is not None for worker in self.workers.values())

    def step(self) -> Iterator[Event]:
        server = self.server = self.server or ForkServer(TARGET)
        while len(self.workers) < self.needed:
            self._spawn(server)
        for worker in self.workers.values():
            if worker.ready and worker.shard is None:
                worker.shard = self.take()
                if worker.shard is not None:
                    worker.send(worker.shard)
        open_workers = {worker.connection: worker for worker in self.workers.values() if not worker.connection.closed}
        ready = wait([server.control, *open_workers], timeout=PATIENCE)
        for connection, worker in open_workers.items():
            if connection in ready:
                yield from self._handle(worker)
        if server.control in ready:
            yield from self._reap_exited(server)

    def _spawn(self, server: ForkServer) -> None:
        self.spawned += 1
        try:
            connection = server.spawn(self.spawned)
        except OSError:  # the server is gone, which its socket reports
            connection = socket.socket()
        worker = self.workers[self.spawned] = PoolWorker(self.spawned, Connection(connection.detach()))
        worker.send(self.job)

    def _handle(self, worker: PoolWorker) -> Iterator[Event]:
        """Handle one message; a socket at its end is closed, and the exit of its worker is an event of the fork server."""
        try:
            kind, value = worker.connection.recv()
        except (EOFError, OSError):
            worker.connection.close()
            return
        if kind == READY:
            worker.ready, self.failed_starts = True, 0
        elif kind == UNUSABLE:
            raise ModelError("batch.worker_start", cause=value[1])
        elif worker.shard is not None and kind == PROGRESS:
            yield ShardProgress(worker.shard.number, value)
        elif worker.shard is not None:
            shard, worker.shard = worker.shard, None
            yield ShardDone(shard.number, value) if kind == DONE else self.failed(shard, *value)

    def _reap_exited(self, server: ForkServer) -> Iterator[Event]:
        events = server.events()
        if events is None:
            server.close()
            self.server, code = None, server.process.wait()
            events = [(EXITED, number, code) for number in self.workers]
        for what, number, code in events:
            if what == EXITED and number in self.workers:
                yield from self._reap(self.workers[number], code)

    def _reap(self, worker: PoolWorker, code: int) -> Iterator[Event]:
        """Remove a worker that has exited, after its last messages; its shard is explained again."""
        while not worker.connection.closed:
            yield from self._handle(worker)
        del self.workers[worker.number]
        how = Problem("batch.ended_by_signal" if code < 0 else "batch.ended_with_code", details={"code": abs(code)})
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts >= MAX_FAILED_STARTS:
                raise FasterCEError("batch.workers_never_start", times=self.failed_starts, how=how)
        if worker.shard is not None:
            yield self.failed(worker.shard, WORKER_DIED, Problem("batch.worker_died", details={"how": how}))

    def close(self) -> None:
        for worker in self.workers.values():
            worker.connection.close()
        if self.server is not None:
            self.server.close()
            self.server.process.wait()


def run_here(worker: ShardWorker, shards: Sequence[Shard], retries: int) -> Generator[Event, None, None]:
    """Explain the shards in this process, without protection from a model that hangs or crashes."""
    for shard in shards:
        for attempt in range(retries + 1):
            try:
                yield ShardDone(shard.number, worker.explain(shard))
                break
            except Exception as error:
                yield ShardFailed(shard.number, *describe_error(error), final=attempt == retries)
                time.sleep(PATIENCE)


def run_worker(control: socket.socket) -> None:
    """Load the explainer of the job received, then work on shards until the socket is closed. Runs in a worker process."""
    gc.enable()
    connection = Connection(control.detach())
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            limit_threads()
            worker = ShardWorker(connection.recv())
        except EOFError:
            raise
        except Exception as error:
            connection.send((UNUSABLE, describe_error(error)))
            return
        connection.send((READY, None))
        while True:
            shard = connection.recv()
            try:
                about = worker.explain(shard, lambda counts: connection.send((PROGRESS, counts)))
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:
                connection.send((FAILED, describe_error(error)))
            else:
                connection.send((DONE, about))
