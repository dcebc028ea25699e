"""Ask only about what looks best: rounds of a few model_rows, each chosen by the distilled copy and corrected by answers.

A round asks for several levels of safety: the cheapest set of changes expected just to flip, one expected to flip with
something to spare, and so on. The copy's usual error is the unit.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from fasterce.search import refine, sweep
from fasterce.search.context import SearchContext
from fasterce.search.judge import Edits, Verdict
from fasterce.search.pool import Pool
from fasterce.search.propose import as_it_is, different
from fasterce.search.rounds import Proposal, Search
from fasterce.search.shortlist import Shortlist, expectations, shortlist
from fasterce.search.thorough import flipping, singles_pool
from fasterce.typing import Floats, Indices

FIRST = (0.0, 0.5, 1.0, 2.0, 4.0, -0.75)
SECOND = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, -0.25, -0.5, -0.75, -1.0)
AROUND = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, -0.25, -0.5, -0.75, -1.0, -1.5)
ALONE = (0.0, 0.5, 1.5)
NOT_MUCH_DEARER = 1.25
SUREST = 2
HOPEFUL = 16
SETS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, -0.5, -1.0)
CLIMBED, HIGHEST = (0.0, 0.5, 1.0, 2.0, 4.0), 10
SECTIONS = 4
SHRINKING, SHRINKING_BLINDLY = (4, 2, 2), (6, 4, 3)
FINER = 32
HOPELESS, SWEPT = -4.0, 48


@dataclass(frozen=True)
class Round:
    """What is known after a round: the list with its corrections, and what flips."""

    listed: Shortlist
    pool: Pool

    def take(self, rows: Indices) -> "Round":
        return Round(self.listed.take(rows), self.pool.take_rows(rows))


def first_round(context: SearchContext, n: int = 1, together: bool = True) -> Generator[Proposal, list[Verdict], Round]:
    """The cheapest sets at several levels of safety, and the single changes that lead by most."""
    listed = shortlist(context, context.domain.base, at_the_start(context), together)
    margin = listed.margin()
    nearest = listed.cheapest(margin, _safety(context, FIRST), np.full(len(margin), np.inf))
    surest = listed.surest(margin, SUREST * n, nearest)
    start = different(context, as_it_is(context).codes)
    asked = listed.codes(np.concatenate([nearest, surest], axis=1))
    verdict, of_start = yield [asked, start]
    listed.learn(np.concatenate([nearest, surest], axis=1), verdict, margin, context.judge.informative)
    kept = max(context.config.kept_candidates, 3 * n)
    return Round(listed, flipping(context, start, of_start) + flipping(context, asked, verdict, kept))


def nearer(context: SearchContext, known: Round, n: int = 1, together: bool = True) -> Search:
    """Cheaper sets by what was learned, then sets around the best so far: change back, change less, change another."""
    pool = yield from _cheaper(context, known.listed, known.pool, SECOND, n, ALONE)
    return (yield from (around if together else shrunk)(context, pool, n))


def again(context: SearchContext, known: Round, n: int = 1) -> Search:
    """For rows where nothing flipped: by what was learned, the cheapest and the surest once more."""
    margin = known.listed.margin()
    picks = known.listed.cheapest(margin, _safety(context, SETS), np.full(len(margin), np.inf))
    surest = known.listed.surest(margin, 2 * SUREST, picks)
    asked = known.listed.codes(np.concatenate([picks, surest], axis=1))
    (verdict,) = yield [asked]
    return flipping(context, asked, verdict, max(context.config.kept_candidates, 3 * n))


def climb(context: SearchContext) -> Search:
    """For rows where few changes are not enough: the copy's most useful change, again and again, and the states on that
    way that are expected to flip with less and more to spare."""
    state, lead = context.domain.base, at_the_start(context)
    states, leads = [], []
    for _ in range(HIGHEST):
        listed = shortlist(context, state, lead, together=False)
        step, lead = listed.most_useful(lead)
        state = listed.codes(step).codes[:, 0]
        states.append(state)
        leads.append(lead)
    expected = np.stack(leads, axis=1)
    first = [(expected >= level).argmax(axis=1) for level in _safety(context, CLIMBED)]
    reached = [(expected >= level).any(axis=1) for level in _safety(context, CLIMBED)]
    pick = np.stack([np.where(there, at, HIGHEST - 1) for there, at in zip(reached, first, strict=True)], axis=1)
    asked = different(context, np.take_along_axis(np.stack(states, axis=1), pick[:, :, None], 1))
    (verdict,) = yield [asked]
    return flipping(context, asked, verdict)


def around(context: SearchContext, pool: Pool, n: int = 1) -> Search:
    """Sets around the best so far: change back, change less, change another; then shrink."""
    if n == 1:
        best = pool.best(1)
        listed = shortlist(context, best.codes[:, 0], best.lead[:, 0])
        pool = yield from _cheaper(context, listed, pool, AROUND, n)
    return (yield from shrunk(context, pool, n))


def _cheaper(
    context: SearchContext, listed: Shortlist, pool: Pool, levels: Sequence[float], n: int, alone_too: Sequence[float] = ()
) -> Search:
    """Sets cheaper than the best so far, single changes that may become so once shrunk, and, for one answer, the sets that
    promise to save most."""
    margin = listed.margin()
    ceiling = pool.cost.min(axis=1) if n == 1 else np.full(len(margin), np.inf)
    picks = listed.cheapest(margin, _safety(context, levels), ceiling)
    listed = listed.without(picks)
    alone = listed.of_size(1).cheapest(margin, _safety(context, alone_too), NOT_MUCH_DEARER * ceiling)
    picks = np.concatenate([picks, alone], axis=1)
    if n == 1:
        hopeful = listed.without(alone).most_hopeful(margin, _safety(context, [1.0])[0], ceiling, HOPEFUL)
        picks = np.concatenate([picks, hopeful], axis=1)
    asked = listed.codes(picks)
    (verdict,) = yield [asked]
    return pool + flipping(context, asked, verdict, max(context.config.kept_candidates, 3 * n))


def hopeful(context: SearchContext, edits: Edits) -> Edits:
    """Edits without those the copy is sure will not do; a few of every row are kept in any case."""
    if context.state.surrogate is None:
        return edits
    expected = np.where(edits.open, expectations(context, edits, at_the_start(context)), -np.inf)
    best = np.argsort(-expected, axis=1, kind="stable")[:, :SWEPT]
    kept = expected >= HOPELESS * context.state.surrogate.error
    np.put_along_axis(kept, best, True, axis=1)
    return Edits(edits.base, edits.feature, edits.value, edits.open & kept)


def finer(context: SearchContext, coarse: Edits, verdict: Verdict) -> Search:
    """For rows no single change flipped: of many more values the few expected to come closest, by how far the copy was
    off at the nearest value that was asked."""
    fine = sweep.edits(context.domain, context.state.fine_levels)
    start = at_the_start(context)
    known, expected = expectations(context, coarse, start), expectations(context, fine, start)
    off = np.where(np.isfinite(verdict.margin), verdict.margin - known, 0.0) if context.judge.informative else 0.0 * known
    codec = context.state.codec
    off = np.concatenate([off, np.zeros((len(off), 1))], axis=1)[:, context.state.nearest_levels]
    hope = np.where(fine.open, expected + off, -np.inf)
    picks = np.argsort(-hope, axis=1, kind="stable")[:, :FINER]
    opened = np.zeros_like(fine.open)
    np.put_along_axis(opened, picks, np.take_along_axis(fine.open, picks, 1), axis=1)
    asked = Edits(fine.base, fine.feature, fine.value, opened | (fine.open & sweep.unlisted(codec, fine.feature, fine.value)))
    (of_fine,) = yield [asked]
    return singles_pool(context, sweep.cheapest(asked, of_fine, context.domain, context.distance))


def sets(context: SearchContext, size: int) -> Search:
    """The cheapest sets of so many changes, at many levels of safety."""
    listed = shortlist(context, context.domain.base, at_the_start(context)).of_size(size)
    margin = listed.margin()
    picks = listed.cheapest(margin, _safety(context, SETS), np.full(len(margin), np.inf))
    asked = listed.codes(np.concatenate([picks, listed.surest(margin, 2 * SUREST, picks)], axis=1))
    (verdict,) = yield [asked]
    return flipping(context, asked, verdict)


def shrunk(context: SearchContext, pool: Pool, n: int = 1) -> Search:
    """A few rounds of shrinking the numbers of the most promising candidates."""
    base = context.domain.base
    pool = pool.distinct(base)
    if n > 1:
        pool = pool.different(base, n)
    need = -at_the_start(context) if context.judge.informative else None
    for kept in SHRINKING if context.judge.informative else SHRINKING_BLINDLY:
        pool = pool.promising(kept if n == 1 else n, context.distance, need)
        asked, undone = refine.bracket(pool, context.domain, context.distance, SECTIONS), refine.undone(pool, base)
        verdict, of_undone = yield [asked.candidates, undone]
        pool = refine.shrink(pool, asked, verdict, context.domain, context.distance) + flipping(context, undone, of_undone, 1)
    return pool if n == 1 else pool.different(base, n)


def at_the_start(context: SearchContext) -> Floats:
    """The model's margin where the search starts; for a row moved into a permitted range, as the copy expects it."""
    surrogate, domain = context.state.surrogate, context.domain
    assert surrogate is not None
    assert context.start is not None
    moved = np.flatnonzero((domain.base != domain.row).any(axis=1))
    start = context.start.copy()
    if moved.size:
        both = np.stack([domain.row[moved], domain.base[moved]], axis=1)
        before, after = context.targets.take(moved).expected(surrogate.outputs_of(both)).T
        start[moved] += after - before
    return start


def _safety(context: SearchContext, levels: Sequence[float]) -> list[float]:
    surrogate = context.state.surrogate
    assert surrogate is not None
    return [level * surrogate.error for level in levels]
