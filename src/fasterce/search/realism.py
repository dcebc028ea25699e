"""Realistic counterfactuals: between the row and similar known rows of the target.

Every feature of a candidate has the value of the row or that of an example, and linked features change together. The
distances of a candidate to the row and to the example add up to at least the distance between the two; `realism` sets the
point in between.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates
from fasterce.search.pool import Pool
from fasterce.search.propose import different
from fasterce.typing import Floats, Floats32, Indices, Mask


def allowed(context: SearchContext) -> Floats:
    """Return how far a candidate of each row may be from its nearest example.

    With `realism` 0.5 it is somewhat less than the usual distance between known rows, with 1 it is nothing. A changed
    category counts 1, so a little is added for candidates that differ in categories.
    """
    usual = context.state.typical[context.judge.target]
    dial = min(max(context.realism, 1e-3), 1.0)
    limit = context.config.realistic_distance * usual * (1.0 - dial) / dial
    return np.asarray(limit + np.minimum(context.config.realistic_slack, limit / 4))


@dataclass(frozen=True)
class ExampleMixes:
    """Rows and the examples they move toward: `legal` (rows, K, features) are the examples projected on the constraints of
    each row, `apart` (rows, K) their distance to the examples, `price` (rows, K, groups) the cost of moving each group."""

    context: SearchContext
    examples: Floats
    legal: Floats
    apart: Floats
    price: Floats

    @classmethod
    def between(cls, context: SearchContext, examples: Floats) -> "ExampleMixes":
        """Return the mixes of rows and examples, with costs by the gower distance, in which realism is measured."""
        plain, base = context.state.distance, context.domain.base[:, None, :]
        legal = context.domain.project(np.where(context.state.relevant, examples, base))
        parts = plain.parts(legal, base)
        group = context.state.groups
        price = np.zeros((*parts.shape[:2], int(group.max(initial=-1)) + 1))
        for j, g in enumerate(group):
            price[:, :, g] += parts[:, :, j]
        return cls(context, examples, legal, plain.total(legal, examples), price)

    @cached_property
    def mover(self) -> "_Mover":
        return _Mover(self)

    def stop(self, room: Floats, safety: float) -> Candidates:
        """Return examples with as many groups as possible restored to the row: those with the least loss per cost first, as
        long as the cost stays within `room` (rows, K) and the surrogate expects the target to be kept."""
        mover = self.mover.afresh()
        left = np.zeros(self.price.shape, dtype=bool)
        used = np.zeros(self.price.shape[:2])
        at: Any = np.ix_(*map(np.arange, used.shape))
        for group in np.moveaxis(self.mover.order, 2, 0):
            cost = self.price[(*at, group)]
            fits = (cost > 0) & (used + cost <= room + 1e-9)
            if fits.any():
                going = mover.leave(group, fits, safety)
                used += np.where(going, cost, 0.0)
                left[(*at, group)] |= going
        base = self.context.domain.base[:, None, :]
        return different(self.context, np.where(left[:, :, self.context.state.groups], base, self.legal))


class _Mover:
    """The surrogate's hidden states of candidates while groups are restored one by one."""

    def __init__(self, mixes: ExampleMixes) -> None:
        self.mixes = mixes
        self.surrogate = mixes.context.state.surrogate
        rows, count, features = mixes.legal.shape
        if self.surrogate is None:
            return
        own = self.surrogate.read(mixes.context.domain.base, np.arange(features))
        there = self.surrogate.read(mixes.legal.reshape(rows * count, features), np.arange(features))
        back = own[:, None] - there.reshape(rows, count, features, there.shape[-1])
        self.swap = np.zeros((rows, count, mixes.price.shape[2], back.shape[3]), dtype=np.float32)
        for j, g in enumerate(mixes.context.state.groups):
            self.swap[:, :, g] += back[:, :, j]
        self.hidden = self.surrogate.hidden(there).reshape(rows, count, there.shape[-1])
        lead = self._lead(self.hidden)
        # An example reaches the target, whatever the surrogate predicts.
        self.shift = np.maximum(self.surrogate.error - lead, 0.0)

    def afresh(self) -> "_Mover":
        """Return the same, at the examples again."""
        return copy(self)

    @cached_property
    def order(self) -> Indices:
        """Groups by the loss of margin per cost of restoring each alone, the least first."""
        price = np.maximum(self.mixes.price, 1e-9)
        if self.surrogate is None:
            return np.argsort(price, axis=2, kind="stable")
        loss = np.empty(price.shape)
        whole = self._lead(self.hidden)
        for g in range(price.shape[2]):
            loss[:, :, g] = whole - self._lead(self.hidden + self.swap[:, :, g])
        return np.argsort(np.round(loss / price, 6), axis=2, kind="stable")

    def leave(self, group: Indices, fits: Mask, safety: float) -> Mask:
        """Restore the group to the values of the row where it fits and the target is expected to be kept."""
        if self.surrogate is None:
            return fits
        at: Any = np.ix_(*map(np.arange, group.shape))
        ahead = self.hidden + self.swap[(*at, group)]
        going = fits & (self._lead(ahead) + self.shift >= safety * self.surrogate.error)
        self.hidden = np.where(going[:, :, None], ahead, self.hidden)
        return np.asarray(going)

    def _lead(self, hidden: Floats32) -> Floats32:
        assert self.surrogate is not None
        return self.mixes.context.targets.expected(self.surrogate.outputs(hidden.copy()))


def retreats(context: SearchContext, best: Pool, examples: Floats) -> Candidates:
    """Return the best candidate with one changed number moved back toward the row, as far as `allowed` permits."""
    plain, base = context.state.distance, context.domain.base
    codes, shares = best.codes[:, 0], np.array(context.config.retreat_shares)
    room = np.maximum(allowed(context) - nearest(context, best.codes, examples)[:, 0], 0.0)
    price = plain.shrinkable(codes, base)
    feature = np.argsort(-price, axis=1, kind="stable")[:, : context.config.max_retreats]
    cost = np.take_along_axis(price, feature, 1)
    share = np.minimum(room[:, None] / np.maximum(cost, 1e-9), 1.0)[:, :, None] * shares
    here, there = (np.take_along_axis(one, feature, 1)[:, :, None] for one in (codes, base))
    value = context.domain.round_own(here + (there - here) * share, feature)
    moved = np.repeat(codes[:, None, None, :], feature.shape[1], axis=1).repeat(len(shares), axis=2)
    np.put_along_axis(moved, np.broadcast_to(feature[:, :, None, None], (*value.shape, 1)), value[..., None], axis=3)
    moved = moved.reshape(len(codes), feature.shape[1] * len(shares), codes.shape[1])
    found = different(context, moved)
    useful = (np.repeat(cost > 0, len(shares), axis=1)) & best.valid[:, :1] & (room > 0)[:, None]
    return Candidates(found.codes, found.open & useful & (moved != codes[:, None, :]).any(axis=2))


def nearest(context: SearchContext, codes: Floats, examples: Floats) -> Floats:
    """Return the distance of candidates (rows, R, features) to the nearest example of their row."""
    plain = context.state.distance
    return np.asarray(plain.total(codes[:, :, None, :], examples[:, None, :, :]).min(axis=2))


def priced(context: SearchContext, pool: Pool, examples: Floats) -> Floats:
    """Return the cost of candidates: the distance to the row, a share of that to the nearest example, a penalty beyond what
    is allowed, and a little of the latent distance to the prototypes of the target."""
    cost = np.where(pool.valid, context.distance.total(pool.codes, context.domain.row[:, None, :]), np.inf)
    away = nearest(context, pool.codes, examples)
    config = context.config
    excess = np.maximum(away - allowed(context)[:, None], 0.0)
    away = config.realistic_weight * away + config.realistic_penalty * excess
    latent = config.prototype_weight * context.realism * from_prototype(context, pool.codes)
    return np.asarray(np.round(cost + away + latent, 9))


def from_prototype(context: SearchContext, codes: Floats) -> Floats:
    """Return the latent distance of candidates (rows, R, features) to the nearest prototype of the target."""
    known = context.state
    rows, count, features = codes.shape
    latent = known.autoencoder.encode(known.codec.encode(codes.reshape(rows * count, features)))
    gap = np.full(rows * count, np.inf)
    welcome = np.repeat(context.targets.welcome(known.prototype_classes), count, axis=0)
    for centre, mine in zip(known.prototypes, welcome.T, strict=True):
        gap[mine] = np.minimum(gap[mine], np.sqrt(((latent[mine] - centre) ** 2).sum(axis=1)))
    gap = np.where(np.isfinite(gap), gap, 0.0) / max(latent.shape[1], 1) ** 0.5
    return np.asarray(gap.reshape(rows, count))
