"""The methods `closest`, `sparse` and `realistic`. All rows are searched together, so the number of calls is fixed."""

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.kernels.arrays import Found
from fasterce.search import diversity, narrow, ranked, sweep, thorough
from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.margin import beyond
from fasterce.search.pool import Pool
from fasterce.search.propose import (
    different,
    frozen_aware_direction,
    more_examples,
    nearest_examples,
    neighbours,
    walk,
    without_trifles,
)
from fasterce.search.realism import ExampleMixes, allowed, priced, retreats
from fasterce.search.rounds import Proposal, Search, for_rows, in_parallel
from fasterce.search.shortlist import rows_at_once
from fasterce.search.thorough import flipping
from fasterce.typing import Floats, Indices


def closest(context: SearchContext, n: int = 1) -> Search:
    """CE1: the cheapest change that reaches the target.

    The best candidates by the surrogate are evaluated; rows without a result are searched thoroughly.
    """
    if context.searches_exactly:
        return (yield from beyond(context, (yield from _exact(context, n))))
    if context.state.surrogate is None:
        return (yield from beyond(context, (yield from _thorough(context, n))))
    if n > 1:
        return (yield from beyond(context, (yield from _several(context, n))))
    known = yield from ranked.first_round(context)
    solved, stuck = _split(known.pool)
    nearer, others = yield from in_parallel(
        [
            for_rows(solved, context, lambda some: ranked.nearer(some, known.take(solved))),
            for_rows(stuck, context, lambda some: _after_first_round(some, known.take(stuck), 1)),
        ]
    )
    return (yield from beyond(context, (nearer + others + known.pool).best(2)))


def sparse(context: SearchContext, n: int = 1) -> Search:
    """CE2: the cheapest change of one feature; if none suffices of two, then three, then as few as are found."""
    if context.searches_exactly:
        return (yield from beyond(context, (yield from _exact(context, n, fewest=True))))
    if context.state.surrogate is None:
        return (yield from beyond(context, (yield from _fewest(context, n))))
    if n > 1:
        return (yield from beyond(context, (yield from _several_sparse(context, n))))
    known = yield from ranked.first_round(context, together=False)
    solved, stuck = _split(known.pool)
    alone, others = yield from in_parallel(
        [
            for_rows(solved, context, lambda some: ranked.nearer(some, known.take(solved), together=False)),
            for_rows(stuck, context, lambda some: _fewest(some, 1)),
        ]
    )
    return (yield from beyond(context, (alone + others).sparsest(context.domain.base).best(2)))


def realistic(context: SearchContext, n: int = 1) -> Search:
    """CE3: move toward similar known rows of the target, linked features together.

    Rows for which that finds nothing walk in the latent space, orthogonally to the frozen features as in the paper, and
    also get the candidates of `closest`.
    """
    if context.realism == 0:
        return (yield from closest(context, n))
    examples = nearest_examples(context, context.config.realistic_examples)
    between = _toward_examples(context, examples[:, : max(context.config.realistic_starts, n)])
    verdicts = yield between
    pool = reduce(Pool.__add__, (flipping(context, *pair) for pair in zip(between, verdicts, strict=True)))
    pool = _with_realism(context, pool, examples)
    stuck = np.flatnonzero(~any_of(pool.valid))
    nearer, walked, others = yield from in_parallel(
        [_retreated(context, pool, examples), for_rows(stuck, context, _walked), for_rows(stuck, context, closest)]
    )
    pool = _with_realism(context, pool + nearer + walked + others, examples).distinct(context.domain.base)
    several = pool.best(2) if n == 1 else _most_diverse(context, pool, n)
    return (yield from beyond(context, several))


def known_rows(context: SearchContext, n: int = 1) -> Search:
    """Known rows of the target, projected on the constraints: the nearest, and those farthest beyond the boundary."""
    candidates = neighbours(context, more_examples(context))
    (verdict,) = yield [candidates]
    return flipping(context, candidates, verdict, n)


__all__ = ["VARIANTS", "rows_at_once"]

VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _exact(context: SearchContext, n: int, fewest: bool = False) -> Search:
    """Choose among the candidates found with the exact scorer.

    For rows without one, known rows of the target are improved with the scorer; in the end these rows themselves are tried.
    """
    found = context.candidates
    if context.judge.note_margins is not None:
        context.judge.note_margins(np.arange(len(found.best_margin)), found.best_margin)
    pool = _pool_of(context, found)
    stuck = np.flatnonzero(found.count == 0)
    if stuck.size:
        some = context.take(stuck)
        improved = some.search_exactly(neighbours(some, more_examples(some)).codes)
        pool += Pool.among(_pool_of(some, improved), stuck, context.domain.base)
        stuck = stuck[improved.count == 0]
    pool += yield from for_rows(stuck, context, known_rows)
    return _most_diverse(context, pool, n + context.config.verification_attempts, fewest)


def _pool_of(context: SearchContext, found: Found) -> Pool:
    most = max(int(found.count.max(initial=0)), 1)
    valid = np.arange(most) < found.count[:, None]
    return Pool.start(found.codes[:, :most], valid, context.domain, context.distance, lead=found.margin[:, :most])


def _several(context: SearchContext, n: int) -> Search:
    """Different combinations of features ranked by the surrogate, then anything that reaches the target; without changes
    that are not needed."""
    known, pool = yield from _combinations(context, n)
    few = np.flatnonzero(~diversity.enough(pool, context.domain.row, min(n, context.config.min_diverse)))
    shrunk, others = yield from in_parallel(
        [
            ranked.shrunk(context, pool, n + context.config.spare_counterfactuals),
            for_rows(few, context, lambda some: _after_first_round(some, known.take(few), n)),
        ]
    )
    pool = _most_diverse(context, shrunk + others, n + context.config.spare_counterfactuals)
    return _most_diverse(context, (yield from diversity.needed(context, pool)), n)


def _most_diverse(context: SearchContext, pool: Pool, n: int, fewest: bool = False) -> Pool:
    return diversity.chosen(pool, context.domain.row, n, context.diversity, fewest, context.config)


def _combinations(context: SearchContext, n: int) -> Generator[Proposal, list[Verdict], tuple[ranked.Round, Pool]]:
    """Candidates proposed by the surrogate; for rows with too few, two more rounds without features used already."""
    known = yield from diversity.first_round(context, n)
    pool = known.pool
    for places in ((0,), (0, 1)):
        few = np.flatnonzero(~diversity.enough(pool, context.domain.row, n))
        again = yield from in_parallel([_without(context, pool, few, n, place) for place in places])
        most = 3 * (n + context.config.spare_counterfactuals)
        pool = reduce(Pool.__add__, [pool, *again]).distinct(context.domain.base).best(most)
    return known, pool


def _without(context: SearchContext, pool: Pool, few: Indices, n: int, place: int) -> Search:
    return (yield from for_rows(few, context, lambda some: diversity.another_round(some, pool.take_rows(few), n, place)))


def _some_combinations(context: SearchContext, n: int) -> Search:
    _, pool = yield from _combinations(context, n)
    shrunk = yield from ranked.shrunk(context, pool, n + context.config.spare_counterfactuals)
    return (yield from diversity.needed(context, shrunk))


def _several_sparse(context: SearchContext, n: int) -> Search:
    """Every feature that suffices alone and, for rows with fewer than `n`, combinations; fewest features first."""
    known = yield from ranked.first_round(context, n, together=False)
    solved = np.flatnonzero(any_of(known.pool.valid))
    stuck = np.flatnonzero(~diversity.enough(known.pool, context.domain.row, n))
    alone, others, together = yield from in_parallel(
        [
            for_rows(solved, context, lambda some: ranked.nearer(some, known.take(solved), n, together=False)),
            for_rows(stuck, context, lambda some: _fewest(some, n)),
            for_rows(stuck, context, lambda some: _some_combinations(some, n)),
        ]
    )
    return _most_diverse(context, alone + others + together + known.pool, n, fewest=True)


def _split(pool: Pool, n: int = 1) -> tuple[Indices, Indices]:
    """Return the rows with at least `n` candidates, and the others."""
    enough = pool.valid.sum(axis=1) >= n
    return np.flatnonzero(enough), np.flatnonzero(~enough)


def _after_first_round(context: SearchContext, known: ranked.Round, n: int) -> Search:
    """For rows without a result: rank again with corrected margins, try many changes, then search thoroughly."""
    few, many, inside = yield from in_parallel(
        [ranked.again(context, known, n), ranked.climb(context), narrow.between(context)]
    )
    found = few + many + inside
    solved, stuck = _split(found, n)
    nearer, others = yield from in_parallel(
        [
            for_rows(solved, context, lambda some: ranked.around(some, found.take_rows(solved), n)),
            for_rows(stuck, context, lambda some: _thorough(some, n)),
        ]
    )
    return nearer + others


def _thorough(context: SearchContext, n: int) -> Search:
    """Search thoroughly, as many rows at a time as fit in memory."""

    def some(part: SearchContext) -> Search:
        return (yield from thorough.shrunk(part, (yield from thorough.everything(part)), n))

    return (yield from _in_parts(context, some))


def _in_parts(context: SearchContext, search: Callable[[SearchContext], Search]) -> Search:
    model_rows = len(context.state.coarse_levels[0]) + context.config.extra_rows
    parts = context.parts(np.arange(len(context.domain.base)), model_rows)
    if len(parts) == 1:
        return (yield from search(context))
    found = Pool.nothing(context.domain.base)
    for part in parts:
        found += yield from for_rows(part, context, search)
    return found


def _fewest(context: SearchContext, n: int) -> Search:
    return (yield from _in_parts(context, lambda part: _fewest_of_part(part, n)))


def _fewest_of_part(context: SearchContext, n: int) -> Search:
    """Sweep every feature; if that finds nothing, try more values and sets of two and three, then anything."""
    swept = ranked.hopeful(context, sweep.coarse(context))
    verdict, found = yield from thorough.sweep_all(context, swept)
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_rows(none, context, lambda some: _beyond_the_sweep(some, swept.take(none), verdict.take(none)))
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_rows(none, context, thorough.everything)
    return (yield from thorough.shrunk(context, found.sparsest(context.domain.base), n))


def _beyond_the_sweep(context: SearchContext, swept: Edits, verdict: Verdict) -> Search:
    if context.state.surrogate is None:
        return (yield from thorough.finer_changes(context))
    searches = [
        ranked.finer(context, swept, verdict),
        ranked.sets(context, 2),
        ranked.sets(context, 3),
        ranked.climb(context),
    ]
    searches.append(narrow.between(context))
    return reduce(Pool.__add__, (yield from in_parallel(searches)))


def _toward_examples(context: SearchContext, examples: Floats) -> list[Candidates]:
    """Return the nearest example itself, and points between each example and the row."""
    mixes = ExampleMixes.between(context, examples)
    room = np.maximum(allowed(context)[:, None] - mixes.apart, 0.0)
    shares, safety = context.config.realistic_shares, context.config.realistic_safety
    if context.state.surrogate is None:
        shares, safety = context.config.realistic_blind_shares, (-np.inf,) * len(context.config.realistic_blind_shares)
    stops = [mixes.stop(share * room, safe) for share, safe in zip(shares, safety, strict=True)]
    return [different(context, mixes.legal[:, :1]), *stops]


def _walked(context: SearchContext) -> Search:
    walked = walk(context, frozen_aware_direction(context))
    relevant = np.where(context.state.relevant, walked.codes, context.domain.base[:, None, :])
    steps = without_trifles(context, Candidates(relevant, walked.open))
    (verdict,) = yield [steps]
    return flipping(context, steps, verdict)


def _retreated(context: SearchContext, pool: Pool, examples: Floats) -> Search:
    candidates = retreats(context, pool.best(1), examples)
    (verdict,) = yield [candidates]
    return flipping(context, candidates, verdict)


def _with_realism(context: SearchContext, pool: Pool, examples: Floats) -> Pool:
    return replace(pool, cost=priced(context, pool, examples))
