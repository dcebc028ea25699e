"""Schemas as YAML or JSON files that people read and edit: one entry per column, then the constraints."""

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import get_args

from fasterce.constraints import io
from fasterce.data.schema import MEANING, OUTCOMES, Direction, Feature, Schema, check_boolean, check_decimals
from fasterce.data.value_types import NUMBER
from fasterce.errors import InputError, SchemaError, unknown
from fasterce.io import documents
from fasterce.typing import Category, Json, JsonObject

CHANGES = (*get_args(Direction), "never")
ENTRIES = {
    "numeric": ("kind", "type", "whole", "decimals", "range", "observed", "change", "missing", *MEANING),
    "categorical": ("kind", "categories", "ordered", "change", "missing", *MEANING),
}
HEAD = """\
# The columns and how they may change. Edit, then: fasterce fit --schema THIS_FILE ...
#   kind         numeric or categorical
#   change       any, up, down (ordered categories and numbers) or never
#   observed     lowest and highest value in the data: where counterfactuals are searched
#   range        the same as a promise: a row outside it is invalid input; replaces observed
#   type         date, datetime, datetime[Europe/Berlin], timedelta[D], timedelta[s], period[M] or decimal; else a number
#   whole        true for whole numbers; decimals is the precision of other numbers
#   missing      never, stay (a missing value may stay or be filled) or may_appear
#   passthrough  columns that are not features (ids, free text): the model gets them as they are
#   label, unit, help, format
#                words for people: "duration of the credit", "month|months", a sentence, ",.2f"
#   preferred    lower or higher, the person's interest: a change the other way costs against_cost times as much (3)
#   target       the wanted class, or [low, high] of a number; unwanted: [classes]; outcomes: words for classes
#   constraints  between columns, as in docs/constraints.md, for instance
#                - {constraint: require, formula: "credit_amount / duration <= 800"}
"""


def save_schema(schema: Schema, path: str | PathLike[str], note: str = "") -> None:
    """Write a schema to a .yaml, .yml or .json file; `note` is a comment at the head of a YAML file.

    Parameters
    ----------
    schema : Schema
    path : str or path
        The ending decides the format.
    note : str, default ""
        The comment.
    """
    target = Path(path)
    as_json = not documents.is_yaml(target, "schema")
    content = json.dumps(describe(schema), indent=2, ensure_ascii=False) + "\n" if as_json else as_text(schema, note)
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError("data.unwritable_schema", path=str(target), error=error.strerror) from error


def load_schema(path: str | PathLike[str]) -> Schema:
    """Return the schema of a .yaml, .yml or .json file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Schema
    """
    content = documents.read(path, "schema")
    try:
        return restore(content)
    except SchemaError as error:
        raise SchemaError("data.schema_file", path=str(path), wrong=error.problem) from error


def as_text(schema: Schema, note: str = "") -> str:
    """Return the YAML file, with comments that say what can be edited."""
    noted = "".join(f"# {line}\n" for line in note.splitlines())
    return f"{noted}{HEAD}{documents.as_yaml(describe(schema), width=120, default_flow_style=None)}"


def describe(schema: Schema) -> JsonObject:
    """Return the schema as plain data, in the words of the file."""
    for name in schema.names:
        if not isinstance(name, (str, int)):
            raise SchemaError("data.unwritable_name", received=name)
    passed = {"passthrough": list(schema.passthrough)} if schema.passthrough else {}
    return {
        **schema.outcomes_to_dict(),
        "columns": {feature.name: _described(feature) for feature in schema.features},
        **passed,
        "constraints": io.to_dict(schema.constraints),
    }


def restore(content: Json) -> Schema:
    """Return the schema that `describe` described."""
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping):
        raise SchemaError("data.not_a_schema", received=content)
    known = (*OUTCOMES, "columns", "passthrough", "constraints")
    for entry in content:
        if entry not in known:
            raise SchemaError(unknown("data.unknown_entry", entry, known))
    features = tuple(_restored(name, about) for name, about in content["columns"].items())
    passed = content.get("passthrough") or ()
    if isinstance(passed, str) or not isinstance(passed, Sequence) or not all(isinstance(one, (str, int)) for one in passed):
        raise SchemaError("data.names_not_a_list", received=passed)
    outcomes = {name: content[name] for name in OUTCOMES if content.get(name) is not None}
    return Schema(features, io.from_dict(content.get("constraints") or ()), tuple(passed), **outcomes)


def _described(feature: Feature) -> JsonObject:
    about: JsonObject = {"kind": feature.kind}
    if not feature.numeric:
        about["categories"] = list(feature.categories)
        about |= {"ordered": True} if feature.ordered else {}
    else:
        about |= {} if feature.value_type == NUMBER else {"type": feature.value_type}
        about |= {"whole": True} if feature.integer else {"decimals": feature.decimals}
        about["range" if feature.declared else "observed"] = [_end(feature.lower, feature), _end(feature.upper, feature)]
    about["change"] = feature.direction if feature.mutable else "never"
    about |= {"missing": feature.missing} if feature.nullable else {}
    return about | {name: getattr(feature, name) for name, usual in MEANING.items() if getattr(feature, name) != usual}


def _end(bound: float, feature: Feature) -> float | int | str | None:
    if math.isinf(bound):
        return None
    if feature.is_time:
        return str(feature.value(bound))
    return int(bound) if feature.integer and bound == round(bound) else bound


def _restored(name: Hashable, about: Json) -> Feature:
    if not isinstance(about, Mapping):
        raise SchemaError("data.not_a_column", column=name, received=about)
    kind, change = about.get("kind"), about.get("change", "any")
    if kind not in ENTRIES:
        raise SchemaError("data.unknown_kind", column=name, expected=list(ENTRIES), received=kind)
    for entry in about:
        if entry not in ENTRIES[kind]:
            raise SchemaError(unknown("data.unknown_entry_of_column", entry, ENTRIES[kind], column=name))
    if change not in CHANGES:
        raise SchemaError(unknown("data.unknown_change", change, CHANGES, column=name))
    mutable = change != "never"
    direction: Direction = change if mutable else "any"
    values = _numeric(name, about) if kind == "numeric" else _categorical(name, about)
    values |= {entry: about[entry] for entry in MEANING if entry in about}
    return Feature(name, kind, direction=direction, mutable=mutable, missing=about.get("missing", "never"), **values)


def _numeric(name: Hashable, about: Mapping[str, Json]) -> JsonObject:
    whole, decimals = about.get("whole", False), about.get("decimals", 0)
    check_boolean(whole, name, "whole")
    check_decimals(decimals, name, 0)
    declared = "range" in about
    entry = "range" if declared else "observed"
    ends: Json = about.get(entry)
    value_type = about.get("type", NUMBER)
    typed = Feature(name, "numeric", value_type=value_type)
    kinds = (str,) if typed.is_time else (int, float)
    is_pair = isinstance(ends, list) and len(ends) == 2
    if not is_pair or any(isinstance(end, bool) or not isinstance(end, (*kinds, type(None))) for end in ends):
        raise SchemaError("data.entry_not_a_range", column=name, entry=entry, received=ends)
    lower = -math.inf if ends[0] is None else typed.number(ends[0])
    upper = math.inf if ends[1] is None else typed.number(ends[1])
    bounds = {"lower": lower, "upper": upper, "declared": declared}
    return {"integer": whole, "decimals": decimals, "value_type": value_type, **bounds}


def _categorical(name: Hashable, about: Mapping[str, Json]) -> JsonObject:
    categories, ordered = about.get("categories"), about.get("ordered", False)
    if not isinstance(categories, list) or not all(isinstance(one, Category) for one in categories):
        raise SchemaError("data.entry_not_categories", column=name, received=categories)
    check_boolean(ordered, name, "ordered")
    return {"categories": tuple(categories), "ordered": ordered}
