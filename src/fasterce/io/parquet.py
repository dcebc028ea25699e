"""Parquet read in batches of any size, with the needed columns only."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fasterce.errors import InputError
from fasterce.io import locations
from fasterce.io.atomic import cause
from fasterce.io.cells import column
from fasterce.io.delimited import PARQUET, CsvFormat, RawRows
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


class ParquetFile:
    """A Parquet file that is read page by page."""

    format = CsvFormat()

    def __init__(self, source: Source) -> None:
        self.name = str(source)
        with read_errors(source):
            if not locations.is_file(source):
                raise FileNotFoundError(2, "no such file")
            opened = locations.open_binary(source) if locations.is_address(source) else str(source)
            self.file = pq.ParquetFile(opened, buffer_size=BUFFER, pre_buffer=False)
        self.fields, self.metadata = self.file.schema_arrow, self.file.metadata
        self.group_rows = tuple(self.metadata.row_group(k).num_rows for k in range(self.metadata.num_row_groups))

    def read(self, places: Sequence[int], size: int, start: int = 0) -> Iterator[RawRows]:
        """Yield the columns at these positions in pieces of exactly `size` rows from row `start` on; the last may be less."""
        tables = self._tables([self.fields.names[place] for place in places], size, start)
        while True:
            with read_errors(self.name):
                table = next(tables, None)
            if table is None:
                return
            yield RawRows(len(table), {place: column(table, k) for k, place in enumerate(places)})

    def count(self) -> int:
        return int(self.metadata.num_rows)

    def close(self) -> None:
        self.file.close()

    def _tables(self, names: list[str], size: int, start: int) -> Iterator[pa.Table]:
        ends = [0, *accumulate(self.group_rows)]
        first = bisect_right(ends, start) - 1
        groups, left_out = list(range(first, len(self.group_rows))), start - ends[first]
        waiting: list[pa.Table] = []
        for batch in self.file.iter_batches(batch_size=size, row_groups=groups, columns=names, use_threads=False):
            # For the column "a" Arrow also returns "a.b".
            waiting.append(pa.Table.from_batches([batch]).select(names).slice(left_out))
            left_out = max(0, left_out - len(batch))
            while sum(map(len, waiting)) >= size:
                joined = pa.concat_tables(waiting)
                yield joined.slice(0, size)
                waiting = [joined.slice(size)]
        if sum(map(len, waiting)):
            yield pa.concat_tables(waiting)
