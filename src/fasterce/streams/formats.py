"""Lines as bytes: each chunk is a part by itself, and parts joined are the file an unbroken run would have written."""

import csv
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError, shorten, unknown_name

COPIED = 2**20


class Format(ABC):
    """How lines are written. A `Sink` of the same format takes tables one after another; parts are joined in flat memory."""

    suffix: str

    @abstractmethod
    def sink(self, file: IO[bytes], fields: pa.Schema) -> "Sink":
        """Something that writes a whole file, head and end included."""

    @abstractmethod
    def part(self, file: IO[bytes], lines: pa.Table) -> None:
        """Write one chunk by itself."""

    @abstractmethod
    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        """Write the whole file from its parts."""


class Sink(ABC):
    @abstractmethod
    def write(self, lines: pa.Table) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


class TextSink(Sink):
    def __init__(self, form: "TextFormat", file: IO[bytes], fields: pa.Schema) -> None:
        self.form, self.file = form, file
        file.write(form.head(fields))

    def write(self, lines: pa.Table) -> None:
        self.form.part(self.file, lines)
        self.file.flush()

    def close(self) -> None:
        self.file.flush()


class TextFormat(Format):
    """Text is a head and parts that follow each other."""

    def head(self, fields: pa.Schema) -> bytes:
        return b""

    def sink(self, file: IO[bytes], fields: pa.Schema) -> Sink:
        return TextSink(self, file, fields)

    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        file.write(self.head(fields))
        for part in parts:
            with part.open("rb") as written:
                shutil.copyfileobj(written, file, COPIED)


class Csv(TextFormat):
    """UTF-8, commas, quotes where needed, LF; empty where there is no value; numbers so that they read back the same."""

    suffix = ".csv"

    def head(self, fields: pa.Schema) -> bytes:
        return _csv_lines([fields.names])

    def part(self, file: IO[bytes], lines: pa.Table) -> None:
        columns = [_written(column, field.type) for column, field in zip(lines.columns, lines.schema, strict=True)]
        file.write(_csv_lines(zip(*columns, strict=True)))


class JsonLines(TextFormat):
    """One JSON object a line; `changes` as a list, and null where there is no value."""

    suffix = ".jsonl"

    def part(self, file: IO[bytes], lines: pa.Table) -> None:
        self.objects(file, [_opened(line) for line in lines.to_pylist()])

    def objects(self, file: IO[bytes], objects: Iterable[Any]) -> None:
        text = "".join(json.dumps(one, ensure_ascii=False, default=str, allow_nan=False) + "\n" for one in objects)
        file.write(text.encode())


class ParquetSink(Sink):
    def __init__(self, file: IO[bytes], fields: pa.Schema) -> None:
        self.writer = pq.ParquetWriter(pa.PythonFile(file, mode="w"), fields, compression="zstd")
        self.file = file

    def write(self, lines: pa.Table) -> None:
        self.writer.write_table(lines, row_group_size=max(len(lines), 1))
        self.file.flush()

    def close(self) -> None:
        self.writer.close()


class Parquet(Format):
    """One row group a chunk."""

    suffix = ".parquet"

    def sink(self, file: IO[bytes], fields: pa.Schema) -> Sink:
        return ParquetSink(file, fields)

    def part(self, file: IO[bytes], lines: pa.Table) -> None:
        sink = self.sink(file, lines.schema)
        sink.write(lines)
        sink.close()

    def join(self, parts: Iterable[Path], file: IO[bytes], fields: pa.Schema) -> None:
        sink = self.sink(file, fields)
        for part in parts:
            with pq.ParquetFile(part, pre_buffer=False) as written:
                sink.write(written.read().cast(fields))
        sink.close()


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
    """The format's name as it was given, or by the suffix of the target."""
    if name is None:
        return _by_suffix(target)
    if name not in FORMATS:
        raise InputError(unknown_name("format", name, FORMATS))
    return name


def _by_suffix(target: str | Path) -> str:
    found = SUFFIXES.get(Path(target).suffix.lower())
    if found is None:
        got = "standard output" if str(target) == "-" else repr(str(target))
        raise InputError(
            f"format must be one of {shorten(FORMATS)} where the target's name does not end in one of "
            f"{shorten(SUFFIXES)}; got None for {got}."
        )
    return found


def _csv_lines(rows: Iterable[Sequence[Any]]) -> bytes:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _written(column: Any, kind: pa.DataType) -> list[Any]:
    """Plain values; numbers of 32 bits with no more digits than they have."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_float32(kind):
        return [None if _is_nan(value) else str(np.float32(value)) for value in values]
    return [None if _is_nan(value) else value for value in values] if pa.types.is_floating(kind) else values


def _is_nan(value: Any) -> bool:
    return value is None or value != value  # noqa: PLR0124 - only NaN differs from itself


def _opened(line: dict[str, Any]) -> dict[str, Any]:
    """A line as JSON can hold it."""
    sound = {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in line.items()}
    return sound | {"changes": None if line["changes"] is None else json.loads(line["changes"])}
