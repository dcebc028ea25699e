"""Has a record the fields the schema names, all of them and no others? Quick enough for every record that is replayed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from fasterce.errors import InputError, unknown_name
from fasterce.records.files import check_format, record_id, schema

Node = Mapping[str, Any]

KINDS: dict[str, type] = {"object": dict, "array": list}


def check_structure(record: Any) -> None:
    """One sentence where a field is missing, unknown, or not the object or list it must be."""
    check_format(record)
    wrong = next(_wrong(_schema(), record, ""), None)
    if wrong is not None:
        raise InputError(f"Record {record_id(record)!r:.100} must fit its schema (see records.validate); got {wrong}")


@cache
def _schema() -> Node:
    return schema()


def _wrong(node: Node, value: Any, where: str) -> Iterator[str]:
    """What does not fit, first things first."""
    node = _resolved(node)
    if "anyOf" in node:
        yield from _none_fits(node["anyOf"], value, where)
    elif isinstance(value, dict) and "properties" in node:
        yield from _wrong_fields(node, value, where)
    elif isinstance(value, list) and "items" in node:
        for place, one in enumerate(value):
            yield from _wrong(node["items"], one, f"{where}[{place}]")
    elif not _alike(node, value):
        yield f"{type(value).__name__} in the field {where!r}."


def _none_fits(choices: Sequence[Node], value: Any, where: str) -> Iterator[str]:
    """The complaint of the first choice of the value's own kind, if none of them fits."""
    alike = [choice for choice in map(_resolved, choices) if _alike(choice, value)]
    told = [next(_wrong(choice, value, where), None) for choice in alike]
    if not told:
        yield f"{type(value).__name__} in the field {where!r}."
    elif None not in told:
        yield str(told[0])


def _alike(node: Node, value: Any) -> bool:
    """Objects where objects belong, lists where lists, single values where neither; a node without a type takes anything."""
    kinds = node.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    composed = next((kind for kind, python in KINDS.items() if isinstance(value, python)), None)
    if composed is not None or not kinds:
        return not kinds or composed in kinds
    return any(kind not in KINDS for kind in kinds)


def _wrong_fields(node: Node, value: Mapping[str, Any], where: str) -> Iterator[str]:
    known = node["properties"]
    named = f" of {where!r}" if where else ""
    for name in node.get("required", ()):
        if name not in value:
            yield f"no field {name!r}{named}."
    if node.get("additionalProperties") is False:
        for name in value:
            if name not in known:
                yield f"something else: {unknown_name(f'field{named}', name, known)}"
    for name, part in known.items():
        if name in value:
            yield from _wrong(part, value[name], f"{where}.{name}" if where else name)


def _resolved(node: Node) -> Node:
    """What a reference stands for; the schema has them to its own definitions only."""
    while "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return node
