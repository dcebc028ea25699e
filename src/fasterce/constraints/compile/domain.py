"""Domain: the values each query may take."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.dependencies import Dependencies, Dependency
from fasterce.constraints.compile.program import limits_of, no_links
from fasterce.data.codec import Block, Codec
from fasterce.data.schema import MISSING
from fasterce.kernels.links import Links
from fasterce.typing import Floats, Indices, Mask

# A numeric feature that moves less than this in the encoded matrix keeps its value.
STILL = 0.02
SLACK = 1e-9


@dataclass(frozen=True)
class MissingValues:
    """Per feature the code of a missing value, NaN where there is none, and whether one may appear."""

    code: Floats
    may_appear: Mask


@dataclass(frozen=True)
class Domain:
    """The legal values of every query.

    Parameters
    ----------
    row : array of shape (rows, features)
        The queries, in codes.
    base : array of shape (rows, features)
        The queries with every value outside its permitted range moved in: where a search starts and returns to.
    free : array of shape (rows, features)
        Whether a feature may be edited to differ from `base`.
    lower, upper : array of shape (rows, features)
        Bounds, for ordered categories on their position; they do not apply to missing values.
    allowed : dict
        By position of each categorical feature, the categories open to every query.
    decimals, integer, single : array of shape (features,)
        Precision; `single` marks columns stored as 32-bit floats.
    numeric : array
        Positions of the numeric features.
    step, anchor : array of shape (features,) and (rows, features), optional
        A grid: changed values are `anchor` plus a multiple of `step`, 0 where there is none.
    transitions : dict
        By position of some categorical features, which categories (C, C) are open to a query that has each.
    movable : array of shape (rows, features), optional
        Whether a feature may differ from `base` at all: `free`, and what follows from other features (None: `free`).
    base_legal, row_legal : array of shape (rows, features), optional
        Whether these values are legal as they are (None: they are).
    most_changes, counted : int and array of shape (features,), optional
        The most of the `counted` features that may differ from `row`.
    dependencies : Dependencies, optional
        Constraints between features.
    missing : MissingValues, optional
        Where a value may be missing, None where none may.
    """

    row: Floats
    base: Floats
    free: Mask
    lower: Floats
    upper: Floats
    allowed: dict[int, Mask]
    decimals: NDArray[np.int64]
    integer: Mask
    single: Mask
    numeric: Indices
    step: Floats | None = None
    anchor: Floats | None = None
    transitions: dict[int, Mask] = field(default_factory=dict)
    movable: Mask | None = None
    base_legal: Mask | None = None
    row_legal: Mask | None = None
    most_changes: int | None = None
    counted: Mask | None = None
    dependencies: Dependencies | None = None
    missing: MissingValues | None = None

    def take(self, rows: Indices) -> "Domain":
        return replace(
            self,
            row=self.row[rows],
            base=self.base[rows],
            free=self.free[rows],
            lower=self.lower[rows],
            upper=self.upper[rows],
            anchor=_some(self.anchor, rows),
            movable=_some(self.movable, rows),
            base_legal=_some(self.base_legal, rows),
            row_legal=_some(self.row_legal, rows),
        )

    @property
    def linked(self) -> bool:
        """Whether there are constraints between features."""
        return self.dependencies is not None

    @cached_property
    def links(self) -> Links:
        """The constraints between features and the limits of each as arrays for the compiled loops."""
        features = self.base.shape[1]
        if self.dependencies is None:
            return no_links(features)
        linked, leads = np.zeros((2, features), dtype=np.bool_)
        for dependency in self.dependencies.dependencies:
            linked[dependency.features] = True
            leads[dependency.features] |= dependency.out is not None
        return self.dependencies.links._replace(limits=limits_of(self), linked=linked, leads=leads)

    @property
    def calls_functions(self) -> bool:
        """Whether a feature follows from others by a function of the user's, which compiled loops cannot call."""
        return self.dependencies is not None and self.dependencies.functions

    @property
    def may_move(self) -> Mask:
        return self.free if self.movable is None else self.movable

    def project(self, points: Floats) -> Floats:
        """Return the nearest legal row for every candidate (rows, K, features), each feature by itself."""
        codes = points.copy()
        j = self.numeric
        own = self.base[:, None, j]
        codes[..., j] = np.where(points[..., j] == own, own, self.round(points[..., j], j))
        every = np.arange(len(points))[:, None]
        for feature in self.allowed:
            code = codes[..., feature].astype(np.intp)
            legal = self._category_open(feature, every, code)
            legal &= (code >= self.lower[:, None, feature]) & (code <= self.upper[:, None, feature])
            codes[..., feature] = np.where(legal, code, self.base[:, None, feature])
        if self.missing is not None:
            stays = np.where(self.missing.may_appear, self.missing.code, self.base[:, None, :])
            codes = np.where(points == self.missing.code, stays, codes)
        return np.where(self.free[:, None, :], codes, self.base[:, None, :])

    def open_to(self, feature: int) -> Mask:
        """Return which categories (rows, C) of a feature are open to each query."""
        code = np.arange(len(self.allowed[feature]))
        within = (code >= self.lower[:, feature, None]) & (code <= self.upper[:, feature, None])
        open_ = self.allowed[feature] & within
        if feature in self.transitions:
            open_ &= self.transitions[feature][self.row[:, feature].astype(np.intp)]
        return np.asarray(open_)

    def open_categories(self) -> Mask:
        """Return which categories (rows, all categories) are open to each query, those of one feature after another."""
        sizes = np.array([len(categories) for categories in self.allowed.values()], dtype=np.intp)
        feature, total = np.repeat(np.fromiter(self.allowed, np.intp, len(sizes)), sizes), int(sizes.sum())
        ends = np.cumsum(sizes)
        code = np.arange(total) - np.repeat(ends - sizes, sizes)
        open_ = (code >= self.lower[:, feature]) & (code <= self.upper[:, feature])
        if total:
            open_ &= np.concatenate(list(self.allowed.values()))
        for j in self.transitions:
            place = list(self.allowed).index(j)
            columns = slice(ends[place] - sizes[place], ends[place])
            open_[:, columns] &= self.transitions[j][self.row[:, j].astype(np.intp)]
        return np.ascontiguousarray(open_)

    def _category_open(self, feature: int, rows: Indices, code: Indices) -> Mask:
        """Return whether each category is open to its query, apart from bounds on positions."""
        open_ = self.allowed[feature][code]
        if feature in self.transitions:
            open_ &= self.transitions[feature][self.row[rows, feature].astype(np.intp), code]
        return np.asarray(open_)

    def legal_values(self, features: Indices, values: Floats) -> Mask:
        """Return which values (rows, S) of the features (S,) a query may be edited to: bounds, grid and categories."""
        legal = self.free[:, features] & (values >= self.lower[:, features]) & (values <= self.upper[:, features])
        every = np.arange(len(values))[:, None]
        for j in self.allowed:
            columns = np.flatnonzero(features == j)
            if columns.size:
                legal[:, columns] &= self._category_open(j, every, values[:, columns].astype(np.intp))
        if self.step is not None:
            columns = np.flatnonzero(self.step[features] > 0)
            legal[:, columns] &= values[:, columns] == self.round(values[:, columns], features[columns])
        if self.missing is not None:
            legal = np.where(values == self.missing.code[features], self.may_become_missing(features), legal)
        return np.asarray(legal)

    def may_become_missing(self, features: Indices) -> Mask:
        """Return which of these features (S,) may become missing in each query (rows, S)."""
        appears = np.zeros(len(features), dtype=bool) if self.missing is None else self.missing.may_appear[features]
        return np.asarray(self.free[:, features] & appears)

    def round(self, values: Floats, features: Indices) -> Floats:
        """Return values (rows, ..., features) at each feature's precision and inside its bounds."""
        middle = (slice(None), *[None] * (values.ndim - 2), features)
        anchor = None if self.anchor is None else self.anchor[middle]
        return self._round(values, self.lower[middle], self.upper[middle], features, anchor)

    def round_own(self, values: Floats, features: Indices) -> Floats:
        """The same for values (rows, ..., sections) of one feature (rows, ...) each."""
        row = np.arange(len(values)).reshape(-1, *[1] * (features.ndim - 1))
        lower, upper = self.lower[row, features][..., None], self.upper[row, features][..., None]
        anchor = None if self.anchor is None else self.anchor[row, features][..., None]
        return self._round(values, lower, upper, features[..., None], anchor)

    def round_flat(
        self,
        values: Floats,
        feature: int,
        rows: Indices,
        lower: Floats | None = None,
        upper: Floats | None = None,
    ) -> Floats:
        """The same for values (N,) of one feature, each with the position of its row, within bounds of their own if given."""
        lower = self.lower[rows, feature] if lower is None else lower
        upper = self.upper[rows, feature] if upper is None else upper
        anchor = None if self.anchor is None else self.anchor[rows, feature]
        return self._round(values, lower, upper, np.full(len(values), feature), anchor)

    def _round(self, values: Floats, lower: Floats, upper: Floats, features: Indices, anchor: Floats | None) -> Floats:
        """Round to the feature's precision; the bound itself is used only where no value of that precision lies inside."""
        scale = 10.0 ** self.decimals[features]
        slack = np.where(self.integer[features], 0.0, 1e-9)
        low, high = np.ceil(lower * scale - slack) / scale, np.floor(upper * scale + slack) / scale
        inside = low <= high
        rounded = np.clip(np.round(values * scale) / scale, np.where(inside, low, lower), np.where(inside, high, upper))
        rounded = np.clip(rounded, lower, upper)
        if self.step is not None and anchor is not None:
            step = self.step[features]
            on_grid = _to_grid(values, lower, upper, np.where(step > 0, step, 1.0), anchor)
            rounded = np.where((step > 0) & ~np.isnan(on_grid), on_grid, rounded)
        if self.single[features].any():
            rounded = np.where(self.single[features], _to_single(rounded, lower, upper), rounded)
        return np.asarray(rounded if self.missing is None else np.where(values == MISSING, MISSING, rounded))

    def unit(self, feature: int) -> float:
        """Return the smallest change of a number by its precision and grid."""
        step = 0.0 if self.step is None else float(self.step[feature])
        return step or float(10.0 ** -float(self.decimals[feature]))

    def contains(self, codes: Floats, counted: bool = True) -> Mask:
        """Return which candidates (rows, K, features) are legal; without `counted` except for the number of changes."""
        rows, count, features = codes.shape
        kept = self.each_legal(np.arange(rows)[:, None], codes)
        if self.dependencies is not None:
            flat = np.repeat(np.arange(rows), count)
            kept &= self.dependencies.keeps(self, flat, codes.reshape(-1, features)).reshape(rows, count)
        return kept & self.count_kept(codes) if counted else kept

    def contains_own(self, rows: Indices, codes: Floats, counted: bool = True) -> Mask:
        """The same for candidates (N, features), each with the position of its row."""
        kept = self.each_legal(rows, codes)
        if self.dependencies is not None:
            kept &= self.dependencies.keeps(self, rows, codes)
        return kept & self._count_kept(rows, codes) if counted else kept

    def satisfied(self, dependency: Dependency, rows: Indices, codes: Floats) -> Mask:
        """Return which candidates (N, features) satisfy one constraint between features."""
        if self.dependencies is None:
            raise ValueError("the domain has no constraints between features")
        return self.dependencies.keeps(self, rows, codes, (dependency,))

    def each_legal(self, rows: Indices, codes: Floats) -> Mask:
        """Return which candidates satisfy the constraints on each feature by itself; `rows` are their queries."""
        as_it_is = codes == self.base[rows]
        if self.base_legal is not None:
            as_it_is &= self.base_legal[rows]
        if self.row_legal is not None:
            as_it_is |= (codes == self.row[rows]) & self.row_legal[rows]
        legal = self.may_move[rows] & (codes >= self.lower[rows]) & (codes <= self.upper[rows])
        legal &= ~self.integer | (codes == np.round(codes))
        if self.allowed:
            features = list(self.allowed)
            ends = np.cumsum([0, *map(len, self.allowed.values())])
            places = ends[:-1] + codes[..., features].astype(np.intp)
            legal[..., features] &= np.concatenate(list(self.allowed.values()))[places]
        for feature in self.transitions:
            legal[..., feature] &= self._category_open(feature, rows, codes[..., feature].astype(np.intp))
        if self.step is not None:
            legal &= self._on_grid(rows, codes)
        if self.missing is not None:
            legal = np.where(codes == self.missing.code, self.may_move[rows] & self.missing.may_appear, legal)
        return np.asarray((as_it_is | legal).all(axis=-1))

    def _on_grid(self, rows: Indices, codes: Floats) -> Mask:
        """Return which values are on their feature's grid: those that rounding does not change."""
        step = np.zeros(codes.shape[-1]) if self.step is None else self.step
        kept = np.ones(codes.shape, dtype=bool)
        each = np.broadcast_to(rows, codes.shape[:-1]).ravel()
        for j in map(int, np.flatnonzero(step > 0)):
            value = codes[..., j]
            kept[..., j] = value == self.round_flat(value.ravel(), j, each).reshape(value.shape)
        return kept

    def count_kept(self, codes: Floats) -> Mask:
        """Return which candidates (rows, K, features) change at most as many features as allowed."""
        return self._count_kept(np.arange(len(codes))[:, None], codes)

    def _count_kept(self, rows: Indices, codes: Floats) -> Mask:
        if self.most_changes is None:
            return np.ones(codes.shape[:-1], dtype=bool)
        changed = codes != self.row[rows]
        if self.counted is not None:
            changed &= self.counted
        return np.asarray(changed.sum(axis=-1) <= self.most_changes)

    def complete(self, codes: Floats) -> Floats:
        """Return candidates (rows, K, features) with the features that follow from others set."""
        if self.dependencies is None:
            return codes
        rows, count, features = codes.shape
        flat = np.repeat(np.arange(rows), count)
        return self.dependencies.complete(self, flat, codes.reshape(-1, features)).reshape(codes.shape)

    def complete_own(self, rows: Indices, codes: Floats) -> Floats:
        """The same for candidates (N, features), each with the position of its row."""
        return codes if self.dependencies is None else self.dependencies.complete(self, rows, codes)


def _some(values: Any, rows: Indices) -> Any:
    return None if values is None else values[rows]


def _to_grid(values: Floats, lower: Floats, upper: Floats, step: Floats, anchor: Floats) -> Floats:
    """Return the nearest anchor + k * step inside the bounds, without rounding noise; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        low, high = np.ceil((lower - anchor) / step - SLACK), np.floor((upper - anchor) / step + SLACK)
        found = anchor + np.clip(np.round((values - anchor) / step), low, high) * step
        found = np.clip(tidy(found), lower, upper)
    return np.where(low <= high, found, np.nan)


def tidy(values: Floats) -> Floats:
    """Remove rounding noise: 0.30000000000000004 becomes 0.3."""
    with np.errstate(invalid="ignore"):
        short = np.round(values, 9)
        near = np.abs(short - values) <= 1e-12 * np.maximum(1.0, np.abs(values))
    return np.where(near, short, values) + 0.0


def _to_single(values: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the 32-bit float a column will hold, one step inward where rounding would leave the bounds."""
    single = values.astype(np.float32)
    single = np.where(single > upper, np.nextafter(single, np.float32(-np.inf)), single)
    single = np.where(single < lower, np.nextafter(single, np.float32(np.inf)), single)
    return single.astype(np.float64)


def carry_movement(codec: Codec, domain: Domain, before: Floats, after: Floats) -> Floats:
    """Return codes that differ from the query by what the decoder moved, not by its reconstruction error.

    `before` (rows, width) is the decoded start, `after` (rows, K, width) the decoded walk. A numeric feature that hardly
    moved keeps its value; a category changes when the movement outweighs the one the row has.
    """
    own = codec.encode(domain.base)
    movement = after - before[:, None, :]
    moved = own[:, None, :] + movement
    codes = np.repeat(domain.base[:, None, :], after.shape[1], axis=1)
    still = np.abs(movement[..., : len(codec.numeric)]) < STILL
    numbers = codec.numbers(moved)
    codes[..., codec.numeric] = np.where(still, codes[..., codec.numeric], numbers)
    for block in codec.blocks:
        codes[..., block.feature] = _likeliest(moved[..., block.columns], block, domain)
    for block in codec.missing_blocks:
        is_missing = domain.base[:, None, block.feature] == MISSING
        missing = (moved[..., block.columns].argmax(axis=-1) == 1) & (
            is_missing | domain.may_become_missing(np.array([block.feature]))
        )
        number = numbers[..., np.searchsorted(codec.numeric, block.feature)]
        present = np.where(is_missing, number, codes[..., block.feature])
        codes[..., block.feature] = np.where(missing, MISSING, present)
    return domain.project(codes)


def _likeliest(scores: Floats, block: Block, domain: Domain) -> Floats:
    """Return the allowed category with the highest score; a rare category of the query without a column stays."""
    own = domain.base[:, block.feature].astype(np.intp)
    open_to_row = domain.open_to(block.feature)[:, block.codes] | (block.codes[None, :] == own[:, None])
    best = np.where(open_to_row[:, None, :], scores, -np.inf).argmax(axis=-1)
    highest = np.take_along_axis(scores, best[..., None], axis=-1)[..., 0]
    unlisted = (block.slot_of[own] < 0)[:, None] & (highest < 1.0)
    return np.where(unlisted, own[:, None], block.codes[best]).astype(np.float64)
