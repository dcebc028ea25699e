"""Has a record the fields the schema names, all of them and no others? Quick enough for every record that is replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fasterce.errors import InputError, unknown_name
from fasterce.records.files import check_format, record_id, schema

COMPOSED = {"object": dict, "array": list}


def _kind(value: Any) -> type | None:
    """None for a single value."""
    return dict if isinstance(value, dict) else list if isinstance(value, list) else None


@dataclass(frozen=True)
class Shape:
    """What may stand in one place: an object with these fields, a list of these items, a single value, or one of several."""

    takes: frozenset[type]
    single: bool
    fields: Mapping[str, "Shape"] | None = None
    required: tuple[str, ...] = ()
    closed: bool = False
    items: "Shape | None" = None
    choices: tuple["Shape", ...] = ()

    def misfit(self, value: Any) -> tuple[str, str] | None:
        """Where and what does not fit; None if all of it does."""
        kind = _kind(value)
        if not (self.single if kind is None else kind in self.takes):
            return "", f"{type(value).__name__} in the field"
        if kind is dict:
            return self._misfit_of_choices(value) if self.choices else self._misfit_of_fields(value)
        if kind is list:
            return self._misfit_of_choices(value) if self.choices else self._misfit_of_items(value)
        return None

    def _misfit_of_choices(self, value: Any) -> tuple[str, str] | None:
        """What the first choice of the value's own kind has against it, if all have something."""
        told = [choice.misfit(value) for choice in self.choices if _kind(value) in choice.takes]
        return None if None in told else told[0]

    def _misfit_of_fields(self, value: dict[str, Any]) -> tuple[str, str] | None:
        if self.fields is None:
            return None
        for name in self.required:
            if name not in value:
                return "", f"no field {name!r} in"
        for name, part in value.items():
            shape = self.fields.get(name)
            if shape is None and self.closed:
                return "", f"{unknown_name('field', name, self.fields)} It stands in"
            found = None if shape is None else shape.misfit(part)
            if found is not None:
                return f".{name}{found[0]}", found[1]
        return None

    def _misfit_of_items(self, value: list[Any]) -> tuple[str, str] | None:
        if self.items is None:
            return None
        for place, one in enumerate(value):
            found = self.items.misfit(one)
            if found is not None:
                return f"[{place}]{found[0]}", found[1]
        return None


def check_structure(record: Any) -> None:
    """One sentence where a field is missing, unknown, or not the object or list it must be."""
    check_format(record)
    found = _record_shape().misfit(record)
    if found is not None:
        where, what = found
        place = repr(where.removeprefix(".")) if where else "the record itself"
        named = f"Record {record_id(record)!r:.100} must have the fields of its schema (see records.validate)"
        raise InputError(f"{named}; got {what} {place}.")


@cache
def _record_shape() -> Shape:
    whole = schema()
    return _shape(whole, whole["$defs"], {})


def _shape(node: Mapping[str, Any], known: Mapping[str, Any], made: dict[str, Shape]) -> Shape:
    """The shape of a part of the schema, whose references are to its own definitions only."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        # A definition that holds itself is not followed into itself.
        return made[name] if name in made else _shape(known[name], known, made | {name: ANYTHING})
    if "anyOf" in node:
        choices = tuple(_shape(choice, known, made) for choice in node["anyOf"])
        takes = frozenset(kind for choice in choices for kind in choice.takes)
        return Shape(takes, any(choice.single for choice in choices), choices=choices)
    kinds = node.get("type", ("object", "array", "string"))
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    fields = node.get("properties")
    return Shape(
        frozenset(COMPOSED[kind] for kind in kinds if kind in COMPOSED),
        any(kind not in COMPOSED for kind in kinds),
        None if fields is None else {name: _shape(part, known, made) for name, part in fields.items()},
        tuple(node.get("required", ())),
        node.get("additionalProperties") is False,
        _shape(node["items"], known, made) if "items" in node else None,
    )


ANYTHING = Shape(frozenset({dict, list}), single=True)
