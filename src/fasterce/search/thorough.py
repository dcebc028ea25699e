"""Ask about everything: the search where no copy of the model was distilled, or where what it proposed did not flip.

Walk along the prediction's normal, sweep every feature, try known examples and what the sweep says of pairs; then drop
what is not needed and shrink the rest.
"""

from collections.abc import Generator, Sequence
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import combine, refine, sweep
from fasterce.search.dialogue import Search, Wish, for_some
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.linesearch import first
from fasterce.search.pool import Pool
from fasterce.search.propose import (
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
)
from fasterce.search.task import Task

KEPT = 6
MOST_COMPARED = 40
HINT = 0.5


def everything(task: Task) -> Search:
    """All that is known to flip: single changes, and walks, examples and pairs without the changes they do not need."""
    walked, known = walk(task, keeping_frozen_still(task)), neighbours(task, nearest_examples(task))
    alone, start = sweep.coarse(task), as_it_is(task)
    on_walk, of_known, of_alone, of_start = yield [walked, known, alone, start]
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    pool = flipping(task, start, of_start) + singles_pool(task, singles)
    far = _first_valid(task, walked, on_walk) + flipping(task, known, of_known, 1, counted=False)
    now = of_start.margin[:, 0]
    if task.start is not None:
        now = np.where(np.isfinite(now), now, task.start)
    gain = sweep.gains(of_alone, now) if task.judge.informative else None
    stuck = np.flatnonzero(~any_of((pool + far).valid))
    far += yield from for_some(stuck, task, lambda some: _last_resort(some, None if gain is None else gain[stuck]))
    pairs = [] if gain is None else [_pairs(task, alone, gain, -now, singles)]
    pool += yield from needed_changes(task, far, pairs)
    if gain is None:
        pool += yield from needed_changes(task, pool.best(1))
    return pool + far.within(task.domain)


def sweep_all(task: Task, alone: Edits) -> Generator[Wish, list[Verdict], tuple[Verdict, Pool]]:
    """Every feature alone: what the model said, and what flips. Features the caller named are also
    walked along their own directions, as in the paper."""
    walks, start = feature_walks(task), different(task, as_it_is(task).codes)
    of_alone, of_walks, of_start = yield [alone, walks, start]
    swept = [sweep.cheapest(edits, of, task.domain, task.distance) for edits, of in ((alone, of_alone), (walks, of_walks))]
    return of_alone, flipping(task, start, of_start) + singles_pool(task, swept[0]) + singles_pool(task, swept[1])


def finer_changes(task: Task) -> Search:
    """More values of every feature, in parts that fit in memory."""
    found = Pool.nothing(task.domain.base)
    every = np.arange(len(task.domain.base))
    for part in task.parts(every, len(task.knowledge.fine_levels[0])):
        found += yield from for_some(part, task, _finer)
    return found


def _finer(task: Task) -> Search:
    fine = sweep.fine(task, nearest_examples(task))
    (verdict,) = yield [fine]
    return singles_pool(task, sweep.cheapest(fine, verdict, task.domain, task.distance))


def _last_resort(task: Task, gain: Floats | None) -> Search:
    """For rows where nothing flips yet: more and deeper examples, the strongest changes stacked, and, where the caller
    named a few features, all their combinations on a grid."""
    alone = sweep.coarse(task)
    groups = [
        combine.stacks(alone, latent_gains(task, alone) if gain is None else gain),
        combine.grid(task.domain, task.named, task.knowledge.coarse_levels),
        neighbours(task, more_examples(task)),
    ]
    verdicts = yield groups
    pools = [flipping(task, group, verdict, counted=False) for group, verdict in zip(groups, verdicts, strict=True)]
    return reduce(Pool.__add__, pools).best(2)


def _first_valid(task: Task, walked: Candidates, verdict: Verdict) -> Pool:
    step = first(verdict.valid)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, (step >= 0)[:, None], task.domain, task.distance, counted=False)


def needed_changes(task: Task, far: Pool, others: Sequence[Candidates] = ()) -> Search:
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
    return reduce(Pool.__add__, (flipping(task, group, verdict) for group, verdict in every))


def _graded(task: Task, group: Candidates, verdict: Verdict) -> Verdict:
    """Where the model gives labels only, the prediction hyperplane says which of two equal answers is nearer."""
    if task.judge.informative:
        return verdict
    return Verdict(verdict.valid, verdict.margin + HINT * np.tanh(latent_heights(task, group.codes)))


def _pairs(task: Task, alone: Edits, gain: Floats, need: Floats, singles: sweep.Singles) -> Candidates:
    price = task.distance.single(alone.feature, alone.value, task.domain.row)
    return combine.pairs(alone, gain, price, need, singles.cost.min(axis=1, initial=np.inf))


def singles_pool(task: Task, singles: sweep.Singles) -> Pool:
    codes, floors, valid = singles.pool(task.domain.base, KEPT)
    return Pool.start(codes, valid, task.domain, task.distance, floors)


def flipping(task: Task, group: Candidates, verdict: Verdict, most: int = KEPT, counted: bool = True) -> Pool:
    """The cheapest of a group's candidates that the model answers with the wanted class; if not `counted` also those
    with more changes than allowed."""
    valid = verdict.valid & different(task, group.codes).open
    return Pool.start(group.codes, valid, task.domain, task.distance, lead=verdict.margin, counted=counted).best(most)


def shrunk(task: Task, pool: Pool, n: int) -> Search:
    """Three rounds of shrinking. For one answer fewer candidates are kept each time; for several, twice as many."""
    base = task.domain.base
    pool = pool.distinct(base)
    if n > 1:
        pool = pool.best(MOST_COMPARED).different(base, max(KEPT, 2 * n))
    pool = pool.promising(2 * KEPT, task.distance)
    for kept in (2 * KEPT, KEPT, KEPT // 2):
        pool = pool.best(kept if n == 1 else max(KEPT, 2 * n))
        asked, undone = refine.bracket(pool, task.domain, task.distance), refine.undone(pool, base)
        verdict, of_undone = yield [asked.candidates, undone]
        pool = refine.shrink(pool, asked, verdict, task.domain, task.distance) + flipping(task, undone, of_undone, 1)
    return pool.best(KEPT // 3) if n == 1 else pool.different(base, n)
