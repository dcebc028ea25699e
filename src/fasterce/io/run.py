"""Explain a file of rows and write a file of lines: chunk by chunk, in constant memory, resumable."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fasterce import artifact
from fasterce.artifact.manifest import versions
from fasterce.data.dtypes import plain
from fasterce.errors import InputError
from fasterce.io import formats, lines, locations
from fasterce.io.atomic import Write
from fasterce.io.locations import Source
from fasterce.io.resumable import RECORDS, RESTART, ResumableFolder, file_digest, job_options
from fasterce.io.source import ROWS, Chunk, Rows, open_rows
from fasterce.io.summary import Summary
from fasterce.typing import Json

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

PIPE = "-"

Progress = Callable[[int, int | None, int, float], object]
RecordMaker = Callable[..., Sequence[Mapping[str, object]]]


@dataclass(frozen=True)
class FileJob:
    """How chunks are explained and written.

    Attributes
    ----------
    records : Path or None
        Where records are written beside the lines.
    only_records : bool
        Whether the target itself holds records instead of lines.
    """

    explainer: "FasterCE"
    options: Mapping[str, object]
    format: formats.Format
    record_maker: RecordMaker | None
    records: Path | None
    progress: Progress | None

    @property
    def only_records(self) -> bool:
        return isinstance(self.format, formats.Records)

    def explain(self, chunk: Chunk) -> "ExplainedChunk":
        """Explain a chunk, and make its records if they are wanted."""
        found = lines.explain(self.explainer, chunk.frame, self.options)
        made = lines.to_lines(self.explainer, found, lines.with_ids(chunk.passthrough, chunk.ids), chunk.first)
        summary = Summary.of(found, len(made))
        if self.record_maker is None or not (self.only_records or self.records):
            return ExplainedChunk(made, None, summary)
        records = self.record_maker(self.explainer, found, ids=lines.record_ids(chunk.positions.tolist(), chunk.ids))
        if len(records) != len(found):
            raise InputError("io.records_per_row", expected=len(found), received=len(records))
        return ExplainedChunk(records if self.only_records else made, None if self.only_records else records, summary)

    def fields(self, rows: Rows) -> pa.Schema:
        """Return the columns of the lines."""
        extra = ([] if rows.identity is None else [pa.field("id", rows.identity)]) + list(rows.extra)
        return lines.schema(self.explainer, self.options, pa.schema(extra))

    def report(self, total: Summary, rows: int | None) -> None:
        if self.progress is not None:
            self.progress(total.rows, rows, total.found, total.seconds)


@dataclass(frozen=True)
class ExplainedChunk:
    """What is written to the target, the records beside it if there are any, and counts."""

    content: pa.Table | Sequence[Mapping[str, object]]
    records: Sequence[Mapping[str, object]] | None
    summary: Summary


def run(
    explainer: "FasterCE",
    source: Source,
    target: Source,
    *,
    options: Mapping[str, object] | None = None,
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
    explainer : FasterCE
        A fitted explainer.
    source : str or path
        A file, or "-" for CSV on standard input, which cannot be resumed.
    target : str or path
        A file, or "-" for standard output, which is written chunk by chunk and cannot be resumed either.
    options : mapping, optional
        Arguments of `explain`; a `deadline` holds for each chunk.
    format : {"parquet", "csv", "jsonl"}, optional
        None chooses by the suffix of the target.
    chunk_rows : int, default=5000
        Rows explained at a time; the result does not depend on it.
    id_column : str, optional
        A column that names the rows: `id` in the output.
    keep : sequence of str, optional
        Columns to copy to the output.
    separator, encoding : str, optional
        Of a CSV source; None detects the separator and expects UTF-8.
    limit : int, optional
        Explain the first `limit` rows only.
    resume : bool, default=True
        Resume a run that was killed; False starts again.
    progress : callable, optional
        Called after every chunk with rows done, rows in all (None if unknown), rows found and seconds so far.
    records : str or path, optional
        Where to write audit records too, as JSON lines, made by `record_maker(explainer, explanation, ids=...)`.
    record_maker : callable, optional
        Such as `fasterce.records.make`. With JSON lines as the format and no `records`, its records are the target's lines.
    model_digest : str, optional
        What identifies the model; a run is resumed only with the same model and the same explainer.

    Returns
    -------
    Summary
        Counts over all rows.

    Raises
    ------
    InputError
        If an argument is wrong, the source cannot be read, or the target cannot be written.

    Examples
    --------
    >>> summary = io.run(explainer, "rows.csv", "counterfactuals.csv", options={"n": 2})  # doctest: +SKIP
    """
    given = dict(options or {})
    chosen = formats.choose(format, target)
    _check_files(source, target, records, record_maker)
    lines.check_options(explainer, given)
    only_records = chosen == "jsonl" and record_maker is not None and records is None
    written = formats.Records() if only_records else formats.FORMATS[chosen]
    job = FileJob(explainer, given, written, record_maker, None if records is None else Path(records), progress)
    reading: dict[str, Json] = {
        "chunk_rows": chunk_rows,
        "separator": separator,
        "encoding": encoding,
        "ids": id_column,
        "keep": keep,
        "limit": limit,
    }
    with open_rows(source, table=explainer.state_.table, **reading) as rows:
        if str(target) == PIPE:
            return _to_pipe(job, rows)
        if str(source) == PIPE:
            return _to_file(job, rows, Path(target), {}, resume=False)
        identity = {
            "source": file_digest(source),
            "explainer": artifact.digest(explainer),
            "compiled": explainer.state_.compiled is not None,
            "model": model_digest,
            "fasterce": versions()["fasterce"],
            "format": chosen,
            "records": records is not None,
            **{name: list(value) if name == "keep" else plain(value) for name, value in reading.items()},
            **job_options(given),
        }
        return _to_file(job, rows, Path(target), identity, resume)


def _to_pipe(job: FileJob, rows: Rows) -> Summary:
    """Write chunk by chunk to standard output; a reader that goes away ends the run quietly."""
    total, output = Summary(), sys.stdout.buffer

    def contents() -> Iterator[object]:
        nonlocal total
        for chunk in rows:
            done = job.explain(chunk)
            yield done.content
            total += done.summary
            job.report(total, rows.total)

    try:
        job.format.write(output, job.fields(rows), contents())
        output.flush()
    except BrokenPipeError:
        # What Python flushes at its end must not fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return replace(total, complete=False)
    return total


def _to_file(job: FileJob, rows: Rows, target: Path, identity: Mapping[str, Json], resume: bool) -> Summary:
    """Write finished chunks to a folder beside the target and join them at the end."""
    outputs = [target] if job.records is None else [target, job.records]
    folder = ResumableFolder(target.with_name(f".{target.name}.parts"), outputs=outputs)
    with folder.locked():
        folder.begin(identity, fresh=not resume, discard=True)
        total = _finished(folder)
        if total.chunks:
            job.report(total, rows.total)
        for chunk in rows.chunks(total.chunks):
            _check_rows(total, chunk.first)
            done = job.explain(chunk)
            folder.commit(chunk.number, _files(job, chunk.number, done), done.summary.to_dict())
            total += done.summary
            job.report(total, rows.total)
        rows.check_unchanged()
        _check_rows(total, total.rows if rows.total is None else rows.total)
        names = [_names(job, number) for number in range(total.chunks)]
        parts, records = ([folder.path / pair[k] for pair in names] for k in (0, 1))
        folder.publish(target, lambda file: job.format.join(file, job.fields(rows), parts))
        if job.records is not None:
            folder.publish(job.records, lambda file: formats.Records().join(file, pa.schema([]), records))
        folder.remove()
    return total


def _finished(folder: ResumableFolder) -> Summary:
    """Return the counts of the finished chunks from the first on."""
    total = Summary()
    while (known := folder.finished(total.chunks)) is not None:
        total += Summary.from_dict(known)
    return replace(total, resumed=total.chunks)


def _names(job: FileJob, number: int) -> tuple[str, str]:
    """Return the names of the files of a chunk: what goes to the target, and its records."""
    return f"part-{number:06d}{job.format.suffix}", f"{RECORDS}/part-{number:06d}{formats.Records.suffix}"


def _files(job: FileJob, number: int, done: ExplainedChunk) -> dict[str, Write]:
    """Return what writes each file of a chunk."""
    name, records_name = _names(job, number)
    files: dict[str, Write] = {name: lambda file: job.format.write_part(file, done.content)}
    if done.records is not None:
        files[records_name] = lambda file: formats.Records().write_part(file, done.records or ())
    return files


def _check_rows(total: Summary, expected: int) -> None:
    """Finished chunks count only as far as they fit the source."""
    if total.rows != expected:
        raise InputError("io.finished_rows", expected=expected, received=total.rows, option=RESTART)


def _check_files(source: Source, target: Source, records: Source | None, record_maker: RecordMaker | None) -> None:
    if records is not None and record_maker is None:
        raise InputError("io.no_record_maker")
    if records is not None and str(target) == PIPE:
        raise InputError("io.records_with_pipe")
    outputs = [Path(path).resolve() for path in (target, records) if path is not None and str(path) != PIPE]
    for path in outputs:
        if path.is_dir() or not path.parent.is_dir():
            raise InputError("io.target_is_folder" if path.is_dir() else "io.no_parent_folder", path=path, folder=path.parent)
    every = outputs + ([] if str(source) == PIPE or locations.is_address(source) else [Path(source).resolve()])
    if len(set(every)) < len(every):
        raise InputError("io.same_file", received=[str(path) for path in every])
