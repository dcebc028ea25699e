"""Move beyond the decision boundary in the direction of each change, as far as the model still predicts the target."""

from dataclasses import replace

import numpy as np

from fasterce.search.context import SearchContext
from fasterce.search.distance import filled_or_emptied
from fasterce.search.evaluator import Candidates
from fasterce.search.pool import Pool
from fasterce.search.rounds import Search


def beyond(context: SearchContext, pool: Pool) -> Search:
    """Move every changed number by `margin` standard deviations, or the largest share of it that keeps the target.

    Changed categories stay, and so do numbers that became missing or were filled.
    """
    if context.margin == 0:
        return pool
    rows, count, features = pool.codes.shape
    shares = np.array(context.config.margin_shares)
    spread = np.zeros(features)
    numeric = context.state.codec.numeric
    spread[numeric] = context.state.codec.profile.std[numeric]
    base = context.domain.base[:, None, :]
    onward = np.sign(pool.codes - base) * ~filled_or_emptied(pool.codes, base) * spread * context.margin
    pushed = pool.codes[:, :, None, :] + shares[:, None] * onward[:, :, None, :]
    flat = (rows, count * len(shares))
    codes = context.domain.complete(context.domain.project(pushed.reshape(*flat, features))).reshape(pushed.shape)
    moved = (codes != pool.codes[:, :, None, :]).any(axis=3) & pool.valid[:, :, None]
    (evaluation,) = yield [Candidates(codes.reshape(*flat, features), moved.reshape(flat))]
    valid = evaluation.valid.reshape(rows, count, len(shares))
    pick = valid.argmax(axis=2)[..., None, None]
    farthest = np.take_along_axis(codes, pick, 2)[:, :, 0]
    kept = np.where(valid.any(axis=2, keepdims=True), farthest, pool.codes)
    row = context.domain.row[:, None, :]
    paid = context.distance.total(kept, row) - context.distance.total(pool.codes, row)
    return replace(pool, codes=kept, cost=pool.cost + np.where(pool.valid, paid, 0.0)).best(count)
