"""The method `realistic`."""

from collections.abc import Sequence

import numpy as np

from fasterce.data.schema import MISSING
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, any_of
from fasterce.search.margin import beyond
from fasterce.search.methods.closest import closest, most_diverse
from fasterce.search.pool import EDITS, EXAMPLES, LATENT, Pool
from fasterce.search.proposals.latent import frozen_aware_direction, walk
from fasterce.search.propose import different, flipping, neighbours, without_trifles
from fasterce.search.realism import Realism
from fasterce.search.rounds import Search, for_rows, in_parallel
from fasterce.search.shrink import without_one_change
from fasterce.typing import Floats

# Distances that differ by less are the same.
ROUNDING = 1e-9


def realistic(context: SearchContext, n: int = 1) -> Search:
    """CE3: near to the query and to known rows of the target, features that are tied together changed together.

    Candidates of `closest`, known rows and steps of a latent walk are improved by the objective of `Realism`. Rows for which
    that finds fewer than `n` also get the candidates of `closest`.
    """
    if context.realism == 0:
        return (yield from closest(context, n))
    realism = Realism.of(context)
    if context.realism >= 1:
        pool = yield from _evaluated(context, neighbours(context, realism.legal), EXAMPLES)
    elif context.searches_exactly:
        pool = _improved(context, realism)
    else:
        pool = yield from _expected(context, realism)
    stuck = np.flatnonzero(~any_of(pool.valid))
    few = np.flatnonzero(pool.distinct(context.domain.row).valid.sum(axis=1) < n)
    searches = [for_rows(stuck, context, _walked), for_rows(few, context, lambda some: closest(some, n))]
    walked, others = yield from in_parallel(searches)
    # The first must not depend on how many are wanted: only queries without a candidate may get it from `closest`.
    first = others.best(1).without(any_of(pool.valid)[:, None])
    pool, others = realism.rank(pool + walked + first), realism.rank(others)
    pool = (pool + others.without(others.cost < pool.best(1).cost)).distinct(context.domain.base)
    return (yield from beyond(context, pool.best(2) if n == 1 else most_diverse(context, pool, n)))


def _improved(context: SearchContext, realism: Realism) -> Pool:
    """Return candidates improved with the exact scorer and those of `closest`, none cheaper than the cheapest of these."""
    found = realism.edits
    codes, margin = realism.improve(_starts(context, realism))
    moved = realism.moved_back(codes)
    copied = (margin > -np.inf) & realism.copies(codes)
    margin_moved = np.where(copied, realism.margins(moved), -np.inf)
    codes, margin = np.concatenate([codes, moved], axis=1), np.concatenate([margin, margin_moved], axis=1)
    valid = margin > realism.tolerance
    if context.domain.linked:
        codes = context.domain.complete(codes)
        valid &= context.domain.contains(codes) & (realism.margins(codes) > realism.tolerance)
    pool = Pool.start(codes, valid, context.domain, context.distance, lead=margin).from_origin(2 * _origins(context))
    least = np.where(found.count > 0, found.cost[:, 0], 0.0)
    pool = pool.without(pool.cost < least[:, None] - ROUNDING)
    there = np.arange(found.codes.shape[1]) < found.count[:, None]
    return pool + Pool.start(found.codes, there, context.domain, context.distance, lead=found.margin)


def _expected(context: SearchContext, realism: Realism) -> Search:
    """Return candidates that the surrogate expects to reach the target and the model confirms.

    Without a surrogate these are points on the way to known rows, the best also without changes they do not need.
    """
    surrogate, config = context.state.surrogate, context.config
    nearest = realism.legal[:, : config.realistic_starts]
    if surrogate is None:
        pool = yield from _evaluated(context, different(context, _on_the_way(context, nearest)), EXAMPLES)
        best = realism.rank(pool).best(config.realistic_starts).filled(context.domain.base)
        fewer = without_one_change(best.codes, context.domain.base)
        return pool + (yield from _evaluated(context, different(context, fewer), EXAMPLES))
    starts = _starts(context, realism)
    parts = [realism.improve(starts, safety * surrogate.error)[0] for safety in config.realistic_safety]
    candidates = different(context, np.concatenate([*parts, nearest[:, :1]], axis=1))
    return (yield from _evaluated(context, candidates, [*len(parts) * _origins(context), EXAMPLES]))


def _starts(context: SearchContext, realism: Realism) -> list[Floats]:
    """Return what is improved: candidates of `closest`, the nearest known rows, and the first step of a latent walk that
    reaches the target."""
    found, most = realism.edits, context.config.realistic_starts
    there = np.arange(most) < found.count[:, None]
    edits = np.where(there[:, :, None], found.codes[:, :most], context.domain.row[:, None, :])
    return [*_separately(edits), *_separately(realism.legal[:, :most]), _steps(context).codes]


def _origins(context: SearchContext) -> list[int]:
    """Return the origins of what `_starts` returns."""
    most = context.config.realistic_starts
    return [EDITS] * most + [EXAMPLES] * most + [LATENT]


def _evaluated(context: SearchContext, candidates: Candidates, origin: Sequence[int] | int) -> Search:
    (evaluation,) = yield [candidates]
    return flipping(context, candidates, evaluation, candidates.codes.shape[1], origin)


def _on_the_way(context: SearchContext, known: Floats) -> Floats:
    """Return points between the query and known rows (rows, K, features); categories change from half of the way on."""
    base, shares = context.domain.base[:, None, :], context.config.realistic_shares
    numeric = np.isin(np.arange(base.shape[2]), context.domain.numeric) & (known != MISSING) & (base != MISSING)
    points = [np.where(numeric, base + share * (known - base), known if share >= 0.5 else base) for share in shares]
    return context.domain.project(np.concatenate(points, axis=1))


def _separately(codes: Floats) -> list[Floats]:
    return [codes[:, k : k + 1] for k in range(codes.shape[1])]


def _steps(context: SearchContext) -> Candidates:
    """Return the steps of a walk in latent space, orthogonal to the frozen features as in the paper."""
    walked = walk(context, frozen_aware_direction(context))
    relevant = np.where(context.state.relevant, walked.codes, context.domain.base[:, None, :])
    return without_trifles(context, Candidates(relevant, walked.open))


def _walked(context: SearchContext) -> Search:
    steps = _steps(context)
    return (yield from _evaluated(context, steps, LATENT))
