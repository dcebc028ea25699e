"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import combine, refine, sweep
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.linesearch import first
from fasterce.search.propose import (
    NEIGHBOURS,
    feature_walks,
    keeping_frozen_still,
    latent_gains,
    more_examples,
    nearest_examples,
    neighbours,
    no_more_than_asked,
    walk,
    without_trifles,
)
from fasterce.search.refine import Pool
from fasterce.search.robust import beyond
from fasterce.search.task import Task

KEPT = 6
TYPICAL = 0.5
REALISM = 3.0


def closest(task: Task, n: int = 1) -> Pool:
    """CE1: walk along the prediction's normal, and try single changes and known examples beside it; then refine."""
    walked, known = walk(task, keeping_frozen_still(task)), neighbours(task, nearest_examples(task))
    alone, moved_in = _single_changes(task), no_more_than_asked(task)
    on_walk, of_known, of_alone, of_moved = task.judge.judge(walked, known, alone, moved_in)
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    far = _first_valid(task, walked, on_walk) + _pool(task, known, of_known).best(1) + _pool(task, moved_in, of_moved)
    far += _last_resort(task, alone, of_alone, _singles_pool(task, singles) + far)
    fewer = _needed_changes(task, far, _pairs(task, alone, of_alone, singles))
    return _shrunk(task, _singles_pool(task, singles) + far + fewer, n)


def sparse(task: Task, n: int = 1) -> Pool:
    """CE2: the cheapest single change that flips, of the named features or of any."""
    alone, moved_in = _single_changes(task) + feature_walks(task), no_more_than_asked(task)
    of_alone, of_moved = task.judge.judge(alone, moved_in)
    singles = _singles_pool(task, sweep.cheapest(alone, of_alone, task.domain, task.distance))
    singles += _pool(task, moved_in, of_moved)
    finer = sweep.edits(task.domain, sweep.fine_levels(task.knowledge.codec)).only(~any_of(singles.valid))
    (of_finer,) = task.judge.judge(finer)
    singles += _singles_pool(task, sweep.cheapest(finer, of_finer, task.domain, task.distance))
    return _shrunk(task, singles, n)


def realistic(task: Task, n: int = 1) -> Pool:
    """CE3: walk orthogonally to what must not change, keep what the decoder moves together, stay near known examples."""
    examples = nearest_examples(task, 2 * NEIGHBOURS)
    walked = without_trifles(task, walk(task, keeping_frozen_still(task)))
    known = without_trifles(task, neighbours(task, examples[:, :NEIGHBOURS]))
    on_walk, of_known = task.judge.judge(walked, known)
    far = _judged_real(task, _pool(task, walked, on_walk, walked.codes.shape[1]), examples).best(1)
    far += _judged_real(task, _pool(task, known, of_known), examples).best(1)
    alone, moved_in = _single_changes(task).only(~any_of(far.valid)), no_more_than_asked(task)
    of_alone, of_moved = task.judge.judge(alone, moved_in)
    singles = _singles_pool(task, sweep.cheapest(alone, of_alone, task.domain, task.distance))
    singles += _pool(task, moved_in, of_moved)
    far += _last_resort(task, alone, of_alone, far + singles)
    pool = _judged_real(task, singles + far + _needed_changes(task, far, []), examples)
    return beyond(task, pool.distinct(task.domain.base).best(max(KEPT, n)))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _single_changes(task: Task) -> Edits:
    return sweep.edits(task.domain, sweep.coarse_levels(task.knowledge.codec))


def _last_resort(task: Task, alone: Edits, verdict: Verdict, so_far: Pool) -> Pool:
    """For rows where nothing flips yet: more and deeper examples, the strongest changes stacked, and, where the caller
    named a few features, all their combinations on a grid."""
    stuck = ~any_of(so_far.valid)
    gain = sweep.gains(verdict, task.start) if task.judge.informative else latent_gains(task, alone.only(stuck))
    groups = [
        combine.stacks(alone, gain),
        combine.grid(task.domain, task.named, sweep.coarse_levels(task.knowledge.codec)),
        neighbours(task, more_examples(task)),
    ]
    groups = [group.only(stuck) for group in groups]
    verdicts = task.judge.judge(*groups)
    return reduce(Pool.__add__, map(_pool, [task] * 3, groups, verdicts)).best(2)


def _first_valid(task: Task, walked: Candidates, verdict: Verdict) -> Pool:
    step = first(verdict.valid)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, (step >= 0)[:, None], task.domain, task.distance)


def _needed_changes(task: Task, far: Pool, others: list[Candidates]) -> Pool:
    """What is left of each candidate without the changes it does not need; `others` are asked in the same breath."""
    base = task.domain.base
    parts = [
        refine.changed_parts(codes, valid, base)
        for codes, valid in zip(np.moveaxis(far.codes, 1, 0), far.valid.T, strict=True)
    ]
    asked = [group for part in parts for group in refine.one_by_one(part, base)] + others
    verdicts = task.judge.judge(*asked)
    fewer = [
        refine.keep_most_needed(part, without, alone, base, task.distance.parts(part.codes, task.domain.row))
        for part, without, alone in zip(parts, verdicts[0::2], verdicts[1::2], strict=False)
    ]
    every = zip([*asked, *fewer], [*verdicts, *task.judge.judge(*fewer)], strict=True)
    return reduce(Pool.__add__, (_pool(task, group, verdict) for group, verdict in every))


def _judged_real(task: Task, pool: Pool, examples: Floats) -> Pool:
    """Priced by distance, and dearly by how much farther from its nearest example a candidate is than people are."""
    away = task.distance.total(pool.codes[:, :, None, :], examples[:, None, :, :]).min(axis=2)
    excess = np.maximum(away - TYPICAL * task.knowledge.typical, 0.0)
    return replace(pool, cost=np.round(pool.cost + REALISM * excess, 9))


def _pairs(task: Task, alone: Edits, verdict: Verdict, singles: sweep.Singles) -> list[Candidates]:
    if not task.judge.informative:
        return []
    price = task.distance.single(alone.feature, alone.value, task.domain.row)
    gain = sweep.gains(verdict, task.start)
    return [combine.pairs(alone, gain, price, -task.start, singles.cost.min(axis=1, initial=np.inf))]


def _singles_pool(task: Task, singles: sweep.Singles) -> Pool:
    codes, floors, valid = singles.pool(task.domain.base, KEPT)
    return Pool.start(codes, valid, task.domain, task.distance, floors)


def _pool(task: Task, group: Candidates, verdict: Verdict, most: int = KEPT) -> Pool:
    return Pool.start(group.codes, verdict.valid, task.domain, task.distance).best(most)


def _shrunk(task: Task, pool: Pool, n: int) -> Pool:
    """Three rounds of shrinking, with fewer candidates kept each time; never fewer than asked for."""
    pool = pool.distinct(task.domain.base)
    for kept in (KEPT, KEPT // 2, KEPT // 3):
        pool = pool.best(max(kept, n))
        asked = refine.bracket(pool, task.domain, task.distance)
        (verdict,) = task.judge.judge(asked.candidates)
        pool = refine.shrink(pool, asked, verdict, task.domain, task.distance)
    return beyond(task, pool.best(max(KEPT // 3, n)))
