"""Explain a Spark DataFrame by `mapInArrow`; retries and output are those of Spark."""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from os import PathLike
from os.path import abspath
from typing import Any

import pyarrow as pa

from fasterce.batch.runner import BATCH_ROWS, check_sendable
from fasterce.batch.shard import Job, ShardWorker, limit_threads
from fasterce.errors import InputError, import_extra, unknown
from fasterce.io import Chunk, frame_of, lines
from fasterce.io.cells import column
from fasterce.io.lines import check_options
from fasterce.io.source import check_names

WHERE = "The Spark DataFrame"


def explain_frame(
    frame: Any,
    artifact: str | PathLike[str],
    *,
    model: object = None,
    options: Mapping[str, Any] | None = None,
    where: str | None = None,
    id_column: str | None = None,
    keep: Sequence[str] = (),
    batch_rows: int = BATCH_ROWS,
    trust_pickle: bool = False,
    trusted: Sequence[str] = (),
    classes: Sequence[Any] | None = None,
) -> Any:
    """Explain the rows of a Spark DataFrame.

    Parameters
    ----------
    frame : Spark DataFrame
        The rows.
    artifact, model : path
        Paths that every executor can read.
    options, where, id_column, keep, batch_rows, trust_pickle, trusted, classes
        As for `fasterce.batch.explain`.

    Returns
    -------
    Spark DataFrame
        The lines of `fasterce batch` without `row`: rows of Spark have no position; `id_column` names them.
    """
    types = import_extra("pyspark.sql.pandas.types", "spark", "Explaining a Spark DataFrame", "pyspark")
    check_names("keep", keep)
    job = Job(
        artifact=abspath(artifact),
        model={"model": model, "trust_pickle": trust_pickle, "trusted": trusted, "classes": classes},
        output="",
        options=dict(options or {}),
        where=where,
        id_column=id_column,
        keep=tuple(keep),
        batch_rows=int(batch_rows),
    )
    worker = ShardWorker(job)
    check_options(worker.explainer, job.options)
    check_sendable(job)
    fields = _fields(worker, types.to_arrow_schema(frame.schema))
    schema = worker.explainer.state_.table.schema
    passed = [str(name) for name in schema.passthrough if str(name) in frame.columns]
    used = [*map(str, schema.names), *passed, *_other_columns(worker)]
    return frame.select(*dict.fromkeys(used)).mapInArrow(partial(explain_partition, job), types.from_arrow_schema(fields))


def explain_partition(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Explain a partition in an executor, which loads the explainer once per process."""
    worker = _worker(pickle.dumps(job))
    read = (_chunk(worker, pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
    for _, _, made in worker.explain_batches(read):
        yield from made.drop_columns(["row"]).combine_chunks().to_batches()


@cache
def _worker(pickled: bytes) -> ShardWorker:
    limit_threads()
    # The driver of the same job pickled it.
    return ShardWorker(pickle.loads(pickled))  # nosec B301


def _other_columns(worker: ShardWorker) -> list[str]:
    return [*worker.columns, *([] if worker.job.id_column is None else [worker.job.id_column])]


def _chunk(worker: ShardWorker, table: pa.Table) -> Chunk:
    found = {name: column(table, table.column_names.index(name)) for name in _other_columns(worker)}
    kept = [(name, found[name]) for name in worker.columns]
    ids = None if worker.job.id_column is None else found[worker.job.id_column]
    return Chunk.make(0, frame_of(table, worker.explainer.state_.table, WHERE), ids, kept)


def _fields(worker: ShardWorker, given: pa.Schema) -> pa.Schema:
    """Return the columns of the lines; raise for missing columns before Spark starts."""
    job = worker.job
    frame_of(given.empty_table(), worker.explainer.state_.table, WHERE)
    for name in _other_columns(worker):
        if name not in given.names:
            raise InputError(unknown("io.unknown_column", name, given.names, source=WHERE))
    ids = [] if job.id_column is None else [given.field(job.id_column).with_name("id")]
    whole = lines.schema(worker.explainer, job.options, pa.schema([*ids, *(given.field(name) for name in job.keep)]))
    return whole.remove(whole.get_field_index("row"))
