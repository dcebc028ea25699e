"""Make a valid candidate smaller: drop changes that are not needed, shrink those that are.

Every step asks about all rows at once. Nothing here may make an answer invalid: a step is taken only if the model agrees.
"""

from dataclasses import dataclass

import numpy as np

from fasterce.profile import Floats
from fasterce.search.distance import Distance
from fasterce.search.judge import Candidates, Indices, Mask, Verdict
from fasterce.search.project import Domain

SECTIONS = 8


@dataclass(frozen=True)
class Pool:
    """A few candidates a row (rows, R, features), which of them are known to flip, their price, and for each numeric
    change the nearest smaller value known not to do."""

    codes: Floats
    valid: Mask
    cost: Floats
    floor: Floats

    @classmethod
    def start(cls, codes: Floats, valid: Mask, domain: Domain, distance: Distance, floor: Floats | None = None) -> "Pool":
        cost = np.where(valid, distance.total(codes, domain.row[:, None, :]), np.inf)
        base = np.broadcast_to(domain.base[:, None, :], codes.shape)
        return cls(codes, valid, cost, base.copy() if floor is None else floor)

    @classmethod
    def nothing(cls, base: Floats) -> "Pool":
        empty = np.zeros((len(base), 0))
        return cls(np.zeros((len(base), 0, base.shape[1])), empty > 0, empty, np.zeros((len(base), 0, base.shape[1])))

    @classmethod
    def among(cls, part: "Pool", rows: Indices, base: Floats) -> "Pool":
        """The pool of some rows laid among all, which have nothing."""
        count = part.codes.shape[1]
        codes = np.repeat(base[:, None, :], count, axis=1)
        floor, valid, cost = codes.copy(), np.zeros((len(base), count), dtype=bool), np.full((len(base), count), np.inf)
        codes[rows], floor[rows], valid[rows], cost[rows] = part.codes, part.floor, part.valid, part.cost
        return cls(codes, valid, cost, floor)

    def best(self, most: int) -> "Pool":
        order = np.argsort(self.cost, axis=1, kind="stable")[:, :most]
        return self.take(order)

    def distinct(self, base: Floats) -> "Pool":
        """Sorted by price, with only the cheapest of those that change the same features left valid."""
        pool = self.best(self.codes.shape[1])
        sets = np.random.default_rng(1).integers(1, 2**63, size=base.shape[1], dtype=np.uint64)
        key = ((pool.codes != base[:, None, :]) * sets).sum(axis=2, dtype=np.uint64)
        earlier = np.tril(np.ones((key.shape[1], key.shape[1]), dtype=bool), k=-1)
        repeated = ((key[:, :, None] == key[:, None, :]) & earlier & pool.valid[:, None, :]).any(axis=2)
        return Pool(pool.codes, pool.valid & ~repeated, np.where(repeated, np.inf, pool.cost), pool.floor)

    def different(self, base: Floats, most: int) -> "Pool":
        """The `most` cheapest, those last that change all a cheaper one does and more."""
        pool = self.best(self.codes.shape[1])
        changed = pool.codes != base[:, None, :]
        earlier = np.tril(np.ones((changed.shape[1], changed.shape[1]), dtype=bool), k=-1)
        contains = ~(changed[:, None, :, :] & ~changed[:, :, None, :]).any(axis=3)
        more = (contains & earlier & pool.valid[:, None, :]).any(axis=2)
        last = np.where(pool.valid, more, 2)
        return pool.take(np.argsort(last, axis=1, kind="stable")[:, :most]).best(most)

    def take(self, order: Indices) -> "Pool":
        deep = order[:, :, None]
        return Pool(
            np.take_along_axis(self.codes, deep, 1),
            np.take_along_axis(self.valid, order, 1),
            np.take_along_axis(self.cost, order, 1),
            np.take_along_axis(self.floor, deep, 1),
        )

    def __add__(self, other: "Pool") -> "Pool":
        return Pool(
            np.concatenate([self.codes, other.codes], axis=1),
            np.concatenate([self.valid, other.valid], axis=1),
            np.concatenate([self.cost, other.cost], axis=1),
            np.concatenate([self.floor, other.floor], axis=1),
        )


@dataclass(frozen=True)
class Parts:
    """The changed features of one candidate a row, padded: `feature` (rows, m), `used` tells padding from change."""

    codes: Floats
    feature: Indices
    used: Mask


def changed_parts(codes: Floats, valid: Mask, base: Floats) -> Parts:
    changed = (codes != base) & valid[:, None]
    most = int(changed.sum(axis=1).max(initial=0))
    order = np.argsort(~changed, axis=1, kind="stable")[:, :most]
    return Parts(codes, order, np.take_along_axis(changed, order, 1))


def one_by_one(parts: Parts, base: Floats) -> tuple[Candidates, Candidates]:
    """The candidate without each change, and the row with each change alone."""
    shape = (*parts.feature.shape, base.shape[1])
    index = parts.feature[:, :, None]
    without = np.broadcast_to(parts.codes[:, None, :], shape).copy()
    alone = np.broadcast_to(base[:, None, :], shape).copy()
    np.put_along_axis(without, index, np.take_along_axis(base, parts.feature, 1)[:, :, None], axis=2)
    np.put_along_axis(alone, index, np.take_along_axis(parts.codes, parts.feature, 1)[:, :, None], axis=2)
    several = parts.used & (parts.used.sum(axis=1) > 1)[:, None]
    return Candidates(without, several), Candidates(alone, several)


def keep_most_needed(parts: Parts, without: Verdict, alone: Verdict, base: Floats, price: Floats) -> Candidates:
    """Only the k most needed changes, for every k: ordered by need, then by need for the price."""
    need = np.where(parts.used, _finite(alone.margin) - _finite(without.margin), -np.inf)
    lowest = np.where(parts.used, need, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    highest = need.max(axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        relative = np.where(parts.used, (need - lowest) / np.maximum(highest - lowest, 1e-9), 0.0)
    worth = np.where(parts.used, relative / (0.05 + np.take_along_axis(price, parts.feature, 1)), -np.inf)
    families = [_prefixes(parts, np.argsort(-order, axis=1, kind="stable"), base) for order in (need, worth)]
    return Candidates(
        np.concatenate([family.codes for family in families], axis=1),
        np.concatenate([family.open for family in families], axis=1),
    )


def _prefixes(parts: Parts, order: Indices, base: Floats) -> Candidates:
    feature = np.take_along_axis(parts.feature, order, 1)
    used = np.take_along_axis(parts.used, order, 1)
    count = parts.used.sum(axis=1)
    codes, opened = [], []
    current = base.copy()
    every = np.arange(len(base))
    for k in range(feature.shape[1] - 1):
        j = feature[:, k]
        current = current.copy()
        current[every, j] = np.where(used[:, k], parts.codes[every, j], current[every, j])
        codes.append(current)
        opened.append(used[:, k] & (k + 1 < count))
    if not codes:
        return Candidates(np.zeros((len(base), 0, base.shape[1])), np.zeros((len(base), 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


@dataclass(frozen=True)
class Bracket:
    """For each candidate the one numeric change to shrink now: its feature (rows, R) and values (rows, R, sections)
    from the floor, known to be too small, up to where the change stands."""

    feature: Indices
    value: Floats
    candidates: Candidates


def bracket(pool: Pool, domain: Domain, distance: Distance) -> Bracket:
    """Cut the bracket that costs most into sections."""
    rows, _, features = pool.codes.shape
    width = np.abs(pool.codes - pool.floor) * distance.weight
    feature = width.argmax(axis=2)
    index = feature[..., None]
    here, there = np.take_along_axis(pool.codes, index, 2), np.take_along_axis(pool.floor, index, 2)
    value = there + (here - there) * np.arange(1, SECTIONS) / SECTIONS
    value = domain.round_own(value, feature)
    codes = np.repeat(pool.codes[:, :, None, :], SECTIONS - 1, axis=2)
    np.put_along_axis(codes, np.broadcast_to(index[:, :, None], (*value.shape, 1)), value[..., None], axis=3)
    shrinks = distance.weight[feature][..., None] > 0
    between = shrinks & (np.minimum(here, there) < value) & (value < np.maximum(here, there)) & pool.valid[..., None]
    flat = (rows, value.shape[1] * value.shape[2])
    return Bracket(feature, value, Candidates(codes.reshape(*flat, features), between.reshape(flat)))


def shrink(pool: Pool, asked: Bracket, verdict: Verdict, domain: Domain, distance: Distance) -> Pool:
    """Move each change to the smallest value that still flips, its floor to the largest that does not."""
    valid, opened = verdict.valid.reshape(asked.value.shape), asked.candidates.open.reshape(asked.value.shape)
    index = asked.feature[..., None]
    position = np.arange(asked.value.shape[2])
    smallest = np.where(valid, position, len(position)).min(axis=2, keepdims=True)
    failed = opened & ~valid & (position < smallest)
    largest = np.where(failed, position, -1).max(axis=2, keepdims=True)
    codes, floor = pool.codes.copy(), pool.floor.copy()
    _put_where(codes, index, np.asarray(smallest < len(position)), _at(asked.value, smallest))
    _put_where(floor, index, largest >= 0, _at(asked.value, largest))
    untried = np.asarray(~opened.any(axis=2, keepdims=True))
    _put_where(floor, index, untried, np.take_along_axis(codes, index, 2))
    cost = np.where(pool.valid, distance.total(codes, domain.row[:, None, :]), np.inf)
    return Pool(codes, pool.valid, cost, floor)


def _at(values: Floats, position: Indices) -> Floats:
    return np.take_along_axis(values, np.clip(position, 0, values.shape[2] - 1), 2)


def _put_where(codes: Floats, index: Indices, where: Mask, value: Floats) -> None:
    np.put_along_axis(codes, index, np.where(where, value, np.take_along_axis(codes, index, 2)), axis=2)


def _finite(margin: Floats) -> Floats:
    """Margins of candidates that were asked; unasked and failed ones count as strongly against."""
    return np.where(np.isfinite(margin), margin, -1e3)
