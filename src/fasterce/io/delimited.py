"""CSV read record by record: bytes, text, cells; problems carry the line or byte they were found at."""

import codecs
import csv
import gzip
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from fasterce.errors import InputError, Problem
from fasterce.io import locations
from fasterce.io.atomic import cause
from fasterce.io.locations import Source

SEPARATORS = (",", ";", "\t", "|")
# Bytes read at a time.
BLOCK = 2**20
# Characters; a file with a longer line is not a text file, and would fill the memory.
LONGEST_LINE = 2**24
SAMPLED_LINES = 20
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
# Errors of the csv module differ by text only. These parts of the text mark errors that affect a single record.
RECORD_ERRORS = {"expected after": "io.text_after_quote", "new-line": "io.bare_carriage_return"}
CELL_TOO_LONG = "limit"


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    Parameters
    ----------
    separator, encoding : str, optional
        None detects the separator and expects UTF-8.
    decimal : str, default="."
        The decimal mark of numbers.
    thousands : str, optional
        What separates the thousands of numbers; by default nothing does.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        for option, value, known in (
            ("decimal", self.decimal, ".,"),
            ("thousands", self.thousands or "'", ".,'_ \u00a0\u202f"),
        ):
            if not isinstance(value, str) or len(value) != 1 or value not in known:
                raise InputError("io.bad_mark", option=option, expected=list(known), received=value)
        if self.decimal == self.thousands:
            raise InputError("io.same_marks", option="thousands", received=self.decimal)

    def numbers(self, texts: pa.Array) -> pa.Array:
        """Return the texts of numbers as Python writes them."""
        if self.thousands is not None:
            marks = [self.thousands] if self.thousands != " " else [" ", "\u00a0", "\u202f"]
            bare = pc.utf8_trim_whitespace(texts)
            for mark in marks:
                bare = pc.replace_substring_regex(bare, rf"(\d){re.escape(mark)}(\d)", r"\1\2")
                bare = pc.replace_substring_regex(bare, rf"(\d){re.escape(mark)}(\d)", r"\1\2")
            texts = bare
        return texts if self.decimal == "." else pc.replace_substring(texts, self.decimal, ".", max_replacements=1)


@dataclass(frozen=True)
class RawRows:
    """Consecutive rows as they are in a file.

    Attributes
    ----------
    count : int
    columns : mapping
        The columns read, by their position in the header.
    malformed : mapping
        The problems of lines that do not fit the header, by position in this piece.
    """

    count: int
    columns: Mapping[int, pa.Array]
    malformed: Mapping[int, Problem] = field(default_factory=dict)


def open_bytes(source: Source) -> IO[bytes]:
    """Open a file, unpacked if it is gzip, or standard input."""
    if str(source) == "-":
        return sys.stdin.buffer
    try:
        file = locations.open_binary(source)
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
    except OSError as error:
        raise InputError("io.cannot_read", path=source, cause=cause(error)) from error
    return gzip.open(file) if packed else file  # type: ignore[return-value]


class DelimitedFile:
    """A CSV file whose cells are all text. The header is read at once; `read` goes through the rows once."""

    metadata = None
    group_rows: tuple[int, ...] = ()

    def __init__(self, source: Source, csv_format: CsvFormat, known: Sequence[str]) -> None:
        self.format = csv_format
        self.name, self.is_stdin = locations.display_name(source), str(source) == "-"
        self.bytes = open_bytes(source)
        lines = TextLines(self.bytes, self.name, csv_format.encoding).decode()
        head = list(islice(lines, SAMPLED_LINES))
        if not head or not "".join(head).strip():
            raise InputError("io.empty_file", source=self.name)
        if head[0].startswith(PARQUET.decode()):
            raise InputError("io.parquet_in_pipe", source=self.name)
        chosen = _choose_separator(head, csv_format.separator, known, self.name)
        self._reader = csv.reader(chain(head, lines), delimiter=chosen, strict=True)
        try:
            self.fields = pa.schema([(name, pa.string()) for name in next(filter(None, self._reader))])
        except csv.Error as error:
            fault = Problem(_record_error(error)) if _record_error(error) else str(error)
            raise InputError("io.bad_header", source=self.name, fault=fault) from error

    def read(self, places: Sequence[int], size: int, start: int = 0) -> Iterator[RawRows]:
        """Yield the columns at these positions in pieces of `size` rows from row `start` on."""
        records = islice(self._records(), start, None)
        while taken := list(islice(records, size)):
            columns = {place: pa.array([row[place] for row, _ in taken], type=pa.string()) for place in places}
            malformed = {k: problem for k, (_, problem) in enumerate(taken) if problem is not None}
            yield RawRows(len(taken), columns, malformed)

    def count(self) -> int:
        """Return the number of rows; the file is read to its end."""
        return sum(1 for _ in self._records())

    def close(self) -> None:
        if not self.is_stdin:
            self.bytes.close()

    def _records(self) -> Iterator[tuple[list[str | None], Problem | None]]:
        """Yield the cells of each row, as many as the header has, and its problem if it had more or fewer."""
        width = len(self.fields)
        while True:
            line = self._reader.line_num + 1
            row: list[str | None]
            try:
                row = list(next(self._reader))
            except StopIteration:
                return
            except csv.Error as error:
                yield [None] * width, self._malformed(error, line)
                continue
            if len(row) == width:
                yield row, None
            elif row:
                problem = Problem("io.cells_per_line", expected=width, received=len(row), details={"line": line})
                yield (row + [None] * width)[:width], problem

    def _malformed(self, error: csv.Error, line: int) -> Problem:
        """Return the problem of one record; raise if the reader cannot go on after it."""
        code = _record_error(error)
        if code:
            return Problem("io.malformed_line", details={"line": line, "fault": Problem(code)})
        worse = "io.cell_too_long" if CELL_TOO_LONG in str(error) else "io.open_quote"
        raise InputError(worse, source=self.name, line=line, limit=csv.field_size_limit()) from error


def _record_error(error: csv.Error) -> str:
    return next((code for part, code in RECORD_ERRORS.items() if part in str(error)), "")


class TextLines:
    """Lines of text from bytes; a byte that cannot be decoded is reported with its position in the file."""

    def __init__(self, file: IO[bytes], name: str, encoding: str | None) -> None:
        self.file, self.name, self.encoding = file, name, encoding
        self.read = 0

    def decode(self) -> Iterator[str]:
        try:
            decoder = codecs.getincrementaldecoder(self.encoding or "utf-8-sig")("strict")
        except LookupError as error:
            raise InputError("io.unknown_encoding", option="encoding", received=self.encoding) from error
        first = block = self._block()
        rest = ""
        while True:
            before = decoder.getstate()[0]
            try:
                text = rest + decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                raise self._undecodable(error, self.read - len(block) - len(before) + error.start, first) from error
            pieces = text.split("\n")
            rest = pieces.pop()
            for piece in pieces:
                yield piece + "\n"
            if not block:
                break
            if len(rest) > LONGEST_LINE:
                raise InputError("io.long_line", source=self.name, expected=LONGEST_LINE)
            block = self._block()
        if rest:
            yield rest

    def _block(self) -> bytes:
        try:
            block = self.file.read(BLOCK)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError("io.damaged_gzip", source=self.name, position=self.read) from error
        except OSError as error:
            raise InputError("io.cannot_read_on", source=self.name, position=self.read, cause=cause(error)) from error
        self.read += len(block)
        return block

    def _undecodable(self, error: UnicodeDecodeError, position: int, first: bytes) -> InputError:
        details = {"source": self.name, "byte": f"0x{error.object[error.start]:02x}", "position": position}
        if self.encoding is not None:
            return InputError("io.undecodable", expected=self.encoding, **details)
        likely = next((name for mark, name in MARKS if first.startswith(mark)), "cp1252")
        return InputError("io.not_utf8", option="encoding", likely=likely, **details)


def _choose_separator(head: Sequence[str], separator: str | None, known: Sequence[str], name: str) -> str:
    """Return the separator by which the header has the known names, or without any the most columns of one width."""
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n'):
        raise InputError("io.bad_separator", option="separator", received=separator)
    fits = {one: _fit(head, one, known) for one in SEPARATORS}
    best = max(SEPARATORS, key=lambda one: fits[one])
    if separator is None:
        return best
    if fits[best] > _fit(head, separator, known) and (known or fits[best][1] > 1):
        raise InputError("io.wrong_separator", source=name, expected=best, received=separator, option="separator")
    return separator


def _fit(head: Sequence[str], separator: str, known: Sequence[str]) -> tuple[int, int]:
    records: list[list[str]] = []
    # A sample may end within quotes.
    with suppress(csv.Error):
        records.extend(record for record in csv.reader(head, delimiter=separator, strict=True) if record)
    if not records:
        return (0, 0)
    if known:
        names = {cell.strip() for cell in records[0]} | set(records[0])
        return (len(names & set(known)), 0)
    same = all(len(record) == len(records[0]) for record in records)
    return (int(same and len(records[0]) > 1), len(records[0]))
