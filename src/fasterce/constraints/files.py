"""Rules as plain data and as JSON or YAML files, and back again exactly."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any

from fasterce import documents
from fasterce.constraints.vocabulary import KINDS, Between, Derived, Listing, Rule
from fasterce.errors import SchemaError, shorten, unknown_name

WHAT = "A set of rules"


def to_dict(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """One dictionary a rule: {"rule": "range", "feature": "hours", "low": 0, "high": 60}."""
    return [_described(rule, place) for place, rule in enumerate(rules, start=1)]


def from_dict(described: Any) -> tuple[Rule, ...]:
    """The rules `to_dict` described."""
    if isinstance(described, (str, Mapping)) or not isinstance(described, Iterable):
        raise SchemaError(f"Rules must come as a list of dictionaries; got {described!r:.100}.")
    return tuple(_restored(fields, place) for place, fields in enumerate(described, start=1))


def save(rules: Iterable[Rule], path: str | PathLike[str]) -> None:
    """Write rules to a .json, .yaml or .yml file."""
    content, target = to_dict(rules), Path(path)
    text = documents.as_yaml(content) if documents.is_yaml(target, WHAT) else json.dumps(content, indent=2)
    target.write_text(text + ("" if text.endswith("\n") else "\n"), encoding="utf-8")


def load(path: str | PathLike[str]) -> tuple[Rule, ...]:
    """The rules of a .json, .yaml or .yml file."""
    content = documents.read(path, WHAT)
    try:
        return from_dict(content)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def _described(rule: Rule, place: int) -> dict[str, Any]:
    if not isinstance(rule, Rule):
        raise SchemaError(f"Rule {place} must be one of fasterce.constraints; got {rule!r:.100}.")
    if isinstance(rule, Derived) and not isinstance(rule.formula, str):
        raise SchemaError(
            f"Rule {place} (derived): a Python function cannot be written; expected a formula for {rule.feature!r}."
        )
    values = {field.name: getattr(rule, field.name) for field in fields(rule)}
    kept = {name: _bare(value, name) for name, value in values.items() if value is not None}
    return {"rule": rule.kind} | kept


def _bare(value: Any, name: str) -> Any:
    if name in ("when", "then"):
        return [{"feature": _bare(column, "feature")} | _bare_wanted(wanted) for column, wanted in value]
    return [_bare(one, "") for one in value] if isinstance(value, tuple) else value


def _bare_wanted(wanted: Any) -> dict[str, Any]:
    if isinstance(wanted, Between):
        return {end: value for end, value in (("low", wanted.low), ("high", wanted.high)) if value is not None}
    return {"values": list(wanted)}


def _restored(described: Any, place: int) -> Rule:
    if not isinstance(described, Mapping):
        raise SchemaError(f"Rule {place} must be a dictionary; got {described!r:.100}.")
    values = dict(described)
    kind = values.pop("rule", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise SchemaError(f"Rule {place}: {unknown_name('kind of rule', kind, KINDS)}")
    known = [field.name for field in fields(KINDS[kind])]
    try:
        for name in values:
            if name not in known:
                raise SchemaError(unknown_name("field", name, known))
        return _made(KINDS[kind], values)
    except SchemaError as error:
        raise SchemaError(f"Rule {place} ({kind}): {error}") from error
    except TypeError as error:
        raise SchemaError(f"Rule {place} ({kind}): expected the fields {shorten(known)}; got {error}.") from error


def _made(kind: type[Rule], values: dict[str, Any]) -> Rule:
    if issubclass(kind, Listing):
        features = values.pop("features", None)
        if not isinstance(features, list):
            raise SchemaError(f"features must be a list of column names; got {features!r:.100}.")
        return kind(*features, **values)
    for clause in {"when", "then"} & set(values):
        values[clause] = _clauses(values[clause], clause)
    return kind(**values)


def _clauses(given: Any, what: str) -> dict[Any, Any]:
    """[{"feature": ..., "values": [...]} or {"feature": ..., "low": ..., "high": ...}], or the short {column: values}."""
    if isinstance(given, Mapping):
        return {column: _short(value, what) for column, value in given.items()}
    if not isinstance(given, list) or not all(isinstance(one, Mapping) and "feature" in one for one in given):
        raise SchemaError(f"{what} must be a dictionary of columns and values; got {given!r:.100}.")
    return {
        tuple(one["feature"]) if isinstance(one["feature"], list) else one["feature"]: _short(
            one["values"] if "values" in one else {name: value for name, value in one.items() if name != "feature"}, what
        )
        for one in given
    }


def _short(value: Any, what: str) -> Any:
    if not isinstance(value, Mapping):
        return value
    strange = [name for name in value if name not in ("low", "high")]
    if strange:
        raise SchemaError(f"a range in {what} must have low and high; {unknown_name('field', strange[0], ('low', 'high'))}")
    return value.get("low"), value.get("high")
