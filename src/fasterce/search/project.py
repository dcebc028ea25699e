"""What a row may become, held exactly: frozen features, ranges, one-way features, whole numbers, allowed categories."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Block, Codec
from fasterce.profile import Floats
from fasterce.schema import MISSING

Mask = NDArray[np.bool_]

STILL = 0.02


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
    free     may this feature differ from `base`
    lower, upper   bounds, for ordered categories on their position
    allowed  for each categorical feature (by its position) the categories open to everyone
    decimals, integer, single   (features,) precision; `single` marks columns stored as 32-bit floats
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
    gaps: Gaps | None = None

    def take(self, rows: NDArray[np.intp]) -> "Domain":
        return Domain(
            self.row[rows],
            self.base[rows],
            self.free[rows],
            self.lower[rows],
            self.upper[rows],
            self.allowed,
            self.decimals,
            self.integer,
            self.single,
            self.numeric,
            self.gaps,
        )

    def project(self, points: Floats) -> Floats:
        """The nearest legal row for every candidate (rows, K, features)."""
        codes = points.copy()
        j = self.numeric
        own = self.base[:, None, j]
        codes[..., j] = np.where(points[..., j] == own, own, self.round(points[..., j], j))
        for feature, allowed in self.allowed.items():
            code = codes[..., feature].astype(np.intp)
            legal = allowed[code] & (code >= self.lower[:, None, feature]) & (code <= self.upper[:, None, feature])
            codes[..., feature] = np.where(legal, code, self.base[:, None, feature])
        if self.gaps is not None:
            stays = np.where(self.gaps.appears, self.gaps.code, self.base[:, None, :])
            codes = np.where(points == self.gaps.code, stays, codes)
        return np.where(self.free[:, None, :], codes, self.base[:, None, :])

    def round(self, values: Floats, features: NDArray[np.intp]) -> Floats:
        """Values (rows, ..., features) at each feature's precision and inside its bounds."""
        middle = (slice(None), *[None] * (values.ndim - 2), features)
        return self._round(values, self.lower[middle], self.upper[middle], features)

    def round_own(self, values: Floats, features: NDArray[np.intp]) -> Floats:
        """The same for values (rows, R, sections) of one feature (rows, R) each."""
        row = np.arange(len(values))[:, None]
        lower, upper = self.lower[row, features][..., None], self.upper[row, features][..., None]
        return self._round(values, lower, upper, features[..., None])

    def _round(self, values: Floats, lower: Floats, upper: Floats, features: NDArray[np.intp]) -> Floats:
        """Only where no value of the feature's precision lies inside does the bound itself stand in."""
        scale = 10.0 ** self.decimals[features]
        slack = np.where(self.integer[features], 0.0, 1e-9)
        low, high = np.ceil(lower * scale - slack) / scale, np.floor(upper * scale + slack) / scale
        inside = low <= high
        rounded = np.clip(np.round(values * scale) / scale, np.where(inside, low, lower), np.where(inside, high, upper))
        rounded = np.clip(rounded, lower, upper)
        if self.single[features].any():
            rounded = np.where(self.single[features], _to_single(rounded, lower, upper), rounded)
        return np.asarray(rounded if self.gaps is None else np.where(values == MISSING, MISSING, rounded))

    def contains(self, codes: Floats) -> Mask:
        """Which candidates (rows, K, features) keep every rule."""
        unchanged = codes == self.base[:, None, :]
        legal = unchanged | (self.free[:, None, :] & (codes >= self.lower[:, None, :]) & (codes <= self.upper[:, None, :]))
        whole = unchanged | ~self.integer | (codes == np.round(codes))
        for feature, allowed in self.allowed.items():
            legal[..., feature] &= unchanged[..., feature] | allowed[codes[..., feature].astype(np.intp)]
        if self.gaps is not None:
            legal = np.where(codes == self.gaps.code, unchanged | self.may_go(np.arange(codes.shape[-1]))[:, None], legal)
        return np.asarray((legal & whole).all(axis=-1))

    def may_go(self, features: NDArray[np.intp]) -> Mask:
        """Which of these features (S,) may go missing in each row (rows, S)."""
        appears = np.zeros(len(features), dtype=bool) if self.gaps is None else self.gaps.appears[features]
        return np.asarray(self.free[:, features] & appears)


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
    allowed = domain.allowed[block.feature][block.codes]
    open_to_row = allowed[None, :] | (block.codes[None, :] == own[:, None])
    best = np.where(open_to_row[:, None, :], scores, -np.inf).argmax(axis=-1)
    highest = np.take_along_axis(scores, best[..., None], axis=-1)[..., 0]
    unlisted = (block.slot_of[own] < 0)[:, None] & (highest < 1.0)
    return np.where(unlisted, own[:, None], block.codes[best]).astype(np.float64)
