"""Records as JSON: the published schema, one line a record, nothing half-written."""

import json
import os
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import uuid4

from fasterce.errors import InputError, MissingExtraError
from fasterce.records.making import FORMAT, VERSION, Record

LONGEST = 200


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a record."""
    return dict(json.loads(_schema_text()))


@cache
def _schema_text() -> str:
    return (resources.files("fasterce.records") / "record.schema.json").read_text(encoding="utf-8")


def validate(record: Record) -> None:
    """One sentence where a record is not what the schema says."""
    check_format(record)
    error = _best_match(_validator().iter_errors(record))
    if error is not None:
        where = error.json_path.removeprefix("$").removeprefix(".") or "the record itself"
        raise InputError(f"Record {record_id(record)!r}: the field {where!r} must fit the schema; got {_cut(error.message)}.")


def check_format(record: Any) -> None:
    """Is this a record of ours at all, and of a version this library knows?"""
    if not isinstance(record, dict):
        raise InputError(f"A record must be a dictionary; got {type(record).__name__}.")
    if record.get("format") != FORMAT:
        raise InputError(
            f"A record must have the format {FORMAT!r} in its field 'format'; got {record.get('format')!r:.100}."
        )
    version = record.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InputError(f"A record must have a version from 1 to {VERSION} in its field 'version'; got {version!r:.100}.")


def record_id(record: Record) -> Any:
    ids = record.get("ids")
    return ids.get("record") if isinstance(ids, dict) else None


def _cut(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"


def _jsonschema() -> Any:
    try:
        import jsonschema  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("jsonschema", "records", "Validating records") from error
    return jsonschema


@cache
def _validator() -> Any:
    return _jsonschema().Draft202012Validator(schema())


def _best_match(errors: Iterable[Any]) -> Any:
    from jsonschema.exceptions import best_match  # noqa: PLC0415

    return best_match(errors)


def to_json(record: Record) -> str:
    """A record on one line."""
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A record must hold what JSON can hold; got {error}.") from error
    return line


def write(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records as JSON lines, all or none, and say how many."""
    target = Path(path).resolve()
    if isinstance(records, dict):
        raise InputError("records must be a list of records; got a single one.")
    partial = target.with_name(f".{target.name}.{uuid4().hex}")
    count = 0
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as file:
            for record in records:
                check_format(record)
                file.write(f"{to_json(record)}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except OSError as error:
        raise InputError(f"Records must go to a file that can be written; got {error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return count


def read(path: str | os.PathLike[str]) -> list[Record]:
    """The records of a file of JSON lines, in order."""
    try:
        with Path(path).open(encoding="utf-8", newline="\n") as file:
            return [_line(path, number, line) for number, line in enumerate(file, start=1) if line.strip()]
    except OSError as error:
        raise InputError(f"Records must come from a file that can be read; got {error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Records in {path} must be written in UTF-8; got {error}.") from error


def _line(path: str | os.PathLike[str], number: int, line: str) -> Record:
    try:
        record = json.loads(line, object_pairs_hook=_once_each)
        check_format(record)
    except InputError as error:
        raise InputError(f"{path}, line {number}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {number} must be a record as JSON; got {error}.") from error
    return dict(record)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a name that stands twice, readers of JSON take one or the other."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"A name must stand once in an object; got {twice!r:.100} {names.count(twice)} times.")
    return found
