"""Convert tables of other libraries to pandas and back.

Polars and PyArrow tables come back as their own kind; any other eager table that narwhals reads comes back as pandas.
A missing value is null in those tables, and NaN or NA in pandas. An ordered categorical is a Polars Enum, others are
Categoricals.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from fasterce.errors import InputError, SchemaError
from fasterce.typing import TABLE_KINDS, TableKind

COPY_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


def kind_of(frame: object) -> TableKind:
    """Return the library of a table, in whose tables results are returned."""
    library = type(frame).__module__.partition(".")[0]
    return next((kind for kind in TABLE_KINDS if kind == library), "pandas")


def copied(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy; where pandas copies a column only when it is changed, nothing is copied yet."""
    return frame.copy(deep=not COPY_ON_WRITE)


def frame_of(columns: Mapping[Hashable, Any], names: pd.Index, rows: int) -> pd.DataFrame:
    """Return a table of columns that are arrays as pandas stores them, by name in the order of `names`.

    The public constructor checks every column again, which takes longer than all else.
    """
    make = getattr(pd.DataFrame, "_from_arrays", None)
    if make is None:
        return pd.DataFrame(columns, copy=False)
    found: pd.DataFrame = make(list(columns.values()), names, pd.RangeIndex(rows), verify_integrity=False)
    return found


def _arrays_of(frame: pd.DataFrame) -> list[Any]:
    """Return the arrays of the columns, none where this pandas does not give them."""
    arrays = getattr(frame, "_iter_column_arrays", None)
    return [] if arrays is None else list(arrays())


def dtypes_of(frame: pd.DataFrame) -> set[Any]:
    """Return the dtypes of the columns, without the Series that `frame.dtypes` makes of them."""
    return {one.dtype for one in _arrays_of(frame)} or set(frame.dtypes)


def cells_of(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the cells of every column. The arrays are read directly where they hold numbers, text or objects: a column as a
    Series takes longer than its few cells."""
    columns = _arrays_of(frame)
    if columns and all(one.dtype.kind in "iufbO" for one in columns):
        return [one.tolist() if isinstance(one, np.ndarray) else list(one) for one in columns]
    cells: list[list[Any]] = frame.to_numpy(dtype=object).T.tolist()
    return cells


def as_pandas(frame: object, option: str = "X", names: Sequence[Hashable] | None = None) -> pd.DataFrame:
    """Return a table as pandas, column by column in types that hold the same values.

    A row may also be a pandas Series or a dictionary, rows a list of dictionaries, and a table a NumPy array.

    Parameters
    ----------
    frame : object
    option : str, default="X"
        Its name in messages.
    names : sequence, optional
        The columns of a NumPy array; x0, x1, … by default.

    Raises
    ------
    InputError
        If it is not a table, or a lazy one.
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    rows = _from_rows(frame, option, names)
    if rows is not None:
        return rows
    if type(frame).__name__ == "LazyFrame":
        raise InputError("data.lazy_table", option=option)
    nw = import_module("narwhals")
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise SchemaError("data.not_a_table", option=option, received=type(frame).__name__) from None
    if kind_of(frame) == "pandas":
        converted: pd.DataFrame = table.to_pandas()
        return converted
    return pd.DataFrame({name: _column(nw, table[name]) for name in table.columns})


def _from_rows(rows: object, option: str, names: Sequence[Hashable] | None) -> pd.DataFrame | None:
    """Return a Series, a dictionary, a list of dictionaries or a NumPy array as a table, None for anything else."""
    if isinstance(rows, pd.Series):
        return rows.to_frame().T.infer_objects()
    if isinstance(rows, Mapping):
        is_row = all(isinstance(value, str) or not isinstance(value, Iterable) for value in rows.values())
        return pd.DataFrame([dict(rows)] if is_row else dict(rows))
    if isinstance(rows, (list, tuple)) and rows and all(isinstance(row, (Mapping, pd.Series)) for row in rows):
        return pd.concat([as_pandas(row) for row in rows]) if isinstance(rows[0], pd.Series) else pd.DataFrame(list(rows))
    if not isinstance(rows, np.ndarray) or rows.ndim not in (1, 2) or rows.dtype.names is not None:
        return None
    matrix = np.atleast_2d(rows)
    columns = [f"x{j}" for j in range(matrix.shape[1])] if names is None else list(names)
    if matrix.shape[1] != len(columns):
        raise InputError("data.array_width", option=option, expected=len(columns), received=matrix.shape[1])
    frame = pd.DataFrame(matrix, columns=pd.Index(columns, tupleize_cols=False))
    return frame.infer_objects() if matrix.dtype == object else frame


def _column(nw: Any, column: Any) -> Any:
    dtype, has_nulls = column.dtype, column.null_count() > 0
    if dtype.is_integer() or dtype == nw.Boolean:
        name = "boolean" if dtype == nw.Boolean else str(dtype)
        return pd.array(column.to_list(), dtype=name) if has_nulls else column.to_numpy()
    if dtype.is_float():
        return column.to_numpy().astype(str(dtype).lower())
    if dtype in (nw.Enum, nw.Categorical):
        known = _order(column)
        values = column.to_list()
        return pd.Categorical(values, known or sorted({v for v in values if v is not None}), ordered=known is not None)
    if dtype == nw.String:
        return pd.Series(column.to_list(), dtype=None if len(column) > column.null_count() else object)
    if dtype.is_temporal():
        return column.to_pandas()
    return pd.Series(column.to_list(), dtype=object)


def _order(column: Any) -> list[Any] | None:
    """Return the categories if they are ordered; a plain Categorical may share them with other columns."""
    native = column.to_native()
    if kind_of(native) == "polars":
        return list(column.dtype.categories) if hasattr(column.dtype, "categories") else None
    return native.unify_dictionaries().chunk(0).dictionary.to_pylist() if native.type.ordered and len(native) else None


def as_kind(frame: pd.DataFrame, kind: TableKind) -> Any:
    """Return a pandas table as another kind, without its index."""
    if kind == "pandas":
        return frame
    library, columns = import_module(kind), [as_series(frame.iloc[:, j], kind) for j in range(frame.shape[1])]
    if kind == "pyarrow":
        return library.Table.from_arrays(columns, names=[str(name) for name in frame.columns])
    return library.DataFrame(columns)


def as_series(column: pd.Series, kind: TableKind) -> Any:
    """Return a pandas column as another kind."""
    if kind == "pandas":
        return column
    library = import_module(kind)
    if kind == "pyarrow":
        return library.array(column.array, from_pandas=True)
    name, dtype = str(column.name), column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        native = library.Enum(list(dtype.categories)) if dtype.ordered else library.Categorical
        return library.Series(name, _values(column), dtype=native)
    if pd.api.types.is_numeric_dtype(dtype):
        if not pd.api.types.is_extension_array_dtype(dtype):
            return library.Series(name, column.to_numpy(), nan_to_null=True)
        native = library.Boolean if str(dtype) == "boolean" else getattr(library, str(dtype))
        return library.Series(name, _values(column), dtype=native)
    text = isinstance(dtype, pd.StringDtype)
    return library.Series(name, _values(column), dtype=library.String if text else None, strict=False)


def _values(column: pd.Series) -> list[object]:
    """Return plain values, None where one is missing."""
    values = column.to_numpy(dtype=object)
    missing = column.isna().to_numpy(dtype=bool)
    if missing.any():
        values = values.copy()
        values[missing] = None
    return list(values)
