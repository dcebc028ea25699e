"""Parquet read in batches of any size, with the columns wanted only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError
from fasterce.streams import places
from fasterce.streams.cells import decoded
from fasterce.streams.delimited import PARQUET

BUFFER = 2**20
SUFFIXES = (".parquet", ".pq")


def is_parquet(source: str | Path) -> bool:
    """By its first bytes, or by its name."""
    if str(source) == "-":
        return False
    if Path(source).suffix.lower() in SUFFIXES:
        return True
    try:
        with places.open_binary(source) as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:
        return False


@contextmanager
def told(source: str | Path) -> Iterator[None]:
    """What goes wrong in reading a file, in one sentence."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{source} must be a whole Parquet file; got {_first_line(error)}.") from error
    except OSError as error:
        cause = error.strerror.lower() if error.strerror else _first_line(error)
        raise InputError(f"Cannot read {source}; expected a whole Parquet file; got {cause}.") from error


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(". ")[:200]


def open_file(source: str | Path) -> Any:
    """A Parquet file that is read page by page, so that large row groups do not fill the memory."""
    with told(source):
        if not places.is_file(source):
            raise FileNotFoundError(2, "no such file")
        opened = places.open_binary(source) if places.is_address(source) else str(source)
        return pq.ParquetFile(opened, buffer_size=BUFFER, pre_buffer=False)


def batches(file: Any, columns: Sequence[str], rows: int, start: int) -> Iterator[pa.Table]:
    """Tables of exactly `rows` rows, the last one of what is left, from row `start` on."""
    groups, left_out = _groups_from(file, start)
    waiting: list[pa.Table] = []
    for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns), use_threads=False):
        # Asked for "a", Arrow gives "a.b" too.
        piece = pa.Table.from_batches([batch]).select(list(columns)).slice(left_out)
        left_out = max(0, left_out - len(batch))
        waiting.append(piece)
        while sum(map(len, waiting)) >= rows:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, rows)
            waiting = [joined.slice(rows)]
    if sum(map(len, waiting)):
        yield pa.concat_tables(waiting)


def column(table: pa.Table, place: int) -> pa.Array:
    """One column in one piece, dictionaries decoded."""
    pieces = [decoded(piece) for piece in table.column(place).chunks]
    return pa.concat_arrays(pieces) if pieces else pa.array([], type=plain_type(table.schema.field(place).type))


def plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _groups_from(file: Any, start: int) -> tuple[list[int], int]:
    """The row groups that hold row `start` and what follows, and how many rows of the first to leave out."""
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if start < size:
            return list(range(group, file.num_row_groups)), start
        start -= size
    return [], 0
