"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import combine, refine, sweep
from fasterce.search.judge import Candidates, Edits, Verdict
from fasterce.search.linesearch import first
from fasterce.search.propose import (
    NEIGHBOURS,
    feature_walks,
    keeping_frozen_still,
    nearest_examples,
    neighbours,
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
    alone = _single_changes(task)
    on_walk, of_known, of_alone = task.judge.judge(walked, known, alone)
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    far = _first_valid(task, walked, on_walk) + _pool(task, known, of_known).best(1)
    fewer = _needed_changes(task, far, _combinations(task, alone, of_alone, singles))
    return _shrunk(task, _singles_pool(task, singles) + far + fewer, n)


def sparse(task: Task, n: int = 1) -> Pool:
    """CE2: the cheapest single change that flips, of the named features or of any."""
    alone = _single_changes(task) + feature_walks(task)
    (of_alone,) = task.judge.judge(alone)
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    none_yet = ~np.isfinite(singles.cost).any(axis=1)
    finer = sweep.edits(task.domain, sweep.fine_levels(task.knowledge.codec))
    finer = Edits(finer.base, finer.feature, finer.value, finer.open & np.asarray(none_yet)[:, None])
    (of_finer,) = task.judge.judge(finer)
    rest = sweep.cheapest(finer, of_finer, task.domain, task.distance)
    pool = _singles_pool(task, singles) + _singles_pool(task, rest)
    return _shrunk(task, pool, n)


def realistic(task: Task, n: int = 1) -> Pool:
    """CE3: walk orthogonally to what must not change, keep what the decoder moves together, stay near known examples."""
    examples = nearest_examples(task, 2 * NEIGHBOURS)
    walked = without_trifles(task, walk(task, keeping_frozen_still(task)))
    known = without_trifles(task, neighbours(task, examples[:, :NEIGHBOURS]))
    on_walk, of_known = task.judge.judge(walked, known)
    far = _judged_real(task, _pool(task, walked, on_walk, walked.codes.shape[1]), examples).best(1)
    far += _judged_real(task, _pool(task, known, of_known), examples).best(1)
    pool = _judged_real(task, far + _needed_changes(task, far, []), examples)
    return beyond(task, pool.distinct(task.domain.base).best(max(KEPT, n)))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _single_changes(task: Task) -> Edits:
    return sweep.edits(task.domain, sweep.coarse_levels(task.knowledge.codec))


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


def _combinations(task: Task, alone: Edits, verdict: Verdict, singles: sweep.Singles) -> list[Candidates]:
    if not task.judge.informative:
        return []
    gain = sweep.gains(verdict, task.start)
    price = task.distance.single(alone.feature, alone.value, task.domain.row)
    ceiling = singles.cost.min(axis=1)
    return [
        combine.pairs(alone, gain, price, -task.start, ceiling),
        combine.stacks(alone, gain, ~np.isfinite(ceiling)),
    ]


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
