"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import combine, refine, sweep
from fasterce.search.dialogue import Search, for_some, side_by_side
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.linesearch import first
from fasterce.search.pool import Pool
from fasterce.search.propose import (
    NEIGHBOURS,
    as_it_is,
    different,
    feature_walks,
    keeping_frozen_still,
    latent_gains,
    latent_heights,
    more_examples,
    nearest_examples,
    neighbours,
    walk,
    without_trifles,
)
from fasterce.search.robust import beyond
from fasterce.search.task import Task

KEPT = 6
MOST_COMPARED = 40
TYPICAL = 0.8
REALISM = 3.0
HINT = 0.5


def closest(task: Task, n: int = 1) -> Search:
    """CE1: walk along the prediction's normal, and try single changes and known examples beside it; then refine."""
    walked, known = walk(task, keeping_frozen_still(task)), neighbours(task, nearest_examples(task))
    alone, start = sweep.coarse(task), as_it_is(task)
    on_walk, of_known, of_alone, of_start = yield [walked, known, alone, start]
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    pool = _pool(task, start, of_start) + _singles_pool(task, singles)
    far = _first_valid(task, walked, on_walk) + _pool(task, known, of_known, 1)
    now = of_start.margin[:, 0]
    gain = sweep.gains(of_alone, now) if task.judge.informative else None
    stuck = np.flatnonzero(~any_of((pool + far).valid))
    far += yield from for_some(stuck, task, lambda some: _last_resort(some, None if gain is None else gain[stuck]))
    pairs = [] if gain is None else [_pairs(task, alone, gain, -now, singles)]
    pool += yield from _needed_changes(task, far, pairs)
    if gain is None:
        pool += yield from _needed_changes(task, pool.best(1))
    return (yield from _shrunk(task, pool + far, n))


def sparse(task: Task, n: int = 1) -> Search:
    """CE2: the cheapest single change that flips, of the named features or of any."""
    singles = yield from _single_changes(task, sweep.coarse(task) + feature_walks(task))
    stuck = np.flatnonzero(~any_of(singles.valid))
    for part in task.parts(stuck, len(sweep.fine_levels(task.knowledge.codec)[0])):
        singles += yield from for_some(part, task, _finer_changes)
    return (yield from _shrunk(task, singles, n))


def realistic(task: Task, n: int = 1) -> Search:
    """CE3: walk orthogonally to what must not change, keep what the decoder moves together, stay near known examples.

    Rows for which that finds nothing get what `closest` finds.
    """
    examples = nearest_examples(task, 2 * NEIGHBOURS)
    walked = without_trifles(task, walk(task, keeping_frozen_still(task)))
    known = without_trifles(task, neighbours(task, examples[:, :NEIGHBOURS]))
    on_walk, of_known = yield [walked, known]
    far = _judged_real(task, _pool(task, walked, on_walk, walked.codes.shape[1]), examples).best(1)
    far += _judged_real(task, _pool(task, known, of_known), examples).best(1)
    stuck = np.flatnonzero(~any_of(far.valid))
    fewer, others = yield from side_by_side([_needed_changes(task, far), for_some(stuck, task, closest)])
    pool = _judged_real(task, far + fewer + others, examples).distinct(task.domain.base)
    return (yield from beyond(task, pool.best(max(KEPT, n))))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _single_changes(task: Task, alone: Edits) -> Search:
    start = different(task, as_it_is(task).codes)
    of_alone, of_start = yield [alone, start]
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    return _pool(task, start, of_start) + _singles_pool(task, singles)


def _finer_changes(task: Task) -> Search:
    return (yield from _single_changes(task, sweep.fine(task, nearest_examples(task))))


def _last_resort(task: Task, gain: Floats | None) -> Search:
    """For rows where nothing flips yet: more and deeper examples, the strongest changes stacked, and, where the caller
    named a few features, all their combinations on a grid."""
    alone = sweep.coarse(task)
    groups = [
        combine.stacks(alone, latent_gains(task, alone) if gain is None else gain),
        combine.grid(task.domain, task.named, sweep.coarse_levels(task.knowledge.codec)),
        neighbours(task, more_examples(task)),
    ]
    verdicts = yield groups
    pools = [_pool(task, group, verdict) for group, verdict in zip(groups, verdicts, strict=True)]
    return reduce(Pool.__add__, pools).best(2)


def _first_valid(task: Task, walked: Candidates, verdict: Verdict) -> Pool:
    step = first(verdict.valid)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, (step >= 0)[:, None], task.domain, task.distance)


def _needed_changes(task: Task, far: Pool, others: Sequence[Candidates] = ()) -> Search:
    """What is left of each candidate without the changes it does not need; `others` are asked in the same breath."""
    base = task.domain.base
    parts = [
        refine.changed_parts(codes, valid, base)
        for codes, valid in zip(np.moveaxis(far.codes, 1, 0), far.valid.T, strict=True)
    ]
    asked = [*(group for part in parts for group in refine.one_by_one(part, base)), *others]
    verdicts = yield asked
    graded = [_graded(task, group, verdict) for group, verdict in zip(asked, verdicts, strict=True)]
    fewer = [
        refine.keep_most_needed(part, without, alone, base, task.distance.parts(part.codes, task.domain.row))
        for part, without, alone in zip(parts, graded[0::2], graded[1::2], strict=False)
    ]
    of_fewer = yield fewer
    every = zip([*asked, *fewer], [*verdicts, *of_fewer], strict=True)
    return reduce(Pool.__add__, (_pool(task, group, verdict) for group, verdict in every))


def _graded(task: Task, group: Candidates, verdict: Verdict) -> Verdict:
    """Where the model gives labels only, the prediction hyperplane says which of two equal answers is nearer."""
    if task.judge.informative:
        return verdict
    return Verdict(verdict.valid, verdict.margin + HINT * np.tanh(latent_heights(task, group.codes)))


def _judged_real(task: Task, pool: Pool, examples: Floats) -> Pool:
    """Priced by distance, and dearly by how much farther from its nearest example a candidate is than people are."""
    away = task.distance.total(pool.codes[:, :, None, :], examples[:, None, :, :]).min(axis=2)
    excess = np.maximum(away - TYPICAL * task.knowledge.typical, 0.0)
    priced = np.where(pool.valid, task.distance.total(pool.codes, task.domain.row[:, None, :]), np.inf)
    return replace(pool, cost=np.round(priced + REALISM * excess, 9))


def _pairs(task: Task, alone: Edits, gain: Floats, need: Floats, singles: sweep.Singles) -> Candidates:
    price = task.distance.single(alone.feature, alone.value, task.domain.row)
    return combine.pairs(alone, gain, price, need, singles.cost.min(axis=1, initial=np.inf))


def _singles_pool(task: Task, singles: sweep.Singles) -> Pool:
    codes, floors, valid = singles.pool(task.domain.base, KEPT)
    return Pool.start(codes, valid, task.domain, task.distance, floors)


def _pool(task: Task, group: Candidates, verdict: Verdict, most: int = KEPT) -> Pool:
    valid = verdict.valid & different(task, group.codes).open
    return Pool.start(group.codes, valid, task.domain, task.distance).best(most)


def _shrunk(task: Task, pool: Pool, n: int) -> Search:
    """Three rounds of shrinking. For one answer fewer candidates are kept each time; for several, twice as many."""
    base = task.domain.base
    pool = pool.distinct(base)
    if n > 1:
        pool = pool.best(MOST_COMPARED).different(base, max(KEPT, 2 * n))
    pool = pool.promising(2 * KEPT, task.distance)
    for kept in (2 * KEPT, KEPT, KEPT // 2):
        pool = pool.best(kept if n == 1 else max(KEPT, 2 * n))
        asked = refine.bracket(pool, task.domain, task.distance)
        (verdict,) = yield [asked.candidates]
        pool = refine.shrink(pool, asked, verdict, task.domain, task.distance)
    return (yield from beyond(task, pool.best(KEPT // 3) if n == 1 else pool.different(base, n)))
