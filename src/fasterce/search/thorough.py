"""The thorough search, for rows where no surrogate exists or its candidates do not reach the target.

Walk along the normal of the prediction hyperplane, sweep every feature, try known examples and pairs suggested by the
sweep; then drop changes that are not needed and shrink the rest.
"""

from collections.abc import Generator, Sequence
from functools import reduce

import numpy as np

from fasterce.latent.line_search import first
from fasterce.search import combine, refine, sweep
from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.pool import Pool
from fasterce.search.propose import (
    as_it_is,
    different,
    feature_walks,
    frozen_aware_direction,
    latent_gains,
    latent_heights,
    more_examples,
    nearest_examples,
    neighbours,
    walk,
)
from fasterce.search.rounds import Proposal, Search, for_rows
from fasterce.typing import Floats


def everything(context: SearchContext) -> Search:
    """Return all candidates that reach the target: edits, and walks, examples and pairs without unneeded changes."""
    walked, known = walk(context, frozen_aware_direction(context)), neighbours(context, nearest_examples(context))
    alone, start = sweep.coarse(context), as_it_is(context)
    on_walk, of_known, of_alone, of_start = yield [walked, known, alone, start]
    singles = sweep.cheapest(alone, of_alone, context.domain, context.distance)
    pool = flipping(context, start, of_start) + singles_pool(context, singles)
    far = _first_valid(context, walked, on_walk) + flipping(context, known, of_known, 1, counted=False)
    now = of_start.margin[:, 0]
    if context.start is not None:
        now = np.where(np.isfinite(now), now, context.start)
    gain = sweep.gains(of_alone, now) if context.judge.informative else None
    stuck = np.flatnonzero(~any_of((pool + far).valid))
    far += yield from for_rows(stuck, context, lambda some: _last_resort(some, None if gain is None else gain[stuck]))
    pairs = [] if gain is None else [_pairs(context, alone, gain, -now, singles)]
    pool += yield from needed_changes(context, far, pairs)
    if gain is None:
        pool += yield from needed_changes(context, pool.best(1))
    return pool + far.within(context.domain)


def sweep_all(context: SearchContext, alone: Edits) -> Generator[Proposal, list[Verdict], tuple[Verdict, Pool]]:
    """Vary every feature alone; return the verdicts and what reaches the target. Named features are also walked along their
    own directions, as in the paper."""
    walks, start = feature_walks(context), different(context, as_it_is(context).codes)
    of_alone, of_walks, of_start = yield [alone, walks, start]
    swept = [
        sweep.cheapest(edits, of, context.domain, context.distance) for edits, of in ((alone, of_alone), (walks, of_walks))
    ]
    return of_alone, flipping(context, start, of_start) + singles_pool(context, swept[0]) + singles_pool(context, swept[1])


def finer_changes(context: SearchContext) -> Search:
    """Try more values of every feature, in parts that fit in memory."""
    found = Pool.nothing(context.domain.base)
    every = np.arange(len(context.domain.base))
    for part in context.parts(every, len(context.state.fine_levels[0])):
        found += yield from for_rows(part, context, _finer)
    return found


def _finer(context: SearchContext) -> Search:
    fine = sweep.fine(context, nearest_examples(context))
    (verdict,) = yield [fine]
    return singles_pool(context, sweep.cheapest(fine, verdict, context.domain, context.distance))


def _last_resort(context: SearchContext, gain: Floats | None) -> Search:
    """For rows without a result: more examples, the strongest edits combined, and, if a few features were named, all their
    combinations on a grid."""
    alone = sweep.coarse(context)
    groups = [
        combine.stacks(alone, latent_gains(context, alone) if gain is None else gain, context.config),
        combine.grid(context.domain, context.named, context.state.coarse_levels, context.config),
        neighbours(context, more_examples(context)),
    ]
    verdicts = yield groups
    pools = [flipping(context, group, verdict, counted=False) for group, verdict in zip(groups, verdicts, strict=True)]
    return reduce(Pool.__add__, pools).best(2)


def _first_valid(context: SearchContext, walked: Candidates, verdict: Verdict) -> Pool:
    step = first(verdict.valid)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, (step >= 0)[:, None], context.domain, context.distance, counted=False)


def needed_changes(context: SearchContext, far: Pool, others: Sequence[Candidates] = ()) -> Search:
    """Remove from each candidate the changes it does not need; `others` are evaluated in the same call."""
    base = context.domain.base
    parts = [
        refine.changed_parts(codes, valid, base)
        for codes, valid in zip(np.moveaxis(far.codes, 1, 0), far.valid.T, strict=True)
    ]
    groups = [*(group for part in parts for group in refine.one_by_one(part, base)), *others]
    verdicts = yield groups
    graded = [_graded(context, group, verdict) for group, verdict in zip(groups, verdicts, strict=True)]
    fewer = [
        refine.keep_most_needed(part, without, alone, base, context.distance.parts(part.codes, context.domain.row))
        for part, without, alone in zip(parts, graded[0::2], graded[1::2], strict=False)
    ]
    of_fewer = yield fewer
    every = zip([*groups, *fewer], [*verdicts, *of_fewer], strict=True)
    return reduce(Pool.__add__, (flipping(context, group, verdict) for group, verdict in every))


def _graded(context: SearchContext, group: Candidates, verdict: Verdict) -> Verdict:
    """Where the model has labels only, grade candidates with the same label by the prediction hyperplane."""
    if context.judge.informative:
        return verdict
    return Verdict(verdict.valid, verdict.margin + context.config.latent_hint * np.tanh(latent_heights(context, group.codes)))


def _pairs(context: SearchContext, alone: Edits, gain: Floats, need: Floats, singles: sweep.Singles) -> Candidates:
    price = context.distance.single(alone.feature, alone.value, context.domain.row)
    return combine.pairs(alone, gain, price, need, singles.cost.min(axis=1, initial=np.inf), context.config)


def singles_pool(context: SearchContext, singles: sweep.Singles) -> Pool:
    codes, floors, valid = singles.pool(context.domain.base, context.config.kept_candidates)
    return Pool.start(codes, valid, context.domain, context.distance, floors)


def flipping(
    context: SearchContext, group: Candidates, verdict: Verdict, most: int | None = None, counted: bool = True
) -> Pool:
    """Return the cheapest candidates of a group that reach the target; if not `counted` also those with more changes than
    allowed."""
    valid = verdict.valid & different(context, group.codes).open
    found = Pool.start(group.codes, valid, context.domain, context.distance, lead=verdict.margin, counted=counted)
    return found.best(context.config.kept_candidates if most is None else most)


def shrunk(context: SearchContext, pool: Pool, n: int) -> Search:
    """Shrink in three rounds. For one counterfactual fewer candidates are kept each time; for several, twice as many."""
    base, most = context.domain.base, context.config.kept_candidates
    pool = pool.distinct(base)
    if n > 1:
        pool = pool.best(context.config.max_compared).different(base, max(most, 2 * n))
    pool = pool.promising(2 * most, context.distance)
    sections = context.config.shrink_sections
    for kept in (2 * most, most, most // 2):
        pool = pool.best(kept if n == 1 else max(most, 2 * n))
        bracket, undone = refine.bracket(pool, context.domain, context.distance, sections), refine.undone(pool, base)
        verdict, of_undone = yield [bracket.candidates, undone]
        pool = refine.shrink(pool, bracket, verdict, context.domain, context.distance) + flipping(
            context, undone, of_undone, 1
        )
    return pool.best(most // 3) if n == 1 else pool.different(base, n)
