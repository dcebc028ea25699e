"""The same function on Spark: a DataFrame in, lines out, by `mapInArrow`. Spark keeps the books: its retries, its output."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from os import PathLike
from os.path import abspath
from typing import Any

import numpy as np
import pyarrow as pa

from fasterce.batch.batches import Batch, empty_columns
from fasterce.batch.job import Job, ModelSource
from fasterce.batch.running import BATCH_ROWS, check_options, check_sendable
from fasterce.batch.shard import Worker, on_one_thread
from fasterce.errors import InputError, MissingExtraError, unknown_name
from fasterce.streams import frame_of, lines
from fasterce.streams.parquet import column

WHERE = "The Spark DataFrame"


def explain_frame(
    frame: Any,
    artifact: str | PathLike[str],
    *,
    model: Any = None,
    options: Mapping[str, Any] | None = None,
    where: str | None = None,
    id_column: str | None = None,
    keep: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
) -> Any:
    """A Spark DataFrame with the lines of `fasterce batch` but for `row`: Spark's rows have no place; `id_column` names them.

    `artifact` and `model` are paths that every executor can read; the other arguments are those of `fasterce.batch.explain`.
    """
    if isinstance(keep, str):
        raise InputError(f"keep must be a list of column names; got the text {keep!r}.")
    source = ModelSource(model, trust_pickle, tuple(trusted), None if classes is None else tuple(classes))
    job = Job(
        artifact=abspath(artifact),
        model=source,
        output="",
        options=dict(options or {}),
        where=where,
        id_column=id_column,
        keep=tuple(keep),
        batch_rows=int(batch_rows),
    )
    worker = Worker(job)
    check_options(worker.explainer, job.options)
    check_sendable(job)
    from_arrow_schema, to_arrow_schema = _conversions()
    given = to_arrow_schema(frame.schema)
    fields = _fields(worker, given)
    wanted = [*map(str, worker.explainer.table_.schema.names), *worker.columns, *([] if id_column is None else [id_column])]
    return frame.select(*dict.fromkeys(wanted)).mapInArrow(partial(lines_of, job), from_arrow_schema(fields))


def lines_of(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What an executor does with a partition; the explainer is loaded once a process."""
    worker = _worker(_Key(job))
    read = (_batch(worker, pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
    for _, _, made in worker.explained(read):
        yield from made.drop_columns(["row"]).combine_chunks().to_batches()


class _Key:
    """A job as something to remember by: its options may hold what cannot be hashed."""

    def __init__(self, job: Job) -> None:
        self.job, self.said = job, repr(job)

    def __hash__(self) -> int:
        return hash(self.said)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.said == self.said


@cache
def _worker(key: _Key) -> Worker:
    on_one_thread()
    return Worker(key.job)


def _batch(worker: Worker, table: pa.Table) -> Batch:
    kept = [column(table, table.column_names.index(name)) for name in worker.columns]
    columns = pa.Table.from_arrays(kept, names=worker.columns) if kept else empty_columns(len(table))
    ids = None if worker.job.id_column is None else column(table, table.column_names.index(worker.job.id_column))
    return Batch.plain(np.arange(len(table)), frame_of(table, worker.explainer.table_, WHERE), ids, columns)


def _fields(worker: Worker, given: pa.Schema) -> pa.Schema:
    """The columns of the lines; what is missing is told before Spark begins."""
    job, empty = worker.job, given.empty_table()
    frame_of(empty, worker.explainer.table_, WHERE)
    for name in [*worker.columns, *([] if job.id_column is None else [job.id_column])]:
        if name not in given.names:
            raise InputError(f"{WHERE}: {unknown_name('column', name, given.names)}")
    named = [] if job.id_column is None else [given.field(job.id_column).with_name("id")]
    whole = lines.schema(worker.explainer, job.options, pa.schema([*named, *(given.field(name) for name in job.keep)]))
    return whole.remove(whole.get_field_index("row"))


def _conversions() -> tuple[Any, Any]:
    try:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema  # noqa: PLC0415 - not even an extra
    except ImportError as error:
        raise MissingExtraError("pyspark", "spark", "Explaining a Spark DataFrame") from error
    return from_arrow_schema, to_arrow_schema
