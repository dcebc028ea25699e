"""Several answers that differ in what they change, not five shades of one.

The copy names the cheapest set of changes for many different combinations of features; each is asked just beyond the
boundary and farther on. An answer one of whose changes is not needed is replaced by the one without it.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats
from fasterce.search import refine
from fasterce.search.dialogue import Search, Wish, for_some, side_by_side
from fasterce.search.goal import Indices, Mask
from fasterce.search.judge import Verdict
from fasterce.search.pool import Pool
from fasterce.search.ranked import Round, at_the_start, climb
from fasterce.search.shortlist import NOBODY, Shortlist, shortlist
from fasterce.search.task import Task
from fasterce.search.thorough import flipping

JUST, SAFER = 0.5, 2.5
SPARE = 5
WEIGHED = 256
ALIKE = 4.0
LITTLE = 0.05
ONE_MORE, LAST = 1e3, 1e6


def first_round(task: Task, n: int) -> Generator[Wish, list[Verdict], Round]:
    """Different combinations of features, the cheapest changes of each."""
    listed = shortlist(task, task.domain.base, at_the_start(task))
    return (yield from _asked(task, listed, Pool.nothing(task.domain.base), n))


def another_round(task: Task, pool: Pool, n: int, place: int) -> Search:
    """The same without the features that are enough alone and one of the cheapest answer's, the dearest or the next: what
    else could be done?"""
    base = task.domain.base
    best = pool.best(pool.codes.shape[1])
    changed = (best.codes != base[:, None, :]) & best.valid[:, :, None]
    alone = changed & (changed.sum(axis=2) == 1)[:, :, None]
    used = alone.any(axis=1)
    if changed.shape[1]:
        price = np.where(changed[:, 0], task.distance.parts(best.codes[:, 0], task.domain.row) + LITTLE, 0.0)
        dear = np.argsort(-price, axis=1, kind="stable")[:, min(place, price.shape[1] - 1)][:, None]
        np.put_along_axis(used, dear, np.take_along_axis(used | changed[:, 0], dear, 1), axis=1)
    others = replace(task, domain=replace(task.domain, free=task.domain.free & ~used))
    listed = shortlist(others, base, at_the_start(others))
    poor = np.flatnonzero(~enough(pool, task.domain.row, 2))
    few, many = yield from side_by_side([_more(others, listed, pool, n), for_some(poor, others, climb)])
    return few + many


def _more(task: Task, listed: Shortlist, pool: Pool, n: int) -> Search:
    return (yield from _asked(task, listed, pool, n)).pool


def _asked(task: Task, listed: Shortlist, pool: Pool, n: int) -> Generator[Wish, list[Verdict], Round]:
    surrogate = task.knowledge.surrogate
    assert surrogate is not None
    margin = listed.margin()
    picks = _combinations(listed, margin, n + SPARE, task.diversity, (JUST * surrogate.error, SAFER * surrogate.error))
    asked = listed.codes(picks)
    (verdict,) = yield [asked]
    listed.learn(picks, verdict, margin, task.judge.informative)
    return Round(listed, pool + flipping(task, asked, verdict, picks.shape[1]))


@dataclass
class _Near:
    """The cheapest sets of every row (rows, M): where they stand in the list, what they cost and are expected to reach,
    and for each the features it changes."""

    place: Indices
    cost: Floats
    margin: Floats
    features: Mask
    key: NDArray[np.uint64]


def _near(listed: Shortlist, margin: Floats, least: float) -> _Near:
    hoped = np.where((margin >= least) & ~_overdone(listed, margin), listed.hoped(margin), np.inf)
    count = min(WEIGHED, hoped.shape[1])
    place = np.argsort(hoped, axis=1, kind="stable")[:, :count]
    members = listed.members(place)
    width = listed.edits.base.shape[1]
    features = np.zeros((*place.shape, width), dtype=bool)
    rows, at = np.ogrid[: place.shape[0], : place.shape[1]]
    for member in np.moveaxis(members, 2, 0):
        features[rows, at, listed.edits.feature[member]] |= member >= 0
    return _Near(place, np.take_along_axis(hoped, place, 1), np.take_along_axis(margin, place, 1), features, _key(features))


def _overdone(listed: Shortlist, margin: Floats) -> Mask:
    """Sets one of whose changes is expected to be enough alone."""
    singles = len(listed.edits.feature)
    enough = margin[:, :singles] > 0
    alone = np.zeros(margin.shape, dtype=bool)
    if listed.sets is not None:
        option = np.take_along_axis(enough, listed.sets.option, 1)
        alone[:, singles:] = listed.sets.add_up(option.astype(np.float64)) > 0
    return alone


def _combinations(listed: Shortlist, margin: Floats, count: int, diversity: float, levels: tuple[float, float]) -> Indices:
    """For each of `count` different combinations of features the cheapest expected to reach each level."""
    near = _near(listed, margin, min(levels))
    rows = len(margin)
    picks = np.full((rows, count * len(levels)), NOBODY, dtype=np.intp)
    every = np.arange(rows)
    cost, alike = near.cost.copy(), np.zeros(near.cost.shape)
    for k in range(count if near.cost.shape[1] else 0):
        chosen = _dearer(cost, alike, diversity).argmin(axis=1)
        there = np.isfinite(cost[every, chosen])
        same = near.key == near.key[every, chosen][:, None]
        for q, level in enumerate(levels):
            of_it = np.where(same & (near.margin >= level), near.cost, np.inf)
            pick = of_it.argmin(axis=1)
            found = there & np.isfinite(of_it[every, pick])
            picks[:, k * len(levels) + q] = np.where(found, near.place[every, pick], NOBODY)
        mine = near.features[every, chosen]
        alike = np.maximum(alike, _likeness(near.features, mine))
        cost = np.where(there[:, None] & same, np.inf, cost)
    return _once(picks)


def _once(picks: Indices) -> Indices:
    """The same set, cheapest at both levels, is asked once."""
    repeated = np.zeros(picks.shape, dtype=bool)
    repeated[:, 1::2] = picks[:, 1::2] == picks[:, ::2]
    return np.where(repeated, NOBODY, picks)


def needed(task: Task, pool: Pool) -> Search:
    """Answers all of whose changes are needed, and instead of the others what is left of them."""
    base = task.domain.base
    rows, count, _ = pool.codes.shape
    parts = [refine.changed_parts(pool.codes[:, k], pool.valid[:, k], base) for k in range(count)]
    asked = [refine.one_by_one(part, base)[0] for part in parts]
    verdicts = yield asked
    fewer = np.zeros((rows, count), dtype=bool)
    for k, verdict in enumerate(verdicts):
        fewer[:, k] = verdict.valid.any(axis=1)
    left = [flipping(task, group, verdict, 1) for group, verdict in zip(asked, verdicts, strict=True)]
    return reduce(Pool.__add__, [pool.without(fewer), *left])


def chosen(pool: Pool, row: Floats, n: int, diversity: float, fewest: bool = False) -> Pool:
    """The `n` cheapest that change different features, those dearer that change much of what others do; combinations
    that hold all another one changes, and more, come last. Where the `fewest` are wanted, fewer always come first."""
    pool = pool.distinct(row)
    if pool.codes.shape[1] == 0:
        return pool
    changed = pool.codes != row[:, None, :]
    every = np.arange(len(row))
    if fewest:
        pool = replace(pool, cost=pool.cost + ONE_MORE * changed.sum(axis=2))
    cost = np.where(pool.valid, pool.cost, np.inf)
    alike, more = np.zeros(cost.shape), np.zeros(cost.shape)
    order, there = [], []
    for _ in range(min(n, cost.shape[1])):
        pick = (_dearer(cost, alike, diversity) + more).argmin(axis=1)
        order.append(pick)
        there.append(np.isfinite(cost[every, pick]))
        mine = changed[every, pick]
        alike = np.maximum(alike, _likeness(changed, mine))
        more = np.where(~(mine[:, None, :] & ~changed).any(axis=2), LAST, more)
        cost = cost.copy()
        cost[every, pick] = np.inf
    return pool.take(np.stack(order, axis=1)).without(~np.stack(there, axis=1))


def enough(pool: Pool, row: Floats, n: int) -> Mask:
    """Which rows have as many different answers."""
    return np.asarray(pool.distinct(row).valid.sum(axis=1) >= n)


def _dearer(cost: Floats, alike: Floats, diversity: float) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray((cost + LITTLE) * (1.0 + ALIKE * diversity * alike))


def _likeness(sets: Mask, one: Mask) -> Floats:
    """The share of features that sets (rows, K, features) and one (rows, features) have in common."""
    both = (sets & one[:, None, :]).sum(axis=2)
    either = (sets | one[:, None, :]).sum(axis=2)
    return np.asarray(both / np.maximum(either, 1))


def _key(features: Mask) -> NDArray[np.uint64]:
    weights = np.random.default_rng(1).integers(1, 2**63, size=features.shape[-1], dtype=np.uint64)
    return np.asarray((features * weights).sum(axis=-1, dtype=np.uint64))
