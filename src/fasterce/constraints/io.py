"""Constraints as plain data and as JSON or YAML files."""

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path

from fasterce.constraints.objects import KINDS, Between, Constraint, Derived, Listing
from fasterce.errors import Problem, SchemaError, unknown
from fasterce.io import documents
from fasterce.typing import Json, JsonObject


def to_dict(constraints: Iterable[Constraint]) -> list[JsonObject]:
    """Return one dictionary per constraint: {"constraint": "range", "feature": "hours", "low": 0, "high": 60}.

    Parameters
    ----------
    constraints : iterable of Constraint

    Returns
    -------
    list of dict
        Plain values for JSON.
    """
    return [_described(constraint, position) for position, constraint in enumerate(constraints, start=1)]


def from_dict(described: Json) -> tuple[Constraint, ...]:
    """Return the constraints that `to_dict` described.

    Parameters
    ----------
    described : list of dict
        As `to_dict` returns them.

    Returns
    -------
    tuple of Constraint
    """
    if isinstance(described, (str, Mapping)) or not isinstance(described, Iterable):
        raise SchemaError("constraints.not_a_list_of_dictionaries", received=described)
    return tuple(_restored(fields, position) for position, fields in enumerate(described, start=1))


def save(constraints: Iterable[Constraint], path: str | PathLike[str]) -> None:
    """Write constraints to a .json, .yaml or .yml file.

    Parameters
    ----------
    constraints : iterable of Constraint
        None of them with a Python function.
    path : str or path
        The ending decides the format; YAML needs the extra `yaml`.
    """
    content, target = to_dict(constraints), Path(path)
    text = documents.as_yaml(content) if documents.is_yaml(target, "constraints") else json.dumps(content, indent=2)
    target.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")


def load(path: str | PathLike[str]) -> tuple[Constraint, ...]:
    """Return the constraints of a .json, .yaml or .yml file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    tuple of Constraint
    """
    content = documents.read(path, "constraints")
    try:
        return from_dict(content)
    except SchemaError as error:
        raise SchemaError("data.schema_file", path=str(path), wrong=error.problem) from error


def _described(constraint: Constraint, position: int) -> JsonObject:
    if not isinstance(constraint, Constraint):
        raise SchemaError("constraints.item_not_a_constraint", position=position, received=constraint)
    if isinstance(constraint, Derived) and not isinstance(constraint.formula, str):
        raise SchemaError("constraints.unwritable_function", position=position, column=constraint.feature)
    values = {field.name: getattr(constraint, field.name) for field in fields(constraint)}
    kept = {name: _bare(value, name) for name, value in values.items() if value is not None}
    return {"constraint": constraint.kind} | kept


def _bare(value: Json, name: str = "") -> Json:
    if isinstance(value, Between):
        return {end: number for end, number in vars(value).items() if number is not None}
    if name in ("when", "then"):
        clauses = [(_bare(column), _bare(condition)) for column, condition in value]
        return [{"feature": name} | (one if isinstance(one, dict) else {"values": one}) for name, one in clauses]
    return [_bare(one) for one in value] if isinstance(value, tuple) else value


def _restored(described: Json, position: int) -> Constraint:
    if not isinstance(described, Mapping):
        raise SchemaError("constraints.item_not_a_dictionary", position=position, received=described)
    values = dict(described)
    kind = values.pop("constraint", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(unknown("constraints.unknown_kind", kind, KINDS, position=position))
    known = [field.name for field in fields(KINDS[kind])]
    try:
        for name in values:
            if name not in known:
                raise SchemaError(unknown("constraints.unknown_field", name, known))
        return _made(KINDS[kind], values)
    except SchemaError as error:
        raise SchemaError("constraints.item", position=position, kind=kind, wrong=error.problem) from error
    except TypeError as error:
        wrong = Problem("constraints.wrong_fields", expected=known, details={"error": str(error)})
        raise SchemaError("constraints.item", position=position, kind=kind, wrong=wrong) from error


def _made(kind: type[Constraint], values: JsonObject) -> Constraint:
    if issubclass(kind, Listing):
        features = values.pop("features", None)
        if not isinstance(features, list):
            raise SchemaError("constraints.features_not_a_list", option="features", received=features)
        return kind(*features, **values)
    for clause in {"when", "then"} & set(values):
        values[clause] = _clauses(values[clause], clause)
    return kind(**values)


def _clauses(given: Json, option: str) -> dict[Hashable, Json]:
    """Read [{"feature": ..., "values": [...]} or {"feature": ..., "low": ..., "high": ...}], or short {column: values}."""
    if isinstance(given, Mapping):
        return {column: _condition(value, option) for column, value in given.items()}
    if not isinstance(given, list) or not all(isinstance(one, Mapping) and "feature" in one for one in given):
        raise SchemaError("constraints.not_clauses", option=option, received=given)
    found: dict[Hashable, Json] = {}
    for one in given:
        column = tuple(one["feature"]) if isinstance(one["feature"], list) else one["feature"]
        ends = {name: value for name, value in one.items() if name != "feature"}
        found[column] = _condition(one.get("values", ends), option)
    return found


def _condition(value: Json, option: str) -> Json:
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if name not in ("low", "high"):
            raise SchemaError(unknown("constraints.unknown_end", name, ("low", "high"), option=option))
    return value.get("low"), value.get("high")
