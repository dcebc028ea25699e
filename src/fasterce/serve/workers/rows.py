"""Convert rows as JSON objects to one table for `explain`; an invalid cell affects its own row only."""

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from fasterce.data.dtypes import EXACT, is_single
from fasterce.data.schema import Feature
from fasterce.data.table import Table
from fasterce.errors import unknown
from fasterce.serve.messages import InvalidRequest, Json

Row = Mapping[str, Json]
Convert = Callable[[Json], Json]


class NotGiven:
    """Stands where a row lacks a column: not a number, not a category, and not a missing value either."""

    def __repr__(self) -> str:
        return "no value at all"


NOT_GIVEN = NotGiven()


class RowReader:
    """Converts every cell by itself to the type seen in `fit`, so that the result does not depend on the other rows."""

    def __init__(self, table: Table) -> None:
        self.columns = {str(name): name for name in table.schema.names}
        self.converters = [
            _converter(feature, dtype) for feature, dtype in zip(table.schema.features, table.dtypes, strict=True)
        ]

    def check(self, rows: Sequence[Row]) -> None:
        """Raise InvalidRequest for unknown columns, which are an error of the request and not of a row."""
        for place, row in enumerate(rows):
            for column in row:
                if column not in self.columns:
                    problem = unknown("serve.unknown_column", column, self.columns)
                    raise InvalidRequest(problem, f"rows[{place}].{column}"[:200])

    def frame(self, rows: Sequence[Row], index: Sequence[Hashable]) -> pd.DataFrame:
        """Return a table of object columns, so that an invalid cell does not change the type of the others."""
        labels = pd.Index(list(index), dtype=object)
        columns = {
            name: pd.Series([convert(row.get(text, NOT_GIVEN)) for row in rows], labels, dtype=object)
            for (text, name), convert in zip(self.columns.items(), self.converters, strict=True)
        }
        return pd.DataFrame(columns, index=labels, columns=pd.Index(list(self.columns.values()), tupleize_cols=False))


def _converter(feature: Feature, dtype: object) -> Convert:
    if not feature.numeric:
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
