"""How far a counterfactual is from the row: a price for every feature's change, added up.

gower       |change| / range in the training data, and 1 for a changed category
mad         the paper's: |change| / median absolute deviation, averaged over numbers, plus the share of categories changed
percentile  the share of people one has to pass, dearer in the thin tails, and 1 for a changed category

A number that goes missing or is filled costs what a changed category costs. Of values to fill it with, those nearer to the
usual one come first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.schema import MISSING

DIGITS = 9
TAIL = 2.0
CROWD = 3
TIE = 1e-6

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Curve:
    """A number's place on a scale that rises with it: straight between knots and, with the end's slope, beyond them."""

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
    """`weight` (features,): price of one unit of a number; categories cost `flat` when they change. Numbers with a curve
    are priced along it instead. `gap` (features,): price of a number that goes missing or is filled, None where none may;
    `usual` (features,): the values near which it is best filled, None where any is as good."""

    weight: Floats
    flat: Floats
    curves: tuple[Curve, ...] = ()
    gap: Floats | None = None
    usual: Floats | None = None

    @classmethod
    def gower(cls, span: Floats, numeric: Indices, gappy: Indices | None = None) -> "Distance":
        weight, flat = np.zeros(len(span)), np.ones(len(span))
        gap = flat.copy() if gappy is not None and len(gappy) else None
        weight[numeric] = 1.0 / span[numeric]
        flat[numeric] = 0.0
        return cls(weight, flat, gap=gap)

    @classmethod
    def mad(cls, mad: Floats, numeric: Indices, gappy: Indices | None = None) -> "Distance":
        weight, flat = np.zeros(len(mad)), np.full(len(mad), 1.0 / max(len(mad) - len(numeric), 1))
        gap = flat.copy() if gappy is not None and len(gappy) else None
        weight[numeric] = 1.0 / (mad[numeric] * max(len(numeric), 1))
        flat[numeric] = 0.0
        return cls(weight, flat, gap=gap)

    @classmethod
    def percentile(cls, codec: Codec) -> "Distance":
        plain = cls.gower(codec.profile.span, codec.numeric, codec.gappy)
        return replace(plain, weight=np.zeros_like(plain.weight), curves=tuple(_crowd(codec, int(j)) for j in codec.numeric))

    def times(self, factors: Mapping[int, float]) -> "Distance":
        """The same, with some features so many times as dear."""
        factor = np.ones(len(self.flat))
        factor[list(factors)] = list(factors.values())
        curves = [
            replace(curve, heights=curve.heights * factor[curve.feature], slope=curve.slope * factor[curve.feature])
            for curve in self.curves
        ]
        gap = None if self.gap is None else self.gap * factor
        return Distance(self.weight * factor, self.flat * factor, tuple(curves), gap, self.usual)

    def filling_with(self, usual: Floats) -> "Distance":
        """The same, with a trifle added for filling a number with a value far from the usual one."""
        return self if self.gap is None else replace(self, usual=usual)

    @property
    def graded(self) -> Mask:
        """Features whose price grows with the change."""
        graded = self.weight > 0
        graded[[curve.feature for curve in self.curves]] = True
        return np.asarray(graded)

    def parts(self, codes: Floats, row: Floats) -> Floats:
        """The price of each feature's change; `row` broadcasts against `codes`."""
        price = self._between(codes, row)
        if self.gap is None:
            return price
        flipped = np.where(filled_or_emptied(codes, row), self.gap, price)
        if self.usual is None:
            return flipped
        return flipped + TIE * np.where((row == MISSING) & (codes != MISSING), self._between(codes, self.usual), 0.0)

    def _between(self, codes: Floats, row: Floats) -> Floats:
        change = np.abs(codes - row)
        price = change * self.weight + (change > 0) * self.flat
        for curve in self.curves:
            j = curve.feature
            price[..., j] = np.abs(curve.at(codes[..., j]) - curve.at(row[..., j]))
        return np.asarray(price)

    def shrinkable(self, codes: Floats, row: Floats) -> Floats:
        """Of the price what a smaller change would save: there is nothing between missing and a value."""
        price = self.parts(codes, row) * self.graded
        return price if self.gap is None else np.where(filled_or_emptied(codes, row), 0.0, price)

    def total(self, codes: Floats, row: Floats) -> Floats:
        """Rounded, so that candidates at the same distance tie the same way in every batch."""
        return np.asarray(np.round(self.parts(codes, row).sum(axis=-1), DIGITS))

    def single(self, feature: Indices, value: Floats, row: Floats) -> Floats:
        """The price of single changes: `feature` (S,), `value` (rows, S)."""
        price = self._between_singles(feature, value, row)
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


def filled_or_emptied(codes: Floats, row: Floats) -> Mask:
    """Which numbers are missing on one side and not on the other."""
    return np.asarray((codes == MISSING) != (row == MISSING))


def _crowd(codec: Codec, j: int) -> Curve:
    """Where a value stands among people: half of those at the same value count as passed.

    Leaving a value many share, such as no capital gain at all, means passing all of them at once. In the outermost
    percent there is hardly anyone to pass, so the way itself is charged.
    """
    levels, span = codec.profile.levels[j], float(codec.profile.span[j])
    values, count = np.unique(levels, return_counts=True)
    upto = np.cumsum(count) / len(levels)
    knots, heights = [], []
    gap = np.diff(values, prepend=values[0] - span, append=values[-1] + span)
    for k, value in enumerate(values):
        step = min(10.0 ** -codec.schema.features[j].decimals, gap[k] / 3, gap[k + 1] / 3)
        crowd = count[k] >= CROWD
        before, here, after = upto[k] - count[k] / len(levels), upto[k] - count[k] / len(levels) / 2, upto[k]
        knots += [value - step, value, value + step] if crowd else [value]
        heights += [before, here, after] if crowd else [here]
    x, y = np.array(knots), np.array(heights)
    low, high = levels[1], levels[-2]
    tail = np.maximum(x - high, 0.0) - np.maximum(low - x, 0.0)
    return Curve(j, x, y + TAIL * tail / span, TAIL / span)
