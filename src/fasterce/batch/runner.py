"""Explain many files: cut the input into shards, give them to a backend, count and report."""

import os
import pickle
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from fasterce.batch import local, ray
from fasterce.batch.counts import BatchCounts
from fasterce.batch.report import BatchReport, ShardFailure, provenance
from fasterce.batch.shard import Event, Job, ShardDone, ShardFailed, ShardProgress, ShardWorker
from fasterce.batch.shards import Extent, Shard, Sources, cut, find_files, identify
from fasterce.batch.where import check_types
from fasterce.batch.write import check_partitions
from fasterce.config import BatchConfig
from fasterce.errors import InputError, Problem, check_count, unknown
from fasterce.io import locations
from fasterce.io.delimited import CsvFormat
from fasterce.io.lines import check_options
from fasterce.io.resumable import REPORT_JSON, REPORT_PAGE, ResumableFolder
from fasterce.io.run import results_depend_on
from fasterce.io.source import check_names
from fasterce.typing import JsonObject

SHARD_ROWS, BATCH_ROWS = BatchConfig().shard_rows, BatchConfig().batch_rows
BACKENDS = ("local", "ray")


@dataclass(frozen=True)
class BatchProgress:
    """Progress of a batch.

    Attributes
    ----------
    done, rows : int
        Rows done, and rows of the input.
    filtered, found : int
        Rows filtered out, and rows with a counterfactual.
    calls : int
        Model calls.
    shards_done, shards, failed, retried : int
        Finished shards, all shards, shards given up, attempts repeated.
    seconds : float
        Time since the start.
    done_before : int
        Rows an earlier run had finished.
    """

    done: int
    rows: int
    filtered: int
    found: int
    calls: int
    shards_done: int
    shards: int
    failed: int
    retried: int
    seconds: float
    done_before: int


ProgressCallback = Callable[[BatchProgress], object]


def explain(
    artifact: str | PathLike[str],
    source: Sources,
    output: str | PathLike[str],
    *,
    model: object = None,
    backend: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
    where: str | None = None,
    id_column: str | None = None,
    keep: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    group: str | None = None,
    shard_rows: int = SHARD_ROWS,
    batch_rows: int = BATCH_ROWS,
    records: bool = False,
    retries: int = 2,
    limit: int | None = None,
    resume: bool = True,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
    progress: ProgressCallback | None = None,
) -> BatchReport:
    """Explain every row of many files and write a folder of Parquet, shard by shard.

    Parameters
    ----------
    artifact : path
        The folder of a fitted explainer.
    source : str, path or sequence of them
        Files, folders, patterns ("rows/*.parquet") or addresses Arrow opens ("s3://…").
    output : path
        A folder: a new one, or that of an earlier run of the same job, which is resumed.
    model : object, optional
        A file, import path or address as for `load_model`; None takes the one in the artifact. A model itself is sent to the
        workers, if it can be pickled.
    backend : {"local", "ray"}, default="local"
        Processes of this machine, or Ray (extra `ray`) on the cluster at `address` or on one started here.
    workers : int, optional
        How many work at once; None takes the cores there are, 0 (local) this process alone.
    address : str, optional
        Address of a Ray cluster.
    options : mapping, optional
        Arguments of `explain`.
    where : str, optional
        Which rows, such as "prediction = 'bad' and age >= 30"; the others are counted and left out.
    id_column : str, optional
        A column that names the rows: `id` in the output.
    keep : sequence of str, optional
        Columns to copy to the output.
    partition_by : sequence of str, optional
        Columns of the output by which lines are put into folders, column=value.
    group : str, optional
        A column of the input by whose values the report sums up cost.
    shard_rows : int, default=50000
        Most rows of a shard, which is finished or not.
    batch_rows : int, default=5000
        Rows explained at a time.
    records : bool, default=False
        Write one audit record per row too, into `_records/`.
    retries : int, default=2
        How often a shard that failed is tried again before it is reported.
    limit : int, optional
        Explain the first `limit` rows of the input only.
    resume : bool, default=True
        Resume the run in `output`; False starts again.
    separator, encoding, decimal, thousands, trust_pickle, trusted, classes
        As for `open_rows` and `load_model`.
    progress : callable, optional
        Called with a `BatchProgress` after every batch (with Ray: every shard).

    Returns
    -------
    BatchReport
        `complete` is False if shards could not be explained; then there is no `_SUCCESS` in the folder.

    Raises
    ------
    InputError
        If an argument is wrong or the output holds something else.
    """
    started = time.monotonic()
    check_count("shard_rows", shard_rows)
    check_count("batch_rows", batch_rows)
    check_count("retries", retries, 0)
    check_count("limit", 1 if limit is None else limit)
    check_names("keep", keep)
    check_names("partition_by", partition_by)
    chosen = BatchBackend(backend, address, _worker_count(backend, address, workers), int(retries))
    job = Job(
        artifact=os.path.abspath(artifact),
        model={"model": model, "trust_pickle": trust_pickle, "trusted": trusted, "classes": classes},
        output=os.path.abspath(output),
        options=dict(options or {}),
        where=where,
        id_column=id_column,
        keep=tuple(keep),
        partition_by=tuple(partition_by),
        group=group,
        batch_rows=int(batch_rows),
        csv=CsvFormat(separator, encoding, decimal, thousands),
        records=bool(records),
    )
    files = _find_input(source, output)
    worker = ShardWorker(job)
    check_options(worker.explainer, job.options)
    shards = cut(_extents(worker, files), int(shard_rows), None if limit is None else int(limit))
    check_sendable(job)
    identity = {"shard_rows": shard_rows, "limit": limit, **_identity(worker, files)}
    folder = ResumableFolder(Path(job.output))
    with folder.locked():
        folder.begin(identity, fresh=not resume)
        run = _Run(shards, folder, started, progress)
        run.execute(chosen, worker)
        report = run.report(worker, files, chosen)
        folder.publish(folder.path / REPORT_JSON, lambda file: file.write(report.to_json().encode()))
        folder.publish(folder.path / REPORT_PAGE, lambda file: file.write(report.to_html().encode()))
        folder.complete(report.complete)
    return report


@dataclass(frozen=True)
class BatchBackend:
    """What runs the shards: worker processes, this process (no workers), or actors on Ray."""

    name: str
    address: str | None
    workers: int
    retries: int

    def events(self, worker: ShardWorker, job: Job, shards: Sequence[Shard]) -> Generator[Event, None, None]:
        """Explain every shard, each at most `1 + retries` times, and report the outcome."""
        if self.name == "ray":
            return ray.run(job, shards, workers=self.workers, retries=self.retries, address=self.address)
        if self.workers:
            return local.LocalPool(job, shards, self.workers, self.retries).run()
        return local.run_here(ShardWorker(job, worker.opened), shards, self.retries)


def _worker_count(backend: str, address: str | None, workers: int | None) -> int:
    """Check the backend; return how many work at once, 0 for all a Ray cluster has."""
    if backend not in BACKENDS:
        raise InputError(unknown("batch.unknown_backend", backend, BACKENDS, option="backend"))
    if backend == "local" and address is not None:
        raise InputError("batch.address_without_ray", option="address", received=address)
    if backend == "ray":
        if workers == 0:
            raise InputError("batch.ray_workers", option="workers", received=0)
        ray.find_ray(address)
    if workers is not None:
        check_count("workers", workers, 0)
        return int(workers)
    if address is not None:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _find_input(source: Sources, output: str | PathLike[str]) -> list[str]:
    """Return the files of the input, none of which may be inside the output."""
    if locations.is_address(str(output)):
        raise InputError("batch.output_address", option="output", received=str(output))
    files = [file if locations.is_address(file) else os.path.abspath(file) for file in find_files(source)]
    folder = Path(output).resolve()
    inside = [file for file in files if not locations.is_address(file) and Path(file).resolve().is_relative_to(folder)]
    if inside:
        raise InputError("batch.output_holds_input", option="output", path=os.path.abspath(output), received=inside[:3])
    return files


def _identity(worker: ShardWorker, files: Sequence[str]) -> JsonObject:
    """Return what results depend on, which excludes backend, workers and batch_rows."""
    job = worker.job
    return {
        "input": [identify(file) for file in files],
        "id": job.id_column,
        "keep": list(job.keep),
        "partition_by": list(job.partition_by),
        **{name: getattr(job, name) for name in ("where", "group", "records")},
        **vars(job.csv),
        **results_depend_on(worker.explainer, worker.opened.model_digest, job.options),
    }


class _Run:
    """Shards of a run that are finished (also by an earlier run), their counts, and shards that failed."""

    def __init__(
        self, shards: Sequence[Shard], folder: ResumableFolder, started: float, progress: ProgressCallback | None
    ) -> None:
        self.shards, self.token, self.started, self.progress = shards, folder.token, started, progress
        self.done: dict[int, BatchCounts] = {}
        self.underway: dict[int, BatchCounts] = {}
        self.failed: dict[int, ShardFailed] = {}
        self.so_far = BatchCounts()
        self.retried = 0
        for shard in shards:
            about = folder.finished(shard.number)
            if about is not None:
                self._finish(shard.number, about)
        self.resumed, self.done_before = len(self.done), self.so_far.read
        self._report_progress()

    @property
    def left(self) -> list[Shard]:
        return [shard for shard in self.shards if shard.number not in self.done]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def execute(self, backend: BatchBackend, worker: ShardWorker) -> None:
        """Explain the shards that are left."""
        if self.left:
            job = replace(worker.job, token=self.token)
            with closing(backend.events(worker, job, self.left)) as events:
                for event in events:
                    self.record(event)

    def record(self, event: Event) -> None:
        """Record the outcome of a shard."""
        if isinstance(event, ShardProgress):
            self.underway[event.number] = event.counts
        elif isinstance(event, ShardDone):
            self._finish(event.number, event.about)
        else:
            self.underway.pop(event.number, None)
            self.retried += not event.final
            if event.final:
                self.failed[event.number] = event
        self._report_progress()

    def _finish(self, number: int, about: JsonObject) -> None:
        self.underway.pop(number, None)
        self.done[number] = BatchCounts.from_dict(about["counts"])
        self.so_far += self.done[number]

    def _report_progress(self) -> None:
        if self.progress is None:
            return
        now = sum(self.underway.values(), self.so_far)
        self.progress(
            BatchProgress(
                done=self.so_far.read + sum(counts.summary.rows for counts in self.underway.values()),
                rows=self.rows,
                filtered=now.filtered,
                found=now.summary.found,
                calls=now.summary.calls,
                shards_done=len(self.done),
                shards=len(self.shards),
                failed=len(self.failed),
                retried=self.retried,
                seconds=time.monotonic() - self.started,
                done_before=self.done_before,
            )
        )

    def report(self, worker: ShardWorker, files: Sequence[str], backend: BatchBackend) -> BatchReport:
        """Return the report of a run that has ended."""
        return BatchReport(
            output=worker.job.output,
            counts=sum((self.done[number] for number in sorted(self.done)), BatchCounts()),
            rows=self.rows,
            shards=len(self.shards),
            resumed=self.resumed,
            failed=tuple(self._failure(shard) for shard in self.left),
            retried=self.retried,
            seconds=time.monotonic() - self.started,
            workers=backend.workers,
            backend=backend.name,
            group=worker.job.group,
            about=_about(worker, files),
        )

    def _failure(self, shard: Shard) -> ShardFailure:
        failed = self.failed.get(shard.number)
        kind, problem = ("NotDone", Problem("batch.not_done")) if failed is None else (failed.kind, failed.problem)
        return ShardFailure(shard.number, shard.source, shard.first, shard.rows, kind, problem)


def check_sendable(job: Job) -> None:
    """Raise if a job cannot be sent to other processes."""
    try:
        pickle.dumps(job)
    except Exception as error:
        raise InputError("batch.not_sendable", kind=type(error).__name__, text=str(error)[:200]) from error


def _extents(worker: ShardWorker, files: Sequence[str]) -> list[Extent]:
    """Return the length of every file, after its header and the types of its columns were checked."""
    extents: list[Extent] = []
    expected = None
    for file in files:
        with worker.open(file) as rows:
            fields = worker.fields(rows)
            if expected is None:
                expected = fields
                check_partitions(fields, worker.job.partition_by)
            elif expected != fields:
                differing = [name for name in fields.names if fields.field(name) != expected.field(name)]
                raise InputError("batch.different_types", columns=differing, file=file, first=files[0])
            types = {field.name: field.type for field in rows.extra}
            for part in worker.filter.parts:
                check_types(part, types, rows.file.name)
            extents.append(Extent(file, rows.count(), rows.file.group_rows))
    return extents


def _about(worker: ShardWorker, files: Sequence[str]) -> dict[str, str]:
    """Return what the report is based on, for people."""
    model = worker.job.model["model"]
    named = str(model) if isinstance(model, (str, PathLike)) else type(model).__name__
    return {
        "input": f"{files[0]}{f' and {len(files) - 1:,} more files' if len(files) > 1 else ''}",
        **({"where": worker.job.where} if worker.job.where else {}),
        **provenance(worker.opened, "the one in the artifact" if model is None else named, worker.job.options),
    }
