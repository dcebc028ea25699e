"""A schema as a YAML or JSON file a person can read and edit: one entry a column, then the rules between them."""

import json
import math
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from fasterce import documents
from fasterce.constraints import files
from fasterce.errors import InputError, SchemaError, unknown_name
from fasterce.schema import MOST_PLACES, Direction, Feature, Schema

WHAT = "The schema"
CHANGES: dict[str, tuple[Direction, bool]] = {
    "any": ("any", True),
    "up": ("up", True),
    "down": ("down", True),
    "never": ("any", False),
}
NUMERIC = ("kind", "whole", "decimals", "range", "observed", "change", "missing")
CATEGORICAL = ("kind", "categories", "ordered", "change", "missing")
HEAD = """\
# What the columns are and what a person may change. Edit, then: fasterce fit --schema THIS_FILE ...
#   kind       numeric or categorical
#   change     any, up, down (ordered categories and numbers) or never
#   observed   lowest and highest value in the data: where answers are looked for
#   range      the same as a promise: a row outside it is refused as bad input; takes the place of observed
#   whole      true for whole numbers; decimals says how finely other numbers are proposed
#   missing    never, stay (a missing value may stay or be filled) or may_appear
#   rules      limits between columns, as in docs/constraints.md, for instance
#              - {rule: require, formula: "credit_amount / duration <= 800"}
"""


def save_schema(schema: Schema, path: str | PathLike[str], note: str = "") -> None:
    """Write a schema to a .yaml, .yml or .json file; `note` is a comment at the head of a YAML file."""
    target = Path(path)
    as_json = not documents.is_yaml(target, WHAT)
    content = json.dumps(describe(schema), indent=2, ensure_ascii=False) + "\n" if as_json else as_text(schema, note)
    try:
        target.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError(f"The schema must go to a file that can be written; got {target}: {error.strerror}.") from error


def load_schema(path: str | PathLike[str]) -> Schema:
    """The schema of a .yaml, .yml or .json file."""
    content = documents.read(path, WHAT)
    try:
        return restore(content)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from error


def as_text(schema: Schema, note: str = "") -> str:
    """The YAML file, with comments that say what can be edited."""
    noted = "".join(f"# {line}\n" for line in note.splitlines())
    return f"{noted}{HEAD}{documents.as_yaml(describe(schema), width=120, default_flow_style=None)}"


def describe(schema: Schema) -> dict[str, Any]:
    """The schema as plain data, in the words of the file."""
    for name in schema.names:
        if not isinstance(name, (str, int)):
            raise SchemaError(f"A column's name must be text or a whole number to be written to a file; got {name!r}.")
    return {
        "columns": {feature.name: _described(feature) for feature in schema.features},
        "rules": files.to_dict(schema.rules),
    }


def restore(content: Any) -> Schema:
    """The schema that `describe` described."""
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping):
        raise SchemaError(f"A schema must have a list of columns with what they are; got {content!r:.100}.")
    _check_known("entry", content, ("columns", "rules"))
    features = tuple(_restored(name, about) for name, about in content["columns"].items())
    return Schema(features, files.from_dict(content.get("rules") or ()))


def _described(feature: Feature) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": feature.kind}
    if not feature.numeric:
        about["categories"] = list(feature.categories)
        about |= {"ordered": True} if feature.ordered else {}
    else:
        about |= {"whole": True} if feature.integer else {"decimals": feature.decimals}
        about["range" if feature.declared else "observed"] = [_end(feature.lower, feature), _end(feature.upper, feature)]
    about["change"] = feature.direction if feature.mutable else "never"
    return about | ({"missing": feature.missing} if feature.gappy else {})


def _end(bound: float, feature: Feature) -> float | int | None:
    if math.isinf(bound):
        return None
    return int(bound) if feature.integer and bound == round(bound) else bound


def _restored(name: Any, about: Any) -> Feature:
    if not isinstance(about, Mapping):
        raise SchemaError(f"Column {name!r} must have a kind and what may change; got {about!r:.100}.")
    kind = about.get("kind")
    try:
        if kind not in ("numeric", "categorical"):
            raise SchemaError(unknown_name("kind", kind, ("numeric", "categorical")))
        _check_known("entry", about, NUMERIC if kind == "numeric" else CATEGORICAL)
        if about.get("change", "any") not in CHANGES:
            raise SchemaError(unknown_name("change", about["change"], CHANGES))
    except SchemaError as error:
        raise SchemaError(f"Column {name!r}: {error}") from error
    direction, mutable = CHANGES[about.get("change", "any")]
    values = _numeric(name, about) if kind == "numeric" else _categorical(name, about)
    return Feature(name, kind, direction=direction, mutable=mutable, missing=about.get("missing", "never"), **values)


def _numeric(name: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    whole, decimals = about.get("whole", False), about.get("decimals", 0)
    if not isinstance(whole, bool):
        raise SchemaError(f"Column {name!r}: whole must be true or false; got {whole!r:.60}.")
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= MOST_PLACES:
        raise SchemaError(f"Column {name!r}: decimals must be a whole number of places; got {decimals!r:.60}.")
    declared = "range" in about
    ends = about.get("range") if declared else about.get("observed")
    lower, upper = _ends(name, "range" if declared else "observed", ends)
    return {"integer": whole, "decimals": decimals, "lower": lower, "upper": upper, "declared": declared}


def _ends(name: Any, entry: str, ends: Any) -> tuple[float, float]:
    sound = isinstance(ends, list) and len(ends) == 2
    if not sound or any(isinstance(end, bool) or not isinstance(end, (int, float, type(None))) for end in ends):
        raise SchemaError(f"Column {name!r}: {entry} must be [low, high], null for an open end; got {ends!r:.100}.")
    low, high = ends
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _categorical(name: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    categories = about.get("categories")
    if not isinstance(categories, list) or not all(isinstance(one, (str, int, float, bool)) for one in categories):
        raise SchemaError(
            f"Column {name!r}: categories must be a list of text, numbers or booleans; got {categories!r:.100}."
        )
    ordered = about.get("ordered", False)
    if not isinstance(ordered, bool):
        raise SchemaError(f"Column {name!r}: ordered must be true or false; got {ordered!r:.100}.")
    return {"categories": tuple(categories), "ordered": ordered}


def _check_known(what: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise SchemaError(unknown_name(what, name, known))
