"""The values of each feature by itself: bounds, grids, categories and transitions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fasterce.constraints.compile.active import ActiveConstraint, DeclaredRange
from fasterce.constraints.compile.domain import tidy
from fasterce.constraints.objects import Allowed, Constraint, Forbidden, Frozen, Near, OnlyDown, OnlyUp, Order, Range, Step
from fasterce.data.dtypes import Dtype, representable
from fasterce.data.schema import Feature
from fasterce.data.table import Table
from fasterce.errors import InputError
from fasterce.typing import Floats, Mask

SLACK = 1e-9


@dataclass
class FeatureBounds:
    """The constraints of one feature by itself; an end that none of them states is None."""

    feature: Feature
    low: float | None = None
    high: float | None = None
    required: bool = False
    frozen: bool = False
    up: bool = False
    down: bool = False
    nears: list[Near] = field(default_factory=list)
    step: float = 0.0
    from_row: bool = False
    allowed: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    transitions: Mask | None = None
    ranks: Floats | None = None

    def near(self, codes: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return bounds narrowed to what is near the value of each query; NaN, a missing value, narrows nothing."""
        for near in self.nears:
            up, down = _reach(near, codes)
            low, high = np.fmax(low, tidy(codes - down)), np.fmin(high, tidy(codes + up))
        return low, high

    def is_missing(self, codes: Floats) -> Mask:
        """Return which values are missing."""
        return np.asarray((codes == self.feature.missing_code) & self.feature.nullable)

    @property
    def may_become_missing(self) -> bool:
        """Whether a value may become missing; not if a constraint states what it must be."""
        return self.feature.missing == "may_appear" and not (self.required or self.nears)

    def possible(self, low: Floats, high: Floats, anchor: Floats) -> Mask:
        """Return whether there is a value of the feature's precision and grid between these bounds."""
        if self.step:
            room = np.ceil((low - anchor) / self.step - SLACK) <= np.floor((high - anchor) / self.step + SLACK)
            return np.asarray(room & ((anchor == np.round(anchor)) | (not self.feature.integer)))
        if self.feature.integer:
            return np.asarray(np.ceil(low) <= np.floor(high))
        return np.asarray(low <= high)


class BoundArrays:
    """The bounds of all features as arrays (features,), for many queries at once.

    `seen` are the ranges of the data (features, 2).
    """

    def __init__(self, bounds: Sequence[FeatureBounds], seen: Sequence[tuple[float, float]]) -> None:
        features = [one.feature for one in bounds]
        self.each = bounds
        self.seen = np.array(seen, dtype=np.float64).reshape(-1, 2).T
        self.low = np.array([np.nan if one.low is None else one.low for one in bounds])
        self.high = np.array([np.nan if one.high is None else one.high for one in bounds])
        self.up, self.down = np.array([one.up for one in bounds]), np.array([one.down for one in bounds])
        self.frozen = np.array([one.frozen for one in bounds])
        self.from_row = np.array([one.from_row for one in bounds])
        self.numeric = np.array([feature.numeric for feature in features])
        self.integer = np.array([feature.numeric and feature.integer for feature in features])
        self.missing_code = np.array([feature.missing_code if feature.nullable else np.nan for feature in features])
        self.step = np.array([one.step for one in bounds])
        self.near = [j for j, one in enumerate(bounds) if one.nears]
        self.required = [j for j, one in enumerate(bounds) if one.required]
        self.allowed = {j: one.allowed for j, one in enumerate(bounds) if not one.feature.numeric}
        self.transitions = {j: one.transitions for j, one in enumerate(bounds) if one.transitions is not None}

    def of(self, codes: Floats) -> tuple[Floats, Floats]:
        """Return the bounds of each query (rows, features); an inferred range widens for a query outside it, a declared one
        does not."""
        # A missing value is NaN here, which bounds nothing: it may be filled with any value of the data.
        known = np.where(codes == self.missing_code, np.nan, codes)
        low = np.where(np.isnan(self.low), np.fmin(self.seen[0], known), self.low)
        high = np.where(np.isnan(self.high), np.fmax(self.seen[1], known), self.high)
        low = np.where(self.up, np.fmax(low, known), low)
        high = np.where(self.down, np.fmin(high, known), high)
        for j in self.near:
            low[:, j], high[:, j] = self.each[j].near(known[:, j], low[:, j], high[:, j])
        return low, high

    def anchors(self, codes: Floats, single: Mask) -> Floats:
        """Return where the grid of each query begins (rows, features); in columns of 32-bit floats (`single`) at the decimal
        number that is written for the value, so that steps of 0.1 lead from 4.2 to 4.4 and not to 4.3999998."""
        found = np.where(self.from_row & (codes != self.missing_code), codes, 0.0)
        for j in map(int, np.flatnonzero(single & self.from_row)):
            found[:, j] = [float(str(value)) for value in found[:, j].astype(np.float32)]
        return found

    def possible(self, low: Floats, high: Floats, anchor: Floats) -> Mask:
        """Return whether there is a value of the feature's precision and grid between these bounds (rows, features)."""
        found = np.where(self.integer, np.ceil(low) <= np.floor(high), low <= high)
        for j in map(int, np.flatnonzero(self.step)):
            found[:, j] = self.each[j].possible(low[:, j], high[:, j], anchor[:, j])
        return np.asarray(found | ~self.numeric)


def _reach(near: Near, codes: Floats) -> tuple[Floats, Floats]:
    """Return how far up and down each value may go."""
    share = np.full_like(codes, np.inf) if near.percent is None else np.abs(codes) * near.percent / 100.0
    by, up, down = (np.inf if most is None else most for most in (near.by, near.up, near.down))
    either = np.minimum(share, by)
    return np.minimum(either, up), np.minimum(either, down)


def feature_bounds(
    table: Table, active: Sequence[ActiveConstraint], definitions: Sequence[Constraint]
) -> list[FeatureBounds]:
    """Return the bounds of each feature; raise InputError if the constraints leave one of them no value."""
    found = [
        FeatureBounds(f, ranks=_ranks(f, definitions), allowed=np.arange(f.n_codes) < len(f.categories))
        for f in table.schema.features
    ]
    position = {name: j for j, name in enumerate(table.schema.names)}
    for one in active:
        for name in one.columns:
            _add(found[position[name]], one, table.dtypes[position[name]])
    for bounds in found:
        _check(bounds, active)
    return found


def _add(bounds: FeatureBounds, one: ActiveConstraint, dtype: Dtype) -> None:
    match one.constraint:
        case Frozen():
            bounds.frozen = True
        case OnlyUp():
            _one_way(bounds, up=True)
        case OnlyDown():
            _one_way(bounds, up=False)
        case Range(low=low, high=high):
            if low is not None:
                low = representable(bounds.feature.bound(low), dtype)
                bounds.low = max(-math.inf if bounds.low is None else bounds.low, low)
            if high is not None:
                high = representable(bounds.feature.bound(high), dtype)
                bounds.high = min(math.inf if bounds.high is None else bounds.high, high)
            bounds.required |= not (isinstance(one.constraint, DeclaredRange) and one.origin == "schema")
        case Near():
            bounds.nears.append(one.constraint)
        case Step():
            _add_step(bounds, one.constraint)
        case Allowed(categories=named):
            bounds.allowed &= np.isin(np.arange(bounds.feature.n_codes), [bounds.feature.categories.index(c) for c in named])
            bounds.required = True
        case Forbidden(transitions=pairs):
            shut = np.zeros((bounds.feature.n_codes,) * 2, dtype=bool)
            for start, end in pairs:
                shut[bounds.feature.categories.index(start), bounds.feature.categories.index(end)] = True
            _open_only(bounds, ~shut)


def _one_way(bounds: FeatureBounds, up: bool) -> None:
    """Use positions as bounds where categories are in order, transitions otherwise."""
    count = len(bounds.feature.categories)
    if bounds.ranks is None or np.array_equal(bounds.ranks[:count], np.arange(count)):
        bounds.up, bounds.down = bounds.up or up, bounds.down or not up
    else:
        rise = bounds.ranks[None, :] - bounds.ranks[:, None]
        _open_only(bounds, rise >= 0 if up else rise <= 0)


def _open_only(bounds: FeatureBounds, open_: Mask) -> None:
    """Restrict transitions; a query may keep its category, and one whose category is missing may take any."""
    from_missing = np.arange(len(open_)) >= len(bounds.feature.categories)
    open_ = open_ | np.eye(len(open_), dtype=bool) | from_missing[:, None]
    bounds.transitions = open_ if bounds.transitions is None else bounds.transitions & open_


def _add_step(bounds: FeatureBounds, constraint: Step) -> None:
    size, from_row = float(constraint.size), constraint.start == "row"
    if bounds.step:
        large, small = max(size, bounds.step), min(size, bounds.step)
        if from_row != bounds.from_row or abs(large / small - round(large / small)) > SLACK:
            raise InputError("constraints.steps_conflict", column=bounds.feature.name, received=(bounds.step, size))
        size = large
    bounds.step, bounds.from_row = size, from_row


def _ranks(feature: Feature, definitions: Sequence[Constraint]) -> Floats | None:
    """Return the rank of each category by an Order constraint or the column's own order; NaN for those without a rank."""
    orders = [one.categories for one in definitions if isinstance(one, Order) and one.feature == feature.name]
    orders += [feature.categories] if feature.ordered else []
    if feature.numeric or not orders:
        return None
    ranks = {category: float(rank) for rank, category in enumerate(orders[0])}
    return np.array([ranks.get(category, math.nan) for category in feature.categories] + [math.nan] * feature.nullable)


def _check(bounds: FeatureBounds, active: Sequence[ActiveConstraint]) -> None:
    feature = bounds.feature
    empty = not feature.numeric and not bounds.allowed.any()
    if bounds.low is not None and bounds.high is not None:
        grid = FeatureBounds(feature, step=0.0 if bounds.from_row else bounds.step)
        empty |= not grid.possible(np.array([bounds.low]), np.array([bounds.high]), np.zeros(1))[0]
    if empty:
        kinds = (Range, Allowed, Step)
        conflicting = [one.text for one in active if feature.name in one.columns and isinstance(one.constraint, kinds)]
        code = "constraints.no_whole_number_left" if feature.integer else "constraints.no_value_left"
        raise InputError(code, column=feature.name, received=conflicting)
