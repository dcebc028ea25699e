"""The candidates of a search: a few per query, with cost and margin."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.domain import Domain
from fasterce.search.distance import Distance
from fasterce.typing import Floats, Indices, Mask

# Where a candidate comes from; a position in this tuple is an `origin` of a pool.
ORIGINS = ("edits", "latent", "examples")
EDITS, LATENT, EXAMPLES = range(len(ORIGINS))


@dataclass(frozen=True)
class Pool:
    """A few candidates per query (rows, R, features), which of them reach the target, their cost (infinite if they do not),
    their margin, and the position in ORIGINS of where each comes from (edits unless given)."""

    codes: Floats
    valid: Mask
    cost: Floats
    lead: Floats
    origin: Indices = field(default_factory=lambda: np.zeros((0, 0), dtype=np.intp))

    def __post_init__(self) -> None:
        if self.origin.shape != self.valid.shape:
            object.__setattr__(self, "origin", np.full(self.valid.shape, EDITS, dtype=np.intp))

    def from_origin(self, origin: int | Sequence[int] | Indices) -> "Pool":
        """Return the same candidates with an origin: one for all, or an array that can be broadcast to (rows, R)."""
        return replace(self, origin=np.broadcast_to(np.asarray(origin, dtype=np.intp), self.valid.shape))

    @classmethod
    def start(
        cls,
        codes: Floats,
        valid: Mask,
        domain: Domain,
        distance: Distance,
        lead: Floats | None = None,
        counted: bool = True,
    ) -> "Pool":
        """Return candidates with all that follows from their changes; those with more changes than allowed do not count,
        unless `counted` is False."""
        codes = domain.complete(codes)
        if counted and domain.most_changes is not None:
            valid = valid & domain.count_kept(codes)
        cost = np.where(valid, distance.total(codes, domain.row[:, None, :]), np.inf)
        return cls(codes, valid, cost, np.zeros_like(cost) if lead is None else lead)

    @classmethod
    def nothing(cls, base: Floats) -> "Pool":
        empty = np.zeros((len(base), 0))
        return cls(np.zeros((len(base), 0, base.shape[1])), empty > 0, empty, empty)

    @classmethod
    def among(cls, part: "Pool", rows: Indices, base: Floats) -> "Pool":
        """Return the pool of some rows among all rows; the others have nothing."""
        count = part.codes.shape[1]
        codes = np.repeat(base[:, None, :], count, axis=1)
        valid, cost = np.zeros((len(base), count), dtype=bool), np.full((len(base), count), np.inf)
        lead, origin = np.zeros_like(cost), np.full(cost.shape, EDITS, dtype=np.intp)
        codes[rows], valid[rows], cost[rows], lead[rows] = part.codes, part.valid, part.cost, part.lead
        origin[rows] = part.origin
        return cls(codes, valid, cost, lead, origin)

    def filled(self, base: Floats) -> "Pool":
        """Return the same with the base of each query in place of candidates that are not valid."""
        return replace(self, codes=np.where(self.valid[:, :, None], self.codes, base[:, None, :]))

    def best(self, most: int) -> "Pool":
        order = np.argsort(self.cost, axis=1, kind="stable")[:, :most]
        return self.take(order)

    def distinct(self, base: Floats) -> "Pool":
        """Return the candidates sorted by cost, only the cheapest of those that change the same features valid."""
        pool = self.best(self.codes.shape[1])
        key = key_of(pool.codes != base[:, None, :])
        # Candidates that are not valid come last, so that none of them is the first of its set before one that is.
        order = np.argsort(key, axis=1, kind="stable")
        found = np.take_along_axis(key, order, 1)
        repeated = np.zeros_like(pool.valid)
        np.put_along_axis(repeated, order[:, 1:], found[:, 1:] == found[:, :-1], 1)
        return pool.without(repeated)

    def repeated(self, kept: Mask) -> Mask:
        """Return which candidates are equal to an earlier one of their query that is kept."""
        earlier = _earlier(kept.shape[1])
        same = (self.codes[:, :, None, :] == self.codes[:, None, :, :]).all(axis=3)
        return np.asarray((same & earlier & kept[:, None, :]).any(axis=2))

    def without(self, dropped: Mask) -> "Pool":
        return replace(self, valid=self.valid & ~dropped, cost=np.where(dropped, np.inf, self.cost))

    def take(self, order: Indices) -> "Pool":
        """Return the candidates at these positions (rows, R) of each query."""
        at = np.arange(len(order))[:, None], order
        return Pool(self.codes[at], self.valid[at], self.cost[at], self.lead[at], self.origin[at])

    def __add__(self, other: "Pool") -> "Pool":
        both = zip(self.__dict__.values(), other.__dict__.values(), strict=True)
        return Pool(*(np.concatenate(pair, axis=1) for pair in both))


@cache
def _earlier(count: int) -> Mask:
    """Return which of so many candidates come before which."""
    return np.tril(np.ones((count, count), dtype=bool), k=-1)


def key_of(features: Mask) -> NDArray[np.uint64]:
    """Return a key of each set of features (..., features)."""
    return np.asarray((features * _weights(features.shape[-1])).sum(axis=-1, dtype=np.uint64))


@cache
def _weights(features: int) -> NDArray[np.uint64]:
    return np.random.default_rng(1).integers(1, 2**63, size=features, dtype=np.uint64)
