"""What a row may become, held exactly: frozen features, ranges, one-way features, whole numbers, allowed categories."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Block, Codec
from fasterce.profile import Floats
from fasterce.schema import MISSING
from fasterce.search.links import Links

Mask = NDArray[np.bool_]

STILL = 0.02
SLACK = 1e-9


@dataclass(frozen=True)
class Gaps:
    """Missing values (features,): the code of each feature's, NaN where there are none, and where one may appear."""

    code: Floats
    appears: Mask


@dataclass(frozen=True)
class Domain:
    """The legal values of every row. Arrays are (rows, features) unless said.

    row      the row as given, in codes
    base     the row with every value outside a permitted range moved in: where a search starts and returns to
    free     may this feature be edited to differ from `base`
    lower, upper   bounds, for ordered categories on their position
    allowed  for each categorical feature (by its position) the categories open to everyone
    decimals, integer, single   (features,) precision; `single` marks columns stored as 32-bit floats
    step, anchor   a grid: changed values are `anchor` plus a multiple of `step` (features,), 0 where there is none
    transitions   for some categorical features which categories (C, C) are open to a row that has each
    movable  may this feature differ from `base` at all: `free`, and what follows from other features (None: `free`)
    base_legal, row_legal   are these values legal as they are (None: they are)
    most_changes, counted   at most so many of the `counted` (features,) may differ from `row`
    links    rules between features
    gaps     where a value may be missing, None where none may; `allowed` has their codes, `lower` and `upper` say nothing
             about them
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
    numeric: NDArray[np.intp]
    step: Floats | None = None
    anchor: Floats | None = None
    transitions: dict[int, Mask] = field(default_factory=dict)
    movable: Mask | None = None
    base_legal: Mask | None = None
    row_legal: Mask | None = None
    most_changes: int | None = None
    counted: Mask | None = None
    links: Links | None = None
    gaps: Gaps | None = None

    def take(self, rows: NDArray[np.intp]) -> "Domain":
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
        """Is there anything to complete or check beyond each feature by itself?"""
        return self.links is not None

    @property
    def unlinked(self) -> bool:
        """Is every set of legal changes legal?"""
        return self.links is None and self.most_changes is None

    @property
    def may_move(self) -> Mask:
        return self.free if self.movable is None else self.movable

    def project(self, points: Floats) -> Floats:
        """The nearest legal row for every candidate (rows, K, features), each feature by itself."""
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
        if self.gaps is not None:
            stays = np.where(self.gaps.appears, self.gaps.code, self.base[:, None, :])
            codes = np.where(points == self.gaps.code, stays, codes)
        return np.where(self.free[:, None, :], codes, self.base[:, None, :])

    def open_to(self, feature: int) -> Mask:
        """Which categories (rows, C) of a feature are open to each row, by rules for everyone and from where it is."""
        code = np.arange(len(self.allowed[feature]))
        within = (code >= self.lower[:, feature, None]) & (code <= self.upper[:, feature, None])
        open_ = self.allowed[feature] & within
        if feature in self.transitions:
            open_ &= self.transitions[feature][self.row[:, feature].astype(np.intp)]
        return np.asarray(open_)

    def _category_open(self, feature: int, rows: NDArray[np.intp], code: NDArray[np.intp]) -> Mask:
        """Is each category open to its row, bounds on positions apart?"""
        open_ = self.allowed[feature][code]
        if feature in self.transitions:
            open_ &= self.transitions[feature][self.row[rows, feature].astype(np.intp), code]
        return np.asarray(open_)

    def legal_values(self, features: NDArray[np.intp], values: Floats) -> Mask:
        """Which values (rows, S) of the features (S,) a row may be edited to: bounds, grid and categories."""
        legal = self.free[:, features] & (values >= self.lower[:, features]) & (values <= self.upper[:, features])
        every = np.arange(len(values))[:, None]
        for j in self.allowed:
            columns = np.flatnonzero(features == j)
            if columns.size:
                legal[:, columns] &= self._category_open(j, every, values[:, columns].astype(np.intp))
        if self.step is not None:
            columns = np.flatnonzero(self.step[features] > 0)
            legal[:, columns] &= values[:, columns] == self.round(values[:, columns], features[columns])
        if self.gaps is not None:
            legal = np.where(values == self.gaps.code[features], self.may_go(features), legal)
        return np.asarray(legal)

    def may_go(self, features: NDArray[np.intp]) -> Mask:
        """Which of these features (S,) may be edited to go missing in each row (rows, S)."""
        appears = np.zeros(len(features), dtype=bool) if self.gaps is None else self.gaps.appears[features]
        return np.asarray(self.free[:, features] & appears)

    def round(self, values: Floats, features: NDArray[np.intp]) -> Floats:
        """Values (rows, ..., features) at each feature's precision and inside its bounds."""
        middle = (slice(None), *[None] * (values.ndim - 2), features)
        anchor = None if self.anchor is None else self.anchor[middle]
        return self._round(values, self.lower[middle], self.upper[middle], features, anchor)

    def round_own(self, values: Floats, features: NDArray[np.intp]) -> Floats:
        """The same for values (rows, R, sections) of one feature (rows, R) each."""
        row = np.arange(len(values))[:, None]
        lower, upper = self.lower[row, features][..., None], self.upper[row, features][..., None]
        anchor = None if self.anchor is None else self.anchor[row, features][..., None]
        return self._round(values, lower, upper, features[..., None], anchor)

    def round_flat(
        self,
        values: Floats,
        feature: int,
        rows: NDArray[np.intp],
        lower: Floats | None = None,
        upper: Floats | None = None,
    ) -> Floats:
        """The same for values (N,) of one feature, each with the position of its row, within bounds of their own if given."""
        lower = self.lower[rows, feature] if lower is None else lower
        upper = self.upper[rows, feature] if upper is None else upper
        anchor = None if self.anchor is None else self.anchor[rows, feature]
        return self._round(values, lower, upper, np.full(len(values), feature), anchor)

    def _round(
        self, values: Floats, lower: Floats, upper: Floats, features: NDArray[np.intp], anchor: Floats | None
    ) -> Floats:
        """Only where no value of the feature's precision lies inside does the bound itself stand in."""
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
        return np.asarray(rounded if self.gaps is None else np.where(values == MISSING, MISSING, rounded))

    def unit(self, feature: int) -> float:
        """The smallest change of a number that its precision and grid know."""
        step = 0.0 if self.step is None else float(self.step[feature])
        return step or float(10.0 ** -float(self.decimals[feature]))

    def at_precision(self, values: Floats, feature: int) -> Floats:
        """Values of one feature as its column will hold them, bounds or no bounds."""
        scale = 10.0 ** float(self.decimals[feature])
        rounded: Floats = np.round(np.asarray(values, dtype=np.float64) * scale) / scale + 0.0
        return rounded.astype(np.float32).astype(np.float64) if self.single[feature] else rounded

    def contains(self, codes: Floats, counted: bool = True) -> Mask:
        """Which candidates (rows, K, features) keep every rule; without `counted` all but the number of changes."""
        rows, count, features = codes.shape
        kept = self.each_legal(np.arange(rows)[:, None], codes)
        if self.links is not None:
            flat = np.repeat(np.arange(rows), count)
            kept &= self.links.keeps(self, flat, codes.reshape(-1, features)).reshape(rows, count)
        return kept & self.count_kept(codes) if counted else kept

    def contains_own(self, rows: NDArray[np.intp], codes: Floats, counted: bool = True) -> Mask:
        """The same for candidates (N, features), each with the position of its row."""
        kept = self.each_legal(rows, codes)
        if self.links is not None:
            kept &= self.links.keeps(self, rows, codes)
        return kept & self._count_kept(rows, codes) if counted else kept

    def links_kept(self, rows: NDArray[np.intp], codes: Floats) -> Mask:
        """Which candidates (N, features) keep the rules between features and the number of changes."""
        kept = self._count_kept(rows, codes)
        return kept if self.links is None else kept & self.links.keeps(self, rows, codes)

    def each_legal(self, rows: NDArray[np.intp], codes: Floats) -> Mask:
        """Which candidates keep the rules about each feature by itself; `rows` says whose they are."""
        as_it_is = codes == self.base[rows]
        if self.base_legal is not None:
            as_it_is &= self.base_legal[rows]
        if self.row_legal is not None:
            as_it_is |= (codes == self.row[rows]) & self.row_legal[rows]
        legal = self.may_move[rows] & (codes >= self.lower[rows]) & (codes <= self.upper[rows])
        legal &= ~self.integer | (codes == np.round(codes))
        for feature in self.allowed:
            legal[..., feature] &= self._category_open(feature, rows, codes[..., feature].astype(np.intp))
        if self.step is not None:
            legal &= self._on_grid(rows, codes)
        if self.gaps is not None:
            legal = np.where(codes == self.gaps.code, self.may_move[rows] & self.gaps.appears, legal)
        return np.asarray((as_it_is | legal).all(axis=-1))

    def _on_grid(self, rows: NDArray[np.intp], codes: Floats) -> Mask:
        """A value is on its feature's grid if rounding leaves it alone."""
        step = np.zeros(codes.shape[-1]) if self.step is None else self.step
        kept = np.ones(codes.shape, dtype=bool)
        each = np.broadcast_to(rows, codes.shape[:-1]).ravel()
        for j in map(int, np.flatnonzero(step > 0)):
            value = codes[..., j]
            kept[..., j] = value == self.round_flat(value.ravel(), j, each).reshape(value.shape)
        return kept

    def count_kept(self, codes: Floats) -> Mask:
        """Which candidates (rows, K, features) differ from the row in no more features than they may."""
        return self._count_kept(np.arange(len(codes))[:, None], codes)

    def _count_kept(self, rows: NDArray[np.intp], codes: Floats) -> Mask:
        if self.most_changes is None:
            return np.ones(codes.shape[:-1], dtype=bool)
        changed = codes != self.row[rows]
        if self.counted is not None:
            changed &= self.counted
        return np.asarray(changed.sum(axis=-1) <= self.most_changes)

    def complete(self, codes: Floats) -> Floats:
        """Candidates (rows, K, features) with the features that follow from others set."""
        if self.links is None:
            return codes
        rows, count, features = codes.shape
        flat = np.repeat(np.arange(rows), count)
        return self.links.complete(self, flat, codes.reshape(-1, features)).reshape(codes.shape)

    def complete_own(self, rows: NDArray[np.intp], codes: Floats) -> Floats:
        """The same for candidates (N, features), each with the position of its row."""
        return codes if self.links is None else self.links.complete(self, rows, codes)


def _some(values: Any, rows: NDArray[np.intp]) -> Any:
    return None if values is None else values[rows]


def _to_grid(values: Floats, lower: Floats, upper: Floats, step: Floats, anchor: Floats) -> Floats:
    """The nearest anchor + k * step inside the bounds, written without the last bits' noise; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        low, high = np.ceil((lower - anchor) / step - SLACK), np.floor((upper - anchor) / step + SLACK)
        found = anchor + np.clip(np.round((values - anchor) / step), low, high) * step
        found = np.clip(tidy(found), lower, upper)
    return np.where(low <= high, found, np.nan)


def tidy(values: Floats) -> Floats:
    """Without the noise of floating point: 0.30000000000000004 is 0.3."""
    with np.errstate(invalid="ignore"):
        short = np.round(values, 9)
        near = np.abs(short - values) <= 1e-12 * np.maximum(1.0, np.abs(values))
    return np.where(near, short, values) + 0.0


def _to_single(values: Floats, lower: Floats, upper: Floats) -> Floats:
    """The 32-bit float a column will hold, one step inward where rounding would leave the bounds."""
    single = values.astype(np.float32)
    single = np.where(single > upper, np.nextafter(single, np.float32(-np.inf)), single)
    single = np.where(single < lower, np.nextafter(single, np.float32(np.inf)), single)
    return single.astype(np.float64)


def carry_movement(codec: Codec, domain: Domain, before: Floats, after: Floats) -> Floats:
    """Codes that differ from the row by what the decoder moved, not by what it reconstructs badly.

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
    for block in codec.gaps:
        own_gap = domain.base[:, None, block.feature] == MISSING
        missing = (moved[..., block.columns].argmax(axis=-1) == 1) & (own_gap | domain.may_go(np.array([block.feature])))
        number = numbers[..., np.searchsorted(codec.numeric, block.feature)]
        there = np.where(own_gap, number, codes[..., block.feature])
        codes[..., block.feature] = np.where(missing, MISSING, there)
    return domain.project(codes)


def decode_plainly(codec: Codec, domain: Domain, after: Floats) -> Floats:
    """The paper's plain reading: the decoder's output itself, made legal."""
    return domain.project(codec.decode(after))


def _likeliest(scores: Floats, block: Block, domain: Domain) -> Floats:
    """The allowed category with the highest score; a row's own rare category without a column stays."""
    own = domain.base[:, block.feature].astype(np.intp)
    open_to_row = domain.open_to(block.feature)[:, block.codes] | (block.codes[None, :] == own[:, None])
    best = np.where(open_to_row[:, None, :], scores, -np.inf).argmax(axis=-1)
    highest = np.take_along_axis(scores, best[..., None], axis=-1)[..., 0]
    unlisted = (block.slot_of[own] < 0)[:, None] & (highest < 1.0)
    return np.where(unlisted, own[:, None], block.codes[best]).astype(np.float64)
