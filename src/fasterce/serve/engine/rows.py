"""Rows as JSON objects -> one table for `explain`; a bad cell is its own row's trouble and nobody else's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fasterce.errors import unknown_name
from fasterce.schema import Feature
from fasterce.serve.question import Refused
from fasterce.table import EXACT, Table, is_single

Row = Mapping[str, Any]
Reads = Callable[[Any], Any]


class NotGiven:
    """Stands where a row has no such column: no number, no category, and not a missing value either."""

    def __repr__(self) -> str:
        return "no value at all"


NOT_GIVEN = NotGiven()


class RowReader:
    """Reads every cell by itself, as a column of the type seen in `fit` would hold it, so that company changes nothing."""

    def __init__(self, table: Table) -> None:
        self.columns = {str(name): name for name in table.schema.names}
        self.reads = [_reads(feature, dtype) for feature, dtype in zip(table.schema.features, table.dtypes, strict=True)]

    def check(self, rows: Sequence[Row]) -> None:
        """Columns that nobody knows are the question's fault, not the row's."""
        for place, row in enumerate(rows):
            for column in row:
                if column not in self.columns:
                    raise Refused(unknown_name("column", column, self.columns), f"rows[{place}].{column}"[:200])

    def frame(self, rows: Sequence[Row], index: Sequence[Any]) -> pd.DataFrame:
        """Columns of plain objects: a bad cell in one row must not change the type of the others."""
        labels = pd.Index(list(index), dtype=object)
        read = {
            name: pd.Series([reads(row.get(text, NOT_GIVEN)) for row in rows], labels, dtype=object)
            for (text, name), reads in zip(self.columns.items(), self.reads, strict=True)
        }
        return pd.DataFrame(read, index=labels, columns=pd.Index(list(self.columns.values()), tupleize_cols=False))


def _reads(feature: Feature, dtype: Any) -> Reads:
    if not feature.numeric:
        return _as_it_is
    if pd.api.types.is_integer_dtype(dtype):
        return _whole
    return _single if is_single(dtype) else _floating


def _as_it_is(value: Any) -> Any:
    return value


def _floating(value: Any) -> Any:
    return float(value) if type(value) is int and abs(value) <= EXACT else value


def _single(value: Any) -> Any:
    """A number as 32 bits hold it: what the model saw in training."""
    value = _floating(value)
    with np.errstate(over="ignore"):
        held = float(np.float32(value)) if type(value) is float else value
    return value if held in (np.inf, -np.inf) else held


def _whole(value: Any) -> Any:
    return int(value) if type(value) is float and abs(value) <= EXACT and value.is_integer() else value
