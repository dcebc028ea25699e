"""Vary one feature at a time, for all features and rows in one evaluation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.domain import Domain
from fasterce.data.codec import Codec
from fasterce.search.context import SearchContext
from fasterce.search.distance import Distance, filled_or_emptied
from fasterce.search.judge import Edits, Verdict
from fasterce.search.levels import Levels
from fasterce.typing import Floats, Indices, Mask

TIE = 1e-6


def coarse(context: SearchContext) -> Edits:
    return edits(context.domain, context.state.coarse_levels)


def fine(context: SearchContext, examples: Floats) -> Edits:
    """Return the fine levels, and each value of the examples (rows, K, features)."""
    rows, count, features = examples.shape
    feature = np.tile(np.arange(features), count)
    value = examples.reshape(rows, count * features)
    return edits(context.domain, context.state.fine_levels) + Edits(
        context.domain.base, feature, value, _legal(context.domain, feature, value)
    )


def edits(domain: Domain, levels: Levels) -> Edits:
    """Return the levels that are legal and different for each row, and the ends of its own range."""
    feature, value = levels
    ends = domain.numeric
    numeric = np.isin(feature, ends)
    feature = np.concatenate([feature[numeric], ends, ends, feature[~numeric]])
    rows = len(domain.base)
    wanted = np.broadcast_to(value[numeric], (rows, int(numeric.sum())))
    numbers = np.concatenate([wanted, domain.lower[:, ends], domain.upper[:, ends]], axis=1)
    numbers = domain.round(numbers, feature[: numbers.shape[1]])
    codes = np.broadcast_to(value[~numeric], (rows, int((~numeric).sum())))
    values = np.concatenate([numbers, codes], axis=1)
    return Edits(domain.base, feature, values, _legal(domain, feature, values))


def _legal(domain: Domain, feature: Indices, values: Floats) -> Mask:
    different = (values != domain.base[:, feature]) & np.isfinite(values)
    return np.asarray(domain.legal_values(feature, values) & different)


@dataclass(frozen=True)
class Singles:
    """The cheapest value per row and feature that reaches the target alone.

    cost (rows, features) is inf where none does; `floor` is the nearest value between the base and it that does not.
    """

    cost: Floats
    value: Floats
    floor: Floats

    def pool(self, base: Floats, most: int) -> tuple[Floats, Floats, Mask]:
        """Return the `most` cheapest as candidates (rows, most, features), their floors, and which exist."""
        order = np.argsort(self.cost, axis=1, kind="stable")[:, :most]
        codes = np.repeat(base[:, None, :], order.shape[1], axis=1)
        floors = codes.copy()
        index = order[:, :, None]
        np.put_along_axis(codes, index, np.take_along_axis(self.value, order, 1)[:, :, None], axis=2)
        np.put_along_axis(floors, index, np.take_along_axis(self.floor, order, 1)[:, :, None], axis=2)
        return codes, floors, np.isfinite(np.take_along_axis(self.cost, order, 1))


def cheapest(swept: Edits, verdict: Verdict, domain: Domain, distance: Distance) -> Singles:
    """Return the cheapest value per row and feature; of categories at the same cost, the one with the largest margin."""
    cost = np.where(verdict.valid, distance.single(swept.feature, swept.value, domain.row), np.inf)
    sure = np.tanh(np.where(verdict.valid, verdict.margin, 0.0)) * distance.flat[swept.feature]
    ranked = cost - TIE * sure
    rows, features = domain.base.shape
    best, value, floor = np.full((rows, features), np.inf), domain.base.copy(), domain.base.copy()
    every = np.arange(rows)
    for j in np.unique(swept.feature):
        columns = np.flatnonzero(swept.feature == j)
        pick = columns[ranked[:, columns].argmin(axis=1)]
        best[:, j], value[:, j] = cost[every, pick], swept.value[every, pick]
        if j in domain.numeric:
            floor[:, j] = _last_before(swept.value[:, columns], swept.open[:, columns], domain.base[:, j], value[:, j])
    return Singles(best, np.where(np.isfinite(best), value, domain.base), floor)


def _last_before(values: Floats, open_: Mask, base: Floats, found: Floats) -> Floats:
    """Return the last value evaluated strictly between the base and the one found; the base if there is none."""
    offset, reach = values - base[:, None], found - base
    between = open_ & (np.sign(offset) == np.sign(reach)[:, None]) & (np.abs(offset) < np.abs(reach)[:, None])
    farthest = np.where(between, np.abs(offset), 0.0).max(axis=1)
    return np.where(filled_or_emptied(found, base), base, base + np.sign(reach) * farthest)


def gains(verdict: Verdict, start: NDArray[np.float64]) -> Floats:
    """Return how much each edit increases the margin."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(verdict.margin), verdict.margin - start[:, None], -np.inf)


def unlisted(codec: Codec, feature: Indices, value: Floats) -> Mask:
    """Return which edits (rows, S) lead to a category too rare for a column of its own in the encoding."""
    rare = np.zeros(value.shape, dtype=bool)
    for block in codec.blocks:
        columns = np.flatnonzero(feature == block.feature)
        rare[:, columns] = block.slot_of[value[:, columns].astype(np.intp)] < 0
    return rare
