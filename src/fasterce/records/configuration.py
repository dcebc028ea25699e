"""The options of one call of `explain` as plain JSON, and back again; and the rules in force, in words and as data."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fasterce.constraints import files
from fasterce.constraints.check import as_rules
from fasterce.constraints.vocabulary import Rule
from fasterce.errors import InputError, SchemaError
from fasterce.options import DEFAULTS
from fasterce.records.cells import cell, name, restored_name
from fasterce.rules.limits import Span, collect
from fasterce.schema import Schema, plain

BY_COLUMN = {"distance": "factor", "shake": "deviation"}
PASSING = {
    "deadline": "deadline= makes answers depend on how fast the machine was",
    "survive": "survive= asks refitted models, which are not saved",
}


def written(options: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """All options of a call by their names; columns and bounds in lists, since JSON has no other keys than text."""
    if set(options) != set(DEFAULTS):
        raise InputError(
            "Records are made of one call of explain, whose options it remembers; got an Explanation of several or of none."
        )
    return {option: None if value is None else _written(option, value, schema) for option, value in options.items()}


def _written(option: str, value: Any, schema: Schema) -> Any:
    if option == "rules":
        return _bare(files.to_dict(as_rules(_listed(option, value))))
    if option == "features_to_vary":
        return value if isinstance(value, str) else [name(column) for column in _listed(option, value)]
    if option == "permitted_range":
        return [{"feature": name(column)} | _permitted(schema, column, given) for column, given in value.items()]
    if option in BY_COLUMN and isinstance(value, Mapping):
        return [{"feature": name(column), BY_COLUMN[option]: plain(number)} for column, number in value.items()]
    wants_bounds = option == "target_score" or (option == "target" and np.ndim(value) == 1)
    return [_bound(end) for end in value] if wants_bounds else _scalar(option, value)


def _listed(option: str, value: Any) -> Iterable[Any]:
    if isinstance(value, Iterator):
        raise InputError(f"{option} must be a list to be recorded; got {type(value).__name__}, which is used up.")
    return value  # type: ignore[no-any-return]


def _permitted(schema: Schema, column: Any, given: Any) -> dict[str, Any]:
    if schema[column].numeric:
        return dict(zip(("low", "high"), map(_bound, given), strict=True))
    return {"values": [cell(value) for value in _listed("permitted_range", given)]}


def _bound(end: Any) -> float | int | None:
    """An open end is null."""
    value = plain(end)
    return None if value is None or math.isinf(value) else value


def _scalar(option: str, value: Any) -> Any:
    found = cell(value)
    if found is None or isinstance(found, dict):
        raise InputError(f"{option} must be text, a number or a boolean to be recorded; got {value!r:.100}.")
    return found


def _bare(value: Any) -> Any:
    """NumPy's scalars as plain ones, all the way down."""
    if isinstance(value, dict):
        return {key: _bare(one) for key, one in value.items()}
    return [_bare(one) for one in value] if isinstance(value, (list, tuple)) else plain(value)


def restored(options: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The options as `explain` takes them."""
    return {option: _restored(option, value, schema) for option, value in options.items()}


def _restored(option: str, value: Any, schema: Schema) -> Any:
    if option == "rules":
        return files.from_dict(value or ())
    if value is None:
        return None
    if option == "features_to_vary":
        return value if isinstance(value, str) else [restored_name(column) for column in value]
    if option == "permitted_range":
        return {restored_name(one["feature"]): _range(one) for one in value}
    if option in BY_COLUMN and isinstance(value, list):
        return {restored_name(one["feature"]): one[BY_COLUMN[option]] for one in value}
    return tuple(value) if isinstance(value, list) else value


def _range(written: Mapping[str, Any]) -> Any:
    if "values" in written:
        return written["values"]
    low, high = written["low"], written["high"]
    return (-math.inf if low is None else low, math.inf if high is None else high)


def why_not_replayable(options: Mapping[str, Any]) -> str | None:
    """A sentence where the same call may answer something else another time."""
    reasons = [sentence for option, sentence in PASSING.items() if options[option] is not None]
    return f"{'; '.join(reasons)}." if reasons else None


def constraints(options: Mapping[str, Any], schema: Schema) -> list[dict[str, Any]]:
    """Every rule that was in force: where it comes from, its sense in words, and as data."""
    given = (options[option] for option in ("features_to_vary", "permitted_range", "rules", "override"))
    limits, facts = collect(schema, *given)
    called = as_rules(options["rules"])
    described = [_constraint(limit.source or "rules", limit.said or limit.rule.text, limit.rule) for limit in limits]
    return described + [_constraint("rules" if fact in called else "schema", fact.text, fact) for fact in facts]


def _constraint(source: str, text: str, rule: Rule) -> dict[str, Any]:
    return {"source": source, "text": text, "rule": _as_data(rule)}


def _as_data(rule: Rule) -> dict[str, Any]:
    if isinstance(rule, Span):
        ends = {"low": _bound(rule.low), "high": _bound(rule.high)}
        return {"rule": "range", "feature": name(rule.feature)} | {end: at for end, at in ends.items() if at is not None}
    try:
        return dict(_bare(files.to_dict([rule])[0]))
    except SchemaError as error:
        raise SchemaError(f"A record holds every rule as data; {error}") from error
