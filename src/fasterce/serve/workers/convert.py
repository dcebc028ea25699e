"""Convert rows and options of `POST /v1/explain` to a table and arguments of `FasterCE.explain`, which checks them."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from fasterce import options as declaration
from fasterce.constraints.io import from_dict
from fasterce.data.dtypes import EXACT, is_single
from fasterce.data.schema import Feature
from fasterce.data.table import Table
from fasterce.errors import FasterCEError, InputError, unknown
from fasterce.explainer import FasterCE
from fasterce.options import Kind
from fasterce.records.cells import TextOnly
from fasterce.serve.messages import InvalidRequest, Json

Row = Mapping[str, Json]
Convert = Callable[[Json], Json]
# Marks a column that a row lacks: not a number, not a category, and not a missing value.
NOT_GIVEN = TextOnly("NotGiven", "no value at all")


class RowReader:
    """Converts every cell by itself to the type seen in `fit`, so that the result does not depend on the other rows."""

    def __init__(self, table: Table) -> None:
        self.columns = {str(name): name for name in table.schema.names}
        self.names = pd.Index(table.schema.names, tupleize_cols=False)
        self.passthrough = {str(name): name for name in table.schema.passthrough}
        self.converters = {
            str(feature.name): _converter(feature, dtype)
            for feature, dtype in zip(table.schema.features, table.dtypes, strict=True)
        }

    def check(self, rows: Sequence[Row]) -> None:
        """Raise InvalidRequest for unknown columns, which are an error of the request and not of a row."""
        for place, row in enumerate(rows):
            for column in row:
                if column not in self.columns and column not in self.passthrough:
                    problem = unknown("serve.unknown_column", column, self.columns)
                    raise InvalidRequest(problem, f"rows[{place}].{column}"[:200])

    def frame(self, rows: Sequence[Row], index: Sequence[Hashable]) -> pd.DataFrame:
        """Return a table of object columns, so that an invalid cell does not change the type of the others."""
        labels = pd.Index(list(index), dtype=object)
        passed = {text: name for text, name in self.passthrough.items() if any(text in row for row in rows)}
        names = self.names if not passed else pd.Index([*self.names, *passed.values()], tupleize_cols=False)
        cells = np.empty((len(rows), len(names)), dtype=object)
        for k, row in enumerate(rows):
            for j, (text, convert) in enumerate(self.converters.items()):
                cells[k, j] = convert(row.get(text, NOT_GIVEN))
            for j, text in enumerate(passed, start=len(self.columns)):
                cells[k, j] = row.get(text)
        return pd.DataFrame(cells, labels, names, dtype=object, copy=False)


def _converter(feature: Feature, dtype: object) -> Convert:
    if not feature.numeric or feature.is_time:
        return lambda value: value
    if pd.api.types.is_integer_dtype(dtype):
        return _integer
    return _float32 if is_single(dtype) else _float


def _float(value: Json) -> Json:
    return float(value) if type(value) is int and abs(value) <= EXACT else value


def _float32(value: Json) -> Json:
    """Round a number to 32 bits, as the model saw it in training."""
    value = _float(value)
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value)) if type(value) is float else value
    return value if rounded in (np.inf, -np.inf) else rounded


def _integer(value: Json) -> Json:
    return int(value) if type(value) is float and abs(value) <= EXACT and value.is_integer() else value


def explain_arguments(explainer: FasterCE, options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments by their names in `explain`; an option that is null has its default."""
    offered = {str(one.http): one for one in declaration.offered("http")}
    values = {}
    for field, given in options.items():
        if field not in offered:
            raise InvalidRequest(unknown("serve.unknown_option", field, offered), str(field)[:100])
        option = offered[field]
        if given is not None:
            read = READERS.get(option.kind)
            values[option.name] = given if read is None else read(explainer, field, given)
    return declaration.explain_arguments(values)


def invalid_option(error: FasterCEError) -> InvalidRequest:
    """Return an error of `explain` about an option, with the field of the request it belongs to."""
    problem, names = error.problem, declaration.names("http")
    about_constraints = problem.option is None and problem.code.partition(".")[0] == "constraints"
    option = "constraints" if about_constraints else problem.option or ""
    return InvalidRequest(problem, names.get(option.partition(".")[0], ""))


def _target(explainer: FasterCE, field: str, given: Json) -> Json:
    """Return a class, given by its value or its text, or the bounds of a predicted number."""
    if not isinstance(given, str) or explainer.state_.numbers is not None or given in explainer.classes_:
        return given
    return {str(label): label for label in explainer.classes_}.get(given, given)


def _columns(explainer: FasterCE, field: str, given: Json) -> list[Hashable]:
    return [_column(explainer, f"{field}[{place}]", name) for place, name in enumerate(given)]


def _column(explainer: FasterCE, field: str, name: str) -> Hashable:
    known = {str(column): column for column in explainer.schema_.names}
    if name not in known:
        raise InvalidRequest(unknown("serve.unknown_column", name, known), field)
    return known[name]


def _ranges(explainer: FasterCE, field: str, given: Json) -> dict[Hashable, Json] | None:
    found: dict[Hashable, Json] = {}
    for name, values in given.items():
        column = _column(explainer, field, name)
        feature = explainer.schema_[column]
        numeric = feature.numeric and not feature.is_time
        found[column] = _bounds(f"{field}.{name}", values) if numeric else list(values)
        if feature.is_time:
            open_ends = zip(values, (-math.inf, math.inf), strict=False)
            found[column] = tuple(end if given is None else given for given, end in open_ends)
    return found or None


def _bounds(field: str, values: Json) -> tuple[float, float]:
    numbers = all(end is None or (isinstance(end, (int, float)) and not isinstance(end, bool)) for end in values)
    if len(values) != 2 or not numbers:
        raise InvalidRequest("serve.not_a_range_of_numbers", field)
    low, high = values
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _factors(explainer: FasterCE, field: str, given: Json) -> Json:
    if not isinstance(given, Mapping):
        return given
    return {_column(explainer, field, name): factor for name, factor in given.items()}


def _constraints(explainer: FasterCE, field: str, given: Json) -> Json:
    try:
        return from_dict(given)
    except InputError as error:
        raise InvalidRequest(error.problem, field) from error


READERS: Mapping[Kind, Callable[[FasterCE, str, Json], Json]] = {
    Kind.TARGET: _target,
    Kind.COLUMNS: _columns,
    Kind.RANGES: _ranges,
    Kind.FACTORS: _factors,
    Kind.CONSTRAINTS: _constraints,
}
