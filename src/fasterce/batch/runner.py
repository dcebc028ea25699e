"""Explain many files: cut the input into shards, give them to an engine, count and report."""

import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from fasterce import artifact as artifacts
from fasterce.artifact.manifest import versions
from fasterce.batch import local, ray
from fasterce.batch.counts import BatchCounts
from fasterce.batch.job import Engine, Event, Job, ModelSource, ShardDone, ShardFailed, ShardProgress
from fasterce.batch.page import page
from fasterce.batch.report import BatchReport, ShardFailure, provenance
from fasterce.batch.shard import ShardWorker
from fasterce.batch.shards import Extent, Shard, Sources, cut, find_files, identify
from fasterce.batch.where import check_types
from fasterce.batch.write import check_partitions
from fasterce.config import BatchConfig
from fasterce.errors import InputError, Problem, unknown
from fasterce.io import locations
from fasterce.io.lines import check_options
from fasterce.io.resumable import REPORT_JSON, REPORT_PAGE, ResumableFolder, job_options
from fasterce.io.source import ParquetRows, Rows, check_count, check_names
from fasterce.typing import JsonObject

SHARD_ROWS, BATCH_ROWS = BatchConfig().shard_rows, BatchConfig().batch_rows
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

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


@dataclass(frozen=True)
class _Plan:
    """What is explained: the files, cut into shards, and what identifies the job."""

    worker: ShardWorker
    files: list[str]
    shards: list[Shard]
    identity: JsonObject


@dataclass(frozen=True)
class _EngineChoice:
    """Who does the work."""

    name: str
    address: str | None
    workers: int
    retries: int

    @classmethod
    def make(cls, name: str, address: str | None, workers: int | None, retries: int) -> "_EngineChoice":
        check_count("retries", retries, 0)
        if workers is not None:
            check_count("workers", workers, 0)
        if name not in ENGINES:
            raise InputError(unknown("batch.unknown_engine", name, ENGINES, option="engine"))
        if name == "local" and address is not None:
            raise InputError("batch.address_without_ray", option="address", received=address)
        if name == "ray":
            if workers == 0:
                raise InputError("batch.ray_workers", option="workers", received=0)
            ray.find_ray(address)
        return cls(name, address, _worker_count(workers, address), int(retries))

    def engine(self, worker: ShardWorker) -> Engine:
        if self.name == "ray":
            return ray.engine(self.address)
        return local.run if self.workers else local.here(worker)


def explain(
    artifact: str | PathLike[str],
    source: Sources,
    output: str | PathLike[str],
    *,
    model: object = None,
    engine: Literal["local", "ray"] = "local",
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
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
    progress: Callable[[BatchProgress], object] | None = None,
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
    engine : {"local", "ray"}, default="local"
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
    separator, encoding, trust_pickle, trusted, classes
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
    check_count("limit", 1 if limit is None else limit)
    check_names("keep", keep)
    check_names("partition_by", partition_by)
    choice = _EngineChoice.make(engine, address, workers, retries)
    if locations.is_address(str(output)):
        raise InputError("batch.output_address", option="output", received=str(output))
    job = Job(
        artifact=os.path.abspath(artifact),
        model=ModelSource(model, trust_pickle, tuple(trusted), None if classes is None else tuple(classes)),
        output=os.path.abspath(output),
        options=dict(options or {}),
        where=where,
        id_column=id_column,
        keep=tuple(keep),
        partition_by=tuple(partition_by),
        group=group,
        batch_rows=int(batch_rows),
        separator=separator,
        encoding=encoding,
        records=bool(records),
    )
    plan = _make_plan(job, source, int(shard_rows), None if limit is None else int(limit))
    return _execute(plan, choice, _Run(plan.shards, started, progress), resume)


def _make_plan(job: Job, source: Sources, shard_rows: int, limit: int | None) -> _Plan:
    """Check everything that can be wrong, and cut the input into shards."""
    files = [file if locations.is_address(file) else os.path.abspath(file) for file in find_files(source)]
    output = Path(job.output).resolve()
    inside = [file for file in files if not locations.is_address(file) and Path(file).resolve().is_relative_to(output)]
    if inside:
        raise InputError("batch.output_holds_input", option="output", path=job.output, received=inside[:3])
    worker = ShardWorker(job)
    check_options(worker.explainer, job.options)
    shards = cut(_extents(worker, files), shard_rows, limit)
    check_sendable(job)
    # Neither engine, workers nor batch_rows change a result.
    identity = {
        "input": [identify(file) for file in files],
        "artifact": artifacts.digest(worker.explainer),
        "compiled": worker.explainer.state_.compiled is not None,
        "model": worker.opened.model_digest,
        "fasterce": versions()["fasterce"],
        "shard_rows": shard_rows,
        "limit": limit,
        "id": job.id_column,
        "keep": list(job.keep),
        "partition_by": list(job.partition_by),
        **{name: getattr(job, name) for name in ("where", "group", "records", "separator", "encoding")},
        **job_options(job.options),
    }
    return _Plan(worker, files, shards, identity)


def _execute(plan: _Plan, choice: _EngineChoice, run: "_Run", resume: bool) -> BatchReport:
    """Explain the shards that are not finished, and write the report."""
    job = plan.worker.job
    folder = ResumableFolder(Path(job.output))
    with folder.locked():
        folder.begin(plan.identity, fresh=not resume)
        run.resume(folder)
        if run.left:
            engine = choice.engine(plan.worker)
            sent = replace(job, token=folder.token)
            with closing(engine(sent, run.left, workers=choice.workers, retries=choice.retries)) as events:
                for event in events:
                    run.record(event)
        report = run.report(plan, choice)
        folder.publish(folder.path / REPORT_JSON, lambda file: file.write(report.to_json().encode()))
        folder.publish(folder.path / REPORT_PAGE, lambda file: file.write(page(report).encode()))
        folder.complete(report.complete)
    return report


class _Run:
    """Which shards of a run are finished, their counts, and which failed."""

    def __init__(self, shards: Sequence[Shard], started: float, progress: Callable[[BatchProgress], object] | None) -> None:
        self.shards, self.started, self.progress = list(shards), started, progress
        self.rows = sum(shard.rows for shard in shards)
        self.done: dict[int, BatchCounts] = {}
        self.underway: dict[int, BatchCounts] = {}
        self.failed: dict[int, ShardFailed] = {}
        self.so_far = BatchCounts()
        self.retried = self.resumed = self.done_before = 0

    @property
    def left(self) -> list[Shard]:
        return [shard for shard in self.shards if shard.number not in self.done]

    def resume(self, folder: ResumableFolder) -> None:
        """Take over what an earlier run has finished."""
        for shard in self.shards:
            about = folder.finished(shard.number)
            if about is not None:
                self._finish(shard.number, about)
        self.resumed, self.done_before = len(self.done), self.so_far.read
        self._report_progress()

    def record(self, event: Event) -> None:
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

    def report(self, plan: _Plan, choice: _EngineChoice) -> BatchReport:
        job = plan.worker.job
        return BatchReport(
            output=job.output,
            counts=sum((self.done[number] for number in sorted(self.done)), BatchCounts()),
            rows=self.rows,
            shards=len(self.shards),
            resumed=self.resumed,
            failed=tuple(self._failure(shard) for shard in self.left),
            retried=self.retried,
            seconds=time.monotonic() - self.started,
            workers=choice.workers,
            engine=choice.name,
            group=job.group,
            about=_about(plan),
        )

    def _failure(self, shard: Shard) -> ShardFailure:
        failed = self.failed.get(shard.number)
        kind, problem = ("NotDone", Problem("batch.not_done")) if failed is None else (failed.kind, failed.problem)
        return ShardFailure(shard.number, shard.source, shard.first, shard.rows, kind, problem)


def _worker_count(given: int | None, address: str | None) -> int:
    if given is not None:
        return int(given)
    if address is not None:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
                check_types(part, types, rows.name)
            extents.append(_extent(file, rows))
    return extents


def _extent(file: str, rows: Rows) -> Extent:
    if not isinstance(rows, ParquetRows):
        return Extent(file, rows.count())
    metadata = rows.file.metadata
    return Extent(file, rows.count(), tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)))


def _about(plan: _Plan) -> dict[str, str]:
    """Return what the report is based on, for people."""
    job, files = plan.worker.job, plan.files
    model = job.model.given
    named = str(model) if isinstance(model, (str, PathLike)) else type(model).__name__
    return {
        "input": f"{files[0]}{f' and {len(files) - 1:,} more files' if len(files) > 1 else ''}",
        **({"where": job.where} if job.where else {}),
        **provenance(plan.worker.opened, "the one in the artifact" if model is None else named, job.options),
    }
