"""Records as JSON: the published schema, and files of one record per line that are written whole or not at all."""

import json
import os
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fasterce.errors import InputError, MissingExtraError
from fasterce.io.atomic import replace_file
from fasterce.records.configuration import options_schema
from fasterce.records.create import FORMAT, VERSION, Record
from fasterce.typing import Json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

LONGEST = 200


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a record; the options of a call are those of `ExplainOptions`."""
    text = (resources.files("fasterce.records") / "record.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    found["properties"]["configuration"]["properties"]["options"] |= options_schema()
    return found


def validate(record: Record) -> None:
    """Raise InputError where a record does not fit the schema; needs the extra `records`."""
    check_format(record)
    validator = _validator()
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - an extra

    error = best_match(validator.iter_errors(record))
    if error is not None:
        reason = _cut(error.message)
        raise InputError("records.invalid_field", record=record_id(record), place=error.json_path, reason=reason)


def check_format(record: Json) -> None:
    """Raise InputError unless this is a record of the version this library knows."""
    if not isinstance(record, dict):
        raise InputError("records.not_a_record", received=type(record).__name__)
    for field, expected in (("format", FORMAT), ("version", VERSION)):
        if record.get(field) != expected or isinstance(record.get(field), bool):
            raise InputError("records.other_format", field=field, expected=expected, received=repr(record.get(field)))


def record_id(record: Record) -> Json:
    """Return the id of a record, None where it has none."""
    ids = record.get("ids")
    return ids.get("record") if isinstance(ids, dict) else None


def _cut(message: str) -> str:
    line = " ".join(message.split()).rstrip(".")
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"


@cache
def _validator() -> "Draft202012Validator":
    try:
        import jsonschema  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("jsonschema", "records", "Validating records") from error
    return jsonschema.Draft202012Validator(schema())


def to_json(record: Record) -> str:
    """Return a record on one line."""
    try:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("records.not_json", reason=str(error)) from error
    return line


def write(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records as JSON lines, all or none, and return their number."""
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
    """Return the records of a file of JSON lines, in order."""
    try:
        with Path(path).open(encoding="utf-8", newline="\n") as file:
            return [_line(path, number, line) for number, line in enumerate(file, start=1) if line.strip()]
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


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject a name that occurs twice in an object: readers of JSON differ in which value they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("records.repeated_name", received=twice, count=names.count(twice))
    return found
