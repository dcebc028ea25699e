"""The engine for more than one machine: Ray Data hands shards to a pool of actors, each with the model loaded once.

Ray spreads the work and starts lost actors again; which shards are done is what the output folder says, so that nothing rests
on Ray having kept every block.
"""

import logging
import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any

from fasterce.batch.events import Done, Engine, Event, Failed
from fasterce.batch.folder import Folder
from fasterce.batch.job import Job
from fasterce.batch.shard import Worker, on_one_thread
from fasterce.batch.shards import Shard
from fasterce.batch.worker import described
from fasterce.errors import FasterCEError, InputError, MissingExtraError

HERE = "127.0.0.1"
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
LOST = "WorkerDied"


class ShardActor:
    """What Ray starts: it loads the explainer once and does the shards it is handed."""

    def __init__(self, job: Job, retries: int) -> None:
        on_one_thread()
        self.job, self.retries, self.folder = job, retries, Folder(job.output, job.token)

    @cached_property
    def worker(self) -> Worker:
        """Loaded with the first shard, which then says what is wrong if it cannot be."""
        return Worker(self.job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        numbers: list[int] = []
        failures: list[str] = []
        for values in zip(*(batch[name].tolist() for name in _NAMES), strict=True):
            shard = Shard(**dict(zip(_NAMES, values, strict=True)))
            numbers.append(shard.number)
            failures.append("\n".join(self._tried(shard)))
        return {"number": numbers, "failure": failures}

    def _tried(self, shard: Shard) -> tuple[str, ...]:
        deaths = self.folder.begin_try(shard.number)
        # Ray tries for ever: a shard that kills every actor would never be told.
        if deaths > self.retries:
            return LOST, f"The actor at work on it died {deaths} times."
        try:
            self.worker.do(shard)
        except Exception as error:
            return described(error)
        finally:
            self.folder.end_try(shard.number)
        return ()


_NAMES = tuple(Shard.__dataclass_fields__)


def engine(address: str | None) -> Engine:
    """The engine on the cluster at an address, or on one started here for as long as it takes."""
    ray = found(address)

    def run(job: Job, shards: Sequence[Shard], *, workers: int, retries: int) -> Generator[Event, None, None]:
        with _connected(ray, address, workers):
            actors = workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
            yield from _rounds(ray, job, list(shards), min(actors, len(shards)), retries)

    return run


def _rounds(ray: Any, job: Job, left: list[Shard], actors: int, retries: int) -> Iterator[Event]:
    """All shards, then those that failed or were lost once more, as often as is wanted."""
    folder = Folder(job.output, job.token)
    for attempt in range(retries + 1):
        last = attempt == retries
        failed: dict[int, tuple[str, str]] = {}
        done: set[int] = set()
        try:
            for number, failure in _results(ray, job, left, actors, retries):
                kind, _, said = failure.partition("\n")
                about = folder.finished(number) if not failure else None
                if about is not None:
                    done.add(number)
                    yield Done(number, about)
                else:
                    failed[number] = (kind or "InputError", said or "Its files are not there as they were written.")
        except FasterCEError:
            raise
        except Exception as error:
            trouble = "RayError", f"Ray gave up: {_last_line(error)}"
            failed |= {shard.number: trouble for shard in left if shard.number not in failed}
        # A block that Ray dropped has said nothing, and an actor may have died between its work and its word.
        for shard in [shard for shard in left if shard.number not in done]:
            about = folder.finished(shard.number)
            if about is not None:
                done.add(shard.number)
                yield Done(shard.number, about)
            else:
                kind, said = failed.get(shard.number, (LOST, "The actor at work on it was lost."))
                hopeless = shard.number in failed and kind == LOST
                yield Failed(shard.number, kind, said, final=last or hopeless)
                done |= {shard.number} if hopeless else set()
        left = [shard for shard in left if shard.number not in done]
        if not left:
            return


def _results(ray: Any, job: Job, shards: Sequence[Shard], actors: int, retries: int) -> Iterator[tuple[int, str]]:
    """Which shard was tried, and what went wrong; as they come."""
    context = ray.data.DataContext.get_current()
    before = context.max_errored_blocks, context.enable_progress_bars
    # A block is a shard, and one that is lost is told by its shard not being done.
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
            yield int(row["number"]), str(row["failure"])
    finally:
        context.max_errored_blocks, context.enable_progress_bars = before


def _last_line(error: Exception) -> str:
    """What an error that brings a whole traceback says in the end, without colours."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
    return " ".join((lines or [type(error).__name__])[-1].split())[:300]


@contextmanager
def _connected(ray: Any, address: str | None, workers: int) -> Iterator[None]:
    """On the user's cluster, or where there is none on one of our own, on this machine alone, that ends with the work."""
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "include_dashboard": False}
    try:
        if address is None:
            ray.init(address="local", num_cpus=workers, _node_ip_address=HERE, **quiet)
        else:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())[:300]
        raise InputError(f"address must be that of a running Ray cluster; got {address!r}: {said}") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def found(address: str | None) -> Any:
    """Ray itself, or the sentence that says how to get it."""
    if address is None:
        # Read when Ray is first imported: on Linux too, a cluster of our own listens on this machine alone.
        os.environ.setdefault(LOOPBACK, "0")
    try:
        import ray  # noqa: PLC0415 - an extra
        import ray.data  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "The engine 'ray'") from error
    return ray
