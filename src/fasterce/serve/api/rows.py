"""Models of a row made from an artifact's schema: what a request may hold, for checking and for the OpenAPI description."""

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, create_model

from fasterce.serve.app.problems import Problem
from fasterce.serve.question import Description

Feature = Mapping[str, Any]
Fields = list[tuple[str, str]]
SHOWN = 8
MOST_FIELDS = 20
LONGEST_SHOWN = 100
EXACT = 2**53


class Rows:
    """Checks rows against the schema of one artifact."""

    def __init__(self, description: Description) -> None:
        self.features: Sequence[Feature] = description.schema["features"]
        self.names = [feature["name"] for feature in self.features]
        self.known = frozenset(self.names)
        self.model = row_model(description.name, self.features)

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Columns nobody knows are refused wherever they are; a cell that is wrong, where the row is the only one. In a
        batch it is the status of its row alone."""
        strangers = [(f"rows[{place}]", name) for place, row in enumerate(rows) for name in row if name not in self.known]
        self.refuse_unknown(strangers, "invalid_row")
        wrong = self.problems(rows[0]) if len(rows) == 1 else []
        if wrong:
            raise Problem(422, "invalid_row", said(wrong, len(wrong)), wrong)

    def refuse_unknown(self, names: Sequence[tuple[str, str]], code: str) -> None:
        """Only the first are told, since a request may hold any number of them."""
        if names:
            wrong = [(f"{where}.{name:.{LONGEST_SHOWN}}", self.unknown(name)) for where, name in names[:MOST_FIELDS]]
            raise Problem(422, code, said(wrong, len(names)), wrong)

    def unknown(self, name: str) -> str:
        near = get_close_matches(name[:LONGEST_SHOWN], self.names, n=1)
        return f"There is no such column; did you mean {near[0]!r}?" if near else "There is no such column."

    def place_of(self, sentence: str) -> str:
        """Where in a row a sentence of the explainer belongs."""
        return next((f"rows[0].{name}" for name in self.names if sentence.startswith(f"Column {name!r} ")), "rows[0]")

    def problems(self, row: Mapping[str, Any]) -> Fields:
        try:
            self.model.model_validate(row)
        except ValidationError as error:
            return [(f"rows[0].{'.'.join(map(str, one['loc']))}", sentence(one)) for one in error.errors(include_input=False)]
        return []

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Columns that rules of the request speak of."""
        self.refuse_unknown([(where, name) for name in names if name not in self.known], "unknown_column")


def said(wrong: Fields, count: int) -> str:
    """The first in words, and how many there are."""
    where, what = wrong[0]
    return f"{where}: {what}" + (f" And {count - 1} more." if count > 1 else "")


def sentence(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors in a sentence, without what was sent."""
    if error["type"] == "missing":
        return "Expected a value; the column is missing."
    text = str(error["msg"]).removeprefix("Value error, ")
    return text if text.endswith(".") else f"{text}."


def row_model(name: str, features: Sequence[Feature]) -> type[BaseModel]:
    """One field a column, under the column's own name."""
    fields: dict[str, Any] = {
        f"column_{place}": (cell_type(feature), Field(... if not feature["missing"] else None, alias=feature["name"]))
        for place, feature in enumerate(features)
    }
    return create_model(f"Row_{name}", __config__=ConfigDict(extra="forbid"), **fields)


def cell_type(feature: Feature) -> Any:
    described = numeric_schema(feature) if feature["kind"] == "numeric" else {"enum": list(feature["categories"])}
    if feature["missing"]:
        described = {"anyOf": [described, {"type": "null"}]}
    check = number_check(feature) if feature["kind"] == "numeric" else category_check(feature)
    return Annotated[Any, PlainValidator(missing_or(check, feature["missing"])), WithJsonSchema(described)]


def numeric_schema(feature: Feature) -> dict[str, Any]:
    ends = {"minimum": feature["low"], "maximum": feature["high"]} if feature["promised"] else {}
    kind = "integer" if feature["whole"] else "number"
    return {"type": kind, **{end: value for end, value in ends.items() if value is not None}}


def missing_or(check: Callable[[Any], Any], allowed: bool) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if value is None:
            if not allowed:
                raise ValueError("Expected a value; it may not be missing.")
            return None
        return check(value)

    return checked


def number_check(feature: Feature) -> Callable[[Any], Any]:
    low, high = (feature["low"], feature["high"]) if feature["promised"] else (None, None)

    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("Expected a number.")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("Expected a finite number.")
        if feature["whole"] and value != int(value):
            raise ValueError("Expected a whole number.")
        if feature["whole"] and abs(value) >= EXACT:
            raise ValueError("Expected a whole number below 2**53.")
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(f"Expected a number {between(low, high)}.")
        return value

    return check


def between(low: Any, high: Any) -> str:
    if low is None or high is None:
        return f"of at most {high:g}" if low is None else f"of at least {low:g}"
    return f"from {low:g} to {high:g}"


def category_check(feature: Feature) -> Callable[[Any], Any]:
    known = [(type(value) is bool, value) for value in feature["categories"]]
    shown = ", ".join(map(str, feature["categories"][:SHOWN])) + (" …" if len(known) > SHOWN else "")

    def check(value: Any) -> Any:
        if isinstance(value, (list, dict)) or (type(value) is bool, value) not in known:
            raise ValueError(f"Expected one of {shown}.")
        return value

    return check
