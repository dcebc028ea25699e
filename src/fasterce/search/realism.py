"""Counterfactuals that could be somebody: between the row and people like it who have the wanted answer.

A candidate lies in the box between the row and a real example: every feature has the row's value or the example's, and
features that go together change together. However it is chosen, its distance from the row and its distance from the
nearest example add up to no less than the row's own distance from that example; the dial says where in between to stop.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fasterce.profile import Floats
from fasterce.search.goal import Indices, Mask
from fasterce.search.judge import Candidates
from fasterce.search.pool import Pool
from fasterce.search.propose import different
from fasterce.search.task import Task
from fasterce.surrogate.runtime import Singles32

USUAL, GRAIN = 0.62, 0.35
APART, EXCESS = 0.5, 4.0
PROTOTYPE = 0.05
STOPS = ((1.0, 0.0), (1.0, 1.5), (0.5, 1.5))
BLIND_STOPS = ((1.0, -np.inf), (0.66, -np.inf), (0.33, -np.inf), (0.0, -np.inf))
RETREATS = np.array([1.0, 0.5])
RETREATING = 3


def allowed(task: Task) -> Floats:
    """How far a candidate of each row may be from its nearest example: at the middle of the dial somewhat less than
    people usually are from each other, at its end nothing.

    A category counts 1, so where it is a matter of categories the limit is passed by a little as often as missed.
    """
    usual = task.knowledge.typical[task.judge.target]
    dial = min(max(task.realism, 1e-3), 1.0)
    limit = USUAL * usual * (1.0 - dial) / dial
    return np.asarray(limit + np.minimum(GRAIN, limit / 4))


@dataclass(frozen=True)
class Box:
    """Rows and the examples they move toward: `legal` (rows, K, features) are the examples as far as the rules let a row
    follow them, `apart` (rows, K) what then still lies between, `price` (rows, K, groups) what each group's move costs."""

    task: Task
    examples: Floats
    legal: Floats
    apart: Floats
    price: Floats

    @classmethod
    def around(cls, task: Task, examples: Floats) -> "Box":
        """Priced by the plain share-of-range distance, in which realism is measured."""
        plain, base = task.knowledge.distance, task.domain.base[:, None, :]
        legal = task.domain.project(examples)
        parts = plain.parts(legal, base)
        group = task.knowledge.groups
        price = np.zeros((*parts.shape[:2], int(group.max(initial=-1)) + 1))
        for j, g in enumerate(group):
            price[:, :, g] += parts[:, :, j]
        return cls(task, examples, legal, plain.total(legal, examples), price)

    @cached_property
    def mover(self) -> "_Mover":
        return _Mover(self)

    def stop(self, room: Floats, safety: float) -> Candidates:
        """Examples with as many groups as possible left as they were: those the answer needs least for their price
        first, as long as the way back stays within `room` (rows, K) and the copy expects the answer to hold."""
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
        base = self.task.domain.base[:, None, :]
        return different(self.task, np.where(left[:, :, self.task.knowledge.groups], base, self.legal))


class _Mover:
    """The copy's hidden states of candidates on their way back from the examples, group by group."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.surrogate = box.task.knowledge.surrogate
        rows, count, features = box.legal.shape
        if self.surrogate is None:
            return
        own = self.surrogate.read(box.task.domain.base, np.arange(features))
        there = self.surrogate.read(box.legal.reshape(rows * count, features), np.arange(features))
        back = own[:, None] - there.reshape(rows, count, features, there.shape[-1])
        self.swap = np.zeros((rows, count, box.price.shape[2], back.shape[3]), dtype=np.float32)
        for j, g in enumerate(box.task.knowledge.groups):
            self.swap[:, :, g] += back[:, :, j]
        self.hidden = self.surrogate.hidden(there).reshape(rows, count, there.shape[-1])
        lead = self._lead(self.hidden)
        # An example has the wanted answer, whatever the copy says of it.
        self.shift = np.maximum(self.surrogate.error - lead, 0.0)

    def afresh(self) -> "_Mover":
        """The same standing at the examples again."""
        return copy(self)

    @cached_property
    def order(self) -> Indices:
        """Groups by what leaving each alone would lose for its price, the least first."""
        price = np.maximum(self.box.price, 1e-9)
        if self.surrogate is None:
            return np.argsort(price, axis=2, kind="stable")
        loss = np.empty(price.shape)
        whole = self._lead(self.hidden)
        for g in range(price.shape[2]):
            loss[:, :, g] = whole - self._lead(self.hidden + self.swap[:, :, g])
        return np.argsort(np.round(loss / price, 6), axis=2, kind="stable")

    def leave(self, group: Indices, fits: Mask, safety: float) -> Mask:
        """Take the group back to the row's own values where it fits and the answer is still expected to hold."""
        if self.surrogate is None:
            return fits
        at: Any = np.ix_(*map(np.arange, group.shape))
        ahead = self.hidden + self.swap[(*at, group)]
        going = fits & (self._lead(ahead) + self.shift >= safety * self.surrogate.error)
        self.hidden = np.where(going[:, :, None], ahead, self.hidden)
        return np.asarray(going)

    def _lead(self, hidden: Singles32) -> Singles32:
        assert self.surrogate is not None
        return self.box.task.goal.expected(self.surrogate.outputs(hidden.copy()))


def retreats(task: Task, best: Pool, examples: Floats) -> Candidates:
    """The best so far with one changed number on its way back, as far as there is room left."""
    plain, base = task.knowledge.distance, task.domain.base
    codes = best.codes[:, 0]
    room = np.maximum(allowed(task) - nearest(task, best.codes, examples)[:, 0], 0.0)
    price = plain.shrinkable(codes, base)
    feature = np.argsort(-price, axis=1, kind="stable")[:, :RETREATING]
    cost = np.take_along_axis(price, feature, 1)
    share = np.minimum(room[:, None] / np.maximum(cost, 1e-9), 1.0)[:, :, None] * RETREATS
    here, there = (np.take_along_axis(one, feature, 1)[:, :, None] for one in (codes, base))
    value = task.domain.round_own(here + (there - here) * share, feature)
    moved = np.repeat(codes[:, None, None, :], feature.shape[1], axis=1).repeat(len(RETREATS), axis=2)
    np.put_along_axis(moved, np.broadcast_to(feature[:, :, None, None], (*value.shape, 1)), value[..., None], axis=3)
    moved = moved.reshape(len(codes), feature.shape[1] * len(RETREATS), codes.shape[1])
    found = different(task, moved)
    useful = (np.repeat(cost > 0, len(RETREATS), axis=1)) & best.valid[:, :1] & (room > 0)[:, None]
    return Candidates(found.codes, found.open & useful & (moved != codes[:, None, :]).any(axis=2))


def nearest(task: Task, codes: Floats, examples: Floats) -> Floats:
    """How far candidates (rows, R, features) are from the nearest of their row's examples."""
    plain = task.knowledge.distance
    return np.asarray(plain.total(codes[:, :, None, :], examples[:, None, :, :]).min(axis=2))


def priced(task: Task, pool: Pool, examples: Floats) -> Floats:
    """Distance from the row and, at half the price, from people, dearly where farther than allowed; and a little how far
    from the prototypes of the wanted class in latent space."""
    cost = np.where(pool.valid, task.distance.total(pool.codes, task.domain.row[:, None, :]), np.inf)
    away = nearest(task, pool.codes, examples)
    away = APART * away + EXCESS * np.maximum(away - allowed(task)[:, None], 0.0)
    return np.asarray(np.round(cost + away + PROTOTYPE * task.realism * from_prototype(task, pool.codes), 9))


def from_prototype(task: Task, codes: Floats) -> Floats:
    """Latent distance of candidates (rows, R, features) to the nearest prototype of the wanted class."""
    known = task.knowledge
    rows, count, features = codes.shape
    latent = known.autoencoder.encode(known.codec.encode(codes.reshape(rows * count, features)))
    gap = np.full(rows * count, np.inf)
    welcome = np.repeat(task.goal.welcome(known.prototype_classes), count, axis=0)
    for centre, mine in zip(known.prototypes, welcome.T, strict=True):
        gap[mine] = np.minimum(gap[mine], np.sqrt(((latent[mine] - centre) ** 2).sum(axis=1)))
    gap = np.where(np.isfinite(gap), gap, 0.0) / max(latent.shape[1], 1) ** 0.5
    return np.asarray(gap.reshape(rows, count))
