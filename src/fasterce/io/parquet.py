"""Parquet read in batches of any size, with the needed columns only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError
from fasterce.io import locations
from fasterce.io.atomic import cause
from fasterce.io.cells import decoded
from fasterce.io.delimited import PARQUET
from fasterce.io.locations import Source, first_line

# Bytes read ahead per column: large row groups must not fill the memory.
BUFFER = 2**20
SUFFIXES = (".parquet", ".pq")


def is_parquet(source: Source) -> bool:
    """Tell a Parquet file by its name or its first bytes."""
    if str(source) == "-":
        return False
    if Path(source).suffix.lower() in SUFFIXES:
        return True
    try:
        with locations.open_binary(source) as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:
        return False


@contextmanager
def read_errors(source: Source) -> Iterator[None]:
    """Raise `InputError` in place of errors of Arrow and the operating system."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError("io.bad_parquet", path=source, cause=first_line(error)) from error
    except OSError as error:
        reason = cause(error) if error.strerror else first_line(error)
        raise InputError("io.unreadable_parquet", path=source, cause=reason) from error


def open_file(source: Source) -> pq.ParquetFile:
    """Open a Parquet file that is read page by page."""
    with read_errors(source):
        if not locations.is_file(source):
            raise FileNotFoundError(2, "no such file")
        opened = locations.open_binary(source) if locations.is_address(source) else str(source)
        return pq.ParquetFile(opened, buffer_size=BUFFER, pre_buffer=False)


def batches(file: pq.ParquetFile, columns: Sequence[str], rows: int, start: int) -> Iterator[pa.Table]:
    """Yield tables of exactly `rows` rows from row `start` on; the last one has what is left."""
    groups, left_out = _groups_from(file, start)
    waiting: list[pa.Table] = []
    for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns), use_threads=False):
        # For the column "a" Arrow also returns "a.b".
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
    """Return one column in one piece, with dictionaries decoded."""
    pieces = [decoded(piece) for piece in table.column(place).chunks]
    return pa.concat_arrays(pieces) if pieces else pa.array([], type=plain_type(table.schema.field(place).type))


def plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _groups_from(file: pq.ParquetFile, start: int) -> tuple[list[int], int]:
    """Return the row groups from row `start` on, and how many rows of the first to skip."""
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if start < size:
            return list(range(group, file.num_row_groups)), start
        start -= size
    return [], 0
