"""Explain one shard and write it to the output folder; the job and the events that all backends share."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
from threadpoolctl import threadpool_limits

from fasterce import records
from fasterce.artifact import OpenedExplainer, open_explainer
from fasterce.batch.counts import BatchCounts
from fasterce.batch.shards import Shard
from fasterce.batch.where import Filter, check_model_is_up, unwanted_groups
from fasterce.batch.write import ShardWriter
from fasterce.errors import FasterCEError, Problem
from fasterce.explanation import INVALID_INPUT, MODEL_ERROR, Explanation
from fasterce.io import Chunk, Rows, Summary, lines, open_rows
from fasterce.io.delimited import CsvFormat
from fasterce.io.resumable import ResumableFolder
from fasterce.models.predictor import ModelUsage
from fasterce.typing import JsonObject

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "FASTERCE_THREADS")

WORKER_DIED = "WorkerDied"

Report = Callable[[BatchCounts], object]


@dataclass(frozen=True)
class Job:
    """The description of a batch run for its workers.

    Attributes
    ----------
    artifact : str
        The folder of the explainer; each worker loads it once.
    model : mapping
        Further arguments of `open_explainer`: the model, and how to load it.
    output : str
        The folder to write.
    options : mapping
        Arguments of `explain`.
    where : str or None
        Which rows to explain.
    id_column : str or None
        A column that names the rows.
    keep, partition_by : tuple of str
        Columns to copy to the output, and columns of the output that make folders.
    group : str or None
        The column by whose values cost is summed up.
    batch_rows : int
        Rows explained at a time.
    csv : CsvFormat
        How CSV files of the input are written.
    records : bool
        Whether audit records are written too.
    token : str
        Which run of the output folder this is.
    """

    artifact: str
    model: Mapping[str, Any]
    output: str
    options: Mapping[str, Any]
    where: str | None = None
    id_column: str | None = None
    keep: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    group: str | None = None
    batch_rows: int = 5000
    csv: CsvFormat = field(default_factory=CsvFormat)
    records: bool = False
    token: str = ""


@dataclass(frozen=True)
class ShardProgress:
    """The counts of a shard so far."""

    number: int
    counts: BatchCounts


@dataclass(frozen=True)
class ShardDone:
    """A finished shard, with its description in the output folder."""

    number: int
    about: JsonObject


@dataclass(frozen=True)
class ShardFailed:
    """A failed attempt; `kind` is the name of the exception, `final` whether the shard is given up."""

    number: int
    kind: str
    problem: Problem
    final: bool


Event = ShardProgress | ShardDone | ShardFailed


def describe_error(error: Exception) -> tuple[str, Problem]:
    """Return the kind of an error and its problem, which any process can read."""
    kind = type(error).__name__
    if isinstance(error, FasterCEError):
        # As plain data: the received value may be a user's object that cannot be pickled.
        return kind, Problem.from_dict(error.problem.to_dict())
    return kind, Problem("batch.unexpected_error", details={"kind": kind, "text": " ".join(str(error).split())[:300]})


class ShardWorker:
    """An explainer and its model, loaded once, and the job to do with shards."""

    def __init__(self, job: Job, opened: OpenedExplainer | None = None) -> None:
        self.job = job
        self.opened = open_explainer(job.artifact, **job.model) if opened is None else opened
        self.explainer = self.opened.explainer
        self.predictor = self.explainer._predictor()
        self.filter = Filter.parse(job.where, self.explainer, job.options.get("target"))
        self.folder = ResumableFolder(Path(job.output), job.token)

    @property
    def columns(self) -> list[str]:
        """The columns read beside those of the explainer."""
        others = [*self.filter.columns, *([] if self.job.group is None else [self.job.group])]
        return [*self.job.keep, *sorted({name for name in others if name not in self.job.keep})]

    def open(self, source: str) -> Rows:
        """Open a file of the input."""
        return open_rows(
            source,
            table=self.explainer.state_.table,
            chunk_rows=self.job.batch_rows,
            **vars(self.job.csv),
            ids=self.job.id_column,
            keep=self.columns,
        )

    def fields(self, rows: Rows) -> pa.Schema:
        """Return the columns of the output, the same for every shard."""
        return lines.schema(self.explainer, self.job.options, rows.copied(self.job.keep))

    def explain(self, shard: Shard, report: Report | None = None) -> JsonObject:
        """Explain a shard and write it, unless it is finished; return its description."""
        finished = self.folder.finished(shard.number)
        if finished is not None:
            return finished
        with self.open(shard.source) as rows:
            writer = ShardWriter(self.folder, shard.number, self.fields(rows), self.job.partition_by, self.job.records)
            try:
                counts = self._write(shard, rows, writer, report)
                rows.check_unchanged()
                about = {"shard": vars(shard), "counts": counts.to_dict()}
                self.folder.commit(shard.number, writer.close(), about)
            except BaseException:
                writer.drop()
                raise
        return about

    def _write(self, shard: Shard, rows: Rows, writer: ShardWriter, report: Report | None) -> BatchCounts:
        counts, self.predictor.usage = BatchCounts(read=shard.rows), ModelUsage()
        for batch, found, made in self.explain_batches(self._read(shard, rows)):
            written: Sequence[Mapping[str, object]] = ()
            if self.job.records:
                digest = self.opened.model_digest
                written = records.make(self.explainer, found, ids=batch.record_ids(), model_digest=digest)
            writer.write(made, written)
            counts += BatchCounts.of(found, len(made), None if self.job.group is None else batch.column(self.job.group))
            if report is not None:
                report(counts)
        # The model calls of the filter count too.
        filtering = Summary(calls=self.predictor.usage.calls, model_rows=self.predictor.usage.rows)
        return counts + BatchCounts(filtering, filtered=shard.rows - counts.summary.rows)

    def explain_batches(self, batches: Iterable[Chunk]) -> Iterator[tuple[Chunk, Explanation, pa.Table]]:
        """Yield the rows that pass the filter, in full batches, with their explanation and lines."""
        selected = (self.filter.select(batch, self.predictor) for batch in batches)
        for batch in rebatch(selected, self.job.batch_rows):
            found = lines.explain(self.explainer, batch.frame.set_axis(batch.positions), self.job.options)
            evaluated = (found.status != INVALID_INPUT).to_numpy() & ~batch.unfiltered
            failed = (found.status == MODEL_ERROR).to_numpy()
            check_model_is_up(failed[evaluated], next(iter(found.reason[failed]), ""))
            yield batch, found, lines.to_lines(self.explainer, found, batch.copied(self.job.keep), batch.positions)

    def _read(self, shard: Shard, rows: Rows) -> Iterator[Chunk]:
        for start, most in spans(shard, self._excluded(rows)):
            for chunk in rows.between(start, most):
                yield replace(chunk, positions=chunk.positions + shard.first - shard.start)

    def _excluded(self, rows: Rows) -> list[tuple[int, int]]:
        """Return the ranges of a Parquet file, first row and count, in which no row passes the filter by its statistics."""
        metadata = rows.file.metadata
        if self.filter.of_input is None or metadata is None:
            return []
        counts = rows.file.group_rows
        firsts = [0, *accumulate(counts)]
        return [(firsts[group], counts[group]) for group in sorted(unwanted_groups(metadata, self.filter.of_input))]


def rebatch(chunks: Iterable[Chunk], rows: int) -> Iterator[Chunk]:
    """Yield the same rows in chunks of `rows`; the last one has what is left."""
    waiting: list[Chunk] = []
    for chunk in chunks:
        if not len(chunk):
            continue
        waiting.append(chunk)
        while sum(map(len, waiting)) >= rows:
            joined = Chunk.join(waiting)
            yield joined if len(joined) == rows else joined.take(slice(0, rows))
            waiting = [joined.take(slice(rows, None))] if len(joined) > rows else []
    if waiting:
        yield Chunk.join(waiting)


def spans(shard: Shard, excluded: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a shard to read, first row and count: all but the excluded ones."""
    start, end = shard.start, shard.start + shard.rows
    for first, count in excluded:
        if first + count <= start or first >= end:
            continue
        if first > start:
            yield start, first - start
        start = first + count
    if start < end:
        yield start, end - start


def limit_threads() -> None:
    """Limit every library of a worker process to one thread, and hide warnings the first process has shown."""
    for name in ONE_THREAD:
        os.environ[name] = "1"
    threadpool_limits(limits=1)
    warnings.simplefilter("ignore", UserWarning)
