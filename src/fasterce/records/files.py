"""Files of records, one per line, written whole or not at all; and digests of files."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from fasterce.errors import InputError
from fasterce.io.atomic import replace_file
from fasterce.records.structure import Record, check_format
from fasterce.typing import Json

# Parts that are one object for all records of a call, and their text by the id of the object, which is kept too: otherwise
# another object could get its id.
SHARED = ("software", "digests", "configuration", "constraints", "metrics")
SharedText = dict[int, tuple[Json, str]]


def to_json(record: Record) -> str:
    """Return a record on one line.

    Parameters
    ----------
    record : dict
        As `make` returns it.

    Returns
    -------
    str
        JSON without a line break.
    """
    return encode(record, {})


def encode(record: Record, shared: SharedText) -> str:
    """Return a record on one line, as `to_json` does; `shared` keeps the text of parts that records of one call share."""
    try:
        line = f"{{{', '.join(_field(name, value, shared) for name, value in record.items())}}}"
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("records.not_json", reason=str(error)) from error
    return line


def _field(name: str, value: Json, shared: SharedText) -> str:
    if name not in SHARED:
        return f"{_dumps(name)}: {_dumps(value)}"
    if id(value) not in shared:
        shared[id(value)] = value, f"{_dumps(name)}: {_dumps(value)}"
    return shared[id(value)][1]


# One encoder for all: `json.dumps` with options makes one per call.
_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def write(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records as JSON lines, all or none, and return their number.

    Parameters
    ----------
    path : str or path
    records : iterable of dict

    Returns
    -------
    int
    """
    if isinstance(records, dict):
        raise InputError("records.single_record", option="records")
    count = 0

    def write_lines(file: IO[bytes]) -> None:
        nonlocal count
        for record in records:
            check_format(record)
            file.write(f"{to_json(record)}\n".encode())
            count += 1

    replace_file(Path(path).resolve(), write_lines)
    return count


def read(path: str | os.PathLike[str]) -> list[Record]:
    """Return the records of a file of JSON lines, or of a JSON array with one record per line, in order.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    list of dict
    """
    try:
        with Path(path).open(encoding="utf-8", newline="\n") as file:
            lines = [(number, line.strip().removesuffix(",")) for number, line in enumerate(file, start=1)]
        return [_line(path, number, line) for number, line in lines if line not in ("", "[", "]", "[]")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("records.unreadable_file", path=os.fspath(path), reason=str(error)) from error


def _line(path: str | os.PathLike[str], number: int, line: str) -> Record:
    place = {"path": os.fspath(path), "line": number}
    try:
        record = json.loads(line, object_pairs_hook=_without_duplicates)
        check_format(record)
    except InputError as error:
        raise InputError("records.invalid_line", reason=error.problem, **place) from error
    except (ValueError, RecursionError) as error:
        raise InputError("records.line_not_json", reason=str(error), **place) from error
    return dict(record)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Reject a name that occurs twice in an object: readers of JSON differ in which value they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("records.repeated_name", received=twice, count=names.count(twice))
    return found


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the "sha256:…" of a file, for `make(model_digest=...)`.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    str
    """
    try:
        with Path(path).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise InputError("records.unreadable_file", path=os.fspath(path), reason=str(error)) from error
