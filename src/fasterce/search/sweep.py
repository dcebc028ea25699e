"""One feature at a time: the paper's 'vary a alone until it flips', for all features and rows in one question."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.search.distance import Distance
from fasterce.search.judge import Edits, Indices, Mask, Verdict
from fasterce.search.project import Domain
from fasterce.search.task import Task

COARSE, FEWEST, COARSE_IN_ALL = 11, 5, 700
DENSE, DENSE_IN_ALL = 24, 700
FINE, FINE_IN_ALL = 129, 1500
TIE = 1e-6


def coarse_levels(codec: Codec) -> tuple[Indices, Floats]:
    """Which values to try for everyone: quantiles over people and over distinct values, and every frequent category."""
    return _thinned(codec, _levels_each(codec, COARSE_IN_ALL, COARSE))


def dense_levels(codec: Codec) -> tuple[Indices, Floats]:
    """The same but more of them, where ranking them costs no question."""
    return _thinned(codec, _levels_each(codec, DENSE_IN_ALL, DENSE))


def _thinned(codec: Codec, count: int) -> tuple[Indices, Floats]:
    numbers = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        merged = _quantiles(codec, int(j), count)
        numbers[j] = merged[np.unique(np.round(np.linspace(0, len(merged) - 1, count)).astype(np.intp))]
    for block in codec.blocks:
        numbers[block.feature] = block.codes.astype(np.float64)
    return _listed(numbers)


def fine_levels(codec: Codec) -> tuple[Indices, Floats]:
    """For the few rows where that finds nothing: many more values, and every category anyone has."""
    count = _levels_each(codec, FINE_IN_ALL, FINE)
    values = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        values[j] = _quantiles(codec, int(j), count)
    for j, share in codec.shares.items():
        values[j] = np.flatnonzero(share > 0).astype(np.float64)
    return _listed(values)


def _levels_each(codec: Codec, in_all: int, most: int) -> int:
    """Fewer levels a feature where there are many features: questions cost memory and the model's time."""
    return int(np.clip(in_all // max(len(codec.numeric), 1), FEWEST, most))


def _quantiles(codec: Codec, j: int, count: int) -> Floats:
    pick = np.round(np.linspace(0, codec.profile.levels.shape[1] - 1, count)).astype(np.intp)
    return np.unique(np.concatenate([codec.profile.levels[j, pick], codec.profile.spread[j, pick]]))


def _listed(values: list[Floats]) -> tuple[Indices, Floats]:
    feature = np.repeat(np.arange(len(values)), [len(some) for some in values])
    return feature.astype(np.intp), np.concatenate(values)


def coarse(task: Task) -> Edits:
    return edits(task.domain, coarse_levels(task.knowledge.codec))


def fine(task: Task, examples: Floats) -> Edits:
    """Fine levels, and each value that an example (rows, K, features) has."""
    rows, count, features = examples.shape
    feature = np.tile(np.arange(features), count)
    value = examples.reshape(rows, count * features)
    return edits(task.domain, fine_levels(task.knowledge.codec)) + Edits(
        task.domain.base, feature, value, _legal(task.domain, feature, value)
    )


def edits(domain: Domain, levels: tuple[Indices, Floats]) -> Edits:
    """The levels that are legal and different for each row, and the ends of its own range."""
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
    legal = domain.free[:, feature] & (values != domain.base[:, feature]) & np.isfinite(values)
    legal &= (values >= domain.lower[:, feature]) & (values <= domain.upper[:, feature])
    for j, allowed in domain.allowed.items():
        column = np.flatnonzero(feature == j)
        legal[:, column] &= allowed[values[:, column].astype(np.intp)]
    return np.asarray(legal)


@dataclass(frozen=True)
class Singles:
    """For every row and feature the cheapest value that flips alone.

    cost (rows, features) is inf where none does; `floor` is the nearest value between base and it that does not flip.
    """

    cost: Floats
    value: Floats
    floor: Floats

    def pool(self, base: Floats, most: int) -> tuple[Floats, Floats, Mask]:
        """The `most` cheapest as candidates (rows, most, features), their floors, and which exist."""
        order = np.argsort(self.cost, axis=1, kind="stable")[:, :most]
        codes = np.repeat(base[:, None, :], order.shape[1], axis=1)
        floors = codes.copy()
        index = order[:, :, None]
        np.put_along_axis(codes, index, np.take_along_axis(self.value, order, 1)[:, :, None], axis=2)
        np.put_along_axis(floors, index, np.take_along_axis(self.floor, order, 1)[:, :, None], axis=2)
        return codes, floors, np.isfinite(np.take_along_axis(self.cost, order, 1))


def cheapest(asked: Edits, verdict: Verdict, domain: Domain, distance: Distance) -> Singles:
    """Nearest first; of categories at the same price, the one the model is surest of."""
    cost = np.where(verdict.valid, distance.single(asked.feature, asked.value, domain.row), np.inf)
    sure = np.tanh(np.where(verdict.valid, verdict.margin, 0.0)) * distance.flat[asked.feature]
    ranked = cost - TIE * sure
    rows, features = domain.base.shape
    best, value, floor = np.full((rows, features), np.inf), domain.base.copy(), domain.base.copy()
    every = np.arange(rows)
    for j in np.unique(asked.feature):
        columns = np.flatnonzero(asked.feature == j)
        pick = columns[ranked[:, columns].argmin(axis=1)]
        best[:, j], value[:, j] = cost[every, pick], asked.value[every, pick]
        if j in domain.numeric:
            floor[:, j] = _last_before(asked.value[:, columns], asked.open[:, columns], domain.base[:, j], value[:, j])
    return Singles(best, np.where(np.isfinite(best), value, domain.base), floor)


def _last_before(values: Floats, open_: Mask, base: Floats, found: Floats) -> Floats:
    """Of the values asked strictly between base and the one found, the one next to it; base if there is none."""
    offset, reach = values - base[:, None], found - base
    between = open_ & (np.sign(offset) == np.sign(reach)[:, None]) & (np.abs(offset) < np.abs(reach)[:, None])
    farthest = np.where(between, np.abs(offset), 0.0).max(axis=1)
    return np.asarray(base + np.sign(reach) * farthest)


def gains(verdict: Verdict, start: NDArray[np.float64]) -> Floats:
    """How much of the way to the boundary each single change goes, in units of margin."""
    return np.where(np.isfinite(verdict.margin), verdict.margin - start[:, None], -np.inf)


def nearest_level(codec: Codec) -> Indices:
    """For every edit made of the fine levels the position of the coarse edit of the same feature with the nearest value;
    -1 for the ends of a row's own range."""
    (coarse, coarse_value), (fine, fine_value) = (_laid_out(codec, some(codec)) for some in (coarse_levels, fine_levels))
    near = np.full(len(fine), -1, dtype=np.intp)
    for j in np.unique(fine):
        mine = np.flatnonzero((fine == j) & np.isfinite(fine_value))
        known = np.flatnonzero((coarse == j) & np.isfinite(coarse_value))
        if known.size:
            near[mine] = known[np.abs(fine_value[mine][:, None] - coarse_value[known]).argmin(axis=1)]
    return near


def _laid_out(codec: Codec, levels: tuple[Indices, Floats]) -> tuple[Indices, Floats]:
    """Levels in the order `edits` puts them, with NaN for the ends that differ from row to row."""
    feature, value = levels
    numeric, ends = np.isin(feature, codec.numeric), codec.numeric
    gaps = np.full(2 * len(ends), np.nan)
    order = np.concatenate([feature[numeric], ends, ends, feature[~numeric]])
    return order, np.concatenate([value[numeric], gaps, value[~numeric]])


def unlisted(codec: Codec, feature: Indices, value: Floats) -> Mask:
    """Which edits (rows, S) lead to a category too rare for a column of its own."""
    rare = np.zeros(value.shape, dtype=bool)
    for block in codec.blocks:
        columns = np.flatnonzero(feature == block.feature)
        rare[:, columns] = block.slot_of[value[:, columns].astype(np.intp)] < 0
    return rare
