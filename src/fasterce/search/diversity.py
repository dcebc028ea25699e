"""Several counterfactuals that differ in the features they change.

The surrogate ranks the cheapest set of edits for many combinations of features; each is evaluated just beyond the decision
boundary and farther beyond. A counterfactual with a change it does not need is replaced by the one without it.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fasterce.config import SearchConfig
from fasterce.search import refine
from fasterce.search.context import SearchContext
from fasterce.search.judge import Verdict
from fasterce.search.pool import Pool
from fasterce.search.ranked import Round, at_the_start, climb
from fasterce.search.rounds import Proposal, Search, for_rows, in_parallel
from fasterce.search.shortlist import NOBODY, Shortlist, shortlist
from fasterce.search.thorough import flipping
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = SearchConfig()
# Larger than any distance: fewer changes come first, supersets last.
ONE_MORE, LAST = 1e3, 1e6


def first_round(context: SearchContext, n: int) -> Generator[Proposal, list[Verdict], Round]:
    """Evaluate different combinations of features, the cheapest edits of each."""
    listed = shortlist(context, context.domain.base, at_the_start(context))
    return (yield from _evaluate_combinations(context, listed, Pool.nothing(context.domain.base), n))


def another_round(context: SearchContext, pool: Pool, n: int, place: int) -> Search:
    """Search again without the features that suffice alone and one feature of the cheapest counterfactual: the most
    expensive, or the next (`place`)."""
    base = context.domain.base
    best = pool.best(pool.codes.shape[1])
    changed = (best.codes != base[:, None, :]) & best.valid[:, :, None]
    alone = changed & (changed.sum(axis=2) == 1)[:, :, None]
    used = alone.any(axis=1)
    if changed.shape[1]:
        price = np.where(
            changed[:, 0], context.distance.parts(best.codes[:, 0], context.domain.row) + context.config.base_cost, 0.0
        )
        expensive = np.argsort(-price, axis=1, kind="stable")[:, min(place, price.shape[1] - 1)][:, None]
        np.put_along_axis(used, expensive, np.take_along_axis(used | changed[:, 0], expensive, 1), axis=1)
    others = replace(context, domain=replace(context.domain, free=context.domain.free & ~used))
    listed = shortlist(others, base, at_the_start(others))
    poor = np.flatnonzero(~enough(pool, context.domain.row, 2))
    few, many = yield from in_parallel([_more(others, listed, pool, n), for_rows(poor, others, climb)])
    return few + many


def _more(context: SearchContext, listed: Shortlist, pool: Pool, n: int) -> Search:
    return (yield from _evaluate_combinations(context, listed, pool, n)).pool


def _evaluate_combinations(
    context: SearchContext, listed: Shortlist, pool: Pool, n: int
) -> Generator[Proposal, list[Verdict], Round]:
    surrogate = context.state.surrogate
    assert surrogate is not None
    margin, config = listed.margin(), context.config
    levels = (config.diverse_margin * surrogate.error, config.diverse_safe_margin * surrogate.error)
    picks = _combinations(listed, margin, n + config.spare_combinations, context.diversity, levels, config)
    candidates = listed.codes(picks)
    (verdict,) = yield [candidates]
    listed.learn(picks, verdict, margin, context.judge.informative)
    return Round(listed, pool + flipping(context, candidates, verdict, picks.shape[1]))


@dataclass
class _Near:
    """The cheapest sets of every row (rows, M): position in the list, cost, expected margin and changed features."""

    place: Indices
    cost: Floats
    margin: Floats
    features: Mask
    key: NDArray[np.uint64]


def _near(listed: Shortlist, margin: Floats, least: float, most: int) -> _Near:
    hoped = np.where((margin >= least) & ~_overdone(listed, margin), listed.hoped(margin), np.inf)
    count = min(most, hoped.shape[1])
    place = np.argsort(hoped, axis=1, kind="stable")[:, :count]
    members = listed.members(place)
    width = listed.edits.base.shape[1]
    features = np.zeros((*place.shape, width), dtype=bool)
    rows, at = np.ogrid[: place.shape[0], : place.shape[1]]
    for member in np.moveaxis(members, 2, 0):
        features[rows, at, listed.edits.feature[member]] |= member >= 0
    return _Near(place, np.take_along_axis(hoped, place, 1), np.take_along_axis(margin, place, 1), features, _key(features))


def _overdone(listed: Shortlist, margin: Floats) -> Mask:
    """Return the sets with an edit that is expected to suffice alone."""
    singles = len(listed.edits.feature)
    enough = margin[:, :singles] > 0
    alone = np.zeros(margin.shape, dtype=bool)
    if listed.sets is not None:
        option = np.take_along_axis(enough, listed.sets.option, 1)
        alone[:, singles:] = listed.sets.add_up(option.astype(np.float64)) > 0
    return alone


def _combinations(
    listed: Shortlist,
    margin: Floats,
    count: int,
    diversity: float,
    levels: tuple[float, float],
    config: SearchConfig,
) -> Indices:
    """Return, for each of `count` combinations of features, the cheapest set expected to reach each level."""
    near = _near(listed, margin, min(levels), config.max_compared_sets)
    rows = len(margin)
    picks = np.full((rows, count * len(levels)), NOBODY, dtype=np.intp)
    every = np.arange(rows)
    cost, alike = near.cost.copy(), np.zeros(near.cost.shape)
    for k in range(count if near.cost.shape[1] else 0):
        chosen = _penalized(cost, alike, diversity, config).argmin(axis=1)
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
    """Drop sets that are the cheapest at both levels from the second."""
    repeated = np.zeros(picks.shape, dtype=bool)
    repeated[:, 1::2] = picks[:, 1::2] == picks[:, ::2]
    return np.where(repeated, NOBODY, picks)


def needed(context: SearchContext, pool: Pool) -> Search:
    """Return candidates all of whose changes are needed; from the others the changes they do not need are removed."""
    base = context.domain.base
    rows, count, _ = pool.codes.shape
    parts = [refine.changed_parts(pool.codes[:, k], pool.valid[:, k], base) for k in range(count)]
    groups = [refine.one_by_one(part, base)[0] for part in parts]
    verdicts = yield groups
    fewer = np.zeros((rows, count), dtype=bool)
    for k, verdict in enumerate(verdicts):
        fewer[:, k] = verdict.valid.any(axis=1)
    left = [flipping(context, group, verdict, 1) for group, verdict in zip(groups, verdicts, strict=True)]
    return reduce(Pool.__add__, [pool.without(fewer), *left])


def chosen(pool: Pool, row: Floats, n: int, diversity: float, fewest: bool = False, config: SearchConfig = DEFAULTS) -> Pool:
    """Return the `n` cheapest that change different features.

    Similarity to those chosen before adds to the cost; supersets of the changes of another come last. With `fewest`, fewer
    changes always come first.
    """
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
        pick = (_penalized(cost, alike, diversity, config) + more).argmin(axis=1)
        order.append(pick)
        there.append(np.isfinite(cost[every, pick]))
        mine = changed[every, pick]
        alike = np.maximum(alike, _likeness(changed, mine))
        more = np.where(~(mine[:, None, :] & ~changed).any(axis=2), LAST, more)
        cost = cost.copy()
        cost[every, pick] = np.inf
    return pool.take(np.stack(order, axis=1)).without(~np.stack(there, axis=1))


def enough(pool: Pool, row: Floats, n: int) -> Mask:
    """Return which rows have `n` different candidates."""
    return np.asarray(pool.distinct(row).valid.sum(axis=1) >= n)


def _penalized(cost: Floats, alike: Floats, diversity: float, config: SearchConfig) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray((cost + config.base_cost) * (1.0 + config.similarity_penalty * diversity * alike))


def _likeness(sets: Mask, one: Mask) -> Floats:
    """Return the share of features that sets (rows, K, features) and one (rows, features) have in common."""
    both = (sets & one[:, None, :]).sum(axis=2)
    either = (sets | one[:, None, :]).sum(axis=2)
    return np.asarray(both / np.maximum(either, 1))


def _key(features: Mask) -> NDArray[np.uint64]:
    weights = np.random.default_rng(1).integers(1, 2**63, size=features.shape[-1], dtype=np.uint64)
    return np.asarray((features * weights).sum(axis=-1, dtype=np.uint64))
