"""Column types: what a dtype can hold, values as a column of that dtype, and dtypes as plain data."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray, ExtensionDtype

from fasterce.typing import Floats, Json, JsonObject, Objects

Dtype: TypeAlias = "np.dtype[Any] | ExtensionDtype"
Column: TypeAlias = "Objects | ExtensionArray"

# Whole numbers up to this size are exact in 64-bit floats.
EXACT = 2**53
TOO_COARSE = ("float16", "halffloat[pyarrow]")
SINGLE = ("float32", "Float32", "float[pyarrow]")


def is_single(dtype: Dtype) -> bool:
    """Return whether the type holds 32-bit floats."""
    return str(dtype) in SINGLE


def as_single(values: Floats) -> Floats:
    """Round values to 32-bit floats."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def is_integer(dtype: Dtype) -> bool:
    return bool(pd.api.types.is_integer_dtype(dtype))


def exact_limits(dtype: Dtype) -> tuple[int, int]:
    """Return the smallest and largest whole number that both an integer type and a 64-bit float hold exactly."""
    limits = np.iinfo(dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", np.int64))
    return max(int(limits.min), -EXACT), min(int(limits.max), EXACT)


def representable(bound: float, dtype: Dtype) -> float:
    """Return a bound as a column of this type can hold it."""
    if is_single(dtype):
        return float(np.float32(bound))
    return float(np.clip(bound, *exact_limits(dtype))) if is_integer(dtype) else bound


def cast(values: Floats, dtype: Dtype) -> Column:
    """Return numbers without missing values as a column of this type."""
    if isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return pd.array(values.astype(np.int64) if is_integer(dtype) else values, dtype=dtype)


def plain(value: object) -> Any:
    """Return a NumPy scalar as the Python value it stands for, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def sorted_values(values: Iterable[object]) -> list[Any]:
    """Return values sorted, by type and text where they cannot be compared."""
    listed = list(values)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=lambda value: (type(value).__name__, str(value)))


def missing_marker(column: pd.Series) -> float | None:
    """Return None if an object column marks missing values by None, which models may treat differently; else NaN."""
    if column.dtype != np.dtype(object):
        return np.nan
    empty = column[column.isna().to_numpy()]
    return None if len(empty) and empty.iloc[0] is None else np.nan


def with_missing_rows(found: pd.DataFrame, positions: Objects, index: pd.Index) -> pd.DataFrame:
    """Return `found` at these positions of `index`, missing values elsewhere; integers and booleans become nullable."""
    if len(found) == len(index):
        return found if found.index.is_(index) else found.set_axis(index)
    nullable: dict[Hashable, str] = {
        name: "boolean" if pd.api.types.is_bool_dtype(dtype) else "Int64"
        for name, dtype in found.dtypes.items()
        if isinstance(dtype, np.dtype) and dtype.kind in "biu"
    }
    return found.astype(nullable).set_axis(positions).reindex(np.arange(len(index))).set_axis(index)


def describe_dtype(dtype: Dtype) -> JsonObject:
    """Return a dtype as plain data for JSON."""
    if isinstance(dtype, pd.CategoricalDtype):
        categories = [plain(value) for value in dtype.categories]
        values = str(dtype.categories.dtype)
        return {"name": "category", "categories": categories, "ordered": bool(dtype.ordered), "values": values}
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:
        return {"name": f"string[{dtype.storage}]"}
    return {"name": str(dtype)}


def restore_dtype(described: Mapping[str, Json]) -> Dtype:
    """Return the dtype that `describe_dtype` described; text falls back to Python strings without PyArrow."""
    name: str = described["name"]
    if name == "category":
        categories = pd.Index(described["categories"], dtype=pd.api.types.pandas_dtype(described["values"]))
        return pd.CategoricalDtype(categories, ordered=described["ordered"])
    try:
        return pd.api.types.pandas_dtype(name)
    except ImportError:
        return pd.StringDtype("python") if name.startswith("string") else np.dtype(object)
