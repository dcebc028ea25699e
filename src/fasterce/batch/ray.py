"""The backend for several machines: shards go to actors on a Ray cluster, each of which loads the model once.

An actor that is lost with its process or machine is replaced. Which shards are finished is read from the output folder.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from fasterce.batch import local
from fasterce.batch.local import MAX_FAILED_STARTS, ShardPool
from fasterce.batch.shard import WORKER_DIED, Event, Job, ShardDone, ShardWorker, describe_error, limit_threads
from fasterce.batch.shards import Shard
from fasterce.errors import FasterCEError, InputError, Problem, import_extra
from fasterce.io.resumable import ResumableFolder

HERE = "127.0.0.1"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"

Failure = tuple[str, Problem]


class ShardActor:
    """A Ray actor: it loads the explainer once and explains the shards it receives."""

    def __init__(self, job: Job) -> None:
        limit_threads()
        self.job = job

    @cached_property
    def worker(self) -> ShardWorker:
        """Loaded with the first shard, which reports what is wrong if that fails."""
        return ShardWorker(self.job)

    def start(self) -> None:
        """Return once the actor runs."""

    def explain(self, shard: Shard) -> Failure | None:
        """Explain a shard and write it to the output folder, or return why that failed."""
        try:
            self.worker.explain(shard)
        except Exception as error:
            return describe_error(error)
        return None


class ActorPool(ShardPool):
    """The actors of a run. Shards go only to actors that have started: the cluster may lack room for the others."""

    def __init__(self, ray: Any, job: Job, shards: Sequence[Shard], size: int, retries: int) -> None:
        super().__init__(job, shards, size, retries)
        self.ray, self.folder = ray, ResumableFolder(Path(job.output), job.token)
        self.idle: list[Any] = []
        # By the result awaited: the actor, and its shard or None while it starts.
        self.awaited: dict[Any, tuple[Any, Shard | None]] = {}
        self.deaths: Counter[int] = Counter()

    @property
    def busy(self) -> int:
        return sum(shard is not None for _, shard in self.awaited.values())

    def step(self) -> Iterator[Event]:
        while len(self.idle) + len(self.awaited) < self.needed:
            actor = self.ray.remote(num_cpus=1)(ShardActor).remote(self.job)
            self.awaited[actor.start.remote()] = actor, None
        while self.idle and (next_shard := self.take()) is not None:
            actor = self.idle.pop()
            self.awaited[actor.explain.remote(next_shard)] = actor, next_shard
        if not self.awaited:
            time.sleep(local.PATIENCE)
            return
        for result in self.ray.wait(list(self.awaited), timeout=local.PATIENCE)[0]:
            actor, shard = self.awaited.pop(result)
            try:
                failure = self.ray.get(result)
            except self.ray.exceptions.RayError as error:
                failure = self._died(shard, error)
            else:
                self.idle.append(actor)
                self.failed_starts = 0
            if shard is not None:
                yield self._event(shard, failure)

    def _died(self, shard: Shard | None, error: Exception) -> Failure | None:
        """Return the failure of the shard an actor died with; raise if actors never start."""
        if shard is not None:
            self.deaths[shard.number] += 1
            return WORKER_DIED, Problem("batch.actor_died", details={"times": self.deaths[shard.number]})
        self.failed_starts += 1
        if self.failed_starts >= MAX_FAILED_STARTS:
            raise FasterCEError("batch.ray_failed", text=" ".join(str(error).split())[:300]) from error
        return None

    def _event(self, shard: Shard, failure: Failure | None) -> Event:
        # An actor may have died between finishing and reporting.
        about = self.folder.finished(shard.number)
        if about is not None:
            return ShardDone(shard.number, about)
        return self.failed(shard, *(failure or ("InputError", Problem("batch.files_changed"))))

    def close(self) -> None:
        for actor in (*self.idle, *(actor for actor, _ in self.awaited.values())):
            self.ray.kill(actor)


def run(
    job: Job, shards: Sequence[Shard], *, workers: int, retries: int, address: str | None
) -> Generator[Event, None, None]:
    """Explain every shard by actors on the cluster at an address, or on one started here for the run."""
    ray = find_ray(address)
    with _connected(ray, address, workers):
        size = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        yield from ActorPool(ray, job, shards, size, retries).run()


@contextmanager
def _connected(ray: Any, address: str | None, workers: int) -> Iterator[None]:
    """Connect to the user's cluster, or start one on this machine alone that ends with the run."""
    if ray.is_initialized():
        yield
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            ray.init(address="local", num_cpus=workers, _node_ip_address=HERE, include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        text = " ".join(str(error).split())[:300]
        raise InputError("batch.no_cluster", option="address", address=address, text=text) from error
    try:
        yield
    finally:
        ray.shutdown()


def find_ray(address: str | None) -> Any:
    """Import Ray."""
    if address is None:
        # Ray reads this on import: a cluster started here listens on the loopback address only, on Linux too.
        os.environ.setdefault(LOOPBACK, "0")
    return import_extra("ray", "ray", "The backend 'ray'")
