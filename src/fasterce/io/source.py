"""Rows of a CSV or Parquet file, chunk by chunk, in the types the explainer was fitted with."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Self

import pandas as pd
import pyarrow as pa

from fasterce.config import BatchConfig
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.io import cells, delimited, header, locations, parquet
from fasterce.io.locations import Source

ROWS = BatchConfig().chunk_rows
STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a source.

    Attributes
    ----------
    number : int
        Ordinal of the chunk, from 0.
    first : int
        Position of its first row in the source.
    frame : DataFrame
        The explainer's columns, typed; a cell that does not fit stays as text, and `explain` reports it.
    ids : Arrow array or None
        The id column.
    passthrough : Arrow table
        The columns kept, as they are in the source.
    """

    number: int
    first: int
    frame: pd.DataFrame
    ids: pa.Array | None
    passthrough: pa.Table

    def head(self, rows: float) -> "Chunk":
        """Return the first rows, at most `rows` of them."""
        if rows >= len(self.frame):
            return self
        most = int(rows)
        ids = None if self.ids is None else self.ids.slice(0, most)
        return replace(self, frame=self.frame.iloc[:most], ids=ids, passthrough=self.passthrough.slice(0, most))


@dataclass(frozen=True)
class ReadOptions:
    """What to read of a source: the explainer's columns, an id column, columns to keep, at most `limit` rows."""

    table: Table
    chunk_rows: int
    ids: str | None
    keep: tuple[str, ...]
    limit: int | None = None


class Rows(ABC):
    """A source whose header is valid; iterate once for its chunks.

    Attributes
    ----------
    total : int or None
        Number of rows, None if that is not known before the end.
    identity : Arrow type or None
        Type of the id column.
    extra : Arrow schema
        The columns kept.
    """

    total: int | None = None
    identity: pa.DataType | None
    extra: pa.Schema
    places: header.ColumnPositions

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source, self.options, self.name = source, options, display_name(source)
        self._opened = self._stamp()

    def _stamp(self) -> tuple[int, int] | None:
        return None if str(self.source) == "-" else locations.stamp(self.source)

    def check_unchanged(self) -> None:
        """Raise if the source was written to since it was opened."""
        if self._stamp() != self._opened:
            raise InputError("io.changed_source", source=self.name)

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Yield chunks of `chunk_rows` rows from number `start` on; the last one has what is left."""
        first = start * self.options.chunk_rows
        for chunk in self.between(first, math.inf if self.options.limit is None else self.options.limit - first):
            yield replace(chunk, number=chunk.number + start)

    def between(self, first: int, most: float) -> Iterator[Chunk]:
        """Yield chunks, numbered from 0, of at most `most` rows from row `first` on."""
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
        """Yield chunks from row `first` on."""

    def _with_columns(self, first: int, frame: pd.DataFrame, column: Callable[[int], pa.Array]) -> Chunk:
        """Return a chunk; `column` gives the column at a position of the header."""
        ids = None if self.places.identity is None else column(self.places.identity)
        kept = [column(place) for place in self.places.kept]
        extra = pa.Table.from_arrays(kept, schema=self.extra) if kept else table_without_columns(len(frame))
        return Chunk(0, first, frame, ids, extra)

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows, whatever the limit; a CSV file is read to its end."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


class DelimitedRows(Rows):
    """The rows of a CSV file: ids and columns kept are text."""

    def __init__(self, source: Source, options: ReadOptions, separator: str | None, encoding: str | None) -> None:
        super().__init__(source, options)
        names = options.table.schema.names
        self.bytes = delimited.open_bytes(source)
        self.file = delimited.Delimited(self.bytes, self.name, separator, encoding, [str(name) for name in names])
        self.places = header.find(self.file.header, names, options.ids, options.keep, self.name)
        self.identity = None if options.ids is None else pa.string()
        self.extra = pa.schema([(name, pa.string()) for name in options.keep])

    def _from(self, first: int) -> Iterator[Chunk]:
        self.file.skip(first)
        while (records := self.file.take(self.options.chunk_rows)).rows:
            yield self._chunk(first, records)
            first += len(records.rows)

    def count(self) -> int:
        rows = 0
        while taken := len(self.file.take(self.options.chunk_rows).rows):
            rows += taken
        return rows

    def _chunk(self, first: int, records: delimited.Records) -> Chunk:
        features = [records.sound_column(place) for place in self.places.features]
        frame = cells.to_frame(self.options.table, features, records.malformed)
        return self._with_columns(first, frame, records.column)

    def close(self) -> None:
        if self.name != STANDARD_INPUT:
            self.bytes.close()


class ParquetRows(Rows):
    """The rows of a Parquet file: ids and columns kept are of its own types."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        super().__init__(source, options)
        names = options.table.schema.names
        self.file = parquet.open_file(source)
        held = int(self.file.metadata.num_rows)
        self.total = held if options.limit is None else min(held, options.limit)
        fields = self.file.schema_arrow
        self.places = header.find(fields.names, names, options.ids, options.keep, self.name)
        cells.check_types(names, fields, self.places.features, self.name)
        self.names = [fields.names[place] for place in self.places.used]
        types = {place: parquet.plain_type(fields.field(place).type) for place in self.places.used}
        self.identity = None if self.places.identity is None else types[self.places.identity]
        self.extra = pa.schema([(name, types[place]) for name, place in zip(options.keep, self.places.kept, strict=True)])

    def _from(self, first: int) -> Iterator[Chunk]:
        batches = parquet.batches(self.file, self.names, self.options.chunk_rows, first)
        while True:
            with parquet.read_errors(self.name):
                batch = next(batches, None)
            if batch is None:
                return
            yield self._chunk(first, batch)
            first += len(batch)

    def count(self) -> int:
        return int(self.file.metadata.num_rows)

    def _chunk(self, first: int, batch: pa.Table) -> Chunk:
        found = {place: parquet.column(batch, k) for k, place in enumerate(self.places.used)}
        frame = cells.to_frame(self.options.table, [found[place] for place in self.places.features])
        return self._with_columns(first, frame, found.__getitem__)

    def close(self) -> None:
        self.file.close()


def display_name(source: Source) -> str:
    return STANDARD_INPUT if str(source) == "-" else str(source)


def check_regular(source: Source) -> None:
    """Raise for a named pipe or device, which can be read only once and from its start."""
    path = Path(source)
    if str(source) != "-" and not locations.is_address(source) and path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError("io.not_a_regular_file", path=source)


def frame_of(batch: pa.RecordBatch | pa.Table, table: Table, where: str = "The batch") -> pd.DataFrame:
    """Return the explainer's columns of an Arrow batch as a frame for `explain_chunk`.

    Parameters
    ----------
    batch : Arrow record batch or table
        Rows with at least the explainer's columns.
    table : Table
        `state_.table` of a fitted explainer.
    where : str, default="The batch"
        How messages name the batch.
    """
    whole = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    places = header.find(whole.column_names, table.schema.names, None, (), where).features
    cells.check_types(table.schema.names, whole.schema, places, where)
    return cells.to_frame(table, [parquet.column(whole, place) for place in places])


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
    """Open a CSV or Parquet file, check its header, and read its rows as they are taken.

    Parameters
    ----------
    source : str or path
        A file, an address such as s3://…, or "-" for CSV on standard input.
    table : Table
        `state_.table` of a fitted explainer; other columns are ignored unless `ids` or `keep` names them.
    chunk_rows : int, default=5000
        Rows per `Chunk`; the last chunk has what is left.
    separator, encoding : str, optional
        Of a CSV file; None detects the separator and expects UTF-8.
    ids : str, optional
        A column that names the rows.
    keep : sequence of str, optional
        Columns to pass through.
    limit : int, optional
        Read the first `limit` rows only.

    Returns
    -------
    Rows
        A context manager; iterate for `Chunk`s.

    Raises
    ------
    InputError
        If the file cannot be read or a column is missing.
    """
    check_regular(source)
    check_count("chunk_rows", chunk_rows)
    check_names("keep", keep)
    if limit is not None:
        check_count("limit", limit)
    options = ReadOptions(table, int(chunk_rows), ids, tuple(keep), None if limit is None else int(limit))
    if parquet.is_parquet(source):
        return ParquetRows(source, options)
    return DelimitedRows(source, options, separator, encoding)


def check_count(option: str, value: object, least: int = 1) -> None:
    """Raise unless a value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError("options.not_a_count", option=option, expected=least, received=value)


def check_names(option: str, names: Sequence[str]) -> None:
    """Raise if a single text was given instead of a list of names."""
    if isinstance(names, str):
        raise InputError("io.not_a_list", option=option, received=names)


def table_without_columns(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)}).select([])
