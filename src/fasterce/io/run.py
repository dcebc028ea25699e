"""Explain a file of rows and write a file of lines: chunk by chunk, in constant memory, resumable."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
class Output:
    """A file to write: its format, and the folder of its parts while the run is not finished."""

    path: Path
    format: formats.Format
    folder: str = ""

    @property
    def of_records(self) -> bool:
        """Whether it holds records instead of lines."""
        return self.format.of_records

    def part(self, number: int) -> str:
        """Return the name of one chunk."""
        return f"{self.folder}part-{number:06d}{self.format.suffix}"


@dataclass(frozen=True)
class FileJob:
    """How chunks are explained, and where they are written."""

    explainer: "FasterCE"
    options: Mapping[str, object]
    outputs: Sequence[Output]
    record_maker: RecordMaker | None
    progress: Progress | None

    def explain(self, chunk: Chunk) -> tuple[list[Any], Summary]:
        """Explain a chunk; return what goes to each output, and counts."""
        found = lines.explain(self.explainer, chunk.frame, self.options)
        made = lines.to_lines(self.explainer, found, chunk.copied(), chunk.first)
        records: Sequence[Mapping[str, object]] = ()
        if self.record_maker is not None and any(output.of_records for output in self.outputs):
            records = self.record_maker(self.explainer, found, ids=chunk.record_ids())
            if len(records) != len(found):
                raise InputError("io.records_per_row", expected=len(found), received=len(records))
        contents = [records if output.of_records else made for output in self.outputs]
        return contents, Summary.of(found, len(made))

    def fields(self, rows: Rows) -> pa.Schema:
        """Return the columns of the lines."""
        return lines.schema(self.explainer, self.options, rows.copied())

    def report(self, total: Summary, rows: int | None) -> None:
        if self.progress is not None:
            self.progress(total.rows, rows, total.found, total.seconds)


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
    decimal: str = ".",
    thousands: str | None = None,
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
    format : {"parquet", "csv", "json", "jsonl"}, optional
        None chooses by the suffix of the target.
    chunk_rows : int, default=5000
        Rows explained at a time; the result does not depend on it.
    id_column : str, optional
        A column that names the rows: `id` in the output.
    keep : sequence of str, optional
        Columns to copy to the output.
    separator, encoding, decimal, thousands : str, optional
        Of a CSV source, as for `open_rows`.
    limit : int, optional
        Explain the first `limit` rows only.
    resume : bool, default=True
        Resume a run that was killed; False starts again.
    progress : callable, optional
        Called after every chunk with rows done, rows in all (None if unknown), rows found and seconds so far.
    records : str or path, optional
        Where to write audit records too, as JSON lines, made by `record_maker(explainer, explanation, ids=...)`.
    record_maker : callable, optional
        Such as `fasterce.records.make`. With a format of JSON and no `records`, the target holds its records.
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
    only_records = chosen in formats.RECORDS and record_maker is not None and records is None
    outputs = [Output(Path(target), formats.RECORDS[chosen] if only_records else formats.FORMATS[chosen])]
    if records is not None:
        outputs.append(Output(Path(records), formats.Records(), f"{RECORDS}/"))
    job = FileJob(explainer, given, outputs, record_maker, progress)
    reading: dict[str, Json] = {
        "chunk_rows": chunk_rows,
        "separator": separator,
        "encoding": encoding,
        "decimal": decimal,
        "thousands": thousands,
        "ids": id_column,
        "keep": keep,
        "limit": limit,
    }
    with open_rows(source, table=explainer.state_.table, **reading) as rows:
        if str(target) == PIPE:
            return _to_pipe(job, rows)
        if str(source) == PIPE:
            return _to_file(job, rows, {}, resume=False)
        identity = {
            "source": file_digest(source),
            "format": chosen,
            "records": records is not None,
            **{name: list(value) if name == "keep" else plain(value) for name, value in reading.items()},
            **results_depend_on(explainer, model_digest, given),
        }
        return _to_file(job, rows, identity, resume)


def results_depend_on(explainer: "FasterCE", model_digest: str | None, options: Mapping[str, object]) -> dict[str, Json]:
    """Return what identifies a job beside its input and output: explainer, model, version and options of `explain`."""
    return {
        "explainer": artifact.digest(explainer),
        "compiled": explainer.state_.compiled is not None,
        "model": model_digest,
        "fasterce": versions()["fasterce"],
        **job_options(options),
    }


def _to_pipe(job: FileJob, rows: Rows) -> Summary:
    """Write chunk by chunk to standard output; a closed pipe ends the run without an error."""
    total, output = Summary(), sys.stdout.buffer

    def contents() -> Iterator[object]:
        nonlocal total
        for chunk in rows:
            (content,), summary = job.explain(chunk)
            yield content
            total += summary
            job.report(total, rows.total)

    try:
        job.outputs[0].format.write(output, job.fields(rows), contents())
        output.flush()
    except BrokenPipeError:
        # The flush at the exit of Python must not fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return replace(total, complete=False)
    return total


def _to_file(job: FileJob, rows: Rows, identity: Mapping[str, Json], resume: bool) -> Summary:
    """Write finished chunks to a folder beside the target and join them at the end."""
    target = job.outputs[0].path
    folder = ResumableFolder(target.with_name(f".{target.name}.parts"), outputs=[output.path for output in job.outputs])
    with folder.locked():
        folder.begin(identity, fresh=not resume, discard=True)
        total = _finished(folder)
        if total.chunks:
            job.report(total, rows.total)
        for chunk in rows.chunks(total.chunks):
            _check_rows(total, chunk.first)
            contents, summary = job.explain(chunk)
            files: dict[str, Path | Write] = {
                output.part(chunk.number): partial(output.format.write_part, chunk=content)
                for output, content in zip(job.outputs, contents, strict=True)
            }
            folder.commit(chunk.number, files, summary.to_dict())
            total += summary
            job.report(total, rows.total)
        rows.check_unchanged()
        _check_rows(total, total.rows if rows.total is None else rows.total)
        for output in job.outputs:
            parts = [folder.path / output.part(number) for number in range(total.chunks)]
            folder.publish(output.path, partial(output.format.join, fields=job.fields(rows), parts=parts))
        folder.remove()
    return total


def _finished(folder: ResumableFolder) -> Summary:
    """Return the counts of the finished chunks from the first on."""
    total = Summary()
    while (known := folder.finished(total.chunks)) is not None:
        total += Summary.from_dict(known)
    return replace(total, resumed=total.chunks)


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
