"""The methods `closest` and `sparse`: two orders of the same candidates."""

import numpy as np

from fasterce.fitting.state import SearchState
from fasterce.kernels.arrays import TREES, Found
from fasterce.search import diversity, guided
from fasterce.search.context import SearchContext
from fasterce.search.margin import beyond
from fasterce.search.pool import EDITS, EXAMPLES, Pool
from fasterce.search.propose import exact_candidates, flipping, more_examples, nearest_examples, neighbours
from fasterce.search.rounds import Search, for_rows
from fasterce.typing import Indices

# Evaluated candidates per query, to bound the memory of a block of queries.
CANDIDATES = 250


def rows_at_once(state: SearchState) -> int:
    """Return how many queries are searched together, so that their candidates fit in memory."""
    return max(1, state.config.search.max_cells // (CANDIDATES * len(state.codec.schema)))


def closest(context: SearchContext, n: int = 1) -> Search:
    """Return the cheapest candidates that change different features."""
    return (yield from _chosen(context, n, fewest=False))


def sparse(context: SearchContext, n: int = 1) -> Search:
    """Return the candidates that change the fewest features, the cheapest first."""
    return (yield from _chosen(context, n, fewest=True))


def _chosen(context: SearchContext, n: int, fewest: bool) -> Search:
    pool = yield from candidates(context)
    if n > 1 and not context.searches_exactly:
        pool = yield from guided.others(context, pool, n + context.config.verification_attempts)
    chosen = most_diverse(context, pool, n + context.config.verification_attempts, fewest)
    if n > 1 and not context.searches_exactly:
        chosen = most_diverse(context, (yield from guided.needed(context, chosen)), n, fewest)
    return (yield from beyond(context, chosen))


def most_diverse(context: SearchContext, pool: Pool, n: int, fewest: bool = False) -> Pool:
    """Return the `n` cheapest candidates that change different features."""
    return diversity.chosen(pool, context.domain.row, n, context.diversity, fewest, context.config)


def candidates(context: SearchContext) -> Search:
    """Return the candidates of each query, the same for every method and number of counterfactuals.

    They are searched once: a method that runs beside another one waits for its candidates.
    """
    shared = context.shared
    if shared.searching:
        while shared.pool is None:
            yield []
        return shared.pool
    shared.searching = True
    shared.pool = yield from (_exact(context) if context.searches_exactly else guided.search(context))
    return shared.pool


def _exact(context: SearchContext) -> Search:
    """Search with the exact scorer. Where trees need many changes, the nearest known rows of the target are improved with it,
    too; for queries without a candidate more known rows; in the end these rows themselves are tried."""
    found = exact_candidates(context)
    context.evaluator.limits.note_complete(np.flatnonzero(found.complete), True)
    if context.evaluator.note_margins is not None:
        context.evaluator.note_margins(np.arange(len(found.best_margin)), found.best_margin)
    pool = _pool_of(context, found)
    deep = needing_many(context, found)
    if deep.size:
        some = context.take(deep)
        starts = neighbours(some, nearest_examples(some, context.config.known_starts)).codes
        pool += Pool.among(_pool_of(some, some.search_exactly(starts, context.config.from_known)), deep, context.domain.base)
    stuck = np.flatnonzero(found.count == 0)
    if stuck.size:
        some = context.take(stuck)
        improved = some.search_exactly(neighbours(some, more_examples(some)).codes)
        pool += Pool.among(_pool_of(some, improved).from_origin(EXAMPLES), stuck, context.domain.base)
        stuck = stuck[improved.count == 0]
    return pool + (yield from for_rows(stuck, context, known_rows))


def needing_many(context: SearchContext, found: Found) -> Indices:
    """Return the queries to trees whose cheapest candidate changes many features: a search that adds one change after another
    may have missed a cheaper one. Networks have been started from known rows already."""
    assert context.scorer is not None
    changes = (found.codes[:, 0] != context.domain.row).sum(axis=1)
    many = (found.count > 0) & (changes > context.config.many_changes)
    return np.flatnonzero(many & (context.scorer.kind == TREES))


def known_rows(context: SearchContext, n: int = 1) -> Search:
    """Return known rows of the target, projected on the constraints: the nearest, and those farthest beyond the boundary."""
    rows = neighbours(context, more_examples(context))
    (evaluation,) = yield [rows]
    return flipping(context, rows, evaluation, n, EXAMPLES)


def _pool_of(context: SearchContext, found: Found) -> Pool:
    most = max(int(found.count.max(initial=0)), 1)
    valid = np.arange(most) < found.count[:, None]
    pool = Pool.start(found.codes[:, :most], valid, context.domain, context.distance, lead=found.margin[:, :most])
    return pool.from_origin(np.where(found.known[:, :most], EXAMPLES, EDITS))
