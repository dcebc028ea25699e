"""Several counterfactuals that differ in the features they change."""

from dataclasses import replace

import numpy as np

from fasterce.config import SearchConfig
from fasterce.search.pool import Pool
from fasterce.typing import Floats, Mask

DEFAULTS = SearchConfig()
# Larger than any distance: fewer changes come first, supersets last.
ONE_MORE, LAST = 1e3, 1e6


def chosen(pool: Pool, row: Floats, n: int, diversity: float, fewest: bool = False, config: SearchConfig = DEFAULTS) -> Pool:
    """Return the `n` cheapest that change different features.

    Similarity to those chosen before adds to the cost; supersets of the changes of another come last. With `fewest`, fewer
    changes always come first.
    """
    pool = pool.distinct(row)
    if pool.codes.shape[1] == 0:
        return pool
    changed = pool.codes != row[:, None, :]
    every, most = np.arange(len(row)), min(n, pool.codes.shape[1])
    if fewest:
        pool = replace(pool, cost=pool.cost + ONE_MORE * changed.sum(axis=2))
    cost = np.where(pool.valid, pool.cost, np.inf)
    alike, more = np.zeros(cost.shape), np.zeros(cost.shape)
    order, there = [], []
    for turn in range(most):
        pick = (_penalized(cost, alike, diversity, config) + more).argmin(axis=1)
        order.append(pick)
        there.append(np.isfinite(cost[every, pick]))
        if turn == most - 1:
            break
        mine = changed[every, pick]
        alike = np.maximum(alike, _likeness(changed, mine))
        more = np.where(~(mine[:, None, :] & ~changed).any(axis=2), LAST, more)
        cost = cost.copy()
        cost[every, pick] = np.inf
    return pool.take(np.stack(order, axis=1)).without(~np.stack(there, axis=1))


def _penalized(cost: Floats, alike: Floats, diversity: float, config: SearchConfig) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray((cost + config.base_cost) * (1.0 + config.similarity_penalty * diversity * alike))


def _likeness(sets: Mask, one: Mask) -> Floats:
    """Return the share of features that sets (rows, K, features) and one (rows, features) have in common."""
    both = (sets & one[:, None, :]).sum(axis=2)
    either = (sets | one[:, None, :]).sum(axis=2)
    return np.asarray(both / np.maximum(either, 1))
