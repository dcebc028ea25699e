"""One shard from its file to its place in the output: the function every engine calls."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from threadpoolctl import threadpool_limits

from fasterce import records
from fasterce.batch.batches import Batch, Filter, check_answering, gathered
from fasterce.batch.folder import Folder
from fasterce.batch.job import Job, Opened
from fasterce.batch.pruning import unwanted_groups
from fasterce.batch.shards import Shard
from fasterce.batch.tally import Tally
from fasterce.batch.writing import ShardWriter
from fasterce.explanation import INVALID_INPUT, MODEL_ERROR, Explanation
from fasterce.predictor import Asked
from fasterce.streams import Rows, Summary, lines

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "FASTERCE_THREADS")

Tell = Callable[[Tally], object]


class Worker:
    """An explainer and its model, loaded once, and what is to be done with shards."""

    def __init__(self, job: Job, opened: Opened | None = None) -> None:
        self.job = job
        self.opened = job.open() if opened is None else opened
        self.explainer = self.opened.explainer
        self.predictor = self.explainer._predictor()
        self.filter = Filter.read(job.where, self.explainer, job.options.get("target"))
        self.folder = Folder(job.output, job.token)

    @property
    def columns(self) -> list[str]:
        """The columns read beside the explainer's own."""
        others = [*self.filter.columns, *([] if self.job.group is None else [self.job.group])]
        return [*self.job.keep, *sorted({name for name in others if name not in self.job.keep})]

    def open(self, source: str) -> Rows:
        return self.job.rows(source, self.explainer, self.columns)

    def fields(self, rows: Rows) -> pa.Schema:
        """The columns of the output, the same for every shard."""
        named = [] if rows.identity is None else [pa.field("id", rows.identity)]
        kept = [rows.extra.field(name) for name in self.job.keep]
        return lines.schema(self.explainer, self.job.options, pa.schema([*named, *kept]))

    def do(self, shard: Shard, tell: Tell | None = None) -> dict[str, Any]:
        """Explain a shard and put it in its place; one that is there already is left as it is."""
        there = self.folder.finished(shard.number)
        if there is not None:
            return there
        with self.open(shard.source) as rows:
            writer = ShardWriter(self.folder, shard.number, self.fields(rows), self.job.partition_by, self.job.records)
            try:
                counted = self._explained(shard, rows, writer, tell)
                rows.check_unchanged()
                about = {"shard": vars(shard), "tally": counted.to_dict()}
                self.folder.commit(shard.number, writer.close(), about)
            except BaseException:
                writer.drop()
                raise
        return about

    def _explained(self, shard: Shard, rows: Rows, writer: ShardWriter, tell: Tell | None) -> Tally:
        counted, self.predictor.asked = Tally(read=shard.rows), Asked()
        for batch, found, made in self.explained(self._read(shard, rows)):
            writer.write(made, self._records(found, batch))
            counted += Tally.of(found, len(made), None if self.job.group is None else batch.column(self.job.group))
            if tell is not None:
                tell(counted)
        # What the filter asked the model counts too.
        filtering = Summary(calls=self.predictor.asked.calls, rows_asked=self.predictor.asked.rows)
        return counted + Tally(filtering, filtered=shard.rows - counted.summary.rows)

    def explained(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Explanation, pa.Table]]:
        """The rows that are wanted, in full batches, with what was found and its lines."""
        for batch in gathered(map(self._wanted, batches), self.job.batch_rows):
            found = lines.explain(self.explainer, batch.frame.set_axis(batch.positions), self.job.options)
            asked = (found.status != INVALID_INPUT).to_numpy() & ~batch.doubtful
            check_answering((found.status == MODEL_ERROR).to_numpy()[asked], _first_reason(found))
            yield batch, found, lines.to_lines(self.explainer, found, self._extra(batch), batch.positions)

    def _wanted(self, batch: Batch) -> Batch:
        batch = batch.take(self.filter.wanted_before(batch)) if self.filter.given is not None else batch
        return self.filter.wanted(batch, self.predictor)

    def _read(self, shard: Shard, rows: Rows) -> Iterator[Batch]:
        for start, most in spans(shard, self._unwanted(rows)):
            for chunk in rows.between(start, most):
                yield Batch.of(chunk, shard.first + chunk.first - shard.start)

    def _unwanted(self, rows: Rows) -> list[tuple[int, int]]:
        """Stretches of a Parquet file, first row and how many, that hold no wanted row by its statistics."""
        metadata = getattr(getattr(rows, "file", None), "metadata", None)
        if self.filter.given is None or metadata is None:
            return []
        groups, first, found = unwanted_groups(metadata, self.filter.given), 0, []
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            if group in groups:
                found.append((first, count))
            first += count
        return found

    def _extra(self, batch: Batch) -> pa.Table:
        """Id and columns kept, a value a row."""
        kept = batch.columns.select(list(self.job.keep))
        return kept if batch.ids is None else with_ids(kept, batch.ids)

    def _records(self, found: Explanation, batch: Batch) -> Sequence[Mapping[str, Any]] | None:
        if not self.job.records:
            return None
        positions = [str(position) for position in batch.positions.tolist()]
        named = positions if batch.ids is None else batch.ids.to_pylist()
        ids = [position if name is None else str(name) for position, name in zip(positions, named, strict=True)]
        return records.make(self.explainer, found, ids=ids, model_digest=self.opened.model_digest)


def spans(shard: Shard, left_out: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The stretches of a shard's rows that are read: all of it but what is left out."""
    start, end = shard.start, shard.start + shard.rows
    for first, count in left_out:
        if first + count <= start or first >= end:
            continue
        if first > start:
            yield start, first - start
        start = first + count
    if start < end:
        yield start, end - start


def with_ids(kept: pa.Table, ids: pa.Array) -> pa.Table:
    return pa.Table.from_arrays([ids, *kept.columns], names=["id", *kept.column_names])


def _first_reason(found: Explanation) -> str:
    return str(next(iter(found.reason[found.status == MODEL_ERROR]), ""))


def on_one_thread() -> None:
    """For a process that is one of many: every library to one thread, and no warnings that the first process gave."""
    for name in ONE_THREAD:
        os.environ[name] = "1"
    threadpool_limits(limits=1)
    warnings.simplefilter("ignore", UserWarning)
