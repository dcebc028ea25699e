"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import ranked, thorough
from fasterce.search.dialogue import Search, for_some, side_by_side
from fasterce.search.judge import Edits, Indices, Verdict, any_of
from fasterce.search.pool import Pool
from fasterce.search.propose import (
    NEIGHBOURS,
    keeping_frozen_still,
    nearest_examples,
    neighbours,
    walk,
    without_trifles,
)
from fasterce.search.robust import beyond
from fasterce.search.task import Task
from fasterce.search.thorough import KEPT, flipping, needed_changes

TYPICAL = 0.8
REALISM = 3.0


def closest(task: Task, n: int = 1) -> Search:
    """CE1: the cheapest change that flips. What the distilled copy ranks first is asked; rows it does not help are
    searched thoroughly."""
    if task.knowledge.surrogate is None:
        return (yield from beyond(task, (yield from _thorough(task, n))))
    known = yield from ranked.first_round(task, n)
    solved, stuck = _split(known.pool, n)
    nearer, others = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.nearer(some, known.take(solved), n)),
            for_some(stuck, task, lambda some: _thorough(some, n)),
        ]
    )
    return (yield from beyond(task, _ranked(nearer + others + known.pool, task, n)))


def sparse(task: Task, n: int = 1) -> Search:
    """CE2: one feature alone, the cheapest; where none flips alone two features, then three, then as few as are found."""
    if task.knowledge.surrogate is None:
        return (yield from beyond(task, (yield from _fewest(task, n))))
    known = yield from ranked.first_round(task, n, together=False)
    solved, stuck = _split(known.pool, n)
    alone, others = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.nearer(some, known.take(solved), n)),
            for_some(stuck, task, lambda some: _fewest(some, n)),
        ]
    )
    return (yield from beyond(task, (alone + others).sparsest(task.domain.base).best(max(n, 2))))


def realistic(task: Task, n: int = 1) -> Search:
    """CE3: walk orthogonally to what must not change, keep what the decoder moves together, stay near known examples.

    Rows for which that finds nothing get what `closest` finds.
    """
    examples = nearest_examples(task, 2 * NEIGHBOURS)
    walked = without_trifles(task, walk(task, keeping_frozen_still(task)))
    known = without_trifles(task, neighbours(task, examples[:, :NEIGHBOURS]))
    on_walk, of_known = yield [walked, known]
    far = _judged_real(task, flipping(task, walked, on_walk, walked.codes.shape[1]), examples).best(1)
    far += _judged_real(task, flipping(task, known, of_known), examples).best(1)
    stuck = np.flatnonzero(~any_of(far.valid))
    fewer, others = yield from side_by_side([needed_changes(task, far), for_some(stuck, task, closest)])
    pool = _judged_real(task, far + fewer + others, examples).distinct(task.domain.base)
    return (yield from beyond(task, pool.best(max(KEPT, n))))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _split(pool: Pool, n: int) -> tuple[Indices, Indices]:
    """Rows with as many different answers as are wanted, and rows without."""
    enough = pool.valid.sum(axis=1) >= n
    return np.flatnonzero(enough), np.flatnonzero(~enough)


def _ranked(pool: Pool, task: Task, n: int) -> Pool:
    return pool.best(2) if n == 1 else pool.distinct(task.domain.base).different(task.domain.base, n)


def _thorough(task: Task, n: int) -> Search:
    return (yield from thorough.shrunk(task, (yield from thorough.everything(task)), n))


def _fewest(task: Task, n: int) -> Search:
    """Every feature swept; where that finds nothing, more values and sets of two and three; else whatever flips."""
    swept, verdict, found = yield from thorough.sweep_all(task)
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_some(none, task, lambda some: _beyond_the_sweep(some, swept.take(none), verdict.take(none)))
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_some(none, task, thorough.everything)
    return (yield from thorough.shrunk(task, found.sparsest(task.domain.base), n))


def _beyond_the_sweep(task: Task, swept: Edits, verdict: Verdict) -> Search:
    if task.knowledge.surrogate is None:
        return (yield from thorough.finer_changes(task))
    searches = [ranked.finer(task, swept, verdict), ranked.sets(task, 2), ranked.sets(task, 3)]
    return reduce(Pool.__add__, (yield from side_by_side(searches)))


def _judged_real(task: Task, pool: Pool, examples: Floats) -> Pool:
    """Priced by distance, and dearly by how much farther from its nearest example a candidate is than people are."""
    away = task.distance.total(pool.codes[:, :, None, :], examples[:, None, :, :]).min(axis=2)
    excess = np.maximum(away - TYPICAL * task.knowledge.typical, 0.0)
    priced = np.where(pool.valid, task.distance.total(pool.codes, task.domain.row[:, None, :]), np.inf)
    return replace(pool, cost=np.round(priced + REALISM * excess, 9))
