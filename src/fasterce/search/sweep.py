"""One feature at a time: the paper's 'vary a alone until it flips', for all features and rows in one question."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.search.distance import Distance, filled_or_emptied
from fasterce.search.goal import Indices, Mask
from fasterce.search.judge import Edits, Verdict
from fasterce.search.levels import Levels
from fasterce.search.project import Domain
from fasterce.search.task import Task

TIE = 1e-6


def coarse(task: Task) -> Edits:
    return edits(task.domain, task.knowledge.coarse_levels)


def fine(task: Task, examples: Floats) -> Edits:
    """Fine levels, and each value that an example (rows, K, features) has."""
    rows, count, features = examples.shape
    feature = np.tile(np.arange(features), count)
    value = examples.reshape(rows, count * features)
    return edits(task.domain, task.knowledge.fine_levels) + Edits(
        task.domain.base, feature, value, _legal(task.domain, feature, value)
    )


def edits(domain: Domain, levels: Levels) -> Edits:
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
    different = (values != domain.base[:, feature]) & np.isfinite(values)
    return np.asarray(domain.legal_values(feature, values) & different)


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
    return np.where(filled_or_emptied(found, base), base, base + np.sign(reach) * farthest)


def gains(verdict: Verdict, start: NDArray[np.float64]) -> Floats:
    """How much of the way to the boundary each single change goes, in units of margin."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(verdict.margin), verdict.margin - start[:, None], -np.inf)


def unlisted(codec: Codec, feature: Indices, value: Floats) -> Mask:
    """Which edits (rows, S) lead to a category too rare for a column of its own."""
    rare = np.zeros(value.shape, dtype=bool)
    for block in codec.blocks:
        columns = np.flatnonzero(feature == block.feature)
        rare[:, columns] = block.slot_of[value[:, columns].astype(np.intp)] < 0
    return rare
