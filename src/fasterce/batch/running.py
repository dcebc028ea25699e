"""Files of rows in, a folder of lines out: shards given to an engine, counted, and reported."""

import inspect
import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fasterce import artifact as artifacts
from fasterce.artifact.manifest import versions
from fasterce.batch import local, on_ray
from fasterce.batch.events import Done, Engine, Event, Failed, Underway
from fasterce.batch.folder import REPORT_JSON, REPORT_PAGE, Folder
from fasterce.batch.job import Job, ModelSource
from fasterce.batch.page import page
from fasterce.batch.report import BatchReport, ShardFailure
from fasterce.batch.shard import Worker
from fasterce.batch.shards import Extent, Shard, Sources, cut, find_files, identify
from fasterce.batch.tally import Tally, total
from fasterce.batch.where import check_types
from fasterce.batch.writing import check_partitions
from fasterce.errors import InputError, shorten, unknown_name
from fasterce.explainer import FasterCE
from fasterce.streams import identity, places
from fasterce.streams.source import ParquetRows, Rows

SHARD_ROWS, BATCH_ROWS = 50_000, 5_000
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Standing:
    """How far a batch is: rows done of those in the input, what was found, what the model was asked."""

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


Progress = Callable[[Standing], object]


def explain(
    artifact: str | PathLike[str],
    source: Sources,
    output: str | PathLike[str],
    *,
    model: Any = None,
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
    progress: Progress | None = None,
) -> BatchReport:
    """Explain every row of many files and write a folder of Parquet, shard by shard.

    The report's `complete` is False where shards could not be done, and then there is no `_SUCCESS` in the folder.

    Parameters
    ----------
    artifact : the folder of a fitted explainer.
    source : files, folders, patterns ("rows/*.parquet") or addresses Arrow opens ("s3://…"), one or a list of them.
    output : a folder, new or of an earlier run of the same thing, which is gone on with.
    model : a file, import path or address as for `load_model`; None takes the one the artifact brings. A model itself is sent
        to the workers, if it can be pickled.
    engine : "local", processes of this machine, or "ray" (extra `ray`), on the cluster at `address` or one started here.
    workers : how many work at once; None takes the cores there are, 0 (local) this process alone.
    options : arguments of `explain`.
    where : which rows, such as "prediction = 'bad' and age >= 30"; the others are counted and left out.
    id_column, keep : a column that names the rows (`id` in the output), and others to hand on.
    partition_by : columns of the output by which lines are put into folders, column=value.
    group : a column of the input by whose values cost is summed up in the report.
    shard_rows : the most rows of a shard, which is finished or not; `batch_rows` are explained at a time.
    records : write an audit record a row too, into `_records/`.
    retries : how often a shard that failed is tried again before it is reported.
    limit : only the first so many rows of the input.
    resume : go on with what is in `output`; False begins anew.
    separator, encoding, trust_pickle, trusted, classes : as for `open_rows` and `load_model`.
    progress : called with a `Standing` after every batch (with Ray: every shard).
    """
    started = time.monotonic()
    _check_numbers(1, shard_rows=shard_rows, batch_rows=batch_rows, limit=1 if limit is None else limit)
    _check_numbers(0, retries=retries, workers=0 if workers is None else workers)
    _check_engine(engine, address, workers)
    job = Job(
        artifact=os.path.abspath(artifact),
        model=ModelSource(model, trust_pickle, tuple(trusted), None if classes is None else tuple(classes)),
        output=str(output) if places.is_address(str(output)) else os.path.abspath(output),
        options=dict(options or {}),
        where=where,
        id_column=id_column,
        keep=_names("keep", keep),
        partition_by=_names("partition_by", partition_by),
        group=group,
        batch_rows=int(batch_rows),
        separator=separator,
        encoding=encoding,
        records=bool(records),
    )
    folder = Folder(job.output)
    files = [file if places.is_address(file) else os.path.abspath(file) for file in find_files(source)]
    _check_apart(files, folder.path)
    worker = Worker(job)
    check_options(worker.explainer, job.options)
    extents = _look(worker, files)
    shards = cut(extents, int(shard_rows), None if limit is None else int(limit))
    check_sendable(job)
    about = _about(worker, files, shard_rows, limit)
    with folder.locked():
        folder.begin(about, fresh=not resume)
        job = replace(job, token=folder.token)
        run = _Run(shards, started, progress)
        run.resume(folder)
        count = _workers(workers, address)
        if run.left:
            chosen = _engine(engine, address, worker, count)
            with closing(chosen(job, run.left, workers=count, retries=int(retries))) as events:
                for event in events:
                    run.hear(event)
        report = run.report(job, worker, count, engine, files)
        folder.publish({REPORT_JSON: report.to_json(), REPORT_PAGE: page(report)}, report.complete)
    return report


class _Run:
    """The books of a run: which shards are done, what they came to, which failed."""

    def __init__(self, shards: Sequence[Shard], started: float, progress: Progress | None) -> None:
        self.shards, self.started, self.progress = list(shards), started, progress
        self.rows = sum(shard.rows for shard in shards)
        self.done: dict[int, Tally] = {}
        self.underway: dict[int, Tally] = {}
        self.failed: dict[int, Failed] = {}
        self.so_far = Tally()
        self.retried = self.resumed = self.done_before = 0

    @property
    def left(self) -> list[Shard]:
        return [shard for shard in self.shards if shard.number not in self.done]

    def resume(self, folder: Folder) -> None:
        """Take over what an earlier run has finished, if it is still as it was written."""
        for shard in self.shards:
            about = folder.finished(shard.number)
            if about is not None:
                self._finish(shard.number, about)
        self.resumed, self.done_before = len(self.done), self.so_far.read
        self._tell()

    def hear(self, event: Event) -> None:
        if isinstance(event, Underway):
            self.underway[event.number] = event.tally
        elif isinstance(event, Done):
            self._finish(event.number, event.about)
        else:
            self.underway.pop(event.number, None)
            self.retried += not event.final
            if event.final:
                self.failed[event.number] = event
        self._tell()

    def _finish(self, number: int, about: Mapping[str, Any]) -> None:
        self.underway.pop(number, None)
        self.done[number] = Tally.from_dict(about["tally"])
        self.so_far += self.done[number]

    def _tell(self) -> None:
        if self.progress is None:
            return
        now = self.so_far + total(list(self.underway.values()))
        self.progress(
            Standing(
                done=self.so_far.read + sum(tally.summary.rows for tally in self.underway.values()),
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

    def report(self, job: Job, worker: Worker, workers: int, engine: str, files: Sequence[str]) -> BatchReport:
        failures = [
            ShardFailure(shard.number, shard.source, shard.first, shard.rows, failed.kind, failed.said)
            for shard in self.left
            for failed in [self.failed.get(shard.number, Failed(shard.number, "NotDone", "It was not done.", True))]
        ]
        return BatchReport(
            output=job.output,
            tally=total([self.done[number] for number in sorted(self.done)]),
            rows=self.rows,
            shards=len(self.shards),
            resumed=self.resumed,
            failed=tuple(failures),
            retried=self.retried,
            seconds=time.monotonic() - self.started,
            workers=workers,
            engine=engine,
            group=job.group,
            about=_rests_on(job, worker, files),
        )


def _check_engine(name: str, address: str | None, workers: int | None) -> None:
    if name not in ENGINES:
        raise InputError(unknown_name("engine", name, ENGINES))
    if name == "local" and address is not None:
        raise InputError(f"address is for engine='ray'; got {address!r} with engine='local'.")
    if name == "ray":
        if workers == 0:
            raise InputError("workers must be at least 1 with engine='ray'; got 0, which is this process alone.")
        on_ray.found(address)


def _engine(name: str, address: str | None, worker: Worker, workers: int) -> Engine:
    if name == "ray":
        return on_ray.engine(address)
    return local.run if workers else local.here(worker)


def _workers(given: int | None, address: str | None) -> int:
    if given is not None:
        return int(given)
    if address is not None:
        return 0
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InputError(f"{what} must be a list of column names; got the text {given!r}.")
    return tuple(given)


def _check_numbers(least: int, **given: Any) -> None:
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _check_apart(files: Sequence[str], output: Path) -> None:
    inside = [file for file in files if not places.is_address(file) and Path(file).resolve().is_relative_to(output.resolve())]
    if inside:
        raise InputError(f"output must be a folder apart from the input; got {output}, which holds {shorten(inside, 3)}.")


def check_options(explainer: FasterCE, options: Mapping[str, Any]) -> None:
    """Everything `explain` would refuse, before anything is read."""
    known = [name for name in inspect.signature(explainer.explain).parameters if name != "rows"]
    for name in options:
        if name not in known:
            raise InputError(unknown_name("option of explain", name, known))
    explainer.explain(explainer.table_.frame(np.zeros((0, len(explainer.table_.schema)))), **options)


def check_sendable(job: Job) -> None:
    try:
        pickle.dumps(job)
    except Exception as error:
        raise InputError(
            f"model and options must be such that they can be sent to other processes; got {type(error).__name__}: "
            f"{str(error)[:200]} (a model file or 'package.module:name' always can)."
        ) from error


def _look(worker: Worker, files: Sequence[str]) -> list[Extent]:
    """How long every file is; its header is checked, and columns handed on must be of one type in all of them."""
    extents: list[Extent] = []
    first: Rows | None = None
    for file in files:
        with worker.open(file) as rows:
            fields = worker.fields(rows)
            if first is None:
                first = rows
                check_partitions(fields, worker.job.partition_by)
            elif worker.fields(first) != fields:
                strange = [name for name in fields.names if fields.field(name) != worker.fields(first).field(name)]
                raise InputError(
                    f"Columns that are handed on must be of one type in all files; got {shorten(strange)} of another type in "
                    f"{file} than in {files[0]}."
                )
            _check_where(worker, rows)
            extents.append(_extent(file, rows))
    return extents


def _check_where(worker: Worker, rows: Rows) -> None:
    kinds = {field.name: field.type for field in rows.extra}
    for part in (worker.filter.given, worker.filter.asked):
        if part is not None:
            check_types(part, kinds, rows.where)


def _extent(file: str, rows: Rows) -> Extent:
    if not isinstance(rows, ParquetRows):
        return Extent(file, rows.count())
    metadata = rows.file.metadata
    return Extent(file, rows.count(), tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)))


def _about(worker: Worker, files: Sequence[str], shard_rows: int, limit: int | None) -> dict[str, Any]:
    """What a run is a run of: another one does not go on with it. Neither engine, workers nor batch_rows change an answer."""
    job = worker.job
    return {
        "input": [identify(file) for file in files],
        "artifact": artifacts.digest(worker.explainer),
        "twin": worker.explainer.twin_ is not None,
        "model": worker.opened.model_digest,
        "fasterce": versions()["fasterce"],
        "where": job.where,
        "id": job.id_column,
        "keep": list(job.keep),
        "partition_by": list(job.partition_by),
        "group": job.group,
        "records": job.records,
        "shard_rows": int(shard_rows),
        "limit": None if limit is None else int(limit),
        "separator": job.separator,
        "encoding": job.encoding,
        **{f"option {name}": value for name, value in identity.of_options(job.options).items()},
    }


def _rests_on(job: Job, worker: Worker, files: Sequence[str]) -> dict[str, str]:
    said = {name: value for name, value in job.options.items() if value not in (None, [], {}, ()) and name != "rules"}
    rules = [rule.text for rule in (*worker.explainer.schema_.rules, *job.options.get("rules", ()))]
    return {
        "input": f"{files[0]}{f' and {len(files) - 1:,} more files' if len(files) > 1 else ''}",
        "model": f"{_called(job.model.given)} ({worker.opened.model_digest or 'no digest'})",
        "artifact": artifacts.digest(worker.explainer),
        "seed": str(worker.explainer.random_state),
        **({"where": job.where} if job.where else {}),
        **({"options": ", ".join(f"{name} {value}" for name, value in said.items())} if said else {}),
        **({"rules": "; ".join(rules)} if rules else {}),
    }


def _called(model: Any) -> str:
    if model is None:
        return "the one the artifact brings"
    return str(model) if isinstance(model, (str, PathLike)) else type(model).__name__
