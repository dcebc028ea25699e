"""Validate rows against the schema of an artifact, and describe them for OpenAPI."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from fasterce.errors import suggestion
from fasterce.serve.api.problems import MAX_FIELDS, FieldsProblem, text
from fasterce.serve.messages import Description, Json

Feature = Mapping[str, Json]
SHOWN = 8
LONGEST_SHOWN = 100
EXACT = 2**53
YEAR_FIRST = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}([T ].*)?")


class RowValidator:
    """Validates rows against the schema of one artifact."""

    def __init__(self, description: Description) -> None:
        self.name = f"Row_{description.name}"
        self.features: Mapping[str, Feature] = {one["name"]: one for one in description.schema["features"]}
        passed = description.schema.get("passthrough", ())
        self.passthrough: Mapping[str, bool] = {one["name"]: one["required"] for one in passed}

    def check(self, rows: Sequence[Mapping[str, Json]]) -> None:
        """Reject unknown columns in any row, and an invalid cell if there is one row only: in a batch it affects the status
        of its row alone."""
        known = {*self.features, *self.passthrough}
        unknown = [(f"rows[{place}]", name) for place, row in enumerate(rows) for name in row if name not in known]
        self.reject_unknown(unknown, "invalid_row")
        found = {name: cell_problem(rows[0], feature) for name, feature in self.features.items()} if len(rows) == 1 else {}
        lacking = [name for name, needed in self.passthrough.items() if needed and len(rows) == 1 and name not in rows[0]]
        wrong = [(f"rows[0].{name}", problem) for name, problem in found.items() if problem]
        wrong += [(f"rows[0].{name}", text("cell_not_given")) for name in lacking]
        if wrong:
            raise FieldsProblem("invalid_row", wrong)

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Reject unknown columns in an option."""
        self.reject_unknown([(where, name) for name in names if name not in self.features], "unknown_column")

    def reject_unknown(self, names: Sequence[tuple[str, str]], code: str) -> None:
        """Raise for the first names only, since a request may hold any number of them."""
        wrong = []
        for where, name in names[:MAX_FIELDS]:
            similar = suggestion(name[:LONGEST_SHOWN], list(self.features))
            wrong.append((f"{where}.{name:.{LONGEST_SHOWN}}", text("no_such_column", suggestion=similar)))
        if wrong:
            raise FieldsProblem(code, wrong, len(names))

    def json_schema(self) -> dict[str, Json]:
        """Return the JSON Schema of a row."""
        return {
            "title": self.name,
            "type": "object",
            "properties": {name: cell_schema(feature) for name, feature in self.features.items()}
            | {name: {"title": name, "description": "Passed through to the model."} for name in self.passthrough},
            "required": [name for name, feature in self.features.items() if not feature["missing"]]
            + [name for name, needed in self.passthrough.items() if needed],
            "additionalProperties": False,
        }


def cell_schema(feature: Feature) -> dict[str, Json]:
    described: dict[str, Json] = {"enum": list(feature["categories"] or ())}
    if feature["kind"] == "time":
        described = {"type": "string"} | ({"format": "date"} if feature["type"] == "date" else {})
    elif feature["kind"] == "numeric":
        low, high = limits(feature)
        ends = {"minimum": low, "maximum": high}
        described = {"type": "integer" if feature["whole"] else "number"}
        described |= {end: value for end, value in ends.items() if value is not None}
    if feature["missing"]:
        described = {"anyOf": [described, {"type": "null"}], "default": None}
    return {"title": str(feature["name"]).replace("_", " ").title()} | described


def limits(feature: Feature) -> tuple[float | None, float | None]:
    """Return the declared limits of a number; those that were merely seen in training do not bind."""
    return (feature["low"], feature["high"]) if feature["promised"] else (None, None)


def cell_problem(row: Mapping[str, Json], feature: Feature) -> str | None:
    """Return what is wrong with one cell of a row, without what was sent; None if nothing is."""
    value = row.get(feature["name"])
    if value is not None and feature["kind"] == "time":
        return (
            None if isinstance(value, str) and _may_be_time(value, feature) else text("cell_not_a_time", type=feature["type"])
        )
    if value is not None:
        return number_problem(value, feature) if feature["kind"] == "numeric" else category_problem(value, feature)
    if feature["missing"]:
        return None
    return text("cell_missing" if feature["name"] in row else "cell_not_given")


def _may_be_time(value: str, feature: Feature) -> bool:
    """Return whether a date or time is in the order year-month-day or in the format of its column; durations and periods
    are read by the worker."""
    if feature["type"] != "date" and not str(feature["type"]).startswith("datetime"):
        return True
    if YEAR_FIRST.fullmatch(value):
        return True
    try:
        return bool(feature.get("format")) and bool(datetime.strptime(value.strip(), feature["format"]))
    except ValueError:
        return False


def number_problem(value: Json, feature: Feature) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return text("cell_not_a_number")
    if not math.isfinite(value):
        return text("cell_not_finite")
    if feature["whole"] and value != int(value):
        return text("cell_not_whole")
    if feature["whole"] and abs(value) >= EXACT:
        return text("cell_whole_too_large")
    return range_problem(value, *limits(feature))


def range_problem(value: float, low: float | None, high: float | None) -> str | None:
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    if low is not None and high is not None:
        return text("cell_out_of_range", low=low, high=high)
    return text("cell_too_large", high=high) if low is None else text("cell_too_small", low=low)


def category_problem(value: Json, feature: Feature) -> str | None:
    categories = feature["categories"]
    if any(value == known and isinstance(value, bool) == isinstance(known, bool) for known in categories):
        return None
    shown = ", ".join(map(str, categories[:SHOWN])) + (" …" if len(categories) > SHOWN else "")
    return text("cell_unknown_category", categories=shown)
