"""A file of rows in, a file of lines out: chunk by chunk, in flat memory, resumable."""

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fasterce import artifact
from fasterce.artifact.manifest import versions
from fasterce.errors import InputError, unknown_name
from fasterce.explanation import Explanation
from fasterce.schema import plain
from fasterce.streams import formats, identity, lines, places
from fasterce.streams.commit import Write
from fasterce.streams.parts import Parts
from fasterce.streams.source import ROWS, Chunk, Rows, Source, open_rows
from fasterce.streams.summary import Summary

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

PIPE = "-"
RECORDS = "records"

Progress = Callable[[int, int | None, int, float], object]
RecordMaker = Callable[..., Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Job:
    """What is to be done with each chunk, and how it is written."""

    explainer: "FasterCE"
    options: Mapping[str, Any]
    form: formats.Format
    record_maker: RecordMaker | None
    records: Path | None

    @property
    def only_records(self) -> bool:
        """Whether the target itself holds records in place of lines."""
        return isinstance(self.form, formats.JsonLines) and self.record_maker is not None and self.records is None


@dataclass(frozen=True)
class Done:
    """A chunk explained: its lines, records if there are any, and counts."""

    lines: pa.Table
    records: Sequence[Mapping[str, Any]] | None
    summary: Summary


def run(
    explainer: "FasterCE",
    source: Source,
    target: Source,
    *,
    options: Mapping[str, Any] | None = None,
    format: str | None = None,
    chunk_rows: int = ROWS,
    id_column: str | None = None,
    keep: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
    limit: int | None = None,
    resume: bool = True,
    progress: Progress | None = None,
    records: Source | None = None,
    record_maker: RecordMaker | None = None,
    model_digest: str | None = None,
) -> Summary:
    """Explain every row of a CSV or Parquet file and write the lines to `target`, all or nothing.

    Parameters
    ----------
    source : a file, or "-" for CSV on standard input, which cannot be resumed.
    target : a file, or "-" for standard output, written chunk by chunk and not resumable either.
    options : arguments of `explain`; a `deadline` is for each chunk.
    format : "parquet", "csv" or "jsonl"; None goes by the target's suffix, which need not fit one that is given.
    chunk_rows : rows explained at a time; answers do not depend on it.
    id_column, keep : a column that names the rows (`id` in the output), and others to pass through.
    separator, encoding : of a CSV source; None finds the separator and expects UTF-8.
    limit : only the first so many rows.
    resume : go on with a run that was killed; False starts again.
    progress : called after every chunk with rows done, rows in all (None if unknown), rows found, seconds so far.
    records : where to write audit records too, as JSON lines, made by `record_maker(explainer, explanation, ids=...)`.
        Written as JSON lines with no `records`, a `record_maker` makes the lines of the target itself.
    model_digest : what identifies the model; a run goes on only with the same, and with the same explainer.
    """
    given = dict(options or {})
    chosen = formats.choose(format, target)
    _check(explainer, given, source, target, records, record_maker)
    job = Job(explainer, given, formats.FORMATS[chosen], record_maker, None if records is None else Path(records))
    reading: dict[str, Any] = {
        "chunk_rows": chunk_rows,
        "separator": separator,
        "encoding": encoding,
        "ids": id_column,
        "keep": keep,
        "limit": limit,
    }
    with open_rows(source, table=explainer.table_, **reading) as rows:
        if str(target) == PIPE:
            return _to_pipe(job, rows, progress)
        about = None
        if str(source) != PIPE:
            about = {
                "source": identity.of_file(source),
                "explainer": artifact.digest(explainer),
                "twin": explainer.twin_ is not None,
                "model": model_digest,
                "fasterce": versions()["fasterce"],
                "format": chosen,
                "records": records is not None,
                **{name: list(value) if name == "keep" else plain(value) for name, value in reading.items()},
                **{f"option {name}": value for name, value in identity.of_options(given).items()},
            }
        return _to_file(job, rows, Path(target), about, resume, progress)


def _to_pipe(job: Job, rows: Rows, progress: Progress | None) -> Summary:
    """Chunk by chunk to standard output; a reader that goes away ends it quietly."""
    total = Summary()
    try:
        sink = job.form.sink(sys.stdout.buffer, _fields(job, rows))
        for chunk in rows:
            done = _explain(job, chunk)
            _write_to(job, sink, done)
            total = _tell(progress, total + done.summary, rows.total)
        sink.close()
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _forget_stdout()
        return replace(total, complete=False)
    return total


def _to_file(
    job: Job, rows: Rows, target: Path, about: Mapping[str, Any] | None, resume: bool, progress: Progress | None
) -> Summary:
    """By way of parts, which a later run goes on with; what cannot be told from another run is started again."""
    parts = Parts(target, job.form.suffix, [] if job.records is None else [job.records])
    with parts.locked():
        parts.begin(about or {}, fresh=about is None or not resume)
        finished = parts.finished()
        total = _total(finished)
        if finished:
            _tell(progress, total, rows.total)
        for chunk in rows.chunks(len(finished)):
            _check_rows(total, chunk.first)
            done = _explain(job, chunk)
            parts.add(chunk.number, _files(job, done), done.summary.to_dict())
            total = _tell(progress, total + done.summary, rows.total)
        rows.check_unchanged()
        _check_rows(total, total.rows if rows.total is None else rows.total)
        parts.publish(target, lambda file: job.form.join(parts.paths(total.chunks), file, _fields(job, rows)))
        if job.records is not None:
            text = formats.JsonLines()
            parts.publish(job.records, lambda file: text.join(parts.paths(total.chunks, RECORDS), file, pa.schema([])))
        parts.remove()
    return total


def _explain(job: Job, chunk: Chunk) -> Done:
    found = lines.explain(job.explainer, chunk.frame, job.options)
    made = lines.to_lines(job.explainer, found, _extra(chunk), chunk.first)
    return Done(made, _records(job, found, chunk), Summary.of(found, len(made)))


def _records(job: Job, found: Explanation, chunk: Chunk) -> Sequence[Mapping[str, Any]] | None:
    if job.record_maker is None or not (job.only_records or job.records):
        return None
    positions = [str(chunk.first + k) for k in range(len(found))]
    named = positions if chunk.ids is None else [None if value is None else str(value) for value in chunk.ids.to_pylist()]
    ids = [position if name is None else name for position, name in zip(positions, named, strict=True)]
    made = job.record_maker(job.explainer, found, ids=ids)
    if len(made) != len(found):
        raise InputError(f"record_maker must make one record a row; got {len(made)} for {len(found)} rows.")
    return made


def _files(job: Job, done: Done) -> dict[str, Write]:
    """What is written of a chunk, by kind."""
    text, records = formats.JsonLines(), done.records
    if job.only_records:
        return {"": lambda file: text.objects(file, records or ())}
    files: dict[str, Write] = {"": lambda file: job.form.part(file, done.lines)}
    if records is not None:
        files[RECORDS] = lambda file: text.objects(file, records)
    return files


def _write_to(job: Job, sink: formats.Sink, done: Done) -> None:
    if job.only_records:
        formats.JsonLines().objects(sys.stdout.buffer, done.records or ())
        sys.stdout.buffer.flush()
    else:
        sink.write(done.lines)


def _extra(chunk: Chunk) -> pa.Table:
    """Id and columns kept, a value a row."""
    if chunk.ids is None:
        return chunk.passthrough
    named = {"id": chunk.ids}
    return pa.Table.from_arrays(
        [*named.values(), *chunk.passthrough.columns], names=[*named, *chunk.passthrough.column_names]
    )


def _fields(job: Job, rows: Rows) -> pa.Schema:
    extra = ([] if rows.identity is None else [pa.field("id", rows.identity)]) + list(rows.extra)
    return lines.schema(job.explainer, job.options, pa.schema(extra))


def _check_rows(total: Summary, expected: int) -> None:
    """Parts are believed only as far as they fit the source."""
    if total.rows != expected:
        raise InputError(
            f"The parts of the run must hold the first {expected} rows of the source; got {total.rows}: start again with "
            "resume=False."
        )


def _total(finished: Sequence[Mapping[str, Any]]) -> Summary:
    total = sum((Summary.from_dict(about) for about in finished), Summary())
    return replace(total, resumed=len(finished))


def _tell(progress: Progress | None, total: Summary, rows: int | None) -> Summary:
    if progress is not None:
        progress(total.rows, rows, total.found, total.seconds)
    return total


def _check(
    explainer: "FasterCE",
    options: Mapping[str, Any],
    source: Source,
    target: Source,
    records: Source | None,
    record_maker: RecordMaker | None,
) -> None:
    """Everything that can be known to be wrong before anything is read or written."""
    explainer._check_fitted()
    known = [name for name in inspect.signature(explainer.explain).parameters if name != "rows"]
    for name in options:
        if name not in known:
            raise InputError(unknown_name("option of explain", name, known))
    if records is not None and record_maker is None:
        raise InputError("records needs a record_maker, such as fasterce.records.make; got None.")
    if records is not None and str(target) == PIPE:
        raise InputError("records can be written beside a target that is a file; got standard output.")
    outputs = [Path(path).resolve() for path in (target, records) if path is not None and str(path) != PIPE]
    for path in outputs:
        if path.is_dir() or not path.parent.is_dir():
            got = "a folder" if path.is_dir() else f"no folder {path.parent}"
            raise InputError(f"Cannot write {path}; expected the name of a file in a folder that exists; got {got}.")
    every = outputs + ([] if str(source) == PIPE or places.is_address(source) else [Path(source).resolve()])
    if len(set(every)) < len(every):
        raise InputError(f"Source, target and records must be different files; got {', '.join(map(str, every))}.")
    explainer.explain(explainer.table_.frame(np.zeros((0, len(explainer.table_.schema)))), **options)


def _forget_stdout() -> None:
    """Nobody reads on: what Python would flush at its end must not fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
