"""Values of a table as JSON, and back; a value that JSON cannot hold is kept as its text."""

import datetime
import math
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain
from fasterce.typing import Json

PLAIN_TYPES = (str, bool, type(None))
# Dates and durations are read back from their text.
TEXT_TYPES = (str, datetime.date, datetime.timedelta, pd.Period)
LONGEST_TEXT = 100
MOST_BITS = 13_000  # Python writes no whole number longer than 4300 digits.

Cell = None | bool | int | float | str | dict[str, str]


def cell(value: Any) -> Cell:
    """Return a plain JSON value, null if it is missing, a date as its text; anything else as {"type": ..., "text": ...}."""
    if type(value) in PLAIN_TYPES or (type(value) is float and math.isfinite(value)):
        return value  # type: ignore[no-any-return]
    value = plain(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= MOST_BITS else _as_text(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return str(value) if isinstance(value, TEXT_TYPES) else _as_text(value)


def _as_text(value: object) -> dict[str, str]:
    """Decimals, fractions and the like are kept as the nearest float."""
    if isinstance(value, TextOnly):
        return {"type": value.type, "text": value.text}
    if isinstance(value, (Real, Decimal)) and not isinstance(value, (int, float)):
        try:
            return {"type": "number", "text": repr(float(value))}
        except (OverflowError, ValueError, TypeError):
            pass
    return {"type": type(value).__name__, "text": _text(value)}


def _text(value: object) -> str:
    try:
        return repr(value)[:LONGEST_TEXT]
    except ValueError:
        return "a number too large to write"


class TextOnly:
    """Stands for a value of which only type and text are known: not a number, not a category."""

    def __init__(self, type: str, text: str) -> None:
        self.type, self.text = type, text

    def __repr__(self) -> str:
        return self.text


def restored(written: Json) -> Any:
    """Return the value a cell was written for, or a `TextOnly`."""
    if not isinstance(written, dict):
        return written
    text = str(written.get("text"))
    return float(text) if written.get("type") in ("float", "number") else TextOnly(str(written.get("type")), text)


def cells(column: pd.Series) -> list[Cell]:
    """Return a whole column; for plain dtypes without converting each value."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        return list(column.tolist())
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and column.dtype.itemsize <= 8:
        return [value if math.isfinite(value) else cell(value) for value in column.tolist()]
    return [value if type(value) is str else cell(value) for value in column.tolist()]


def rows(table: pd.DataFrame) -> list[tuple[Cell, ...]]:
    """Return a whole table by rows. The service's tables have columns of objects only, which need not be taken apart."""
    if {*table.dtypes} == {np.dtype(object)}:
        return [tuple(map(cell, line)) for line in table.to_numpy()]
    return list(zip(*(cells(table.iloc[:, j]) for j in range(table.shape[1])), strict=True))


def name(value: Hashable) -> Json:
    """Return the name of a column; a tuple becomes a list."""
    return [name(part) for part in value] if isinstance(value, tuple) else cell(value)


def restored_name(written: Json) -> Hashable:
    """Return the name of a column as it was."""
    return tuple(restored_name(part) for part in written) if isinstance(written, list) else restored(written)


def converted(value: Json, convert: Callable[[object], Json]) -> Json:
    """Return nested objects and lists with every single value converted."""
    if isinstance(value, dict):
        return {key: converted(one, convert) for key, one in value.items()}
    return [converted(one, convert) for one in value] if isinstance(value, (list, tuple)) else convert(value)


def notes(columns: Sequence[Hashable], values: Sequence[Cell]) -> list[str]:
    """Return a sentence for every value of which only the text was kept."""
    return [
        f"Column {column!r} held a value of type {value['type']}, which JSON cannot hold; its text was kept."
        for column, value in zip(columns, values, strict=True)
        if isinstance(value, dict)
    ]
