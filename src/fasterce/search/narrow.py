"""A number wanted within narrow bounds: go from one side of them to the other, and cut the way until a point lies inside."""

from collections.abc import Generator

import numpy as np

from fasterce.profile import Floats
from fasterce.search.dialogue import Search, Wish
from fasterce.search.goal import Within
from fasterce.search.judge import Verdict
from fasterce.search.pool import Pool
from fasterce.search.project import Domain
from fasterce.search.propose import different
from fasterce.search.task import Task
from fasterce.search.thorough import flipping

PATHS, CUTS, ROUNDS = 4, 8, 5
WHOLE = 1e-3


def between(task: Task) -> Search:
    """Nothing unless both bounds are there and the model has scores to steer by."""
    goal, surrogate = task.goal, task.knowledge.surrogate
    found = Pool.nothing(task.domain.base)
    if not isinstance(goal, Within) or surrogate is None or not task.judge.informative:
        return found
    if not (np.isfinite(goal.low) & np.isfinite(goal.high)).any() or not len(task.domain.numeric):
        return found
    start = task.domain.base
    for ends in (_ends, _around):
        way, start = yield from _cut(task, start, ends(task, goal, start))
        found = (found + way).best(PATHS)
    return found


def _cut(task: Task, start: Floats, ends: Floats) -> Generator[Wish, list[Verdict], tuple[Pool, Floats]]:
    """What lies inside on the ways from the start to the ends, and the point that came closest."""
    rows, count, features = ends.shape
    found, low, high = Pool.nothing(start), np.zeros((rows, count)), np.ones((rows, count))
    closest, reached = start, np.full(rows, -np.inf)
    for _ in range(ROUNDS):
        share = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, CUTS + 1)[1:]
        points = start[:, None, None, :] + share[..., None] * (ends - start[:, None, :])[:, :, None, :]
        asked = different(task, task.domain.project(points.reshape(rows, count * CUTS, features)))
        (verdict,) = yield [asked]
        found = (found + flipping(task, asked, verdict)).best(PATHS)
        best = verdict.margin.argmax(axis=1)
        margin = verdict.margin[np.arange(rows), best]
        closest = np.where((margin > reached)[:, None], asked.codes[np.arange(rows), best], closest)
        reached = np.maximum(reached, margin)
        at = verdict.margin.reshape(rows, count, CUTS).argmax(axis=2)[..., None]
        nearest, step = np.take_along_axis(share, at, 2)[..., 0], (high - low) / CUTS
        low, high = np.maximum(nearest - step, 0.0), np.minimum(nearest + step, 1.0)
    return found, closest


def _around(task: Task, goal: Within, start: Floats) -> Floats:
    """Both ends of the finest and strongest numbers, the others left where they came closest: whole numbers jump."""
    domain, surrogate = task.domain, task.knowledge.surrogate
    assert surrogate is not None
    numeric, ends = domain.numeric, _each_at_its_ends(domain, start)
    gain = np.abs(goal.odds(surrogate.outputs_of(ends)) - goal.odds(surrogate.outputs_of(start[:, None])))
    gain = np.where(np.repeat(domain.integer[numeric], 2), gain * WHOLE, gain)
    order = np.argsort(-gain, axis=1, kind="stable")[:, :PATHS]
    return np.take_along_axis(ends, order[:, :, None], 1)


def _ends(task: Task, goal: Within, base: Floats) -> Floats:
    """Far ends (rows, PATHS, features) that the copy expects beyond the bounds: single numbers at an end of their range,
    the cheapest crossing first, and all numbers together, each at the end that leads on."""
    domain, surrogate = task.domain, task.knowledge.surrogate
    assert surrogate is not None
    numeric, single = domain.numeric, _each_at_its_ends(domain, base)
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


def _each_at_its_ends(domain: Domain, start: Floats) -> Floats:
    """The start with one number at the lower, then at the upper end of its range: (rows, 2 * numbers, features)."""
    ends = np.repeat(start[:, None, :], 2 * len(domain.numeric), axis=1)
    for k, j in enumerate(domain.numeric):
        ends[:, 2 * k, j], ends[:, 2 * k + 1, j] = domain.lower[:, j], domain.upper[:, j]
    return domain.project(ends)
