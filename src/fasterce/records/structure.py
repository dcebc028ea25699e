"""The structure of records: the published JSON Schema, and checks of records against it, with or without a library."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from fasterce.errors import InputError, Problem, import_extra, make_problem, unknown
from fasterce.records.configuration import options_schema
from fasterce.typing import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

FORMAT, VERSION = "fasterce-record", 2
LONGEST_MESSAGE = 200
COMPOSED = {"object": dict, "array": list}

Record = JsonObject
Node = Mapping[str, Any]  # A part of the JSON Schema.


def schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of a record; the options of a call are those of `ExplainOptions`.

    Returns
    -------
    dict
    """
    text = (resources.files("fasterce.records") / "record.schema.json").read_text(encoding="utf-8")
    found: JsonObject = json.loads(text)
    found["properties"]["configuration"]["properties"]["options"] |= options_schema()
    return found


SCHEMA = schema()
FIELDS: tuple[str, ...] = tuple(SCHEMA["properties"])


def validate(record: Record) -> None:
    """Raise InputError where a record does not fit the schema; needs the extra `records`.

    Parameters
    ----------
    record : dict
        As `make` returns it.
    """
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
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE // 2]} … {line[-LONGEST_MESSAGE // 2 :]}"


@cache
def _validator() -> "Draft202012Validator":
    jsonschema = import_extra("jsonschema", "records", "Validating records")
    return jsonschema.Draft202012Validator(schema())


def check_structure(record: Json) -> None:
    """Raise InputError for the first field that is missing, unknown, or not the object or list it must be."""
    check_format(record)
    problem = next(_problems(SCHEMA, record, "$", record_id(record)), None)
    if problem is not None:
        raise InputError(problem)


def _problems(node: Node, value: Json, place: str, record: Json) -> Iterator[Problem]:
    """Yield what does not fit; of several choices, what does not fit the first one of the value's own type."""
    node = _resolved(node)
    choices = [one for one in map(_resolved, node.get("anyOf", (node,))) if _admits(one, value)]
    if not choices:
        yield make_problem("records.wrong_type", received=type(value).__name__, record=record, place=place)
    elif "anyOf" in node:
        found = [list(_problems(choice, value, place, record)) for choice in choices]
        yield from found[0] if all(found) else ()
    elif isinstance(value, dict) and "properties" in node:
        yield from _field_problems(node, value, place, record)
    elif isinstance(value, list) and "items" in node:
        for position, item in enumerate(value):
            yield from _problems(node["items"], item, f"{place}[{position}]", record)


def _field_problems(node: Node, value: dict[str, Json], place: str, record: Json) -> Iterator[Problem]:
    fields = node["properties"]
    for name in node.get("required", ()):
        if name not in value:
            yield make_problem("records.missing_field", expected=name, record=record, place=place)
    for name, part in value.items():
        if name in fields:
            yield from _problems(fields[name], part, f"{place}.{name}", record)
        elif node.get("additionalProperties") is False:
            yield unknown("records.unknown_field", name, fields, record=record, place=place)


def _resolved(node: Node) -> Node:
    """Follow a reference to a definition of the schema."""
    found: Node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _admits(node: Node, value: Json) -> bool:
    """Return whether the schema permits an object, a list or a single value; types of single values are not compared."""
    if "anyOf" in node:
        return any(_admits(_resolved(one), value) for one in node["anyOf"])
    types = node.get("type", ("object", "array", "string"))
    types = (types,) if isinstance(types, str) else types
    if isinstance(value, (dict, list)):
        return any(isinstance(value, COMPOSED[one]) for one in types if one in COMPOSED)
    return any(one not in COMPOSED for one in types)
