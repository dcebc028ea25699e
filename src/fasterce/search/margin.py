"""Beyond the boundary: go on a little in the direction of each change, as far as the model still agrees."""

from dataclasses import replace

import numpy as np

from fasterce.search.dialogue import Search
from fasterce.search.distance import filled_or_emptied
from fasterce.search.judge import Candidates
from fasterce.search.pool import Pool
from fasterce.search.task import Task

SHARES = np.array([1.0, 0.75, 0.5, 0.25])


def beyond(task: Task, pool: Pool) -> Search:
    """Every changed number moves on by `margin` standard deviations, or the largest share of it that still flips.

    A changed category has nowhere farther to go, nor has a number that went missing or was filled.
    """
    if task.margin == 0:
        return pool
    rows, count, features = pool.codes.shape
    spread = np.zeros(features)
    numeric = task.knowledge.codec.numeric
    spread[numeric] = task.knowledge.codec.profile.std[numeric]
    base = task.domain.base[:, None, :]
    onward = np.sign(pool.codes - base) * ~filled_or_emptied(pool.codes, base) * spread * task.margin
    pushed = pool.codes[:, :, None, :] + SHARES[:, None] * onward[:, :, None, :]
    flat = (rows, count * len(SHARES))
    codes = task.domain.complete(task.domain.project(pushed.reshape(*flat, features))).reshape(pushed.shape)
    moved = (codes != pool.codes[:, :, None, :]).any(axis=3) & pool.valid[:, :, None]
    (verdict,) = yield [Candidates(codes.reshape(*flat, features), moved.reshape(flat))]
    valid = verdict.valid.reshape(rows, count, len(SHARES))
    pick = valid.argmax(axis=2)[..., None, None]
    farthest = np.take_along_axis(codes, pick, 2)[:, :, 0]
    kept = np.where(valid.any(axis=2, keepdims=True), farthest, pool.codes)
    row = task.domain.row[:, None, :]
    paid = task.distance.total(kept, row) - task.distance.total(pool.codes, row)
    return replace(pool, codes=kept, cost=pool.cost + np.where(pool.valid, paid, 0.0)).best(count)
