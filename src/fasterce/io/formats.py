"""Output formats. Chunks written one by one and joined are the file an uninterrupted run writes."""

import csv
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from io import BytesIO, StringIO
from math import isfinite
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError, unknown
from fasterce.typing import JsonObject

COPY_BYTES = 2**20


class Format(ABC):
    """A file format for chunks, which are Arrow tables of lines, or lists of records where `of_records`."""

    suffix: str
    of_records = False

    @abstractmethod
    def write(self, file: IO[bytes], fields: pa.Schema, chunks: Iterable[object]) -> None:
        """Write a whole file, chunk by chunk as they come."""

    @abstractmethod
    def write_part(self, file: IO[bytes], chunk: Any) -> None:
        """Write one chunk by itself."""

    @abstractmethod
    def join(self, file: IO[bytes], fields: pa.Schema, parts: Iterable[Path]) -> None:
        """Write the whole file from its chunks, one at a time in memory."""


class TextFormat(Format):
    """A head and chunks that follow each other."""

    def head(self, fields: pa.Schema) -> bytes:
        return b""

    def write(self, file: IO[bytes], fields: pa.Schema, chunks: Iterable[object]) -> None:
        file.write(self.head(fields))
        for chunk in chunks:
            self.write_part(file, chunk)
            file.flush()

    def join(self, file: IO[bytes], fields: pa.Schema, parts: Iterable[Path]) -> None:
        file.write(self.head(fields))
        for part in parts:
            with part.open("rb") as written:
                shutil.copyfileobj(written, file, COPY_BYTES)


class Csv(TextFormat):
    """UTF-8, commas, quotes where needed, LF; a missing value is empty, and numbers read back the same."""

    suffix = ".csv"

    def head(self, fields: pa.Schema) -> bytes:
        return _csv_lines([fields.names])

    def write_part(self, file: IO[bytes], chunk: pa.Table) -> None:
        columns = [_csv_values(column, field.type) for column, field in zip(chunk.columns, chunk.schema, strict=True)]
        file.write(_csv_lines(zip(*columns, strict=True)))


class JsonLines(TextFormat):
    """One JSON object per line; `changes` is a list, and a missing value is null."""

    suffix = ".jsonl"

    def write_part(self, file: IO[bytes], chunk: pa.Table) -> None:
        file.write(_json_lines(map(_json_line, chunk.to_pylist())))


class Records(TextFormat):
    """One JSON object per line, for chunks that are lists of records."""

    suffix = ".jsonl"
    of_records = True

    def write_part(self, file: IO[bytes], chunk: Iterable[Mapping[str, object]]) -> None:
        file.write(_json_lines(chunk))


class JsonArray(Format):
    """One JSON document: an array of the objects that another format writes line by line."""

    suffix = ".jsonl"

    def __init__(self, lines: TextFormat) -> None:
        self.lines, self.of_records = lines, lines.of_records

    def write(self, file: IO[bytes], fields: pa.Schema, chunks: Iterable[object]) -> None:
        def parts() -> Iterator[bytes]:
            for chunk in chunks:
                written = BytesIO()
                self.lines.write_part(written, chunk)
                yield written.getvalue()

        self._write(file, parts())

    def write_part(self, file: IO[bytes], chunk: Any) -> None:
        self.lines.write_part(file, chunk)

    def join(self, file: IO[bytes], fields: pa.Schema, parts: Iterable[Path]) -> None:
        self._write(file, (part.read_bytes() for part in parts))

    def _write(self, file: IO[bytes], parts: Iterable[bytes]) -> None:
        before = b"[\n"
        for lines in filter(None, parts):
            # A line break within a JSON string is escaped, so each one ends an object.
            file.write(before + lines.rstrip(b"\n").replace(b"\n", b",\n"))
            before = b",\n"
            file.flush()
        file.write(b"[]\n" if before == b"[\n" else b"\n]\n")


class Parquet(Format):
    """One row group per chunk."""

    suffix = ".parquet"

    def write(self, file: IO[bytes], fields: pa.Schema, chunks: Iterable[pa.Table]) -> None:
        writer = parquet_writer(file, fields)
        for chunk in chunks:
            write_group(writer, chunk)
            file.flush()
        writer.close()

    def write_part(self, file: IO[bytes], chunk: pa.Table) -> None:
        self.write(file, chunk.schema, [chunk])

    def join(self, file: IO[bytes], fields: pa.Schema, parts: Iterable[Path]) -> None:
        self.write(file, fields, (pq.ParquetFile(part, pre_buffer=False).read().cast(fields) for part in parts))


def parquet_writer(file: IO[bytes], fields: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of Parquet as all our files are."""
    return pq.ParquetWriter(pa.PythonFile(file, mode="w"), fields, compression="zstd")


def write_group(writer: pq.ParquetWriter, lines: pa.Table) -> None:
    """Write lines as one row group."""
    writer.write_table(lines.combine_chunks(), row_group_size=max(len(lines), 1))


FORMATS: dict[str, Format] = {"parquet": Parquet(), "csv": Csv(), "jsonl": JsonLines(), "json": JsonArray(JsonLines())}
RECORDS: dict[str, Format] = {"jsonl": Records(), "json": JsonArray(Records())}
SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}


def choose(name: str | None, target: str | Path) -> str:
    """Return the name of the format: the given one, or the one the target's suffix stands for."""
    if name is None:
        name = SUFFIXES.get(Path(target).suffix.lower())
        if name is None:
            raise InputError(
                "io.unknown_suffix", option="format", expected=list(FORMATS), suffixes=list(SUFFIXES), received=str(target)
            )
    if name not in FORMATS:
        raise InputError(unknown("io.unknown_format", name, FORMATS, option="format"))
    return name


def _csv_lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _csv_values(column: pa.ChunkedArray, kind: pa.DataType) -> list[Any]:
    """Return plain values; 32-bit numbers with no more digits than they have."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(kind):
        values = [None if value is None or np.isnan(value) else value for value in values]
    if pa.types.is_duration(kind):
        values = [None if value is None else str(pd.Timedelta(value)) for value in values]
    if pa.types.is_float32(kind):
        values = [None if value is None else str(np.float32(value)) for value in values]
    return values


def _json_lines(objects: Iterable[Mapping[str, object]]) -> bytes:
    return "".join(json.dumps(one, ensure_ascii=False, default=_as_json, allow_nan=False) + "\n" for one in objects).encode()


def _as_json(value: object) -> str:
    return str(pd.Timedelta(value) if isinstance(value, timedelta) else value)


def _json_line(line: JsonObject) -> JsonObject:
    finite = {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in line.items()}
    return finite | {"changes": None if line["changes"] is None else json.loads(line["changes"])}
