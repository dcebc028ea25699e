"""Distances between a row and its counterfactual.

gower       the sum of |change| / range in the training data, and 1 per changed category
mad         the paper's, by the formula of CERTIFAI: share of numeric columns * Euclidean norm of |change| / median absolute
            deviation, plus share of categorical columns * share of categories changed
euclidean   the Euclidean norm of |change| / standard deviation, and 1 per changed category
percentile  the sum of the share of training rows between the two values, a cost in the tails, and 1 per changed category

A number that becomes missing or is filled costs the same as a changed category. Values near the median cost slightly less to
fill with. A change against the direction the schema prefers costs a declared factor more (`Schema.cost_factors`).
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Literal

import numpy as np

from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.errors import InputError, unknown
from fasterce.kernels.arrays import Int64s
from fasterce.kernels.edits import write_curve_costs
from fasterce.typing import Floats, Indices, Mask

Costs = Literal["percentile", "gower", "mad", "euclidean"] | Mapping[Hashable, float]

NAMES = ("percentile", "gower", "mad", "euclidean")
DIGITS = 9
TAIL = 2.0
FREQUENT = 3
TIE = 1e-6


@dataclass(frozen=True)
class Curve:
    """An increasing function of a number: linear between knots and, with `slope`, beyond them."""

    feature: int
    knots: Floats
    heights: Floats
    slope: float

    def at(self, values: Floats) -> Floats:
        inside = np.interp(values, self.knots, self.heights)
        beyond = values - np.clip(values, self.knots[0], self.knots[-1])
        return np.asarray(inside + self.slope * beyond)


@dataclass(frozen=True)
class Distance:
    """The sum of a cost per feature; for features that are `squared`, the root of the sum of the squares instead.

    weight  cost of one unit of a number (features,)
    flat    cost of a changed category (features,)
    curves  for numbers whose cost is the difference of a curve instead
    gap     cost of a number that becomes missing or is filled (features,), None if none may
    usual   values near which filling costs least (features,), None if all cost the same
    squared features whose costs enter by their squares (features,), None if none does
    factors cost factors of going down and up (2, features), None if both cost the same
    """

    weight: Floats
    flat: Floats
    curves: tuple[Curve, ...] = ()
    gap: Floats | None = None
    usual: Floats | None = None
    squared: Mask | None = None
    factors: Floats | None = None

    @classmethod
    def gower(cls, span: Floats, numeric: Indices, gappy: Indices | None = None) -> "Distance":
        weight, flat = np.zeros(len(span)), np.ones(len(span))
        gap = flat.copy() if gappy is not None and len(gappy) else None
        weight[numeric] = 1.0 / span[numeric]
        flat[numeric] = 0.0
        return cls(weight, flat, gap=gap)

    @classmethod
    def mad(cls, mad: Floats, numeric: Indices, gappy: Indices | None = None) -> "Distance":
        """Return the proximity of the paper, by the formula of CERTIFAI."""
        count = len(mad)
        weight, flat = np.zeros(count), np.full(count, 1.0 / count)
        gap = flat.copy() if gappy is not None and len(gappy) else None
        weight[numeric] = len(numeric) / count / mad[numeric]
        flat[numeric] = 0.0
        return cls(weight, flat, gap=gap, squared=flat == 0.0)

    @classmethod
    def euclidean(cls, std: Floats, numeric: Indices, gappy: Indices | None = None) -> "Distance":
        plain = cls.gower(std, numeric, gappy)
        return replace(plain, squared=np.ones(len(std), dtype=bool))

    @classmethod
    def percentile(cls, codec: Codec) -> "Distance":
        plain = cls.gower(codec.profile.span, codec.numeric, codec.nullable)
        return replace(
            plain, weight=np.zeros_like(plain.weight), curves=tuple(_percentile_curve(codec, int(j)) for j in codec.numeric)
        )

    def times(self, factors: Mapping[int, float]) -> "Distance":
        """Return the distance with the costs of some features multiplied by a factor."""
        factor = np.ones(len(self.flat))
        factor[list(factors)] = list(factors.values())
        curves = [
            replace(curve, heights=curve.heights * factor[curve.feature], slope=curve.slope * factor[curve.feature])
            for curve in self.curves
        ]
        gap = None if self.gap is None else self.gap * factor
        return replace(self, weight=self.weight * factor, flat=self.flat * factor, curves=tuple(curves), gap=gap)

    def filling_with(self, usual: Floats) -> "Distance":
        """Return the distance with a tiny cost for filling a number with a value far from the usual one."""
        return self if self.gap is None else replace(self, usual=usual)

    @property
    def graded(self) -> Mask:
        """Features whose cost grows with the change."""
        graded = self.weight > 0
        graded[[curve.feature for curve in self.curves]] = True
        return np.asarray(graded)

    def parts(self, codes: Floats, row: Floats) -> Floats:
        """Return the cost of the change of each feature; `row` broadcasts against `codes`."""
        price = self._directed(self._between(codes, row), codes, row)
        if self.gap is None:
            return price
        flipped = np.where(filled_or_emptied(codes, row), self.gap, price)
        if self.usual is None:
            return flipped
        return flipped + TIE * np.where((row == MISSING) & (codes != MISSING), self._between(codes, self.usual), 0.0)

    def _directed(self, price: Floats, codes: Floats, row: Floats, feature: Indices | None = None) -> Floats:
        """Return prices times the factors of their directions; `feature` if the columns are single edits."""
        if self.factors is None:
            return price
        down, up = self.factors if feature is None else self.factors[:, feature]
        return np.asarray(price * np.where(codes > row, up, np.where(codes < row, down, 1.0)))

    def _between(self, codes: Floats, row: Floats) -> Floats:
        change = np.abs(codes - row)
        price = np.ascontiguousarray(change * self.weight + (change > 0) * self.flat)
        if self.curves:
            # Copies: a view that repeats rows can only be read, which is another type to the kernel.
            after, before = (np.array(np.broadcast_to(one, price.shape)).reshape(-1, price.shape[-1]) for one in (codes, row))
            write_curve_costs(after, before, *self.curve_arrays, price.reshape(after.shape))
        return price

    @cached_property
    def curve_arrays(self) -> tuple[Int64s, Floats, Floats, Floats]:
        """Return where the knots of each feature begin (features + 1,), the knots, heights, and slopes beyond (features,)."""
        known = {curve.feature: curve for curve in self.curves}
        counts = [len(known[j].knots) if j in known else 0 for j in range(len(self.flat))]
        knots = np.concatenate([np.zeros(0), *(known[j].knots for j in sorted(known))])
        heights = np.concatenate([np.zeros(0), *(known[j].heights for j in sorted(known))])
        slope = np.array([known[j].slope if j in known else 0.0 for j in range(len(self.flat))])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), knots, heights, slope

    def shrinkable(self, codes: Floats, row: Floats) -> Floats:
        """Return the part of the cost that a smaller change would save: none between missing and a value."""
        price = self.parts(codes, row) * self.graded
        return price if self.gap is None else np.where(filled_or_emptied(codes, row), 0.0, price)

    def total(self, codes: Floats, row: Floats) -> Floats:
        """Return the distance, rounded so that ties are broken in the same way in every batch."""
        parts = self.parts(codes, row)
        if self.squared is None:
            return np.asarray(np.round(parts.sum(axis=-1), DIGITS))
        root = np.sqrt((parts[..., self.squared] ** 2).sum(axis=-1))
        return np.asarray(np.round(parts[..., ~self.squared].sum(axis=-1) + root, DIGITS))

    def single(self, feature: Indices, value: Floats, row: Floats) -> Floats:
        """Return the cost of single edits: `feature` (S,), `value` (rows, S)."""
        price = self._directed(self._between_singles(feature, value, row), value, row[:, feature], feature)
        if self.gap is not None:
            own = row[:, feature]
            price = np.where(filled_or_emptied(value, own), self.gap[feature], price)
            if self.usual is not None:
                from_usual = self._between_singles(feature, value, self.usual[None])
                price = price + TIE * np.where((own == MISSING) & (value != MISSING), from_usual, 0.0)
        return np.asarray(np.round(price, DIGITS))

    def _between_singles(self, feature: Indices, value: Floats, row: Floats) -> Floats:
        change = np.abs(value - row[:, feature])
        price = change * self.weight[feature] + (change > 0) * self.flat[feature]
        for curve in self.curves:
            columns = feature == curve.feature
            own = curve.at(row[:, curve.feature])[:, None]
            price[:, columns] = np.abs(curve.at(value[:, columns]) - own)
        return np.asarray(price)


def choose(distance: Costs, codec: Codec, known: dict[str, Distance] | None = None) -> Distance:
    """Return the distance of the option `distance`: a name, or factors by column.

    `known` are distances of earlier calls by name; those that are made are added.
    """
    if isinstance(distance, Mapping):
        return choose("percentile", codec, known).times(_factors(distance, codec))
    if distance not in NAMES:
        raise InputError(unknown("options.unknown_choice", distance, NAMES, option="distance"))
    known = {} if known is None else known
    if distance not in known:
        known[distance] = _named(distance, codec)
    return known[distance]


def _named(name: str, codec: Codec) -> Distance:
    if name == "percentile":
        found = Distance.percentile(codec)
    elif name == "gower":
        found = Distance.gower(codec.profile.span, codec.numeric, codec.nullable)
    elif name == "euclidean":
        found = Distance.euclidean(codec.profile.std, codec.numeric, codec.nullable)
    else:
        found = Distance.mad(codec.profile.mad, codec.numeric, codec.nullable)
    return replace(found.filling_with(codec.profile.median), factors=codec.schema.cost_factors())


def _factors(distance: Mapping[Hashable, float], codec: Codec) -> dict[int, float]:
    names = list(codec.schema.names)
    factors: dict[int, float] = {}
    for name, factor in distance.items():
        if name not in names:
            raise InputError("search.unknown_distance_column", option="distance", expected=names[:3], received=name)
        if isinstance(factor, bool) or not isinstance(factor, Real) or not 0 < float(factor) < float("inf"):
            raise InputError("search.not_a_factor", option="distance", column=name, received=factor)
        factors[names.index(name)] = float(factor)
    return factors


def filled_or_emptied(codes: Floats, row: Floats) -> Mask:
    """Return which numbers are missing on one side and not on the other."""
    return np.asarray((codes == MISSING) != (row == MISSING))


def _percentile_curve(codec: Codec, j: int) -> Curve:
    """Return the share of training rows below a value, half of those at the same value included.

    Leaving a value that many rows share, such as a capital gain of zero, passes all of them at once. In the outermost percent
    there are hardly any rows, so the change itself is charged.
    """
    levels, span = codec.profile.levels[j], float(codec.profile.span[j])
    values, count = np.unique(levels, return_counts=True)
    upto = np.cumsum(count) / len(levels)
    knots, heights = [], []
    gap = np.diff(values, prepend=values[0] - span, append=values[-1] + span)
    for k, value in enumerate(values):
        step = min(10.0 ** -codec.schema.features[j].decimals, gap[k] / 3, gap[k + 1] / 3)
        frequent = count[k] >= FREQUENT
        before, here, after = upto[k] - count[k] / len(levels), upto[k] - count[k] / len(levels) / 2, upto[k]
        knots += [value - step, value, value + step] if frequent else [value]
        heights += [before, here, after] if frequent else [here]
    x, y = np.array(knots), np.array(heights)
    low, high = levels[1], levels[-2]
    tail = np.maximum(x - high, 0.0) - np.maximum(low - x, 0.0)
    return Curve(j, x, y + TAIL * tail / span, TAIL / span)
