"""Validate rows against the schema of an artifact, and describe them for OpenAPI."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from fasterce.errors import suggestion
from fasterce.serve.api.problems import FieldsProblem, text
from fasterce.serve.messages import Description, Json

Feature = Mapping[str, Json]
SHOWN = 8
MAX_FIELDS = 20
LONGEST_SHOWN = 100
EXACT = 2**53


class RowValidator:
    """Validates rows against the schema of one artifact."""

    def __init__(self, description: Description) -> None:
        self.features: Sequence[Feature] = description.schema["features"]
        self.names = [feature["name"] for feature in self.features]
        self.known = frozenset(self.names)
        self.model = row_model(description.name, self.features)

    def check(self, rows: Sequence[Mapping[str, Json]]) -> None:
        """Reject unknown columns in any row, and an invalid cell if there is one row only: in a batch it affects the status
        of its row alone."""
        unknown = [(f"rows[{place}]", name) for place, row in enumerate(rows) for name in row if name not in self.known]
        self.reject_unknown(unknown, "invalid_row")
        wrong = self.problems(rows[0]) if len(rows) == 1 else []
        if wrong:
            raise FieldsProblem("invalid_row", wrong)

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Reject unknown columns in an option."""
        self.reject_unknown([(where, name) for name in names if name not in self.known], "unknown_column")

    def reject_unknown(self, names: Sequence[tuple[str, str]], code: str) -> None:
        """Raise for the first names only, since a request may hold any number of them."""
        if names:
            wrong = [(f"{where}.{name:.{LONGEST_SHOWN}}", self.unknown(name)) for where, name in names[:MAX_FIELDS]]
            raise FieldsProblem(code, wrong, len(names))

    def unknown(self, name: str) -> str:
        return text("no_such_column", suggestion=suggestion(name[:LONGEST_SHOWN], self.names))

    def problems(self, row: Mapping[str, Json]) -> list[tuple[str, str]]:
        try:
            self.model.model_validate(row)
        except ValidationError as error:
            return [(f"rows[0].{'.'.join(map(str, one['loc']))}", sentence(one)) for one in error.errors(include_input=False)]
        return []


def sentence(error: Mapping[str, Json]) -> str:
    """Return the text of one of pydantic's errors, without what was sent."""
    return text("cell_not_given") if error["type"] == "missing" else str(error["msg"])


def cell_error(code: str, **details: object) -> PydanticCustomError:
    """Return the error of a cell with the text of a code of `messages.toml`."""
    return PydanticCustomError(code, "{text}", {"text": text(code, **details)})


def row_model(name: str, features: Sequence[Feature]) -> type[BaseModel]:
    """Return a model with one field per column, under the column's own name."""
    fields: dict[str, Json] = {
        f"column_{place}": (cell_type(feature), Field(... if not feature["missing"] else None, alias=feature["name"]))
        for place, feature in enumerate(features)
    }
    return create_model(f"Row_{name}", __config__=ConfigDict(extra="forbid"), **fields)


def cell_type(feature: Feature) -> Json:
    described = numeric_schema(feature) if feature["kind"] == "numeric" else {"enum": list(feature["categories"])}
    if feature["missing"]:
        described = {"anyOf": [described, {"type": "null"}]}
    check = number_check(feature) if feature["kind"] == "numeric" else category_check(feature)
    return Annotated[Json, PlainValidator(missing_or(check, feature["missing"])), WithJsonSchema(described)]


def numeric_schema(feature: Feature) -> dict[str, Json]:
    ends = {"minimum": feature["low"], "maximum": feature["high"]} if feature["promised"] else {}
    kind = "integer" if feature["whole"] else "number"
    return {"type": kind, **{end: value for end, value in ends.items() if value is not None}}


def missing_or(check: Callable[[Json], Json], allowed: bool) -> Callable[[Json], Json]:
    def checked(value: Json) -> Json:
        if value is None:
            if not allowed:
                raise cell_error("cell_missing")
            return None
        return check(value)

    return checked


def number_check(feature: Feature) -> Callable[[Json], Json]:
    low, high = (feature["low"], feature["high"]) if feature["promised"] else (None, None)

    def check(value: Json) -> Json:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise cell_error("cell_not_a_number")
        if isinstance(value, float) and not math.isfinite(value):
            raise cell_error("cell_not_finite")
        if feature["whole"] and value != int(value):
            raise cell_error("cell_not_whole")
        if feature["whole"] and abs(value) >= EXACT:
            raise cell_error("cell_whole_too_large")
        if (low is not None and value < low) or (high is not None and value > high):
            raise cell_error(outside(low, high), low=low, high=high)
        return value

    return check


def outside(low: float | None, high: float | None) -> str:
    """Return the code for a number outside its range."""
    if low is not None and high is not None:
        return "cell_out_of_range"
    return "cell_too_large" if low is None else "cell_too_small"


def category_check(feature: Feature) -> Callable[[Json], Json]:
    known = [(type(value) is bool, value) for value in feature["categories"]]
    shown = ", ".join(map(str, feature["categories"][:SHOWN])) + (" …" if len(known) > SHOWN else "")

    def check(value: Json) -> Json:
        if isinstance(value, (list, dict)) or (type(value) is bool, value) not in known:
            raise cell_error("cell_unknown_category", categories=shown)
        return value

    return check
