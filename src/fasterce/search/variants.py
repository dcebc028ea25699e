"""The three variants, each a short path through the stages. All rows go together; the number of calls is fixed."""

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import reduce

import numpy as np

from fasterce.profile import Floats
from fasterce.search import diverse, narrow, ranked, sweep, thorough
from fasterce.search.dialogue import Search, Wish, for_some, side_by_side
from fasterce.search.goal import Indices
from fasterce.search.judge import Candidates, Edits, Verdict, any_of
from fasterce.search.pool import Pool
from fasterce.search.propose import (
    different,
    keeping_frozen_still,
    more_examples,
    nearest_examples,
    neighbours,
    walk,
    without_trifles,
)
from fasterce.search.realism import BLIND_STOPS, STOPS, Box, allowed, priced, retreats
from fasterce.search.robust import beyond
from fasterce.search.shortlist import rows_at_once
from fasterce.search.task import Task
from fasterce.search.thorough import flipping

EXAMPLES, TRIED = 12, 3
SPARE, FEW = 4, 2
BESIDES = 100


def closest(task: Task, n: int = 1) -> Search:
    """CE1: the cheapest change that flips. What the distilled copy ranks first is asked; rows it does not help are
    searched thoroughly."""
    if task.knowledge.surrogate is None:
        return (yield from beyond(task, (yield from _thorough(task, n))))
    if n > 1:
        return (yield from beyond(task, (yield from _several(task, n))))
    known = yield from ranked.first_round(task)
    solved, stuck = _split(known.pool)
    nearer, others = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.nearer(some, known.take(solved))),
            for_some(stuck, task, lambda some: _at_last(some, known.take(stuck), 1)),
        ]
    )
    return (yield from beyond(task, (nearer + others + known.pool).best(2)))


def sparse(task: Task, n: int = 1) -> Search:
    """CE2: one feature alone, the cheapest; where none flips alone two features, then three, then as few as are found."""
    if task.knowledge.surrogate is None:
        return (yield from beyond(task, (yield from _fewest(task, n))))
    if n > 1:
        return (yield from beyond(task, (yield from _several_sparse(task, n))))
    known = yield from ranked.first_round(task, together=False)
    solved, stuck = _split(known.pool)
    alone, others = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.nearer(some, known.take(solved), together=False)),
            for_some(stuck, task, lambda some: _fewest(some, 1)),
        ]
    )
    return (yield from beyond(task, (alone + others).sparsest(task.domain.base).best(2)))


def realistic(task: Task, n: int = 1) -> Search:
    """CE3: toward people like the row who have the wanted answer, what belongs together together. Rows for which that
    finds nothing are walked orthogonally to what must not change, as in the paper, and get what `closest` finds."""
    if task.realism == 0:
        return (yield from closest(task, n))
    examples = nearest_examples(task, EXAMPLES)
    between = _toward_examples(task, examples[:, : max(TRIED, n)])
    verdicts = yield between
    pool = reduce(Pool.__add__, (flipping(task, *pair) for pair in zip(between, verdicts, strict=True)))
    pool = _judged_real(task, pool, examples)
    stuck = np.flatnonzero(~any_of(pool.valid))
    nearer, walked, others = yield from side_by_side(
        [_retreated(task, pool, examples), for_some(stuck, task, _walked), for_some(stuck, task, closest)]
    )
    pool = _judged_real(task, pool + nearer + walked + others, examples).distinct(task.domain.base)
    several = pool.best(2) if n == 1 else diverse.chosen(pool, task.domain.row, n, task.diversity)
    return (yield from beyond(task, several))


def known_rows(task: Task, n: int = 1) -> Search:
    """Known rows with the wanted answer, as far as the rules let a row follow them: the nearest, and the deepest inside."""
    asked = neighbours(task, more_examples(task))
    (verdict,) = yield [asked]
    return flipping(task, asked, verdict, n)


__all__ = ["VARIANTS", "rows_at_once"]

VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def _several(task: Task, n: int) -> Search:
    """Different combinations of features, twice by the copy, then whatever flips; without changes that are not needed."""
    known, pool = yield from _combinations(task, n)
    few = np.flatnonzero(~diverse.enough(pool, task.domain.row, min(n, FEW)))
    shrunk, others = yield from side_by_side(
        [ranked.shrunk(task, pool, n + SPARE), for_some(few, task, lambda some: _at_last(some, known.take(few), n))]
    )
    pool = diverse.chosen(shrunk + others, task.domain.row, n + SPARE, task.diversity)
    return diverse.chosen((yield from diverse.needed(task, pool)), task.domain.row, n, task.diversity)


def _combinations(task: Task, n: int) -> Generator[Wish, list[Verdict], tuple[ranked.Round, Pool]]:
    """What the copy proposes; for rows where that is too little, twice more without what is used already."""
    known = yield from diverse.first_round(task, n)
    pool = known.pool
    for places in ((0,), (0, 1)):
        few = np.flatnonzero(~diverse.enough(pool, task.domain.row, n))
        again = yield from side_by_side([_without(task, pool, few, n, place) for place in places])
        pool = reduce(Pool.__add__, [pool, *again]).distinct(task.domain.base).best(3 * (n + SPARE))
    return known, pool


def _without(task: Task, pool: Pool, few: Indices, n: int, place: int) -> Search:
    return (yield from for_some(few, task, lambda some: diverse.another_round(some, pool.take_rows(few), n, place)))


def _some_combinations(task: Task, n: int) -> Search:
    _, pool = yield from _combinations(task, n)
    shrunk = yield from ranked.shrunk(task, pool, n + SPARE)
    return (yield from diverse.needed(task, shrunk))


def _several_sparse(task: Task, n: int) -> Search:
    """Every single feature that flips alone, and where these are fewer than wanted, combinations; fewest features first."""
    known = yield from ranked.first_round(task, n, together=False)
    solved = np.flatnonzero(any_of(known.pool.valid))
    stuck = np.flatnonzero(~diverse.enough(known.pool, task.domain.row, n))
    alone, others, together = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.nearer(some, known.take(solved), n, together=False)),
            for_some(stuck, task, lambda some: _fewest(some, n)),
            for_some(stuck, task, lambda some: _some_combinations(some, n)),
        ]
    )
    return diverse.chosen(alone + others + together + known.pool, task.domain.row, n, task.diversity, fewest=True)


def _split(pool: Pool, n: int = 1) -> tuple[Indices, Indices]:
    """Rows with as many different answers as are wanted, and rows without."""
    enough = pool.valid.sum(axis=1) >= n
    return np.flatnonzero(enough), np.flatnonzero(~enough)


def _at_last(task: Task, known: ranked.Round, n: int) -> Search:
    """For rows the first round did not help: once more by what was learned, or many changes; then thoroughly."""
    few, many, inside = yield from side_by_side([ranked.again(task, known, n), ranked.climb(task), narrow.between(task)])
    found = few + many + inside
    solved, stuck = _split(found, n)
    nearer, others = yield from side_by_side(
        [
            for_some(solved, task, lambda some: ranked.around(some, found.take_rows(solved), n)),
            for_some(stuck, task, lambda some: _thorough(some, n)),
        ]
    )
    return nearer + others


def _thorough(task: Task, n: int) -> Search:
    """Asking about everything takes memory: as many rows at a time as fit."""

    def some(part: Task) -> Search:
        return (yield from thorough.shrunk(part, (yield from thorough.everything(part)), n))

    return (yield from _in_parts(task, some))


def _in_parts(task: Task, search: Callable[[Task], Search]) -> Search:
    parts = task.parts(np.arange(len(task.domain.base)), len(task.knowledge.coarse_levels[0]) + BESIDES)
    if len(parts) == 1:
        return (yield from search(task))
    found = Pool.nothing(task.domain.base)
    for part in parts:
        found += yield from for_some(part, task, search)
    return found


def _fewest(task: Task, n: int) -> Search:
    return (yield from _in_parts(task, lambda part: _fewest_of_part(part, n)))


def _fewest_of_part(task: Task, n: int) -> Search:
    """Every feature swept; where that finds nothing, more values and sets of two and three; else whatever flips."""
    swept = ranked.hopeful(task, sweep.coarse(task))
    verdict, found = yield from thorough.sweep_all(task, swept)
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_some(none, task, lambda some: _beyond_the_sweep(some, swept.take(none), verdict.take(none)))
    none = np.flatnonzero(~any_of(found.valid))
    found += yield from for_some(none, task, thorough.everything)
    return (yield from thorough.shrunk(task, found.sparsest(task.domain.base), n))


def _beyond_the_sweep(task: Task, swept: Edits, verdict: Verdict) -> Search:
    if task.knowledge.surrogate is None:
        return (yield from thorough.finer_changes(task))
    searches = [ranked.finer(task, swept, verdict), ranked.sets(task, 2), ranked.sets(task, 3), ranked.climb(task)]
    searches.append(narrow.between(task))
    return reduce(Pool.__add__, (yield from side_by_side(searches)))


def _toward_examples(task: Task, examples: Floats) -> list[Candidates]:
    """The nearest example itself, and stops on the way back from each."""
    box = Box.around(task, examples)
    room = np.maximum(allowed(task)[:, None] - box.apart, 0.0)
    stops = BLIND_STOPS if task.knowledge.surrogate is None else STOPS
    return [different(task, box.legal[:, :1]), *(box.stop(share * room, safety) for share, safety in stops)]


def _walked(task: Task) -> Search:
    steps = without_trifles(task, walk(task, keeping_frozen_still(task)))
    (verdict,) = yield [steps]
    return flipping(task, steps, verdict)


def _retreated(task: Task, pool: Pool, examples: Floats) -> Search:
    asked = retreats(task, pool.best(1), examples)
    (verdict,) = yield [asked]
    return flipping(task, asked, verdict)


def _judged_real(task: Task, pool: Pool, examples: Floats) -> Pool:
    return replace(pool, cost=priced(task, pool, examples))
