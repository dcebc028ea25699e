"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

import numpy as np

from fasterce.search import combine, refine, sweep
from fasterce.search.judge import Candidates, Edits, Verdict
from fasterce.search.linesearch import first
from fasterce.search.propose import keeping_frozen_still, neighbours, walk
from fasterce.search.refine import Pool
from fasterce.search.task import Task

KEPT = 6
ROUNDS = 3


def closest(task: Task, n: int = 1) -> Pool:
    """CE1: walk along the prediction's normal, and try single changes and known examples beside it; then refine."""
    walked, known, alone = walk(task, task.toward_target), neighbours(task), _single_changes(task)
    on_walk, of_known, of_alone = task.judge.judge(walked, known, alone)
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    far = _one_each(task, walked, on_walk, known, of_known)
    parts = [refine.changed_parts(far.codes[:, k], far.valid[:, k], task.domain.base) for k in range(2)]
    asked = [group for part in parts for group in refine.one_by_one(part, task.domain.base)]
    together = _combinations(task, alone, of_alone, singles)
    verdicts = task.judge.judge(*asked, *together)
    fewer = [
        refine.keep_most_needed(
            part,
            verdicts[2 * k],
            verdicts[2 * k + 1],
            task.domain.base,
            task.distance.parts(part.codes, task.domain.row),
        )
        for k, part in enumerate(parts)
    ]
    of_fewer = task.judge.judge(*fewer)
    pool = _singles_pool(task, singles) + far
    for group, verdict in zip([*asked, *together, *fewer], [*verdicts, *of_fewer], strict=True):
        pool += _pool(task, group, verdict)
    return _shrunk(task, _distinct(pool), n)


def sparse(task: Task, n: int = 1) -> Pool:
    """CE2: the cheapest single change that flips, of the named features or of any."""
    alone = _single_changes(task)
    (of_alone,) = task.judge.judge(alone)
    singles = sweep.cheapest(alone, of_alone, task.domain, task.distance)
    none_yet = ~np.isfinite(singles.cost).any(axis=1)
    finer = sweep.edits(task.domain, sweep.fine_levels(task.knowledge.codec))
    finer = Edits(finer.base, finer.feature, finer.value, finer.open & none_yet[:, None])
    (of_finer,) = task.judge.judge(finer)
    rest = sweep.cheapest(finer, of_finer, task.domain, task.distance)
    pool = _singles_pool(task, singles) + _singles_pool(task, rest)
    return _shrunk(task, pool, n)


def realistic(task: Task, n: int = 1) -> Pool:
    """CE3: walk orthogonally to what must not change and keep what the decoder moves together."""
    walked, known = walk(task, keeping_frozen_still(task)), neighbours(task)
    on_walk, of_known = task.judge.judge(walked, known)
    far = _one_each(task, walked, on_walk, known, of_known)
    return far


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _single_changes(task: Task) -> Edits:
    return sweep.edits(task.domain, sweep.coarse_levels(task.knowledge.codec))


def _one_each(task: Task, walked: Candidates, on_walk: Verdict, known: Candidates, of_known: Verdict) -> Pool:
    """The first point of the walk that flips and the cheapest known example that does."""
    step = first(on_walk.valid)
    price = np.where(of_known.valid, task.distance.total(known.codes, task.domain.row[:, None, :]), np.inf)
    example = price.argmin(axis=1)
    every = np.arange(len(step))
    codes = np.stack([walked.codes[every, step], known.codes[every, example]], axis=1)
    valid = np.stack([step >= 0, np.isfinite(price[every, example])], axis=1)
    return Pool.start(codes, valid, task.domain, task.distance)


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


def _pool(task: Task, group: Candidates, verdict: Verdict) -> Pool:
    return Pool.start(group.codes, verdict.valid, task.domain, task.distance).best(KEPT)


def _distinct(pool: Pool) -> Pool:
    return pool


def _shrunk(task: Task, pool: Pool, n: int) -> Pool:
    """Three rounds of shrinking, with fewer candidates kept each time; never fewer than asked for."""
    for kept in (KEPT, KEPT // 2, KEPT // 3):
        pool = pool.best(max(kept, n))
        asked = refine.bracket(pool, task.domain, task.distance)
        (verdict,) = task.judge.judge(asked.candidates)
        pool = refine.shrink(pool, asked, verdict, task.domain, task.distance)
    return pool.best(max(KEPT // 3, n))
