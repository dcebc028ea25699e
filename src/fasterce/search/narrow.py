"""A number wanted within narrow bounds: go from one side of them to the other, and cut the way until a point lies inside."""

import numpy as np

from fasterce.profile import Floats
from fasterce.search.dialogue import Search
from fasterce.search.goal import Within
from fasterce.search.pool import Pool
from fasterce.search.propose import different
from fasterce.search.task import Task
from fasterce.search.thorough import flipping

PATHS, CUTS, ROUNDS = 4, 8, 5


def between(task: Task) -> Search:
    """Nothing unless both bounds are there and the model has scores to steer by."""
    goal, surrogate = task.goal, task.knowledge.surrogate
    found = Pool.nothing(task.domain.base)
    if not isinstance(goal, Within) or surrogate is None or not task.judge.informative:
        return found
    if not (np.isfinite(goal.low) & np.isfinite(goal.high)).any():
        return found
    ends, base = _ends(task, goal), task.domain.base
    low, high = np.zeros(ends.shape[:2]), np.ones(ends.shape[:2])
    rows, count, features = ends.shape
    for _ in range(ROUNDS):
        share = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, CUTS + 1)[1:]
        points = base[:, None, None, :] + share[..., None] * (ends - base[:, None, :])[:, :, None, :]
        asked = different(task, task.domain.project(points.reshape(rows, count * CUTS, features)))
        (verdict,) = yield [asked]
        found = (found + flipping(task, asked, verdict)).best(PATHS)
        margin = verdict.margin.reshape(rows, count, CUTS)
        best = margin.argmax(axis=2)[..., None]
        nearest = np.take_along_axis(share, best, 2)[..., 0]
        step = (high - low) / CUTS
        low, high = np.maximum(nearest - step, 0.0), np.minimum(nearest + step, 1.0)
    return found


def _ends(task: Task, goal: Within) -> Floats:
    """Far ends (rows, PATHS, features) that the copy expects beyond the bounds: single numbers at an end of their range,
    the cheapest crossing first, and all numbers together, each at the end that leads on."""
    domain, surrogate = task.domain, task.knowledge.surrogate
    assert surrogate is not None
    numeric, base = domain.numeric, domain.base
    single = np.repeat(base[:, None, :], 2 * len(numeric), axis=1)
    for k, j in enumerate(numeric):
        single[:, 2 * k, j], single[:, 2 * k + 1, j] = domain.lower[:, j], domain.upper[:, j]
    single = domain.project(single)
    now = goal.odds(surrogate.outputs_of(base[:, None]))
    gain = goal.odds(surrogate.outputs_of(single)) - now
    onward = np.where(now < goal.low[:, None], 1.0, -1.0)
    need = np.abs(np.where(onward > 0, goal.low[:, None] - now, now - goal.high[:, None]))
    gain = gain * onward
    price = task.distance.total(single, domain.row[:, None, :]) * need / np.maximum(gain, 1e-9)
    order = np.argsort(np.where(gain > 0, price, np.inf), axis=1, kind="stable")[:, : PATHS - 1]
    together = base.copy()
    for k, j in enumerate(numeric):
        pair = gain[:, 2 * k : 2 * k + 2]
        best = np.take_along_axis(single[:, 2 * k : 2 * k + 2, j], pair.argmax(axis=1)[:, None], 1)[:, 0]
        together[:, j] = np.where(pair.max(axis=1) > 0, best, base[:, j])
    return np.concatenate([np.take_along_axis(single, order[:, :, None], 1), together[:, None]], axis=1)
