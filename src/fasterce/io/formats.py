"""Output formats. Chunks written one by one and joined are the file an uninterrupted run writes."""

import csv
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError, unknown
from fasterce.typing import JsonObject

COPY_BYTES = 2**20


class Writer(ABC):
    """Writes the tables of one file, with its head and end."""

    @abstractmethod
    def write(self, lines: pa.Table) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class Format(ABC):
    """A file format for lines."""

    suffix: str

    @abstractmethod
    def writer(self, file: IO[bytes], fields: pa.Schema) -> Writer: ...

    @abstractmethod
    def write_part(self, file: IO[bytes], lines: pa.Table) -> None:
        """Write one chunk by itself."""

    @abstractmethod
    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        """Write the whole file from its chunks, one at a time in memory."""


class TextWriter(Writer):
    def __init__(self, format: "TextFormat", file: IO[bytes], fields: pa.Schema) -> None:
        self.format, self.file = format, file
        file.write(format.head(fields))

    def write(self, lines: pa.Table) -> None:
        self.format.write_part(self.file, lines)
        self.file.flush()

    def close(self) -> None:
        self.file.flush()


class TextFormat(Format):
    """A head and chunks that follow each other."""

    def head(self, fields: pa.Schema) -> bytes:
        return b""

    def writer(self, file: IO[bytes], fields: pa.Schema) -> Writer:
        return TextWriter(self, file, fields)

    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        file.write(self.head(fields))
        for part in parts:
            with part.open("rb") as written:
                shutil.copyfileobj(written, file, COPY_BYTES)


class Csv(TextFormat):
    """UTF-8, commas, quotes where needed, LF; a missing value is empty, and numbers read back the same."""

    suffix = ".csv"

    def head(self, fields: pa.Schema) -> bytes:
        return _csv_lines([fields.names])

    def write_part(self, file: IO[bytes], lines: pa.Table) -> None:
        columns = [_csv_values(column, field.type) for column, field in zip(lines.columns, lines.schema, strict=True)]
        file.write(_csv_lines(zip(*columns, strict=True)))


class JsonLines(TextFormat):
    """One JSON object per line; `changes` is a list, and a missing value is null."""

    suffix = ".jsonl"

    def write_part(self, file: IO[bytes], lines: pa.Table) -> None:
        write_objects(file, [_json_line(line) for line in lines.to_pylist()])


def write_objects(file: IO[bytes], objects: Iterable[Mapping[str, object]]) -> None:
    """Write one JSON object per line."""
    text = "".join(json.dumps(one, ensure_ascii=False, default=str, allow_nan=False) + "\n" for one in objects)
    file.write(text.encode())


class ParquetWriter(Writer):
    """Writes one row group per table, or row groups of `group_rows` lines whatever the tables."""

    def __init__(self, file: IO[bytes], fields: pa.Schema, group_rows: int | None = None) -> None:
        self.writer = pq.ParquetWriter(pa.PythonFile(file, mode="w"), fields, compression="zstd")
        self.file, self.group_rows = file, group_rows
        self.waiting: list[pa.Table] = []

    def write(self, lines: pa.Table) -> None:
        if self.group_rows is None:
            self._write_group(lines)
            return
        self.waiting.append(lines)
        while sum(map(len, self.waiting)) >= self.group_rows:
            joined = pa.concat_tables(self.waiting)
            self._write_group(joined.slice(0, self.group_rows))
            self.waiting = [joined.slice(self.group_rows)]

    def close(self) -> None:
        if sum(map(len, self.waiting)):
            self._write_group(pa.concat_tables(self.waiting))
        self.discard()

    def discard(self) -> None:
        """Close without the lines that wait for a full row group."""
        self.writer.close()

    def _write_group(self, lines: pa.Table) -> None:
        self.writer.write_table(lines.combine_chunks(), row_group_size=max(len(lines), 1))
        self.file.flush()


class Parquet(Format):
    """One row group per chunk."""

    suffix = ".parquet"

    def writer(self, file: IO[bytes], fields: pa.Schema) -> Writer:
        return ParquetWriter(file, fields)

    def write_part(self, file: IO[bytes], lines: pa.Table) -> None:
        writer = self.writer(file, lines.schema)
        writer.write(lines)
        writer.close()

    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        writer = self.writer(file, fields)
        for part in parts:
            with pq.ParquetFile(part, pre_buffer=False) as written:
                writer.write(written.read().cast(fields))
        writer.close()


FORMATS: dict[str, Format] = {"parquet": Parquet(), "csv": Csv(), "jsonl": JsonLines()}
SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
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


def _csv_values(column: pa.ChunkedArray, kind: pa.DataType) -> list[object]:
    """Return plain values; 32-bit numbers with no more digits than they have."""
    values = column.to_pylist()
    if not pa.types.is_floating(kind):
        return list(values)
    numbers: list[float | None] = [None if value is None or value != value else value for value in values]  # noqa: PLR0124 - NaN
    if pa.types.is_float32(kind):
        return [None if value is None else str(np.float32(value)) for value in numbers]
    return list(numbers)


def _json_line(line: JsonObject) -> JsonObject:
    finite = {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in line.items()}
    return finite | {"changes": None if line["changes"] is None else json.loads(line["changes"])}
