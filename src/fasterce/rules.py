"""The rules of one call - schema, `features_to_vary`, `permitted_range` - made exact for the rows at hand."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.errors import InputError, shorten
from fasterce.profile import Floats
from fasterce.schema import Feature
from fasterce.search.project import Domain, Gaps
from fasterce.table import Table, as_held, is_single

Permitted = Mapping[Hashable, Sequence[Any]]
Moved = tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]


@dataclass(frozen=True)
class Rules:
    """`permitted` holds, by feature position, a range (low, high) or the positions of allowed categories."""

    table: Table
    codec: Codec
    vary: NDArray[np.bool_]
    permitted: dict[int, Any]

    @classmethod
    def compile(
        cls, table: Table, codec: Codec, features_to_vary: Sequence[Hashable] | None, permitted_range: Permitted | None
    ) -> "Rules":
        return cls(table, codec, _vary(table, features_to_vary), _permitted(table, permitted_range or {}))

    @property
    def named(self) -> tuple[int, ...]:
        return () if self.vary.all() else tuple(int(j) for j in np.flatnonzero(self.vary))

    def domain(self, codes: Floats) -> tuple[Domain, dict[int, str]]:
        """What each row may become, and why a row may become nothing at all."""
        features = self.table.schema.features
        lower, upper = np.full_like(codes, -np.inf), np.full_like(codes, np.inf)
        free = np.broadcast_to(self.vary & [f.mutable for f in features], codes.shape).copy()
        base, allowed = codes.copy(), {}
        blocked: dict[int, str] = {}
        for j, feature in enumerate(features):
            value = _where_there(feature, codes[:, j])
            if feature.numeric:
                lower[:, j], upper[:, j] = self._range(j, feature, value)
            else:
                lower[:, j], upper[:, j] = _one_way(feature, value, 0, len(feature.categories) - 1)
                allowed[j] = self._allowed(j, feature)
            if j in self.permitted:
                inside = self._inside_numbers if feature.numeric else self._inside_categories
                moved, outside, possible = inside(j, value, lower[:, j], upper[:, j])
                outside &= ~np.isnan(value)
                stuck = outside & ~(possible & free[:, j])
                base[:, j] = np.where(outside & ~stuck, moved, codes[:, j])
                for row in map(int, np.flatnonzero(stuck)):
                    blocked.setdefault(row, self._outside(j, codes[row, j]))
        free &= self._room(lower, upper)
        decimals, integer = _precision(features)
        single = np.array([is_single(dtype) for dtype in self.table.dtypes])
        return (
            Domain(codes, base, free, lower, upper, allowed, decimals, integer, single, self.codec.numeric, self._gaps()),
            blocked,
        )

    def _gaps(self) -> Gaps | None:
        """A range or categories asked for are what a value may become: it does not go missing then."""
        features = self.table.schema.features
        if not any(feature.gappy for feature in features):
            return None
        code = np.array([feature.absent if feature.gappy else np.nan for feature in features])
        appears = [feature.missing == "may_appear" and j not in self.permitted for j, feature in enumerate(features)]
        return Gaps(code, np.array(appears))

    def _range(self, j: int, feature: Feature, codes: Floats) -> tuple[Floats, Floats]:
        """A range read off the data bends for a row that lies outside it; one that was declared or asked for does not."""
        if j in self.permitted:
            limits = self.permitted[j]
            low, high = (as_held(limit, self.table.dtypes[j]) for limit in limits)
            return _one_way(feature, codes, low, high)
        if feature.declared:
            return _one_way(feature, codes, feature.lower, feature.upper)
        return _one_way(feature, codes, np.fmin(feature.lower, codes), np.fmax(feature.upper, codes))

    def _allowed(self, j: int, feature: Feature) -> NDArray[np.bool_]:
        allowed = np.arange(feature.states) < len(feature.categories)
        if j in self.permitted:
            allowed[:] = False
            allowed[self.permitted[j]] = True
        return allowed

    def _inside_numbers(self, j: int, value: Floats, low: Floats, high: Floats) -> Moved:
        if self.table.schema.features[j].integer:
            low, high = np.ceil(low), np.floor(high)
        return np.clip(value, low, high), (value < low) | (value > high), low <= high

    def _inside_categories(self, j: int, value: Floats, low: Floats, high: Floats) -> Moved:
        """The allowed category next to the row's own position, within its one-way bounds."""
        open_ = np.unique(self.permitted[j])
        legal = (open_ >= low[:, None]) & (open_ <= high[:, None])
        gap = np.where(legal, np.abs(open_ - value[:, None]), np.inf)
        return open_[gap.argmin(axis=1)].astype(np.float64), ~np.isin(value, open_), np.asarray(legal.any(axis=1))

    def _outside(self, j: int, code: float) -> str:
        name, got = self.table.schema.names[j], self.table.value(j, code)
        return f"Column {name!r} is {got!r}, outside its permitted range, and may not change into it"

    def _room(self, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
        """Integers need a whole number between their bounds to be able to move."""
        integer = np.array([f.integer for f in self.table.schema.features])
        return ~integer | (np.ceil(lower) <= np.floor(upper))


def _vary(table: Table, names: Sequence[Hashable] | None) -> NDArray[np.bool_]:
    vary = np.ones(len(table.schema), dtype=bool)
    if names is None or (isinstance(names, str) and names == "all"):
        return vary
    if isinstance(names, str):
        raise InputError(f"features_to_vary must be a list of column names; got the text {names!r}.")
    if not isinstance(names, Iterable):
        raise InputError(f"features_to_vary must be a list of column names; got {names!r}.")
    positions = table.schema.positions(names)
    if not positions:
        raise InputError("features_to_vary must name at least one column; got an empty list.")
    frozen = [table.schema.names[j] for j in positions if not table.schema.features[j].mutable]
    if frozen:
        raise InputError(f"features_to_vary must name columns that may change; {shorten(frozen)} cannot (schema: immutable).")
    vary[:] = False
    vary[positions] = True
    return vary


def _permitted(table: Table, ranges: Permitted) -> dict[int, Any]:
    if not isinstance(ranges, Mapping):
        raise InputError(f"permitted_range must be a dictionary of column names; got {ranges!r}.")
    permitted: dict[int, Any] = {}
    for name, limits in ranges.items():
        j = table.schema.position(name)
        feature = table.schema.features[j]
        permitted[j] = _permitted_numbers(feature, limits) if feature.numeric else _permitted_categories(feature, limits)
    return permitted


def _permitted_numbers(feature: Feature, limits: Sequence[Any]) -> tuple[float, float]:
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise InputError(f"permitted_range of {feature.name!r} must be (low, high); got {limits!r}.") from None
    if feature.declared:
        low, high = max(low, feature.lower), min(high, feature.upper)
    if not low <= high or (feature.integer and np.ceil(low) > np.floor(high)):
        rule = f" inside the schema's [{feature.lower:.15g}, {feature.upper:.15g}]" if feature.declared else ""
        kind = "a whole number" if feature.integer else "at least one value"
        raise InputError(f"permitted_range of {feature.name!r} must hold {kind}{rule}; got {limits!r}.")
    return low, high


def _permitted_categories(feature: Feature, values: Sequence[Any]) -> NDArray[np.intp]:
    if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
        raise InputError(f"permitted_range of {feature.name!r} must be a list of categories; got {values!r}.")
    positions = pd.Index(feature.categories, dtype=object).get_indexer(pd.Index(list(values), dtype=object))
    strange = [value for value, position in zip(values, positions, strict=True) if position < 0]
    if strange:
        raise InputError(
            f"permitted_range of {feature.name!r} must name known categories, of {shorten(feature.categories)}; "
            f"got {shorten(strange)}."
        )
    return np.asarray(positions, dtype=np.intp)


def _where_there(feature: Feature, codes: Floats) -> Floats:
    """NaN where a value is missing, which binds nothing: it may be filled with whatever anyone may have."""
    return np.where(codes == feature.absent, np.nan, codes) if feature.gappy else codes


def _one_way(feature: Feature, codes: Floats, low: Any, high: Any) -> tuple[Floats, Floats]:
    lower, upper = np.broadcast_to(low, codes.shape), np.broadcast_to(high, codes.shape)
    if feature.direction == "up":
        lower = np.fmax(lower, codes)
    elif feature.direction == "down":
        upper = np.fmin(upper, codes)
    return lower, upper


def _precision(features: Sequence[Feature]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    decimals = np.array([f.decimals for f in features], dtype=np.int64)
    return decimals, np.array([f.numeric and f.integer for f in features])
