"""Targets with narrow bounds: move from one side of the interval to the other, and bisect until a point lies inside."""

from collections.abc import Generator

import numpy as np

from fasterce.constraints.compile.domain import Domain
from fasterce.search.context import SearchContext
from fasterce.search.judge import Verdict
from fasterce.search.pool import Pool
from fasterce.search.propose import different
from fasterce.search.query_targets import Within
from fasterce.search.rounds import Proposal, Search
from fasterce.search.thorough import flipping
from fasterce.typing import Floats


def between(context: SearchContext) -> Search:
    """Search between both bounds; returns an empty pool without both bounds, scores and a surrogate."""
    targets, surrogate = context.targets, context.state.surrogate
    found = Pool.nothing(context.domain.base)
    if not isinstance(targets, Within) or surrogate is None or not context.judge.informative:
        return found
    if not (np.isfinite(targets.low) & np.isfinite(targets.high)).any() or not len(context.domain.numeric):
        return found
    start = context.domain.base
    for ends in (_ends, _around):
        way, start = yield from _cut(context, start, ends(context, targets, start))
        found = (found + way).best(context.config.interval_paths)
    return found


def _cut(context: SearchContext, start: Floats, ends: Floats) -> Generator[Proposal, list[Verdict], tuple[Pool, Floats]]:
    """Return candidates inside the interval on the lines from the start to the ends, and the closest point of each row."""
    rows, count, features = ends.shape
    cuts = context.config.interval_cuts
    found, low, high = Pool.nothing(start), np.zeros((rows, count)), np.ones((rows, count))
    closest, reached = start, np.full(rows, -np.inf)
    for _ in range(context.config.interval_rounds):
        share = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, cuts + 1)[1:]
        points = start[:, None, None, :] + share[..., None] * (ends - start[:, None, :])[:, :, None, :]
        candidates = different(context, context.domain.project(points.reshape(rows, count * cuts, features)))
        (verdict,) = yield [candidates]
        found = (found + flipping(context, candidates, verdict)).best(context.config.interval_paths)
        best = verdict.margin.argmax(axis=1)
        margin = verdict.margin[np.arange(rows), best]
        closest = np.where((margin > reached)[:, None], candidates.codes[np.arange(rows), best], closest)
        reached = np.maximum(reached, margin)
        at = verdict.margin.reshape(rows, count, cuts).argmax(axis=2)[..., None]
        nearest, step = np.take_along_axis(share, at, 2)[..., 0], (high - low) / cuts
        low, high = np.maximum(nearest - step, 0.0), np.minimum(nearest + step, 1.0)
    return found, closest


def _around(context: SearchContext, targets: Within, start: Floats) -> Floats:
    """Return both ends of the numbers with the strongest effect, integers last because they move in steps."""
    domain, surrogate = context.domain, context.state.surrogate
    assert surrogate is not None
    numeric, ends = domain.numeric, _each_at_its_ends(domain, start)
    gain = np.abs(targets.odds(surrogate.outputs_of(ends)) - targets.odds(surrogate.outputs_of(start[:, None])))
    gain = np.where(np.repeat(domain.integer[numeric], 2), gain * context.config.integer_gain_factor, gain)
    order = np.argsort(-gain, axis=1, kind="stable")[:, : context.config.interval_paths]
    return np.take_along_axis(ends, order[:, :, None], 1)


def _ends(context: SearchContext, targets: Within, base: Floats) -> Floats:
    """Far ends (rows, paths, features) that the surrogate expects beyond the interval: single numbers at an end of
    their range, the cheapest crossing first, and all numbers together, each at the end toward the interval."""
    domain, surrogate = context.domain, context.state.surrogate
    assert surrogate is not None
    numeric, single = domain.numeric, _each_at_its_ends(domain, base)
    now = targets.odds(surrogate.outputs_of(base[:, None]))
    gain = targets.odds(surrogate.outputs_of(single)) - now
    onward = np.where(now < targets.low[:, None], 1.0, -1.0)
    need = np.abs(np.where(onward > 0, targets.low[:, None] - now, now - targets.high[:, None]))
    gain = gain * onward
    price = context.distance.total(single, domain.row[:, None, :]) * need / np.maximum(gain, 1e-9)
    order = np.argsort(np.where(gain > 0, price, np.inf), axis=1, kind="stable")[:, : context.config.interval_paths - 1]
    together = base.copy()
    for k, j in enumerate(numeric):
        pair = gain[:, 2 * k : 2 * k + 2]
        best = np.take_along_axis(single[:, 2 * k : 2 * k + 2, j], pair.argmax(axis=1)[:, None], 1)[:, 0]
        together[:, j] = np.where(pair.max(axis=1) > 0, best, base[:, j])
    return np.concatenate([np.take_along_axis(single, order[:, :, None], 1), together[:, None]], axis=1)


def _each_at_its_ends(domain: Domain, start: Floats) -> Floats:
    """Return the start with one number at the lower, then at the upper end of its range: (rows, 2 * numbers, features)."""
    ends = np.repeat(start[:, None, :], 2 * len(domain.numeric), axis=1)
    for k, j in enumerate(domain.numeric):
        ends[:, 2 * k, j], ends[:, 2 * k + 1, j] = domain.lower[:, j], domain.upper[:, j]
    return domain.project(ends)
