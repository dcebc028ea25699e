"""The options of one call of `explain` as JSON and back, by their declaration; and the constraints in force."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fasterce.constraints import io
from fasterce.constraints.compile.active import DeclaredRange, collect
from fasterce.constraints.objects import Constraint
from fasterce.constraints.validate import as_constraints
from fasterce.data.dtypes import plain
from fasterce.data.schema import Schema
from fasterce.errors import InputError, SchemaError
from fasterce.options import ExplainOptions, Kind, Option, declared
from fasterce.records.cells import cell, converted, name, restored_name
from fasterce.typing import Json, JsonObject


def written(options: Mapping[str, Any], schema: Schema, cls: type = ExplainOptions) -> JsonObject:
    """Return all options of a call by name; columns and bounds are lists, since the keys of JSON are text."""
    known = {option.name: option for option in declared(cls)}
    if set(options) != set(known):
        raise InputError("records.not_one_call", option="explanation")
    groups = {key: value.values() for key, value in options.items() if known[key].kind is Kind.GROUP}
    given = {key: value for key, value in options.items() if key not in groups}
    plain_values = {key: None if value is None else _written(known[key], value, schema) for key, value in given.items()}
    return {key: (plain_values | groups)[key] for key in options}


def _written(option: Option, value: Any, schema: Schema) -> Json:
    kind = option.kind
    if kind is Kind.CONSTRAINTS:
        return converted(io.to_dict(as_constraints(_listed(option.name, value))), plain)
    if kind is Kind.COLUMNS:
        return value if isinstance(value, str) else [name(column) for column in _listed(option.name, value)]
    if kind is Kind.RANGES:
        return [{"feature": name(column)} | _permitted(schema, column, given) for column, given in value.items()]
    if kind is Kind.FACTORS and isinstance(value, Mapping):
        return [{"feature": name(column), option.entry: plain(number)} for column, number in value.items()]
    if kind is Kind.BOUNDS or (kind is Kind.TARGET and np.ndim(value) == 1):
        return [_bound(end) for end in value]
    found = cell(value)
    if found is None or isinstance(found, dict):
        raise InputError("records.not_recordable", option=option.name, received=value)
    return found


def _listed(option: str, value: Iterable[object]) -> Iterable[object]:
    if isinstance(value, Iterator):
        raise InputError("records.used_up", option=option, received=type(value).__name__)
    return value


def _permitted(schema: Schema, column: Any, given: Any) -> JsonObject:
    if schema[column].numeric:
        return dict(zip(("low", "high"), map(_bound, given), strict=True))
    return {"values": [cell(value) for value in _listed("permitted_range", given)]}


def _bound(end: object) -> float | int | str | None:
    """Return one end of an interval, null if it is open."""
    value = plain(end)
    if isinstance(value, (int, float)):
        return None if math.isinf(value) else value
    return None if value is None else str(value)


def restored(options: JsonObject, cls: type = ExplainOptions) -> dict[str, Any]:
    """Return the options as `explain` takes them."""
    known = {option.name: option for option in declared(cls)}
    return {key: _restored(known[key], value) for key, value in options.items()}


def _restored(option: Option, value: Json) -> object:
    if option.kind is Kind.GROUP:
        return option.annotation(**value)
    if option.kind is Kind.CONSTRAINTS:
        return io.from_dict(value or ())
    if option.kind is Kind.COLUMNS and isinstance(value, list):
        return [restored_name(column) for column in value]
    if option.kind is Kind.RANGES and value is not None:
        return {restored_name(one["feature"]): _range(one) for one in value}
    if option.kind is Kind.FACTORS and isinstance(value, list):
        return {restored_name(one["feature"]): one[option.entry] for one in value}
    return tuple(value) if isinstance(value, list) else value


def _range(entry: JsonObject) -> object:
    if "values" in entry:
        return entry["values"]
    low, high = entry["low"], entry["high"]
    return (-math.inf if low is None else low, math.inf if high is None else high)


def options_schema(cls: type = ExplainOptions) -> JsonObject:
    """Return the JSON Schema of the options of a call."""
    properties = {option.name: {"description": option.help} | _option_schema(option) for option in declared(cls)}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _option_schema(option: Option) -> JsonObject:
    """Return the schema of one option; those of most kinds are definitions of `record.schema.json`."""
    if option.kind is Kind.FACTORS:
        names = {"enum": list(option.choices)} if option.choices else {"type": "null"}
        properties = {"feature": {"$ref": "#/$defs/name"}, option.entry: {"type": "number", "minimum": 0}}
        factor = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        return {"anyOf": [names, {"type": "array", "items": factor}]}
    if option.kind is Kind.GROUP:
        return options_schema(option.annotation)
    if option.kind is not Kind.PLAIN:
        return {"$ref": f"#/$defs/{option.kind.name.lower()}_option"}
    if option.choices:
        return {"enum": list(option.choices)}
    json_type = {bool: "boolean", int: "integer", float: "number"}.get(option.type, "string")
    lower = "exclusiveMinimum" if option.exclusive else "minimum"
    limits = {lower: option.minimum, "maximum": option.maximum}
    return {
        "type": json_type if option.default is not None else [json_type, "null"],
        **{key: limit for key, limit in limits.items() if limit is not None},
    }


def unreproducible(options: Mapping[str, object], cls: type = ExplainOptions) -> list[str]:
    """Return the options given that make the result depend on more than what is recorded."""
    return [one.name for one in declared(cls) if not one.reproducible and options[one.name] is not None]


def constraints(options: Mapping[str, Any], schema: Schema) -> list[JsonObject]:
    """Return every constraint in force: where it comes from, its text, and itself as data."""
    given = (options[option] for option in ("features_to_vary", "permitted_range", "constraints", "override"))
    active, definitions = collect(schema, *given)
    called = as_constraints(options["constraints"])
    described = [_constraint(one.origin, one.label or one.constraint.text, one.constraint) for one in active]
    return described + [_constraint("constraints" if one in called else "schema", one.text, one) for one in definitions]


def _constraint(source: str, text: str, constraint: Constraint) -> JsonObject:
    return {"source": source, "text": text, "constraint": _as_data(constraint)}


def _as_data(constraint: Constraint) -> JsonObject:
    if isinstance(constraint, DeclaredRange):
        ends = {"low": _bound(constraint.low), "high": _bound(constraint.high)}
        return {"constraint": "range", "feature": name(constraint.feature)} | {
            end: value for end, value in ends.items() if value is not None
        }
    try:
        return dict(converted(io.to_dict([constraint])[0], plain))
    except SchemaError as error:
        raise SchemaError("records.constraint_not_data", reason=error.problem) from error
