"""The candidates a search holds on to: a few a row, sorted by price, chosen to differ."""

from dataclasses import dataclass, replace

import numpy as np

from fasterce.constraints.compile.domain import Domain
from fasterce.search.distance import Distance
from fasterce.typing import Floats, Indices, Mask


@dataclass(frozen=True)
class Pool:
    """A few candidates a row (rows, R, features), which of them are known to flip, their price, for each numeric change
    the nearest smaller value known not to do, and by how much the model leads for the wanted class."""

    codes: Floats
    valid: Mask
    cost: Floats
    floor: Floats
    lead: Floats

    @classmethod
    def start(
        cls,
        codes: Floats,
        valid: Mask,
        domain: Domain,
        distance: Distance,
        floor: Floats | None = None,
        lead: Floats | None = None,
        counted: bool = True,
    ) -> "Pool":
        """Candidates with all that follows from their changes; those with more changes than allowed do not count."""
        codes = domain.complete(codes)
        if counted and domain.most_changes is not None:
            valid = valid & domain.count_kept(codes)
        cost = np.where(valid, distance.total(codes, domain.row[:, None, :]), np.inf)
        base = np.broadcast_to(domain.base[:, None, :], codes.shape)
        return cls(codes, valid, cost, base.copy() if floor is None else floor, np.zeros_like(cost) if lead is None else lead)

    @classmethod
    def nothing(cls, base: Floats) -> "Pool":
        empty = np.zeros((len(base), 0))
        none = np.zeros((len(base), 0, base.shape[1]))
        return cls(none, empty > 0, empty, none, empty)

    @classmethod
    def among(cls, part: "Pool", rows: Indices, base: Floats) -> "Pool":
        """The pool of some rows laid among all, which have nothing."""
        count = part.codes.shape[1]
        codes = np.repeat(base[:, None, :], count, axis=1)
        floor, valid, cost = codes.copy(), np.zeros((len(base), count), dtype=bool), np.full((len(base), count), np.inf)
        lead = np.zeros_like(cost)
        codes[rows], floor[rows], valid[rows], cost[rows] = part.codes, part.floor, part.valid, part.cost
        lead[rows] = part.lead
        return cls(codes, valid, cost, floor, lead)

    def best(self, most: int) -> "Pool":
        order = np.argsort(self.cost, axis=1, kind="stable")[:, :most]
        return self.take(order)

    def promising(self, most: int, distance: Distance, need: Floats | None = None) -> "Pool":
        """The candidates that may become cheapest: judged halfway between their price and what shrinking their widest
        bracket could leave of it; or, where it is known how much margin the whole way takes (`need`, rows), by the share
        of it they have to spare."""
        widest = distance.shrinkable(self.codes, self.floor).max(axis=2, initial=0.0)
        hope = widest / 2
        if need is not None:
            spare = np.maximum(self.lead, 0.0)
            share = spare / np.maximum(spare + np.maximum(need, 0.0)[:, None], 1e-12)
            hope = np.where(self.valid, np.minimum(widest, share * np.where(self.valid, self.cost, 0.0)), 0.0)
        return self.take(np.argsort(np.round(self.cost - hope, 9), axis=1, kind="stable")[:, :most])

    def distinct(self, base: Floats) -> "Pool":
        """Sorted by price, with only the cheapest of those that change the same features left valid."""
        pool = self.best(self.codes.shape[1])
        sets = np.random.default_rng(1).integers(1, 2**63, size=base.shape[1], dtype=np.uint64)
        key = ((pool.codes != base[:, None, :]) * sets).sum(axis=2, dtype=np.uint64)
        earlier = np.tril(np.ones((key.shape[1], key.shape[1]), dtype=bool), k=-1)
        repeated = ((key[:, :, None] == key[:, None, :]) & earlier & pool.valid[:, None, :]).any(axis=2)
        return pool.without(repeated)

    def repeated(self, kept: Mask) -> Mask:
        """Which candidates are the same as an earlier one of their row that is kept."""
        earlier = np.tril(np.ones((kept.shape[1], kept.shape[1]), dtype=bool), k=-1)
        same = (self.codes[:, :, None, :] == self.codes[:, None, :, :]).all(axis=3)
        return np.asarray((same & earlier & kept[:, None, :]).any(axis=2))

    def sparsest(self, base: Floats) -> "Pool":
        """Only those that change the fewest features left valid."""
        count = np.where(self.valid, (self.codes != base[:, None, :]).sum(axis=2), base.shape[1] + 1)
        return self.without(count > count.min(axis=1, keepdims=True, initial=base.shape[1]))

    def within(self, domain: Domain) -> "Pool":
        """Only those with no more changes than allowed left valid."""
        return self if domain.most_changes is None else self.without(~domain.count_kept(self.codes))

    def without(self, dropped: Mask) -> "Pool":
        return replace(self, valid=self.valid & ~dropped, cost=np.where(dropped, np.inf, self.cost))

    def different(self, base: Floats, most: int) -> "Pool":
        """The `most` cheapest, those last that change all a cheaper one does and more."""
        pool = self.best(self.codes.shape[1])
        changed = pool.codes != base[:, None, :]
        earlier = np.tril(np.ones((changed.shape[1], changed.shape[1]), dtype=bool), k=-1)
        contains = ~(changed[:, None, :, :] & ~changed[:, :, None, :]).any(axis=3)
        more = (contains & earlier & pool.valid[:, None, :]).any(axis=2)
        last = np.where(pool.valid, more, 2)
        return pool.take(np.argsort(last, axis=1, kind="stable")[:, :most]).best(most)

    def take_rows(self, rows: Indices) -> "Pool":
        return Pool(self.codes[rows], self.valid[rows], self.cost[rows], self.floor[rows], self.lead[rows])

    def take(self, order: Indices) -> "Pool":
        deep = order[:, :, None]
        return Pool(
            np.take_along_axis(self.codes, deep, 1),
            np.take_along_axis(self.valid, order, 1),
            np.take_along_axis(self.cost, order, 1),
            np.take_along_axis(self.floor, deep, 1),
            np.take_along_axis(self.lead, order, 1),
        )

    def __add__(self, other: "Pool") -> "Pool":
        return Pool(
            np.concatenate([self.codes, other.codes], axis=1),
            np.concatenate([self.valid, other.valid], axis=1),
            np.concatenate([self.cost, other.cost], axis=1),
            np.concatenate([self.floor, other.floor], axis=1),
            np.concatenate([self.lead, other.lead], axis=1),
        )
