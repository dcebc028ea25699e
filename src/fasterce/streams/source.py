"""Rows of a CSV or Parquet file, chunk by chunk, in the types the explainer was fitted with."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa

from fasterce.errors import InputError
from fasterce.streams import cells, delimited, header, parquet, places
from fasterce.table import Table

ROWS = 5000

Source = str | Path


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source.

    number       which chunk it is, from 0
    first        the position of its first row in the source
    frame        the explainer's columns, typed; cells that do not fit are left as text for `explain` to tell
    ids          the id column, None if there is none
    passthrough  the columns to keep, as they stand in the source
    """

    number: int
    first: int
    frame: pd.DataFrame
    ids: pa.Array | None
    passthrough: pa.Table

    def head(self, rows: float) -> "Chunk":
        """At most so many of the rows."""
        if rows >= len(self.frame):
            return self
        most = int(rows)
        ids = None if self.ids is None else self.ids.slice(0, most)
        return replace(self, frame=self.frame.iloc[:most], ids=ids, passthrough=self.passthrough.slice(0, most))


@dataclass(frozen=True)
class Wish:
    """What is wanted of a source: the explainer's columns, an id, columns to keep."""

    table: Table
    chunk_rows: int
    ids: str | None
    keep: tuple[str, ...]
    limit: int | None = None


class Rows(ABC):
    """A source whose header was read and found good: iterate once for its chunks.

    total      how many rows there are, None where that is not known before the end
    identity   the type of the id column, None if there is none
    extra      the fields of the columns kept
    """

    total: int | None = None
    identity: pa.DataType | None
    extra: pa.Schema

    def __init__(self, source: Source, wish: Wish) -> None:
        self.source, self.wish, self.where = source, wish, spoken(source)
        self._seen = _stamp(source)

    def check_unchanged(self) -> None:
        """What was read is one file only if nobody wrote to it meanwhile."""
        if _stamp(self.source) != self._seen:
            raise InputError(f"{self.where} must not change while it is read; got a file that was written to meanwhile.")

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Chunks of `chunk_rows` rows from number `start` on, the last one of what is left."""
        first = start * self.wish.chunk_rows
        for chunk in self.between(first, math.inf if self.wish.limit is None else self.wish.limit - first):
            yield replace(chunk, number=chunk.number + start)

    def between(self, first: int, most: float) -> Iterator[Chunk]:
        """Chunks, numbered from 0, of at most so many rows from row `first` on."""
        if most <= 0:
            return
        left = most
        for number, chunk in enumerate(self._from(first)):
            yield replace(chunk.head(left), number=number)
            left -= len(chunk.frame)
            if left <= 0:
                return

    @abstractmethod
    def _from(self, first: int) -> Iterator[Chunk]:
        """Chunks from row `first` on."""

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    @abstractmethod
    def count(self) -> int:
        """How many rows the source has, whatever the limit; a CSV file is read to its end for it, and then over."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


class DelimitedRows(Rows):
    """The rows of a CSV file: ids and columns kept are text."""

    def __init__(self, source: Source, wish: Wish, separator: str | None, encoding: str | None) -> None:
        super().__init__(source, wish)
        names = wish.table.schema.names
        self.bytes = delimited.open_bytes(source)
        self.file = delimited.Delimited(self.bytes, self.where, separator, encoding, [str(name) for name in names])
        self.places = header.find(self.file.header, names, wish.ids, wish.keep, self.where)
        self.identity = None if wish.ids is None else pa.string()
        self.extra = pa.schema([(name, pa.string()) for name in wish.keep])

    def _from(self, first: int) -> Iterator[Chunk]:
        self.file.skip(first)
        while (records := self.file.take(self.wish.chunk_rows)).rows:
            yield self._chunk(first, records)
            first += len(records.rows)

    def count(self) -> int:
        """How many rows there are, by reading on to the end."""
        rows = 0
        while taken := len(self.file.take(self.wish.chunk_rows).rows):
            rows += taken
        return rows

    def _chunk(self, first: int, records: delimited.Records) -> Chunk:
        features = [records.sound_column(place) for place in self.places.features]
        frame = cells.to_frame(self.wish.table, features, records.misfits)
        ids = None if self.places.identity is None else records.column(self.places.identity)
        kept = [records.column(place) for place in self.places.kept]
        return Chunk(0, first, frame, ids, _kept(kept, self.extra, len(frame)))

    def close(self) -> None:
        if self.where != STANDARD_INPUT:
            self.bytes.close()


class ParquetRows(Rows):
    """The rows of a Parquet file: ids and columns kept are of its own types."""

    def __init__(self, source: Source, wish: Wish) -> None:
        super().__init__(source, wish)
        names = wish.table.schema.names
        self.file = parquet.open_file(source)
        held = int(self.file.metadata.num_rows)
        self.total = held if wish.limit is None else min(held, wish.limit)
        fields = self.file.schema_arrow
        self.places = header.find(fields.names, names, wish.ids, wish.keep, self.where)
        for name, place in zip(names, self.places.features, strict=True):
            cells.check_kind(name, fields.field(place).type, self.where)
        self.names = [fields.names[place] for place in self.places.used]
        types = {place: parquet.plain_type(fields.field(place).type) for place in self.places.used}
        self.identity = None if self.places.identity is None else types[self.places.identity]
        self.extra = pa.schema([(name, types[place]) for name, place in zip(wish.keep, self.places.kept, strict=True)])

    def _from(self, first: int) -> Iterator[Chunk]:
        batches = parquet.batches(self.file, self.names, self.wish.chunk_rows, first)
        while True:
            with parquet.told(self.where):
                batch = next(batches, None)
            if batch is None:
                return
            yield self._chunk(first, batch)
            first += len(batch)

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def _chunk(self, first: int, batch: pa.Table) -> Chunk:
        found = {place: parquet.column(batch, k) for k, place in enumerate(self.places.used)}
        frame = cells.to_frame(self.wish.table, [found[place] for place in self.places.features])
        ids = None if self.places.identity is None else found[self.places.identity]
        kept = _kept([found[place] for place in self.places.kept], self.extra, len(frame))
        return Chunk(0, first, frame, ids, kept)

    def close(self) -> None:
        self.file.close()


STANDARD_INPUT = "standard input"


def spoken(source: Source) -> str:
    return STANDARD_INPUT if str(source) == "-" else str(source)


def check_regular(source: Source) -> None:
    """A pipe can be read once and from its start only; files are read more often."""
    path = Path(source)
    if str(source) != "-" and not places.is_address(source) and path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"Cannot read {source}; expected a regular file, or '-' for what is piped in; got something else.")


def frame_of(batch: pa.RecordBatch | pa.Table, table: Table, where: str = "The batch") -> pd.DataFrame:
    """The explainer's columns of an Arrow batch as a frame like those of `fit`, for `explain_chunk`."""
    whole = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    places = header.find(whole.column_names, table.schema.names, None, (), where)
    for name, place in zip(table.schema.names, places.features, strict=True):
        cells.check_kind(name, whole.schema.field(place).type, where)
    return cells.to_frame(table, [parquet.column(whole, place) for place in places.features])


def _stamp(source: Source) -> tuple[int, int] | None:
    return None if str(source) == "-" else places.stamp(source)


def open_rows(
    source: Source,
    *,
    table: Table,
    chunk_rows: int = ROWS,
    separator: str | None = None,
    encoding: str | None = None,
    ids: str | None = None,
    keep: Sequence[str] = (),
    limit: int | None = None,
) -> Rows:
    """The rows of a CSV or Parquet file, local or at an address such as s3://… ("-": CSV on standard input).

    The header is checked at once, rows are read as they are taken: iterate for `Chunk`s of `chunk_rows` rows, the last one
    of what is left. `table` is a fitted explainer's `table_`; other columns of the file are passed over, unless `ids` or
    `keep` names them. With a `limit` only so many rows are read.
    """
    check_regular(source)
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, Integral) or chunk_rows < 1:
        raise InputError(f"chunk_rows must be a whole number of at least 1; got {chunk_rows!r}.")
    if isinstance(keep, str):
        raise InputError(f"keep must be a list of column names; got the text {keep!r}.")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, Integral) or limit < 1):
        raise InputError(f"limit must be a whole number of at least 1; got {limit!r}.")
    wish = Wish(table, int(chunk_rows), ids, tuple(keep), None if limit is None else int(limit))
    if parquet.is_parquet(source):
        return ParquetRows(source, wish)
    return DelimitedRows(source, wish, separator, encoding)


def _kept(columns: Sequence[Any], fields: pa.Schema, rows: int) -> pa.Table:
    if not columns:
        return pa.table({"": pa.nulls(rows)}).select([])
    return pa.Table.from_arrays(list(columns), schema=fields)
