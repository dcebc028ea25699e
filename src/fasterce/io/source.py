"""Rows of a CSV or Parquet file, chunk by chunk, in the types the explainer was fitted with."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fasterce.config import BatchConfig
from fasterce.data.table import Table
from fasterce.errors import InputError, check_count, suggestion, unknown
from fasterce.io import cells, locations, parquet
from fasterce.io.delimited import CsvFormat, DelimitedFile, RawRows
from fasterce.io.locations import Source
from fasterce.typing import Mask

ROWS = BatchConfig().chunk_rows

Positions = NDArray[np.int64]
Columns = Sequence[tuple[str, pa.Array]]
TableFile = DelimitedFile | parquet.ParquetFile


@dataclass(frozen=True)
class ColumnPositions:
    """The positions of the features, the id, the columns kept and the passthrough columns in the header of a file."""

    features: tuple[int, ...]
    identity: int | None
    kept: tuple[int, ...]
    passthrough: Mapping[Hashable, int] = field(default_factory=dict)

    @property
    def used(self) -> list[int]:
        extra = [] if self.identity is None else [self.identity]
        return sorted({*self.features, *extra, *self.kept, *self.passthrough.values()})


def find_columns(
    header: Sequence[str], table: Table, identity: str | None, keep: Sequence[str], source: str
) -> ColumnPositions:
    """Return the positions of all columns needed; other columns are ignored, and passthrough columns the model does not
    read may be missing."""
    wanted = [*table.schema.names, *table.read_passthrough]
    names = [str(name) for name in wanted]
    if same := repeated(names):
        raise InputError("io.same_column_text", received=same)
    others = [*keep, *([] if identity is None else [identity])]
    bare = [cell.strip() for cell in header]
    # A name with surrounding spaces matches, unless there is a column with the exact name.
    columns = {name: header if name in header else bare for name in (*names, *others)}
    missing = [name for name in names if name not in columns[name]]
    if missing:
        near = suggestion(missing[0], [cell for cell in header if cell.strip() not in names])
        code = "io.missing_columns" if near is None else "io.misspelt_columns"
        raise InputError(code, source=source, missing=missing, received=list(header), near=near)
    for name in others:
        if name not in columns[name]:
            raise InputError(unknown("io.unknown_column", name, header, source=source))
    unclear = [name for name, among in columns.items() if among.count(name) > 1]
    if unclear:
        raise InputError("io.repeated_columns", source=source, received=unclear)
    place = {name: among.index(name) for name, among in columns.items()}
    kept = tuple(place[name] for name in keep)
    passed = {name: bare.index(str(name)) for name in table.schema.passthrough if str(name) in bare}
    own = tuple(place[name] for name in names[: len(table.schema)])
    return ColumnPositions(own, None if identity is None else place[identity], kept, passed)


def repeated(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


@dataclass(frozen=True)
class Chunk:
    """Rows of a source.

    Attributes
    ----------
    number : int
        Ordinal of the chunk, from 0.
    positions : int array
        Positions of the rows in the source; consecutive unless rows were filtered out.
    frame : DataFrame
        The explainer's columns, typed; a cell that does not fit stays as text, and `explain` reports it.
    ids : Arrow array or None
        The id column.
    passthrough : Arrow table
        The columns kept, as they are in the source.
    unfiltered : bool array
        Rows a filter kept because the model failed on them.
    """

    number: int
    positions: Positions
    frame: pd.DataFrame
    ids: pa.Array | None
    passthrough: pa.Table
    unfiltered: Mask

    @classmethod
    def make(cls, first: int, frame: pd.DataFrame, ids: pa.Array | None, kept: Columns) -> "Chunk":
        """Return consecutive rows, the first at position `first`; `kept` are names and values of the columns kept."""
        arrays, names = [array for _, array in kept], [name for name, _ in kept]
        passthrough = pa.Table.from_arrays(arrays, names=names) if kept else table_without_columns(len(frame))
        return cls(0, np.arange(first, first + len(frame)), frame, ids, passthrough, np.zeros(len(frame), dtype=bool))

    @classmethod
    def join(cls, chunks: Sequence["Chunk"]) -> "Chunk":
        """Return the rows of all chunks as one."""
        if len(chunks) == 1:
            return chunks[0]
        return cls(
            chunks[0].number,
            np.concatenate([chunk.positions for chunk in chunks]),
            pd.concat([chunk.frame for chunk in chunks], ignore_index=True),
            None if chunks[0].ids is None else pa.concat_arrays([chunk.ids for chunk in chunks]),
            pa.concat_tables([chunk.passthrough for chunk in chunks]),
            np.concatenate([chunk.unfiltered for chunk in chunks]),
        )

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def first(self) -> int:
        """Position of the first row."""
        return int(self.positions[0])

    def take(self, rows: Mask | slice) -> "Chunk":
        """Return some of the rows."""
        kept = pa.array(np.arange(len(self))[rows])
        table = self.passthrough.take(kept) if self.passthrough.num_columns else table_without_columns(len(kept))
        ids = None if self.ids is None else self.ids.take(kept)
        frame = self.frame[rows].reset_index(drop=True)
        return Chunk(self.number, self.positions[rows], frame, ids, table, self.unfiltered[rows])

    def copied(self, keep: Sequence[str] | None = None) -> pa.Table:
        """Return what is copied to the output: the ids, and all or some of the columns kept."""
        kept = self.passthrough if keep is None else self.passthrough.select(list(keep))
        if self.ids is None:
            return kept
        return pa.Table.from_arrays([self.ids, *kept.columns], names=["id", *kept.column_names])

    def record_ids(self) -> list[str]:
        """Return what names each row in its record: its id, or its position where it has none."""
        named = [None] * len(self) if self.ids is None else self.ids.to_pylist()
        return [str(place if name is None else name) for place, name in zip(self.positions.tolist(), named, strict=True)]

    def column(self, name: str) -> pa.Array:
        """Return a column kept."""
        return cells.column(self.passthrough, self.passthrough.column_names.index(name))


class Rows:
    """An opened file of rows, made by `open_rows`; iterate once for its chunks.

    Parameters
    ----------
    source, table, ids, keep, limit
        As for `open_rows`.
    size : int
        Rows per chunk.
    csv : CsvFormat
        Separator, encoding and marks in numbers of a CSV file.

    Attributes
    ----------
    total : int or None
        Number of rows, None if that is not known before the end.
    identity : Arrow type or None
        Type of the id column. That and the columns kept are text in a CSV file, of their own types in a Parquet file.
    extra : Arrow schema
        The columns kept.
    file : TableFile
        The opened file.
    """

    def __init__(
        self, source: Source, table: Table, *, size: int, ids: str | None, keep: Sequence[str], limit: float, csv: CsvFormat
    ) -> None:
        self.source, self.table, self.size, self.limit = source, table, size, limit
        self._opened = self._stamp()
        self.file = file = open_table(source, csv, table.schema.names)
        self.total = None if file.metadata is None else int(min(file.count(), limit))
        self.places = find_columns(file.fields.names, table, ids, keep, file.name)
        cells.check_types(table.schema.features, file.fields, self.places.features, file.name)
        types = [cells.plain_type(field.type) for field in file.fields]
        self.identity = None if self.places.identity is None else types[self.places.identity]
        self.extra = pa.schema([(name, types[place]) for name, place in zip(keep, self.places.kept, strict=True)])

    def copied(self, keep: Sequence[str] | None = None) -> pa.Schema:
        """Return the columns of `Chunk.copied`."""
        identity = [] if self.identity is None else [pa.field("id", self.identity)]
        return pa.schema([*identity, *(self.extra if keep is None else map(self.extra.field, keep))])

    def _stamp(self) -> tuple[int, int] | None:
        return None if str(self.source) == "-" else locations.stamp(self.source)

    def check_unchanged(self) -> None:
        """Raise if the source was written to since it was opened."""
        if self._stamp() != self._opened:
            raise InputError("io.changed_source", source=self.file.name)

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Yield chunks of `chunk_rows` rows; the last one may be shorter.

        Parameters
        ----------
        start : int, default=0
            Number of the first chunk to yield.

        Yields
        ------
        Chunk
        """
        first = start * self.size
        for chunk in self.between(first, self.limit - first):
            yield replace(chunk, number=chunk.number + start)

    def between(self, first: int, most: float) -> Iterator[Chunk]:
        """Yield chunks, numbered from 0, of at most `most` rows from row `first` on."""
        if most <= 0:
            return
        left = most
        for number, raw in enumerate(self.file.read(self.places.used, self.size, first)):
            chunk = replace(self._chunk(first + number * self.size, raw), number=number)
            yield chunk if len(chunk) <= left else chunk.take(slice(0, int(left)))
            left -= len(chunk)
            if left <= 0:
                return

    def _chunk(self, first: int, raw: RawRows) -> Chunk:
        passed = {name: raw.columns[place] for name, place in self.places.passthrough.items()}
        columns = [raw.columns[place] for place in self.places.features]
        frame = cells.to_frame(self.table, columns, raw.malformed, passed, self.file.format)
        ids = None if self.places.identity is None else raw.columns[self.places.identity]
        kept = [(name, raw.columns[place]) for name, place in zip(self.extra.names, self.places.kept, strict=True)]
        return Chunk.make(first, frame, ids, kept)

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def count(self) -> int:
        """Return the number of rows, regardless of the limit; a CSV file is read to its end.

        Returns
        -------
        int
        """
        return self.file.count()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.close()


def open_table(source: Source, csv: CsvFormat, known: Sequence[Hashable] = ()) -> TableFile:
    """Open a CSV or Parquet file; the separator is detected by the known names in the header."""
    path = Path(source)
    if str(source) != "-" and not locations.is_address(source) and path.exists() and not (path.is_file() or path.is_dir()):
        # A named pipe or device can be read only once and from its start.
        raise InputError("io.not_a_regular_file", path=source)
    if parquet.is_parquet(source):
        return parquet.ParquetFile(source)
    return DelimitedFile(source, csv, [str(name) for name in known])


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

    Returns
    -------
    DataFrame
    """
    whole = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    places = find_columns(whole.column_names, table, None, (), where)
    cells.check_types(table.schema.features, whole.schema, places.features, where)
    passed = {name: cells.column(whole, place) for name, place in places.passthrough.items()}
    return cells.to_frame(table, [cells.column(whole, place) for place in places.features], passed=passed)


def open_rows(
    source: Source,
    *,
    table: Table,
    chunk_rows: int = ROWS,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
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
    decimal, thousands : str, optional
        The marks in the numbers of a CSV file: "1.234,5" has decimal="," and thousands=".".
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
    check_count("chunk_rows", chunk_rows)
    check_names("keep", keep)
    if limit is not None:
        check_count("limit", limit)
    most = math.inf if limit is None else int(limit)
    csv = CsvFormat(separator, encoding, decimal, thousands)
    return Rows(source, table, size=int(chunk_rows), ids=ids, keep=keep, limit=most, csv=csv)


def check_names(option: str, names: Sequence[str]) -> None:
    """Raise if a single text was given instead of a list of names."""
    if isinstance(names, str):
        raise InputError("io.not_a_list", option=option, received=names)


def table_without_columns(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)}).select([])
