"""Check that a record has the fields its schema names, all of them and no others, without a JSON Schema library."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fasterce.errors import InputError, Problem, make_problem, unknown
from fasterce.records.files import check_format, record_id, schema
from fasterce.typing import Json

COMPOSED = {"object": dict, "array": list}

Node = Mapping[str, Any]  # A part of the JSON Schema.


def check_structure(record: Json) -> None:
    """Raise InputError for the first field that is missing, unknown, or not the object or list it must be."""
    check_format(record)
    problem = next(_problems(_schema(), record, "$", record_id(record)), None)
    if problem is not None:
        raise InputError(problem)


@cache
def _schema() -> Node:
    return schema()


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
    found: Node = _schema()["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _admits(node: Node, value: Json) -> bool:
    """Whether an object, a list or a single value may stand here; the types of single values are not compared."""
    if "anyOf" in node:
        return any(_admits(_resolved(one), value) for one in node["anyOf"])
    types = node.get("type", ("object", "array", "string"))
    types = (types,) if isinstance(types, str) else types
    if isinstance(value, (dict, list)):
        return any(isinstance(value, COMPOSED[one]) for one in types if one in COMPOSED)
    return any(one not in COMPOSED for one in types)
