"""Values of a table as JSON can hold them, and back again: what JSON has no word for is kept as its text."""

import math
from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from fasterce.schema import plain
from fasterce.table import glimpse

PLAIN_TYPES = (str, bool, type(None))
MOST_BITS = 13_000  # Python writes no whole number longer than 4300 digits.

Cell = None | bool | int | float | str | dict[str, str]


def cell(value: Any) -> Cell:
    """A plain JSON value, null where it is missing; anything else as {"type": ..., "text": ...}."""
    if type(value) in PLAIN_TYPES:
        return value  # type: ignore[no-any-return]
    value = plain(value)
    if isinstance(value, int):
        return _bare(value) if value.bit_length() <= MOST_BITS else _foreign(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return str(value) if isinstance(value, str) else _foreign(value)


def _bare(value: int) -> int:
    return value if isinstance(value, bool) else int(value)


def _foreign(value: Any) -> dict[str, str]:
    """Decimals, fractions and the like are read as the float nearest to them."""
    if isinstance(value, (Real, Decimal)) and not isinstance(value, (int, float)):
        try:
            return {"type": "number", "text": repr(float(value))}
        except (OverflowError, ValueError, TypeError):
            pass
    return {"type": type(value).__name__, "text": glimpse(value)}


class Foreign:
    """Stands for a value that JSON could not hold: no number, no category, and shown as that value was."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def restored(written: Any) -> Any:
    """The value a cell was written for, or a stand-in that is as unusable."""
    if not isinstance(written, dict):
        return written
    text = str(written.get("text"))
    if written.get("type") in ("float", "number"):
        return float(text)
    return Foreign(text)


def cells(column: pd.Series) -> list[Cell]:
    """A whole column, the quick way where its type allows one."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        return list(column.tolist())
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and column.dtype.itemsize <= 8:
        return [value if math.isfinite(value) else cell(value) for value in column.tolist()]
    return [value if type(value) is str else cell(value) for value in column.tolist()]


def name(value: Hashable) -> Any:
    """A column's name; one of several parts becomes a list."""
    if isinstance(value, tuple):
        return [name(part) for part in value]
    return cell(value)


def restored_name(written: Any) -> Hashable:
    return tuple(restored_name(part) for part in written) if isinstance(written, list) else restored(written)


def notes(columns: Sequence[Any], values: Sequence[Cell]) -> list[str]:
    """A sentence for every value that was not kept as it came."""
    return [
        f"Column {column!r} held a value of type {value['type']}, which JSON cannot hold; its text was kept."
        for column, value in zip(columns, values, strict=True)
        if isinstance(value, dict)
    ]
