"""Tables as JSON: plain values, None for missing ones, a few thousand rows at a time."""

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain
from fasterce.errors import InputError


def batches(frame: pd.DataFrame, rows: int) -> Iterator[pd.DataFrame]:
    for start in range(0, len(frame), rows):
        yield frame.iloc[start : start + rows]


def cells(column: pd.Series) -> list[object]:
    """Return the values of a column: whole numbers, floats, booleans and text keep their type."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu":
        return list(column.tolist())
    missing = column.isna().to_numpy(dtype=bool)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "f" and not missing.any():
        return list(column.tolist())
    values = column.to_numpy(dtype=object, na_value=None) if missing.any() else column.to_numpy(dtype=object)
    return [None if gap else plain(value) for value, gap in zip(values, missing, strict=True)]


def texts(frame: pd.DataFrame) -> set[str]:
    """Return every text in a table, which must not appear in a message about it."""
    found: set[str] = set()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            found.update(str(value) for value in frame[name].dropna().unique())
    return found


def to_json(content: object) -> bytes:
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise InputError("models.http_values") from None
