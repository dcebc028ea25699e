"""CSV read record by record: bytes -> text -> cells, with the place of everything that is wrong."""

import codecs
import csv
import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from fasterce.errors import InputError
from fasterce.streams import places

SEPARATORS = (",", ";", "\t", "|")
SPOKEN = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
BLOCK = 2**20
LONGEST_LINE = 2**24
SAMPLED_LINES = 20
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
LOCAL_FAULTS = {
    "expected after": "text that goes on after a closing quote",
    "new-line": "a bare CR in a cell without quotes (lines end with LF or CRLF)",
}


@dataclass
class Records:
    """Some records of a file: cells row by row, and by position what was found in place of records that do not fit."""

    rows: list[list[str | None]] = field(default_factory=list)
    misfits: dict[int, str] = field(default_factory=dict)

    def column(self, place: int) -> pa.Array:
        return pa.array([row[place] for row in self.rows], type=pa.string())

    def sound_column(self, place: int) -> pa.Array:
        """The same without the cells of records that do not fit: nobody knows which column they belong to."""
        if not self.misfits:
            return self.column(place)
        return pa.array([None if k in self.misfits else row[place] for k, row in enumerate(self.rows)], type=pa.string())


def open_bytes(source: str | Path) -> IO[bytes]:
    """The bytes of a file, unpacked if it is gzip, or of standard input."""
    if str(source) == "-":
        return sys.stdin.buffer
    try:
        file = places.open_binary(source)
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
    except OSError as error:
        raise InputError(f"Cannot read {source}; expected a file that can be read; got {_cause(error)}.") from error
    return gzip.open(file) if packed else file  # type: ignore[return-value]


def _cause(error: OSError) -> str:
    return error.strerror.lower() if error.strerror else str(error)


class Delimited:
    """A CSV file as records. The header is read at once; `take` reads on."""

    def __init__(self, file: IO[bytes], name: str, separator: str | None, encoding: str | None, known: Sequence[str]) -> None:
        self.name = name
        self._lines = Lines(file, name, encoding)
        head = list(islice(self._lines, SAMPLED_LINES))
        if not head or not "".join(head).strip():
            raise InputError(f"{name} must start with a header line that names the columns; got an empty file.")
        if head[0].startswith(PARQUET.decode()):
            raise InputError(f"{name} must be CSV; got Parquet, which can be read from a file but not from a pipe.")
        self.separator = _choose(head, separator, known, name)
        self._reader = _reader(self._back(head), self.separator)
        self.header = self._header()

    def _header(self) -> list[str]:
        try:
            return next(filter(None, self._reader))
        except csv.Error as error:
            got = LOCAL_FAULTS.get(_fault(error), f"line 1 with {error}")
            raise InputError(f"{self.name} must start with a header line that names the columns; got {got}.") from error

    def _back(self, head: list[str]) -> Iterator[str]:
        yield from head
        yield from self._lines

    def skip(self, count: int) -> int:
        """Pass over records without keeping them; how many there were."""
        passed = 0
        while passed < count:
            some = self.take(min(count - passed, 10_000))
            if not some.rows:
                break
            passed += len(some.rows)
        return passed

    def take(self, count: int) -> Records:
        """The next records; fewer at the end of the file."""
        some, width = Records(), len(self.header)
        while len(some.rows) < count:
            first = self._reader.line_num + 1
            try:
                row: Any = next(self._reader, None)
            except csv.Error as error:
                some.misfits[len(some.rows)] = f"line {first} with {self._local_fault(error, first)}"
                row = [None] * width
            if row is None:
                break
            if len(row) != width:
                if not row:
                    continue
                some.misfits[len(some.rows)] = f"line {first} with {len(row)} cells where the header has {width}"
                row = (row + [None] * width)[:width]
            some.rows.append(row)
        return some

    def _local_fault(self, error: csv.Error, line: int) -> str:
        """What is wrong with one record; the reader can go on after it, unless it lost its way."""
        if _fault(error) not in LOCAL_FAULTS:
            end = "is longer than 131072 characters" if "limit" in str(error) else "does not end"
            raise InputError(
                f"{self.name} must close every quote it opens; got a cell that starts in line {line} and {end}."
            ) from error
        return LOCAL_FAULTS[_fault(error)]


def _fault(error: csv.Error) -> str:
    return next((part for part in LOCAL_FAULTS if part in str(error)), "")


class Lines:
    """Lines of text from bytes; what cannot be decoded is told with its place in the file."""

    def __init__(self, file: IO[bytes], name: str, encoding: str | None) -> None:
        self.name = name
        self.given = encoding
        self.file = file
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        if not hasattr(self, "_decoded"):
            self._decoded = self._decode()
        return self._decoded

    def _decode(self) -> Iterator[str]:
        first = self._block()
        decoder = self._decoder()
        block, rest = first, ""
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
                raise InputError(f"{self.name} must be lines of text; got one of more than {LONGEST_LINE} characters.")
            block = self._block()
        if rest:
            yield rest

    def _decoder(self) -> codecs.IncrementalDecoder:
        try:
            return codecs.getincrementaldecoder(self.given or "utf-8-sig")("strict")
        except LookupError as error:
            raise InputError(
                f"encoding must name a text encoding, such as 'utf-8', 'cp1252' or 'utf-16'; got {self.given!r}."
            ) from error

    def _block(self) -> bytes:
        try:
            block = self.file.read(BLOCK)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{self.name} must be a whole gzip file; got one that is damaged or cut off after {self.read} bytes of text."
            ) from error
        except OSError as error:
            raise InputError(f"Cannot read {self.name} beyond byte {self.read}; got {_cause(error)}.") from error
        self.read += len(block)
        return block

    def _undecodable(self, error: UnicodeDecodeError, place: int, first: bytes) -> InputError:
        marked = next((name for mark, name in MARKS if first.startswith(mark)), "cp1252")
        meant = f"; say encoding={marked!r} if that is what it is" if self.given is None else ""
        expected = "UTF-8" if self.given is None else self.given
        byte = error.object[error.start]
        return InputError(f"{self.name} must be text in {expected}{meant}; got the byte 0x{byte:02x} at position {place}.")


def _reader(lines: Iterator[str], separator: str) -> Any:
    return csv.reader(lines, delimiter=separator, strict=True)


def _choose(head: Sequence[str], separator: str | None, known: Sequence[str], name: str) -> str:
    """The separator that makes the header's names known ones, or without any known the most columns of one width."""
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n'):
        raise InputError(f"separator must be one character, such as ',' or ';'; got {separator!r}.")
    fits = {one: _fit(head, one, known) for one in SEPARATORS}
    best = max(SEPARATORS, key=lambda one: fits[one])
    if separator is None:
        return best
    if fits[best] > _fit(head, separator, known) and (known or fits[best][1] > 1):
        fitting = f"the separator that fits its header, {SPOKEN[best]} ({best!r})"
        raise InputError(f"{name} must be read with {fitting}; got {separator!r}.")
    return separator


def _fit(head: Sequence[str], separator: str, known: Sequence[str]) -> tuple[int, int]:
    records: list[list[str]] = []
    # A sample may be cut off within quotes.
    with suppress(csv.Error):
        records.extend(record for record in _reader(iter(head), separator) if record)
    if not records:
        return (0, 0)
    if known:
        names = {cell.strip() for cell in records[0]} | set(records[0])
        return (len(names & set(known)), 0)
    same = all(len(record) == len(records[0]) for record in records)
    return (int(same and len(records[0]) > 1), len(records[0]))
