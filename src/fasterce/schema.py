"""What a table may hold and what a person may change: no data, no statistics, only rules."""

import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fasterce.constraints import files
from fasterce.constraints.check import as_rules, check_rules
from fasterce.constraints.vocabulary import Rule
from fasterce.errors import SchemaError, shorten, unknown_name
from fasterce.frames import as_pandas

Kind = Literal["numeric", "categorical"]
Direction = Literal["any", "up", "down"]
Missing = Literal["never", "stay", "may_appear"]

# A missing number's code: finite, so that rows can be compared, the same in 32 bits, and larger than any number `fit` takes.
MISSING = -(2.0**100)
MOST_DECIMALS = 6
FREE_DIGITS = 4
MOST_PLACES = 320


@dataclass(frozen=True)
class Feature:
    """One column: its kind, its values and how it may change.

    `declared` tells a range the user set (a row outside it is bad input) from one read off the data
    (a row outside it may stay where it is). `decimals` is the precision of values we propose. `missing` says whether a
    missing value is a legal state: it may "stay" missing or be filled, and it "may_appear" where there was a value.
    """

    name: Hashable
    kind: Kind
    categories: tuple[Any, ...] = ()
    ordered: bool = False
    lower: float = -math.inf
    upper: float = math.inf
    declared: bool = False
    integer: bool = False
    decimals: int = 0
    mutable: bool = True
    direction: Direction = "any"
    missing: Missing = "never"

    def __post_init__(self) -> None:
        if self.kind not in ("numeric", "categorical"):
            raise SchemaError(f"Column {self.name!r} must be 'numeric' or 'categorical'; got kind {self.kind!r}.")
        if self.direction not in ("any", "up", "down"):
            raise SchemaError(f"Column {self.name!r} must go 'any', 'up' or 'down'; got {self.direction!r}.")
        if self.missing not in ("never", "stay", "may_appear"):
            raise SchemaError(
                f"Column {self.name!r} must have missing values 'never', 'stay' or 'may_appear'; got {self.missing!r}."
            )
        if self.kind == "categorical":
            self._check_categories()
        elif not self.lower <= self.upper:
            raise SchemaError(
                f"Column {self.name!r} must have a range (low, high) with low <= high; got ({self.lower}, {self.upper})."
            )

    def _check_categories(self) -> None:
        if not self.categories:
            raise SchemaError(f"Column {self.name!r} must have at least one category; got none.")
        if len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"Column {self.name!r} must have distinct categories; got {shorten(self.categories)}.")
        if self.direction != "any" and not self.ordered:
            raise SchemaError(
                f"Column {self.name!r} cannot go {self.direction} because its categories have no order; "
                "expected a numeric column or an ordered pandas categorical."
            )

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return self.kind == "numeric"

    @property
    def gappy(self) -> bool:
        """Whether a value may be missing at all."""
        return self.missing != "never"

    @property
    def absent(self) -> float:
        """The code of a missing value: for a category one more than there are."""
        return MISSING if self.numeric else float(len(self.categories))

    @property
    def states(self) -> int:
        """How many codes a categorical feature has."""
        return len(self.categories) + self.gappy

    def category(self, code: int) -> Any:
        """The category a code stands for, in words where it is a missing one."""
        return self.categories[code] if code < len(self.categories) else "missing"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; an open end of a range is None."""
        fields = asdict(self)
        fields["categories"] = list(self.categories)
        for bound in ("lower", "upper"):
            if math.isinf(fields[bound]):
                fields[bound] = None
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Feature":
        """What `to_dict` wrote."""
        values = dict(fields)
        values["categories"] = tuple(values.get("categories", ()))
        if isinstance(values.get("name"), list):
            values["name"] = tuple(values["name"])
        if values.get("lower") is None:
            values["lower"] = -math.inf
        if values.get("upper") is None:
            values["upper"] = math.inf
        try:
            _check_types(values)
            return cls(**values)
        except TypeError as error:
            raise SchemaError(f"A feature must have the fields of fasterce.schema.Feature; got {error}.") from error


def _check_types(values: Mapping[str, Any]) -> None:
    """Fields read from a file are of the types they have here: a text that stands for a boolean is not guessed at."""
    kinds = {"ordered": bool, "declared": bool, "integer": bool, "mutable": bool}
    for name, kind in kinds.items():
        if not isinstance(values.get(name, False), kind):
            raise SchemaError(f"Column {values.get('name')!r}: {name} must be true or false; got {values[name]!r:.60}.")
    decimals = values.get("decimals", 0)
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not -MOST_PLACES <= decimals <= MOST_PLACES:
        raise SchemaError(f"Column {values.get('name')!r}: decimals must be a whole number of places; got {decimals!r:.60}.")
    for name in ("lower", "upper"):
        if isinstance(values[name], bool) or not isinstance(values[name], (int, float)):
            raise SchemaError(f"Column {values.get('name')!r}: {name} must be a number; got {values[name]!r:.60}.")


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order, and the `rules` (see `fasterce.constraints`) that every answer keeps to.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [25, 40, 61], "sex": ["f", "m", "f"], "income": [1.5, 2.25, 3.0]})
    >>> schema = Schema.infer(people, immutable=["sex"], increasing=["age"])
    >>> schema["age"].direction, schema["sex"].mutable, schema["income"].decimals
    ('up', False, 2)
    """

    features: tuple[Feature, ...]
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        if not self.features:
            raise SchemaError("A schema must have at least one column; got none.")
        repeated = [name for name in dict.fromkeys(self.names) if self.names.count(name) > 1]
        if repeated:
            raise SchemaError(f"Column names must be unique; got {shorten(repeated)} more than once.")
        object.__setattr__(self, "rules", as_rules(self.rules))
        check_rules(self.rules, self.features)

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The columns, in order."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Hashable) -> Feature:
        return self.features[self.position(name)]

    def position(self, name: Hashable) -> int:
        """Where a column stands; a misspelt name is told with the nearest one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(unknown_name("column", name, self.names)) from None

    def positions(self, names: Iterable[Hashable]) -> list[int]:
        """Where several columns stand."""
        return [self.position(name) for name in names]

    def freed(self) -> "Schema":
        """The same columns with everything allowed to change either way, by no rules."""
        return Schema(tuple(replace(f, mutable=True, direction="any") for f in self.features))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the features, and the rules where there are any."""
        described: dict[str, Any] = {"features": [feature.to_dict() for feature in self.features]}
        return described | {"rules": files.to_dict(self.rules)} if self.rules else described

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Schema":
        """What `to_dict` wrote."""
        features = tuple(Feature.from_dict(feature) for feature in fields["features"])
        return cls(features, files.from_dict(fields.get("rules", ())))

    @classmethod
    def infer(
        cls,
        X: Any,
        categorical: Sequence[Hashable] | None = None,
        immutable: Sequence[Hashable] | None = None,
        increasing: Sequence[Hashable] | None = None,
        decreasing: Sequence[Hashable] | None = None,
        ranges: Mapping[Hashable, tuple[float, float]] | None = None,
        rules: Sequence[Rule] | None = None,
        may_go_missing: Sequence[Hashable] | None = None,
    ) -> "Schema":
        """Read kinds, categories, precision and observed ranges off a table (pandas, Polars, PyArrow); the rest is what the
        user says.

        Text, pandas categoricals and booleans are categorical; numbers are numeric unless named in `categorical`.
        Where the table has missing values they may stay or be filled; a value becomes missing only where `may_go_missing`
        names its column.
        """
        X = as_pandas(X)
        check_table(X, "X")
        immutable, increasing, decreasing, ranges = immutable or (), increasing or (), decreasing or (), dict(ranges or {})
        may_go_missing = may_go_missing or ()
        for named in (categorical or (), immutable, increasing, decreasing, ranges, may_go_missing):
            _check_known(named, X.columns)
        both = set(increasing) & set(decreasing)
        if both:
            raise SchemaError(f"A column must go up or down, not both; got {shorten(both)} in increasing and decreasing.")
        features = []
        for name in X.columns:
            direction: Direction = "up" if name in increasing else "down" if name in decreasing else "any"
            as_category = name in (categorical or ())
            feature = _infer_feature(X[name], as_category, direction, name not in immutable)
            if name in may_go_missing or bool(X[name].isna().any()):
                feature = replace(feature, missing="may_appear" if name in may_go_missing else "stay")
            features.append(_declare_range(feature, ranges[name]) if name in ranges else feature)
        return cls(tuple(features), as_rules(rules))


def check_table(X: object, what: str) -> None:
    """A pandas DataFrame with columns of different names, or one clear sentence."""
    if not isinstance(X, pd.DataFrame):
        raise SchemaError(f"{what} must be a pandas, Polars or PyArrow table; got {type(X).__name__}.")
    if X.columns.has_duplicates:
        repeated = X.columns[X.columns.duplicated()].unique()
        raise SchemaError(f"{what} must have unique column names; got {shorten(repeated)} more than once.")
    if X.shape[1] == 0:
        raise SchemaError(f"{what} must have at least one column; got none.")


def _check_known(named: Iterable[Hashable], columns: pd.Index) -> None:
    if isinstance(named, str):
        raise SchemaError(f"Column names must come as a list; got the text {named!r}.")
    for name in named:
        if name not in columns:
            raise SchemaError(unknown_name("column", name, columns))


def _infer_feature(column: pd.Series, as_category: bool, direction: Direction, mutable: bool) -> Feature:
    if len(column) == 0:
        raise SchemaError(f"Column {column.name!r} must have at least one row to infer a schema from; got none.")
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        raise SchemaError(f"Column {column.name!r} must be numeric or categorical; got {dtype} (convert it to a number).")
    if pd.api.types.is_complex_dtype(dtype):
        raise SchemaError(f"Column {column.name!r} must be numeric or categorical; got {dtype}.")
    if as_category or pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        return _infer_categorical(column, direction, mutable)
    return _infer_numeric(column, direction, mutable)


def _infer_categorical(column: pd.Series, direction: Direction, mutable: bool) -> Feature:
    ordered = False
    if isinstance(column.dtype, pd.CategoricalDtype):
        values, ordered = column.cat.categories, bool(column.cat.ordered)
    elif pd.api.types.is_bool_dtype(column.dtype):
        values = [False, True]
    else:
        values = _distinct(column.dropna())
    categories = tuple(plain(value) for value in values)
    for value in categories:
        if not isinstance(value, (str, int, float, bool)):
            raise SchemaError(
                f"Column {column.name!r} must hold text, numbers or booleans; got a {type(value).__name__} ({value!r})."
            )
    if not categories:
        raise SchemaError(f"Column {column.name!r} must hold at least one value that is not missing; got none.")
    return Feature(column.name, "categorical", categories, ordered, mutable=mutable, direction=direction)


def _infer_numeric(column: pd.Series, direction: Direction, mutable: bool) -> Feature:
    values = column.dropna().to_numpy(dtype=np.float64)
    values = values[np.isfinite(values)]
    if values.size == 0:
        raise SchemaError(f"Column {column.name!r} must hold at least one finite number; got none.")
    integer = bool(np.all(values == np.round(values)))
    return Feature(
        column.name,
        "numeric",
        lower=float(values.min()),
        upper=float(values.max()),
        integer=integer,
        decimals=0 if integer else _decimals(values, _rounding(column.dtype)),
        mutable=mutable,
        direction=direction,
    )


def _rounding(dtype: Any) -> float:
    """How far, relative to a column's largest value, a written number may be from what its type holds."""
    return 1e-12 if getattr(dtype, "itemsize", 8) > 4 else 2e-7


def _decimals(values: np.ndarray[Any, Any], rounding: float) -> int:
    """The decimals the data is written with; for measured floats, four digits of the range."""
    span = (float(values.max()) - float(values.min())) or float(np.abs(values).max()) or 1.0
    slack = rounding * float(np.abs(values).max())
    for decimals in range(1, MOST_DECIMALS + 1):
        if slack > 0.1 * 10.0**-decimals:
            break
        if np.allclose(values, np.round(values, decimals), rtol=0, atol=slack):
            return decimals
    return max(0, FREE_DIGITS - 1 - math.floor(math.log10(min(span, sys.float_info.max))))


def _declare_range(feature: Feature, limits: tuple[float, float]) -> Feature:
    if not feature.numeric:
        raise SchemaError(f"Column {feature.name!r} is categorical and cannot have a range; got {limits!r}.")
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise SchemaError(f"Column {feature.name!r} must have a range (low, high); got {limits!r}.") from None
    if not low <= high:
        raise SchemaError(f"Column {feature.name!r} must have a range (low, high) with low <= high; got ({low}, {high}).")
    return replace(feature, lower=low, upper=high, declared=True)


def _distinct(column: pd.Series) -> list[Any]:
    try:
        return _sorted(column.unique())
    except TypeError:
        return list(column)


def _sorted(values: Iterable[Any]) -> list[Any]:
    listed = list(values)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=lambda value: (type(value).__name__, str(value)))


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value
