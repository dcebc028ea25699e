"""Typed table <-> codes: the only place that reads or builds DataFrames for the model.

Frames for the model are built column by column in the dtypes seen in `fit`; bad rows are reported, not raised.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from fasterce.data import dtypes, value_types
from fasterce.data.dtypes import Column, Dtype
from fasterce.data.frames import as_kind, as_pandas, cells_of, copied, dtypes_of, frame_of, kind_of
from fasterce.data.schema import MISSING, Feature, Schema, check_table
from fasterce.errors import InputError, Problem, suggestion
from fasterce.typing import TABLE_KINDS, Category, Floats, Indices, JsonObject, Mask, Objects, TableKind

# Up to this many rows, reading cell by cell is faster than column by column.
FEW_ROWS = 128
# Columns of up to this many categories are kept, up to a number of them.
SHORT, KEPT_SHORT = 2, 4096
LARGEST_SINGLE = float(np.finfo(np.float32).max)


class _PlainColumns(NamedTuple):
    """Features without missing values that are read or written together: numbers by NumPy dtype (with their names and
    positions), and categories (with the array of each). `others` are the positions of all other features."""

    numbers: list[tuple["np.dtype[Any]", list[Hashable], list[int]]]
    categories: list[Any]
    names: list[Hashable]
    places: list[int]
    others: list[int]

    @classmethod
    def of(cls, table: "Table") -> "_PlainColumns":
        features, types = table.schema.features, table.dtypes
        objects = np.dtype(object)
        plain = [
            not f.nullable and f.value_type == value_types.NUMBER and types[j] != objects for j, f in enumerate(features)
        ]
        numbers: dict[np.dtype[Any], list[int]] = {}
        for j, dtype in enumerate(types):
            if plain[j] and features[j].numeric and isinstance(dtype, np.dtype):
                numbers.setdefault(dtype, []).append(j)
        categories = [j for j, feature in enumerate(features) if plain[j] and not feature.numeric]
        grouped = {*categories, *(j for places in numbers.values() for j in places)}
        return cls(
            [(dtype, [features[j].name for j in places], places) for dtype, places in numbers.items()],
            [_as_stored(table._categories[j], types[j]) for j in categories],
            [features[j].name for j in categories],
            categories,
            [j for j in range(len(features)) if j not in grouped],
        )


def _as_stored(values: Any, dtype: Dtype) -> Any:
    """Return an array as pandas stores it in a table."""
    return values if isinstance(dtype, ExtensionDtype) else np.asarray(values)


@dataclass(frozen=True)
class TableReading:
    """Codes of a table's rows, and by position the problem of each row that cannot be used, whose codes are zeros."""

    codes: Floats
    problems: Mapping[int, Problem] = field(default_factory=dict)

    @property
    def first_problem(self) -> Problem | None:
        return self.problems[min(self.problems)] if self.problems else None


@dataclass(frozen=True)
class PassthroughColumn:
    """A column that is not a feature.

    Parameters
    ----------
    name : hashable
    dtype : dtype
        The dtype seen in `fit`.
    value : object
        The value the model gets in rows made by the search, unless `read`.
    read : bool, default=False
        Whether the model was seen to depend on it. Then every row is explained with its own value, and must have one.
    """

    name: Hashable
    dtype: Dtype
    value: Any = None
    read: bool = False

    @property
    def neutral(self) -> Any:
        """A value that belongs to no real row: empty text, zero, or a missing value."""
        if pd.api.types.is_numeric_dtype(self.dtype):
            return 0
        return "" if isinstance(self.value, str) else None

    def column(self, rows: int) -> pd.Series:
        """Return the value once per row, in the column's dtype; zeros where the dtype has no missing value."""
        no_missing = isinstance(self.dtype, np.dtype) and self.dtype.kind in "biu"
        return pd.Series([0 if self.value is None and no_missing else self.value] * rows, dtype=self.dtype)


@dataclass(frozen=True)
class Table:
    """The schema and column types seen in `fit`.

    Parameters
    ----------
    schema : Schema
    dtypes : tuple
        The dtype of each column.
    missing_markers : tuple
        What marks a missing value in each object column, None or NaN.
    kind : {"pandas", "polars", "pyarrow"}
        The library whose table `fit` got.
    passthrough : tuple of PassthroughColumn
        The columns that are not features.
    columns : tuple
        The names of all columns in the order of `fit`; those of the features if empty.
    """

    schema: Schema
    dtypes: tuple[Dtype, ...]
    missing_markers: tuple[float | None, ...] = ()
    kind: TableKind = "pandas"
    passthrough: tuple[PassthroughColumn, ...] = ()
    columns: tuple[Hashable, ...] = ()

    @classmethod
    def like(cls, X: object, schema: Schema) -> "Table":
        """Return a table with the column types of `X`."""
        kind, frame = kind_of(X), as_pandas(X)
        check_columns(frame, schema, "X", schema.passthrough)
        types = tuple(frame[name].dtype for name in schema.names)
        features = []
        for feature, dtype in zip(schema.features, types, strict=True):
            if str(dtype) in dtypes.TOO_COARSE:
                raise InputError("data.too_few_bits", column=feature.name, received=str(dtype))
            _check_can_be_missing(feature, dtype)
            if feature.numeric:
                lower, upper = dtypes.representable(feature.lower, dtype), dtypes.representable(feature.upper, dtype)
                features.append(replace(feature, lower=lower, upper=upper))
            else:
                features.append(feature)
        markers = tuple(dtypes.missing_marker(frame[name]) for name in schema.names)
        passed = tuple(PassthroughColumn(name, frame[name].dtype, _typical(frame[name])) for name in schema.passthrough)
        named = replace(schema, features=tuple(features))
        return cls(named, types, markers, kind, passed, tuple(frame.columns) if passed else ())

    @property
    def read_passthrough(self) -> list[Hashable]:
        """The passthrough columns the model depends on, which every row must have."""
        return [column.name for column in self.passthrough if column.read]

    def with_values_of(self, row: pd.Series) -> "Table":
        """Return the table whose passthrough columns have the values of a row, for the columns the model reads."""
        if not self.read_passthrough:
            return self
        passed = tuple(replace(one, value=row[one.name]) if one.read else one for one in self.passthrough)
        return replace(self, passthrough=passed)

    def groups(self, rows: pd.DataFrame) -> list[Indices]:
        """Return the positions of rows that have the same values in the passthrough columns the model reads."""
        names = self.read_passthrough
        if not names or not set(names) <= set(rows.columns) or len(rows) < 2:
            return [np.arange(len(rows))]
        keys = [tuple(map(repr, values)) for values in zip(*(rows[name].tolist() for name in names), strict=True)]
        places: dict[tuple[str, ...], list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        return [np.array(group, dtype=np.intp) for group in places.values()]

    def read(self, rows: object) -> TableReading:
        """Return the codes of the rows and the problems of those that cannot be used."""
        frame = as_pandas(rows, "rows")
        in_order = frame.columns.equals(self._names)
        if not in_order or self.passthrough:
            check_columns(frame, self.schema, "rows", self.read_passthrough)
        if len(frame) <= FEW_ROWS:
            few = self._read_few(frame, in_order)
            if few is not None:
                return TableReading(few)
        codes = np.zeros((len(frame), len(self.schema)))
        problems: dict[int, Problem] = {}
        for j, feature in enumerate(self.schema.features):
            column = frame[feature.name]
            values, bad = _numbers(column, feature) if feature.numeric else _category_codes(column, self._known[j])
            cells = _Cells(feature, column, problems)
            codes[:, j] = cells.check(values, bad, self.dtypes[j])
        codes[list(problems)] = 0.0
        return TableReading(codes, problems)

    def _read_few(self, frame: pd.DataFrame, in_order: bool) -> Floats | None:
        """Return the codes of few rows, cell by cell; None if a cell is missing, has a problem, or holds a time."""
        if self._cells is None:
            return None
        names = self.schema.names if in_order else list(frame.columns)
        place = {name: k for k, name in enumerate(names)}
        columns = cells_of(frame)
        codes = []
        for cell in self._cells:
            for value in columns[place[cell.name]]:
                code = cell.code(value)
                if code is None:
                    return None
                codes.append(code)
        return np.ascontiguousarray(np.array(codes).reshape(len(self.schema), len(frame)).T)

    @cached_property
    def _cells(self) -> "list[_Cell] | None":
        """How a cell of each feature is read by itself; None if a feature is a time."""
        if any(feature.value_type != value_types.NUMBER for feature in self.schema.features):
            return None
        known = {j: code_of for j, (_, code_of) in self._known.items()}
        return [_Cell.of(feature, self.dtypes[j], known.get(j, {})) for j, feature in enumerate(self.schema.features)]

    def frame(self, codes: Floats) -> pd.DataFrame:
        """Return the rows as the model saw them in training: same columns, order and dtypes."""
        if self._only_dtype is not None:
            return pd.DataFrame(self._numbers_of(codes), columns=self._names.view())
        columns: dict[Hashable, Any] = dict.fromkeys(self.columns or self.schema.names)
        of_features, plain = codes.T, self._plain
        for dtype, names, places in plain.numbers:
            columns.update(zip(names, of_features[places].astype(dtype), strict=True))
        for values, name, picks in zip(plain.categories, plain.names, of_features[plain.places].astype(np.intp), strict=True):
            columns[name] = self._taken(name, values, picks)
        for j in plain.others:
            values = self.column(j, codes[:, j])
            # pandas infers a text dtype for objects; a model fitted on objects must still get objects.
            columns[self.schema.names[j]] = pd.Series(values, dtype=object) if self.dtypes[j] == np.dtype(object) else values
        columns |= {one.name: one.column(len(codes)) for one in self.passthrough}
        if plain.others or self.passthrough:
            return pd.DataFrame(columns, copy=False)
        return frame_of(columns, self._names.view(), len(codes))

    def _taken(self, name: Hashable, categories: Any, picks: Indices) -> Any:
        """Return the categories at some positions; of the columns of one or two rows, which are many, copies of kept ones."""
        if len(picks) > SHORT:
            return categories.take(picks)
        key = name, *picks.tolist()
        found = self._short.get(key)
        if found is None:
            if len(self._short) >= KEPT_SHORT:
                self._short.clear()
            found = self._short[key] = categories.take(picks)
        return found.copy()

    @cached_property
    def _short(self) -> dict[tuple[Hashable, ...], Any]:
        """Columns of at most `SHORT` categories by name of the feature and positions."""
        return {}

    @cached_property
    def _plain(self) -> "_PlainColumns":
        return _PlainColumns.of(self)

    @cached_property
    def _names(self) -> pd.Index:
        return pd.Index(self.schema.names)

    @cached_property
    def _only_dtype(self) -> "np.dtype[Any] | None":
        """The NumPy dtype of all columns, if they are numbers of the same dtype: one array holds them all."""
        plain = all(feature.numeric and feature.value_type == value_types.NUMBER for feature in self.schema.features)
        only = self.dtypes[0] if plain and len(set(self.dtypes)) == 1 and not self.passthrough else None
        return only if isinstance(only, np.dtype) and only.kind in "iuf" else None

    def native(self, frame: pd.DataFrame) -> Any:
        """Return a pandas frame as the kind of table the model saw in training."""
        return as_kind(frame, self.kind)

    def column(self, j: int, codes: Floats) -> Column:
        """Return one typed column from its codes."""
        feature = self.schema.features[j]
        missing = codes == feature.missing_code if feature.nullable else None
        if feature.value_type != value_types.NUMBER:
            blank = self.missing_markers[j] if self.missing_markers else np.nan
            return value_types.to_column(codes, missing, self.dtypes[j], feature.value_type, blank)
        if missing is not None and missing.any():
            return self._column_with_missing(j, codes, missing)
        if feature.numeric:
            return dtypes.cast(codes, self.dtypes[j])
        return self._categories[j].take(codes.astype(np.intp))

    def _column_with_missing(self, j: int, codes: Floats, missing: Mask) -> Column:
        dtype = self.dtypes[j]
        if not self.schema.features[j].numeric:
            found = self._categories[j].take(np.where(missing, -1, codes).astype(np.intp), allow_fill=True)
            if dtype == np.dtype(object):
                found[missing] = self.missing_markers[j] if self.missing_markers else np.nan
            return found
        if isinstance(dtype, np.dtype):
            return np.where(missing, np.nan, codes).astype(dtype)
        values = dtypes.cast(np.where(missing, 0.0, codes), dtype)
        values[missing] = pd.NA
        return values

    @cached_property
    def _known(self) -> dict[int, tuple[pd.Index, dict[Category, int]]]:
        """The code of every category of each categorical feature, as an index for many rows and a dictionary for few."""
        return {
            j: (pd.Index(f.categories, dtype=object), {category: code for code, category in enumerate(f.categories)})
            for j, f in enumerate(self.schema.features)
            if not f.numeric
        }

    @cached_property
    def _categories(self) -> dict[int, pd.api.extensions.ExtensionArray]:
        """The categories of each categorical feature as an array of the column's dtype."""
        return {
            j: pd.array(list(f.categories), dtype=self.dtypes[j]) for j, f in enumerate(self.schema.features) if not f.numeric
        }

    def value(self, j: int, code: float) -> Any:
        """Return one cell as a plain Python value, None if it is missing."""
        feature = self.schema.features[j]
        if feature.nullable and code == feature.missing_code:
            return None
        if not feature.numeric:
            return feature.categories[int(code)]
        if feature.value_type != value_types.NUMBER or (feature.integer and code == round(code)):
            return feature.value(code)
        return float(str(np.float32(code))) if dtypes.is_single(self.dtypes[j]) else float(code)

    def rewrite(self, rows: pd.DataFrame, before: Floats, after: Floats) -> pd.DataFrame:
        """Return `rows` with the changed cells replaced; index, order and, where values fit, dtypes are kept."""
        changed = before != after
        if self._is_one_array(rows):
            values = rows.to_numpy(copy=True)
            values[changed] = self._numbers_of(after[changed])
            return pd.DataFrame(values, rows.index, rows.columns, copy=False).__finalize__(rows)
        found, names = copied(rows), self.schema.names
        for j in map(int, np.flatnonzero(changed.any(axis=0))):
            column = self._rewrite_column(rows[names[j]], j, after[:, j], changed[:, j])
            found.isetitem(rows.columns.get_loc(names[j]), column)
        return found

    def _is_one_array(self, rows: pd.DataFrame) -> bool:
        """Return whether the rows are numbers of one dtype, that of all columns."""
        if self._only_dtype is None or type(rows) is not pd.DataFrame or not rows.columns.equals(self._names):
            return False
        return dtypes_of(rows) == {self._only_dtype}

    def _numbers_of(self, codes: Floats) -> Floats:
        """Return codes as numbers of the only dtype."""
        assert self._only_dtype is not None
        return (np.where(codes == MISSING, np.nan, codes) if self._only_dtype.kind == "f" else codes).astype(self._only_dtype)

    def _rewrite_column(self, column: pd.Series, j: int, codes: Floats, changed: Mask) -> "pd.Series | Column":
        if column.dtype == self.dtypes[j]:
            values = self.column(j, codes[changed])
            if not changed.all() or values.dtype != column.dtype:
                every = column.array.copy()
                every[changed] = values
                values = every
            # pandas infers a text dtype for objects.
            return pd.Series(values, index=column.index, dtype=object) if column.dtype == object else values
        typed = pd.Series(self.column(j, codes), index=column.index)
        merged = column.astype(object).where(~changed, typed.astype(object))
        present = ~merged.isna()
        for dtype in (column.dtype, self.dtypes[j]):
            if isinstance(dtype, pd.CategoricalDtype) and not merged[present].isin(dtype.categories).all():
                continue
            try:
                converted = merged.astype(dtype)
            except (TypeError, ValueError, OverflowError):
                continue
            if (converted.isna() != present).all() and (converted[present].astype(object) == merged[present]).all():
                return converted.rename(column.name)
        return merged.rename(column.name)

    def as_returned(self, rows: pd.DataFrame, places: Indices, before: Floats, after: Floats) -> pd.DataFrame:
        """Return the model's frame of rewritten rows, with their own passthrough values; unchanged numbers and times that
        the query holds more precisely are kept.

        `places` are the positions of the queries in `rows`, `before` their codes.
        """
        frame = self.frame(after)
        if not self.passthrough and not self._finer:
            return frame
        rows = rows.iloc[places]
        for one in self.passthrough:
            if one.name in rows.columns:
                frame[one.name] = _as_dtype(rows[one.name], one.dtype)
        for j in self._finer:
            feature = self.schema.features[j]
            name = feature.name
            if value_types.is_datetime(feature.value_type) and rows[name].dtype == self.dtypes[j]:
                kept = before[:, j] == after[:, j]
                frame[name] = frame[name].where(~kept, rows[name].reset_index(drop=True))
            elif dtypes.is_single(self.dtypes[j]):
                given = _numbers(rows[name], feature)[0]
                present = after[:, j] != MISSING
                finer = (given != before[:, j]) & (before[:, j] == after[:, j]) & present
                if finer.any():
                    frame[name] = np.where(finer, given, np.where(present, after[:, j], np.nan))
        return frame

    @cached_property
    def is_exact(self) -> bool:
        """Whether codes hold all that the model gets of a row: no passthrough columns, times, missing values or single
        precision."""
        plain = all(feature.value_type == value_types.NUMBER and not feature.nullable for feature in self.schema.features)
        return plain and not self.passthrough and not self._finer

    @cached_property
    def _finer(self) -> list[int]:
        """Positions of the features that a query may hold more precisely than the model: times and single precision."""
        times = [feature.value_type == value_types.DATETIME for feature in self.schema.features]
        return [j for j, dtype in enumerate(self.dtypes) if times[j] or dtypes.is_single(dtype)]

    def to_dict(self) -> list[JsonObject]:
        """Return the column types as plain data for JSON: those of the features, then those of passthrough columns."""
        described = [dtypes.describe_dtype(dtype) for dtype in self.dtypes]
        for about, marker in zip(described, self.missing_markers, strict=False):
            if marker is None:
                about["blank"] = "None"
        for one in self.passthrough:
            place, value = self.columns.index(one.name), dtypes.plain(one.value)
            kept = value if isinstance(value, (str, int, float, bool)) and not pd.isna(value) else None
            described.append({**dtypes.describe_dtype(one.dtype), "place": place, "value": kept, "read": one.read})
        return described

    @classmethod
    def from_dict(cls, schema: Schema, described: list[JsonObject], kind: str = "pandas") -> "Table":
        """Return the table whose types `to_dict` described."""
        known = next((one for one in TABLE_KINDS if one == kind), None)
        if known is None:
            raise InputError("data.unknown_table_kind", expected=TABLE_KINDS, received=kind)
        types = tuple(dtypes.restore_dtype(dtype) for dtype in described)
        own = described[: len(schema)]
        markers = tuple(None if dtype.get("blank") == "None" else np.nan for dtype in own)
        about = list(zip(schema.passthrough, types[len(schema) :], described[len(schema) :], strict=False))
        passed = tuple(PassthroughColumn(name, dtype, one["value"], one["read"]) for name, dtype, one in about)
        columns = list(schema.names)
        for name, _, one in sorted(about, key=lambda entry: entry[2]["place"]):
            columns.insert(one["place"], name)
        return cls(schema, types[: len(schema)], markers, known, passed, tuple(columns) if passed else ())


class _Cell(NamedTuple):
    """How one cell of a feature is read."""

    name: Hashable
    numeric: bool
    code_of: Mapping[Any, int]
    lower: float
    upper: float
    whole: bool
    single: bool

    @classmethod
    def of(cls, feature: Feature, dtype: Dtype, code_of: Mapping[Any, int]) -> "_Cell":
        lower, upper = (feature.lower, feature.upper) if feature.numeric and feature.declared else (-math.inf, math.inf)
        whole = feature.numeric and dtypes.is_integer(dtype)
        if whole:
            low, high = dtypes.exact_limits(dtype)
            lower, upper = max(lower, low), min(upper, high)
        return cls(feature.name, feature.numeric, code_of, lower, upper, whole, dtypes.is_single(dtype))

    def code(self, value: object) -> float | None:
        """Return the code of a cell that has no problem, None otherwise."""
        if not self.numeric:
            code = _code(self.code_of, value)
            return None if code < 0 else float(code)
        number = _as_float(value)
        if self.single and abs(number) <= LARGEST_SINGLE:
            number = float(np.float32(number))
        elif self.single:
            return None
        fits = math.isfinite(number) and number != MISSING and self.lower <= number <= self.upper
        return number if fits and not (self.whole and number != round(number)) else None


@dataclass(frozen=True)
class _Cells:
    """The cells of one column while they are checked; the first problem of each row is kept."""

    feature: Feature
    column: pd.Series
    problems: dict[int, Problem]

    def check(self, values: Floats, bad: Mask, dtype: Dtype) -> Floats:
        """Return the codes of the column; `bad` marks cells that are not a finite number or a known category."""
        feature = self.feature
        if dtypes.is_single(dtype):
            values = dtypes.as_single(values)
            too_large = ~np.isfinite(values)
            self._add(too_large, "data.does_not_fit", str(dtype))
            values = np.where(too_large, 0.0, values)
        if bad.any():
            missing = self.column.isna().to_numpy(dtype=bool)
            if feature.numeric and value_types.is_time(feature.value_type):
                self._add(bad & self._is_ambiguous, "data.ambiguous_date", feature.value_type)
                self._add(bad & ~missing, "data.not_a_value", feature.value_type)
            elif feature.numeric:
                self._add(bad & ~missing, "data.not_finite")
            else:
                self._add(bad & ~missing, "data.unknown_category", feature.categories)
            if feature.nullable:
                values = np.where(missing, feature.missing_code, values)
            else:
                self._add(bad & missing, "data.missing_value")
        if feature.numeric:
            self._check_numbers(values, ~bad, dtype)
        return values

    def _check_numbers(self, values: Floats, good: Mask, dtype: Dtype) -> None:
        lower, upper = self.feature.lower, self.feature.upper
        self._add(good & (values == MISSING), "data.reserved_number")
        if self.feature.declared:
            ends = tuple(self.feature.text(end) for end in (lower, upper)) if self._is_time else (lower, upper)
            self._add(good & ((values < lower) | (values > upper)), "data.out_of_range", ends)
        if dtypes.is_integer(dtype):
            self._add(good & (values != np.round(values)), "data.not_whole")
            low, high = dtypes.exact_limits(dtype)
            beyond = good & ((values < low) | (values > high))
            if high < dtypes.EXACT:
                self._add(beyond, "data.does_not_fit", str(dtype))
            else:
                self._add(beyond, "data.whole_too_large")

    @property
    def _is_time(self) -> bool:
        return value_types.is_time(self.feature.value_type)

    @property
    def _is_ambiguous(self) -> Mask:
        """Which cells are dates as text in which day and month are ambiguous."""
        pattern = value_types.AMBIGUOUS
        return np.array([isinstance(cell, str) and pattern.fullmatch(cell) is not None for cell in self.column], dtype=bool)

    def _add(self, bad: Mask, code: str, expected: object = None) -> None:
        for row in map(int, np.flatnonzero(bad)):
            if row not in self.problems:
                cell = dtypes.plain(self.column.iloc[row])
                is_missing = pd.api.types.is_scalar(cell) and pd.isna(cell)
                received = None if is_missing else str(cell) if self._is_time else cell
                self.problems[row] = Problem(code, self.feature.name, row, expected, received)


def check_columns(X: pd.DataFrame, schema: Schema, option: str, required: Sequence[Hashable] = ()) -> None:
    """Check that a table has the columns of the schema and no others; of passthrough columns only `required` ones must be."""
    check_table(X, option)
    known, given = {*schema.names, *schema.passthrough}, set(X.columns)
    missing = [name for name in (*schema.names, *required) if name not in given]
    extra = [name for name in X.columns if name not in known]
    if missing and extra:
        raise InputError("data.missing_and_extra_columns", option=option, expected=missing, extra=extra)
    if missing:
        raise InputError("data.missing_columns", option=option, expected=missing)
    if extra:
        fields = {"option": option, "column": extra[0], "expected": schema.names, "extra": extra}
        raise InputError("data.extra_column", **fields, suggestion=suggestion(extra[0], schema.names))


def _typical(column: pd.Series) -> object:
    """Return the first value that is not missing."""
    present = column.dropna()
    return None if present.empty else dtypes.plain(present.iloc[0])


def _as_dtype(column: pd.Series, dtype: Dtype) -> pd.Series:
    """Return a column in a dtype where its values allow that, without its index."""
    plain_index = column.reset_index(drop=True)
    try:
        return plain_index if column.dtype == dtype else plain_index.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return plain_index


def _check_can_be_missing(feature: Feature, dtype: Dtype) -> None:
    if feature.nullable and isinstance(dtype, np.dtype) and dtype.kind in "biu":
        able = ["boolean"] if dtype.kind == "b" else ["float64", "Int64"]
        raise InputError(
            "data.not_nullable", column=feature.name, expected=able, received=str(dtype), missing=feature.missing
        )


def _numbers(column: pd.Series, feature: Feature) -> tuple[Floats, Mask]:
    """Return values as floats, and which of them are not finite numbers. Text is not read as a number."""
    if feature.format and feature.has_date_format and column.dtype.kind == "O":
        values = np.array([feature.number(value) for value in column], dtype=np.float64)
    elif value_types.is_time(feature.value_type):
        values = value_types.to_numbers(column, feature.value_type)
    elif pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([_as_float(value) for value in column.astype(object)], dtype=np.float64)
    bad = ~np.isfinite(values)
    return np.where(bad, 0.0, values), bad


def _as_float(value: object) -> float:
    """Return a real number as a float, anything else as NaN."""
    try:
        return float(value) if isinstance(value, (Real, Decimal)) and value is not pd.NA else math.nan
    except OverflowError:
        return math.inf


def _category_codes(column: pd.Series, categories: tuple[pd.Index, dict[Category, int]]) -> tuple[Floats, Mask]:
    """Return the code of every cell, and which cells hold no known category."""
    known, code_of = categories
    if len(column) <= FEW_ROWS:
        found: Objects = np.array([_code(code_of, value) for value in column.array], dtype=np.intp)
    elif isinstance(column.dtype, pd.CategoricalDtype):
        of_category = np.append(known.get_indexer(column.cat.categories.astype(object)), -1)
        found = of_category[column.cat.codes.to_numpy()]
    else:
        values = column.astype(object)
        try:
            found = known.get_indexer(pd.Index(values, dtype=object))
        except TypeError:
            hashable = values.map(lambda value: value if isinstance(value, Hashable) else None)
            found = known.get_indexer(pd.Index(hashable, dtype=object))
    bad = found < 0
    return np.where(bad, 0, found).astype(np.float64), bad


def _code(code_of: Mapping[Any, int], value: object) -> int:
    return code_of.get(value, -1) if isinstance(value, Hashable) and value is not pd.NA else -1
