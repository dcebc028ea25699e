"""The engine for several machines: Ray Data gives shards to a pool of actors, each of which loads the model once.

Ray spreads the work and restarts lost actors. Which shards are finished is read from the output folder, so nothing depends on
Ray keeping every block.
"""

import json
import logging
import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from fasterce.batch.job import WORKER_DIED, Engine, Event, Job, ShardDone, ShardFailed, describe_error
from fasterce.batch.shard import ShardWorker, limit_threads
from fasterce.batch.shards import Shard
from fasterce.errors import FasterCEError, InputError, MissingExtraError, Problem
from fasterce.io.resumable import ResumableFolder

HERE = "127.0.0.1"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
FIELDS = tuple(Shard.__dataclass_fields__)

Failure = tuple[str, Problem]


class ShardActor:
    """What Ray starts: it loads the explainer once and explains the shards it is given."""

    def __init__(self, job: Job, retries: int) -> None:
        limit_threads()
        self.job, self.retries, self.folder = job, retries, ResumableFolder(Path(job.output), job.token)

    @cached_property
    def worker(self) -> ShardWorker:
        """Loaded with the first shard, which reports what is wrong if that fails."""
        return ShardWorker(self.job)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        numbers: list[int] = []
        failures: list[str] = []
        for values in zip(*(batch[name].tolist() for name in FIELDS), strict=True):
            shard = Shard(**dict(zip(FIELDS, values, strict=True)))
            numbers.append(shard.number)
            failure = self._attempt(shard)
            failures.append("" if failure is None else json.dumps([failure[0], failure[1].to_dict()]))
        return {"number": numbers, "failure": failures}

    def _attempt(self, shard: Shard) -> Failure | None:
        deaths = self.folder.begin_attempt(shard.number)
        # Ray retries without end: a shard that kills every actor would never be reported.
        if deaths > self.retries:
            return WORKER_DIED, Problem("batch.actor_died", details={"times": deaths})
        try:
            self.worker.explain(shard)
        except Exception as error:
            return describe_error(error)
        finally:
            self.folder.end_attempt(shard.number)
        return None


def engine(address: str | None) -> Engine:
    """Return the engine on the cluster at an address, or on one started here for the run."""
    ray = find_ray(address)

    def run(job: Job, shards: Sequence[Shard], *, workers: int, retries: int) -> Generator[Event, None, None]:
        with _connected(ray, address, workers):
            actors = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
            left = list(shards)
            for attempt in range(retries + 1):
                results = _results(ray, job, left, min(actors, len(shards)), retries)
                done = yield from _round(job, left, results, last=attempt == retries)
                left = [shard for shard in left if shard.number not in done]
                if not left:
                    return

    return run


def _round(
    job: Job, shards: Sequence[Shard], results: Iterator[tuple[int, Failure | None]], last: bool
) -> Generator[Event, None, set[int]]:
    """Try all shards once; return the numbers of those that need no other attempt."""
    folder = ResumableFolder(Path(job.output), job.token)
    failed: dict[int, Failure] = {}
    done: set[int] = set()
    try:
        for number, failure in results:
            about = folder.finished(number) if failure is None else None
            if about is not None:
                done.add(number)
                yield ShardDone(number, about)
            else:
                failed[number] = failure or ("InputError", Problem("batch.files_changed"))
    except FasterCEError:
        raise
    except Exception as error:
        trouble = "RayError", Problem("batch.ray_failed", details={"text": _last_line(error)})
        failed |= {shard.number: trouble for shard in shards if shard.number not in failed}
    # A block that Ray dropped reports nothing, and an actor may have died between finishing and reporting.
    for shard in [shard for shard in shards if shard.number not in done]:
        about = folder.finished(shard.number)
        if about is not None:
            done.add(shard.number)
            yield ShardDone(shard.number, about)
            continue
        kind, problem = failed.get(shard.number, (WORKER_DIED, Problem("batch.actor_lost")))
        hopeless = shard.number in failed and kind == WORKER_DIED
        yield ShardFailed(shard.number, kind, problem, final=last or hopeless)
        if hopeless:
            done.add(shard.number)
    return done


def _results(ray: Any, job: Job, shards: Sequence[Shard], actors: int, retries: int) -> Iterator[tuple[int, Failure | None]]:
    """Yield the number of each shard that was tried, and its failure, as they come."""
    context = ray.data.DataContext.get_current()
    before = context.max_errored_blocks, context.enable_progress_bars
    # A block is a shard; a lost one is found by its shard not being finished.
    context.max_errored_blocks, context.enable_progress_bars = -1, False
    try:
        data = ray.data.from_items([asdict(shard) for shard in shards], override_num_blocks=len(shards))
        tried = data.map_batches(
            ShardActor,
            fn_constructor_args=(job, retries),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
        )
        for row in tried.iter_rows():
            if row["failure"]:
                kind, problem = json.loads(row["failure"])
                yield int(row["number"]), (kind, Problem.from_dict(problem))
            else:
                yield int(row["number"]), None
    finally:
        context.max_errored_blocks, context.enable_progress_bars = before


def _last_line(error: Exception) -> str:
    """Return the last line of an error that holds a whole traceback, without colours."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
    return " ".join((lines or [type(error).__name__])[-1].split())[:300]


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
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def find_ray(address: str | None) -> Any:
    """Import Ray."""
    if address is None:
        # Read when Ray is first imported: on Linux too, a cluster of our own listens on this machine alone.
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray  # noqa: PLC0415 - an extra
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "The engine 'ray'") from error
    return ray
