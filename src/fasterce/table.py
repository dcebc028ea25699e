"""Typed table <-> codes: the only place that reads or builds DataFrames for the model.

Frames for the model are built column by column in the dtypes seen in `fit`; bad rows are told apart, not raised.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.errors import InputError, shorten, unknown_name
from fasterce.frames import KINDS, Kind, as_kind, as_pandas, kind_of
from fasterce.profile import Floats
from fasterce.schema import MISSING, Feature, Schema, check_table, plain

Mask = NDArray[np.bool_]

EXACT = 2**53
TOO_COARSE = ("float16", "halffloat[pyarrow]")
FEW = 8
SINGLE = ("float32", "Float32", "float[pyarrow]")


@dataclass(frozen=True)
class Reading:
    """Codes of a table's rows; rows with a problem hold zeros and their sentence is in `problems`."""

    codes: Floats
    problems: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """`blanks` are what stands for a missing value in each column of plain objects (None or NaN), as seen in `fit`; `kind`
    is whose table that was."""

    schema: Schema
    dtypes: tuple[Any, ...]
    blanks: tuple[Any, ...] = ()
    kind: Kind = "pandas"

    @classmethod
    def like(cls, X: Any, schema: Schema) -> "Table":
        kind, X = kind_of(X), as_pandas(X)
        check_columns(X, schema, "X")
        for name in schema.names:
            if str(X[name].dtype) in TOO_COARSE:
                raise InputError(f"Column {name!r} must be stored with at least 32 bits; got {X[name].dtype}.")
        dtypes = tuple(X[name].dtype for name in schema.names)
        for feature, dtype in zip(schema.features, dtypes, strict=True):
            _check_can_be_missing(feature, dtype)
        held = (_held_range(feature, dtype) for feature, dtype in zip(schema.features, dtypes, strict=True))
        return cls(replace(schema, features=tuple(held)), dtypes, tuple(_blank(X[name]) for name in schema.names), kind)

    def read(self, rows: Any) -> Reading:
        rows = as_pandas(rows, "rows")
        check_columns(rows, self.schema, "rows")
        codes = np.zeros((len(rows), len(self.schema)))
        problems: dict[int, str] = {}
        for j, feature in enumerate(self.schema.features):
            codes[:, j] = self._read_column(rows[feature.name], j, problems)
        codes[list(problems)] = 0.0
        return Reading(codes, problems)

    def _read_column(self, column: pd.Series, j: int, problems: dict[int, str]) -> Floats:
        feature, dtype = self.schema.features[j], self.dtypes[j]
        values, bad = _numbers(column) if feature.numeric else _category_codes(column, self._known[j])
        if is_single(dtype):
            values = as_single(values)
            beyond = ~np.isfinite(values)
            _note(problems, beyond, column, feature, f"must fit the type {dtype} seen in fit")
            values = np.where(beyond, 0.0, values)
        sound = ~bad
        if bad.any():
            missing = column.isna().to_numpy(dtype=bool)
            _note(problems, bad & ~missing, column, feature, _expected(feature))
            if feature.gappy:
                values = np.where(missing, feature.absent, values)
            else:
                _note(problems, bad & missing, column, feature, "must not be missing")
        if feature.numeric:
            _note(problems, sound & (values == MISSING), column, feature, "must not be the code of a missing value")
            if feature.declared:
                outside = sound & ((values < feature.lower) | (values > feature.upper))
                within = f"must be within [{_number(feature.lower)}, {_number(feature.upper)}]"
                _note(problems, outside, column, feature, within)
            if _is_integer_dtype(dtype):
                _note(problems, sound & (values != np.round(values)), column, feature, "must be a whole number")
                limits = _integer_limits(dtype)
                beyond = sound & ((values < max(limits.min, -EXACT)) | (values > min(limits.max, EXACT)))
                fitting = (
                    f"must fit the type {dtype} seen in fit" if limits.max < EXACT else "must be a whole number below 2**53"
                )
                _note(problems, beyond, column, feature, fitting)
        return values

    def frame(self, codes: Floats) -> pd.DataFrame:
        """The rows as the model saw them in training: same columns, order and dtypes."""
        return pd.DataFrame(
            {name: self._held(j, self.column(j, codes[:, j])) for j, name in enumerate(self.schema.names)},
            columns=list(self.schema.names),
        )

    def native(self, frame: pd.DataFrame) -> Any:
        """A frame of ours as the kind of table the model saw in training."""
        return as_kind(frame, self.kind)

    def _held(self, j: int, values: Any) -> Any:
        """pandas guesses a text dtype for plain objects; a model fitted on objects should go on seeing them."""
        return pd.Series(values, dtype=object) if self.dtypes[j] == np.dtype(object) else values

    def column(self, j: int, codes: Floats) -> Any:
        """One typed column from its codes."""
        feature = self.schema.features[j]
        absent = codes == feature.absent if feature.gappy else None
        if absent is not None and absent.any():
            return self._with_blanks(j, codes, absent)
        if feature.numeric:
            return _cast(codes, self.dtypes[j])
        return self._categories[j].take(codes.astype(np.intp))

    def _with_blanks(self, j: int, codes: Floats, absent: Mask) -> Any:
        if not self.schema.features[j].numeric:
            found = self._categories[j].take(np.where(absent, -1, codes).astype(np.intp), allow_fill=True)
            if self.dtypes[j] == np.dtype(object):
                found[absent] = self.blanks[j] if self.blanks else np.nan
            return found
        if isinstance(self.dtypes[j], np.dtype):
            return np.where(absent, np.nan, codes).astype(self.dtypes[j])
        values = _cast(np.where(absent, 0.0, codes), self.dtypes[j])
        values[absent] = pd.NA
        return values

    @cached_property
    def _known(self) -> dict[int, tuple[pd.Index, dict[Any, int]]]:
        """For every categorical feature where each category stands, for many rows and for a few."""
        known = {}
        for j, feature in enumerate(self.schema.features):
            if not feature.numeric:
                places = {category: place for place, category in enumerate(feature.categories)}
                known[j] = (pd.Index(feature.categories, dtype=object), places)
        return known

    @cached_property
    def _categories(self) -> dict[int, Any]:
        """For every categorical feature its categories as an array of the model's own dtype, ready to take from."""
        return {
            j: pd.array(list(f.categories), dtype=self.dtypes[j]) for j, f in enumerate(self.schema.features) if not f.numeric
        }

    def value(self, j: int, code: float) -> Any:
        """One cell as a plain Python value, for people to read; None where it is missing."""
        feature = self.schema.features[j]
        if feature.gappy and code == feature.absent:
            return None
        if not feature.numeric:
            return feature.categories[int(code)]
        if feature.integer and code == round(code):
            return int(code)
        return float(str(np.float32(code))) if is_single(self.dtypes[j]) else float(code)

    def rewrite(self, rows: pd.DataFrame, before: Floats, after: Floats) -> pd.DataFrame:
        """`rows` with the cells whose code changed replaced: index, order and dtypes kept wherever values fit."""
        columns = {}
        for name in rows.columns:
            j = self.schema.position(name)
            changed = before[:, j] != after[:, j]
            columns[name] = rows[name] if not changed.any() else self._rewrite_column(rows[name], j, after[:, j], changed)
        return pd.DataFrame(columns, index=rows.index, columns=rows.columns)

    def _rewrite_column(self, column: pd.Series, j: int, codes: Floats, changed: Mask) -> pd.Series:
        if column.dtype == self.dtypes[j]:
            values = column.array.copy()
            values[changed] = self.column(j, codes[changed])
            return pd.Series(values, index=column.index, name=column.name, dtype=column.dtype)
        typed = pd.Series(self.column(j, codes), index=column.index)
        merged = column.astype(object).where(~changed, typed.astype(object))
        there = ~merged.isna()
        for dtype in (column.dtype, self.dtypes[j]):
            if isinstance(dtype, pd.CategoricalDtype) and not merged[there].isin(dtype.categories).all():
                continue
            try:
                cast = merged.astype(dtype)
            except (TypeError, ValueError, OverflowError):
                continue
            if (cast.isna() != there).all() and (cast[there].astype(object) == merged[there]).all():
                return cast.rename(column.name)
        return merged.rename(column.name)

    def as_returned(self, rows: pd.DataFrame, before: Floats, after: Floats) -> pd.DataFrame:
        """The model's frame of rewritten rows, with numbers the query holds more precisely than training did kept so."""
        frame = self.frame(after)
        for j, name in enumerate(self.schema.names):
            if is_single(self.dtypes[j]):
                given = _numbers(rows[name])[0]
                there = after[:, j] != MISSING
                finer = (given != before[:, j]) & (before[:, j] == after[:, j]) & there
                if finer.any():
                    frame[name] = np.where(finer, given, np.where(there, after[:, j], np.nan))
        return frame

    def to_dict(self) -> list[dict[str, Any]]:
        described = [_describe_dtype(dtype) for dtype in self.dtypes]
        for about, blank in zip(described, self.blanks, strict=False):
            if blank is None:
                about["blank"] = "None"
        return described

    @classmethod
    def from_dict(cls, schema: Schema, described: list[dict[str, Any]], kind: Any = "pandas") -> "Table":
        if kind not in KINDS:
            raise ValueError(f"a table of the kind {kind!r:.80}")
        blanks = tuple(None if dtype.get("blank") == "None" else np.nan for dtype in described)
        return cls(schema, tuple(_restore_dtype(dtype) for dtype in described), blanks, kind)


def check_columns(X: pd.DataFrame, schema: Schema, what: str) -> None:
    check_table(X, what)
    missing = [name for name in schema.names if name not in X.columns]
    extra = [name for name in X.columns if name not in schema.names]
    if missing:
        hint = f" (and has the unexpected {shorten(extra)})" if extra else ""
        raise InputError(f"{what} must have the columns of the schema; missing {shorten(missing)}{hint}.")
    if extra:
        raise InputError(f"{what} must have only the columns of the schema; {unknown_name('column', extra[0], schema.names)}")


def with_gaps(found: pd.DataFrame, positions: NDArray[np.intp], index: pd.Index) -> pd.DataFrame:
    """`found` spread over `index`, missing values elsewhere; whole numbers and booleans stay what they are."""
    if len(found) == len(index):
        return found.set_axis(index)
    nullable = {
        name: "boolean" if pd.api.types.is_bool_dtype(dtype) else "Int64"
        for name, dtype in found.dtypes.items()
        if isinstance(dtype, np.dtype) and dtype.kind in "biu"
    }
    spread = found.astype(nullable).set_axis(positions).reindex(np.arange(len(index)))
    return spread.set_axis(index)


def _numbers(column: pd.Series) -> tuple[Floats, Mask]:
    """Values as floats and which of them are no finite number. Text is not read as a number."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([_as_float(value) for value in column.astype(object)], dtype=np.float64)
    bad = ~np.isfinite(values)
    return np.where(bad, 0.0, values), bad


def _as_float(value: Any) -> float:
    """A real number as a float, anything else as NaN."""
    try:
        return float(value) if isinstance(value, (Real, Decimal)) and value is not pd.NA else math.nan
    except OverflowError:
        return math.inf


def is_single(dtype: Any) -> bool:
    return str(dtype) in SINGLE


def as_single(values: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def as_held(bound: float, dtype: Any) -> float:
    """A bound as a column of this type can hold it."""
    if is_single(dtype):
        return float(np.float32(bound))
    if _is_integer_dtype(dtype):
        limits = _integer_limits(dtype)
        return float(np.clip(bound, max(limits.min, -EXACT), min(limits.max, EXACT)))
    return bound


def _check_can_be_missing(feature: Feature, dtype: Any) -> None:
    if feature.gappy and isinstance(dtype, np.dtype) and dtype.kind in "biu":
        able = "boolean" if dtype.kind == "b" else "float64 or Int64"
        raise InputError(
            f"Column {feature.name!r} must be of a type that can hold missing values, such as {able}, because the schema "
            f"says {feature.missing!r}; got {dtype}."
        )


def _blank(column: pd.Series) -> Any:
    """None where a column of plain objects has it in place of missing values; models may tell it from NaN."""
    if column.dtype != np.dtype(object):
        return np.nan
    empty = column[column.isna().to_numpy()]
    return None if len(empty) and empty.iloc[0] is None else np.nan


def _held_range(feature: Feature, dtype: Any) -> Feature:
    if not feature.numeric:
        return feature
    return replace(feature, lower=as_held(feature.lower, dtype), upper=as_held(feature.upper, dtype))


def _category_codes(column: pd.Series, categories: tuple[pd.Index, dict[Any, int]]) -> tuple[Floats, Mask]:
    known, places = categories
    if len(column) <= FEW:
        found = np.array([_place(places, value) for value in column.array], dtype=np.intp)
    elif isinstance(column.dtype, pd.CategoricalDtype):
        of_category = np.append(known.get_indexer(column.cat.categories.astype(object)), -1)
        found = of_category[column.cat.codes.to_numpy()]
    else:
        found = _positions(known, column.astype(object))
    bad = found < 0
    return np.where(bad, 0, found).astype(np.float64), bad


def _place(places: dict[Any, int], value: Any) -> int:
    return places.get(value, -1) if isinstance(value, Hashable) and value is not pd.NA else -1


def _positions(known: pd.Index, values: pd.Series) -> Any:
    try:
        return known.get_indexer(pd.Index(values, dtype=object))
    except TypeError:
        return known.get_indexer(pd.Index(values.map(_hashable), dtype=object))


def glimpse(value: Any) -> str:
    """What a person sees of a bad cell; the longest ones are cut."""
    try:
        return repr(value)[:100]
    except ValueError:
        return "a number too large to write"


def _hashable(value: Any) -> Any:
    return value if isinstance(value, Hashable) else None


def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:
        return f"string[{dtype.storage}]"
    return str(dtype)


def _note(problems: dict[int, str], bad: Mask, column: pd.Series, feature: Feature, expected: str) -> None:
    for row in np.flatnonzero(bad):
        if int(row) not in problems:
            got = plain(column.iloc[row])
            shown = "a missing value" if pd.api.types.is_scalar(got) and pd.isna(got) else glimpse(got)
            problems[int(row)] = f"Column {feature.name!r} {expected}; got {shown} (row {row})."


def _expected(feature: Feature) -> str:
    if feature.numeric:
        return "must be a finite number"
    return f"must be one of {shorten(feature.categories)}"


def _number(value: float) -> str:
    return f"{value:.15g}"


def _cast(codes: Floats, dtype: Any) -> Any:
    if isinstance(dtype, np.dtype):
        return codes.astype(dtype)
    return pd.array(codes.astype(np.int64) if _is_integer_dtype(dtype) else codes, dtype=dtype)


def _is_integer_dtype(dtype: Any) -> bool:
    return bool(pd.api.types.is_integer_dtype(dtype))


def _integer_limits(dtype: Any) -> np.iinfo[Any]:
    return np.iinfo(dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", np.int64))


def _describe_dtype(dtype: Any) -> dict[str, Any]:
    if isinstance(dtype, pd.CategoricalDtype):
        categories = [plain(value) for value in dtype.categories]
        values = str(dtype.categories.dtype)
        return {"name": "category", "categories": categories, "ordered": bool(dtype.ordered), "values": values}
    return {"name": _dtype_name(dtype)}


def _restore_dtype(described: Mapping[str, Any]) -> Any:
    if described["name"] == "category":
        categories = pd.Index(described["categories"], dtype=pd.api.types.pandas_dtype(described["values"]))
        return pd.CategoricalDtype(categories, ordered=described["ordered"])
    name = described["name"]
    try:
        return pd.api.types.pandas_dtype(name)
    except ImportError:
        return pd.StringDtype("python") if name.startswith("string") else np.dtype(object)
