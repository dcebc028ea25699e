"""The search where the model can only be evaluated: the surrogate proposes candidates, the model decides.

Each round runs the compiled search with the surrogate as scorer and evaluates the best candidates of all queries in one call.
What the model predicts for them corrects the surrogate for the next round. The last rounds bring the best candidates to the
decision boundary. All candidates that reach the target are returned, whatever the method and the number of counterfactuals.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fasterce.kernels.arrays import Found, Queries
from fasterce.kernels.correct import correct
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, Evaluation, any_of, fingerprints
from fasterce.search.pool import EDITS, EXAMPLES, Pool
from fasterce.search.propose import more_examples
from fasterce.search.query_targets import Within
from fasterce.search.rounds import Proposal, Search, addressed, in_parallel
from fasterce.search.shrink import less_of_one_number, without_one_change
from fasterce.search.space import CandidateSearch, make_queries
from fasterce.search.sweep import single_edits
from fasterce.typing import Floats, Indices, Mask

LEVELS_PER_ROUND = 2


@dataclass(frozen=True)
class Evaluated:
    """Rows (queries, M, features) the model has evaluated, their margins and leads (queries, M), -inf where there is none."""

    codes: Floats
    margin: Floats
    lead: Floats

    @classmethod
    def nothing(cls, base: Floats) -> "Evaluated":
        none = np.zeros((len(base), 0))
        return cls(np.zeros((len(base), 0, base.shape[1])), none, none)

    def __add__(self, other: "Evaluated") -> "Evaluated":
        return Evaluated(
            np.concatenate([self.codes, other.codes], axis=1),
            np.concatenate([self.margin, other.margin], axis=1),
            np.concatenate([self.lead, other.lead], axis=1),
        )

    def take(self, rows: Indices) -> "Evaluated":
        return Evaluated(self.codes[rows], self.margin[rows], self.lead[rows])

    def extended(self, rows: Indices, part: "Evaluated", base: Floats) -> "Evaluated":
        """Return the same with what `part`, which began as `take(rows)`, has been added; the base for other queries."""
        count = self.codes.shape[1]
        codes = np.repeat(base[:, None, :], part.codes.shape[1] - count, axis=1)
        margin, lead = np.full((2, *codes.shape[:2]), -np.inf)
        codes[rows], margin[rows], lead[rows] = part.codes[:, count:], part.margin[:, count:], part.lead[:, count:]
        return self + Evaluated(codes, margin, lead)

    @property
    def reached(self) -> Mask:
        return self.margin > 0

    @cached_property
    def keys(self) -> Indices:
        return np.where(np.isfinite(self.margin), fingerprints(self.codes), 0)


Rounds = Generator[Proposal, list[Evaluation], Evaluated]


def search(context: SearchContext) -> Search:
    """Return all evaluated candidates that reach the target."""
    context.evaluator.limits.note_complete(np.arange(len(context.domain.base)), True)
    known, origin = yield from _search(context, Evaluated.nothing(context.domain.base))
    pool = Pool.start(known.codes, known.reached, context.domain, context.distance, lead=known.margin)
    return pool.from_origin(origin[:, None])


def _search(context: SearchContext, known: Evaluated) -> Generator[Proposal, list[Evaluation], tuple[Evaluated, Indices]]:
    """Return what was evaluated, and the origin of the first candidate of each query."""
    base, config, every = context.domain.base, context.config, context
    context = _of_read(context)
    known = yield from _propose(context, known, *_effort(context), base[:, None, :])
    origin = np.full(len(base), EDITS)
    for further, searched, start in ((_from_examples, context, EXAMPLES), (_from_single_edits, every, EDITS)):
        stuck = np.flatnonzero(~any_of(known.reached) | (context.state.surrogate is None))
        if stuck.size:
            some = yield from addressed(stuck, further(searched.take(stuck), known.take(stuck)))
            known = known.extended(stuck, some, base)
            origin[stuck] = start
        else:
            yield from _wait(1 + _rounds(context, config.stuck_safety))
    for turn in range(config.free_shrink_rounds if context.free else config.shrink_rounds):
        singles = [_single_changes(context, known)] if turn == 0 else []
        before = known
        known = yield from _evaluate(context, known, np.concatenate([_nearer(context, known), *singles], axis=1))
        if known is before and context.free:
            break
    return known, origin


def _of_read(context: SearchContext) -> SearchContext:
    """Return the context with the features frozen that the model does not read, unless constraints link them to others."""
    domain = context.domain
    return replace(context, domain=replace(domain, free=domain.free & (context.state.read | domain.links.linked)))


def _single_changes(context: SearchContext, known: Evaluated) -> Floats:
    """Return the most promising single changes of queries for which none is known to suffice, the base for others.

    Where only labels are known, those that cost less than the best candidate are tried for all queries.
    """
    base, config, surrogate = context.domain.base, context.config, context.state.surrogate
    alone = known.reached & ((known.codes != context.domain.row[:, None, :]).sum(axis=2) == 1)
    rows = np.flatnonzero(~any_of(alone) | (not context.evaluator.informative))
    if not len(rows) or surrogate is None:
        return np.zeros((len(base), 0, base.shape[1]))
    some = context.take(rows)
    edited = single_edits(some.domain, context.state.dense_levels)
    expected = np.asarray(some.targets.expected(surrogate.outputs_of(edited)), dtype=np.float64)
    changed = (edited != some.domain.base[:, None, :]).argmax(axis=2)
    expected[(edited == some.domain.base[:, None, :]).all(axis=2)] = -np.inf
    if not context.evaluator.informative:
        best = _best(some, known.take(rows), 1).cost.min(axis=1, initial=np.inf)
        best = np.where(any_of(alone)[rows], best, np.inf)
        expected[context.distance.total(edited, some.domain.row[:, None, :]) >= best[:, None]] = -np.inf
    # Further values of a feature count less, so that all features are tried.
    order = np.lexsort((-expected, changed), axis=1)
    feature = np.take_along_axis(changed, order, 1)
    first = np.array([np.searchsorted(line, line) for line in feature])
    late = np.empty_like(order)
    np.put_along_axis(late, order, np.arange(order.shape[1]) - first, axis=1)
    expected = np.where(late < config.single_values, expected, -np.inf)
    picks = np.argsort(-expected, axis=1, kind="stable")[:, : config.single_changes]
    found = np.repeat(base[:, None, :], picks.shape[1], axis=1)
    there = np.isfinite(np.take_along_axis(expected, picks, 1))[:, :, None]
    found[rows] = np.where(there, np.take_along_axis(edited, picks[:, :, None], 1), some.domain.base[:, None, :])
    return found


def _effort(context: SearchContext) -> tuple[Sequence[float], Sequence[int]]:
    """Return the margins of safety and the candidates at each; more where a compiled model is evaluated."""
    config = context.config
    if context.free:
        return config.free_guided_safety, config.free_guided_candidates
    return config.guided_safety, config.guided_candidates


def _rounds(context: SearchContext, safety: Sequence[float]) -> int:
    """Return the number of rounds of `_propose`."""
    return 0 if context.state.surrogate is None else -(-len(safety) // LEVELS_PER_ROUND)


def _wait(rounds: int) -> Generator[Proposal, list[Evaluation], None]:
    """Let rounds pass. Every query has its rounds at the same time, whatever the others need: methods that run beside each
    other share a budget, and who comes first must not depend on other queries."""
    for _ in range(rounds):
        yield []


def _propose(
    context: SearchContext, known: Evaluated, safety: Sequence[float], counts: Sequence[int], beside: Floats | None = None
) -> Rounds:
    """Rounds of candidates by the surrogate: so many at each margin of safety, two margins per round.

    `beside` (queries, K, features) are evaluated in the first round, or alone if there is no surrogate.
    """
    if context.state.surrogate is None:
        return known if beside is None else (yield from _evaluate(context, known, beside))
    guide, levels = Guide(context), list(zip(safety, counts, strict=True))
    for first in range(0, len(levels), LEVELS_PER_ROUND):
        proposed = [guide.propose(known, levels[first : first + LEVELS_PER_ROUND]), _nearer(context, known)]
        proposed += [beside] if first == 0 and beside is not None else []
        known = yield from _evaluate(context, known, np.concatenate(proposed, axis=1))
    return known


def _from_examples(context: SearchContext, known: Evaluated) -> Rounds:
    """For queries without a candidate: known rows of the target, and candidates nearer to the query than these."""
    known = yield from _evaluate(context, known, context.domain.project(more_examples(context)))
    return (yield from _propose(context, known, context.config.stuck_safety, context.config.stuck_candidates))


def _from_single_edits(context: SearchContext, known: Evaluated) -> Rounds:
    """For queries still without a candidate: every single change, and what these suggest."""
    known = yield from _evaluate(context, known, single_edits(context.domain, context.state.coarse_levels))
    return (yield from _propose(_of_read(context), known, context.config.stuck_safety, context.config.stuck_candidates))


def others(context: SearchContext, pool: Pool, n: int) -> Search:
    """Return the pool with more candidates for queries that have fewer than `n` with different changes.

    They are searched without the dearest change of the cheapest candidate, without the next one, and without all. None
    is cheaper than the cheapest: that one must not depend on how many are wanted.
    """
    distinct = pool.distinct(context.domain.row)
    best, count = distinct.best(1), distinct.valid.sum(axis=1)
    few = np.flatnonzero((count > 0) & (count < n))
    if not len(few) or context.state.surrogate is None:
        yield from _wait(_rounds(context, _effort(context)[0]))
        return pool
    some, codes = context.take(few), best.codes[few, 0]
    changed = codes != some.domain.row
    cost = np.where(changed, context.distance.parts(codes, some.domain.row), -1.0)
    order = np.argsort(-cost, axis=1, kind="stable")
    banned = [np.eye(codes.shape[1], dtype=bool)[order[:, place]] for place in range(min(2, codes.shape[1]))]
    searches = [_without(some, features & changed) for features in [*banned, changed]]
    found = yield from addressed(few, in_parallel(searches))
    for one in found:
        added = Pool.among(one, few, context.domain.base)
        pool += added.without(added.cost < best.cost)
    return pool


def _without(context: SearchContext, features: Mask) -> Search:
    """Search without changing some features (rows, features)."""
    context = _of_read(replace(context, domain=replace(context.domain, free=context.domain.free & ~features)))
    domain = context.domain
    known = Evaluated.nothing(domain.base)
    known = yield from _propose(context, known, *_effort(context))
    return Pool.start(known.codes, known.reached, domain, context.distance, lead=known.margin)


def needed(context: SearchContext, pool: Pool) -> Search:
    """Return the first candidate of each query, and the others without changes they do not need.

    None of them becomes cheaper than the first: that one must not depend on how many are wanted.
    """
    base = context.domain.base
    for _ in range(context.config.needed_rounds if pool.codes.shape[1] else 0):
        rows, count, _ = pool.codes.shape
        codes = pool.filled(base).codes
        fewer = context.domain.complete(without_one_change(codes, base))
        each = (rows, count, fewer.shape[1] // count)
        there = np.arange(each[2]) < (codes != base[:, None, :]).sum(axis=2)[..., None]
        changed = (fewer != context.domain.row[:, None, :]).any(axis=2) & there.reshape(rows, -1)
        (evaluation,) = yield [Candidates(fewer, changed & context.domain.contains(fewer))]
        without = Pool.start(fewer, evaluation.valid, context.domain, context.distance, lead=evaluation.margin)
        spare = np.asarray(evaluation.valid.reshape(each).any(axis=2))
        spare[:, 0] = False
        dropped = np.repeat(spare, each[2], axis=1) & (without.cost >= pool.cost[:, :1])
        pool = (pool.without(spare) + without.without(~dropped)).distinct(context.domain.row).best(count)
    return pool


def _evaluate(context: SearchContext, known: Evaluated, codes: Floats) -> Rounds:
    """Evaluate those of the candidates (queries, K, features) that are legal and new."""
    domain = context.domain
    codes = domain.complete(codes)
    changed = (codes != domain.row[:, None, :]).any(axis=2)
    keys = fingerprints(codes)
    seen = (keys[:, :, None] == known.keys[:, None, :]).any(axis=2)
    repeated = np.tril(keys[:, :, None] == keys[:, None, :], k=-1).any(axis=2)
    opened = changed & ~seen & ~repeated
    opened[opened] = domain.contains_own(np.nonzero(opened)[0], codes[opened])
    if not opened.any():
        yield []
        return known
    (evaluation,) = yield [Candidates(codes, opened)]
    return known + Evaluated(codes, evaluation.margin, evaluation.lead)


class Guide:
    """The compiled search with the surrogate as scorer, corrected by what the model has predicted."""

    def __init__(self, context: SearchContext) -> None:
        assert context.state.surrogate is not None
        self.context = context
        self.scorer = context.state.surrogate.scorer
        self.queries = make_queries(context.domain, context.targets, context.evaluator.lowest)
        config = context.config.guided
        self.search = CandidateSearch(self.scorer, context.distance, config, context.state.dense_levels)

    def propose(self, known: Evaluated, levels: Sequence[tuple[float, int]]) -> Floats:
        """Return candidates by the corrected surrogate: so many for each margin of safety, in errors of the surrogate."""
        assert self.context.lead is not None
        evaluator, starts = self.context.evaluator, _best(self.context, known, self.context.config.guided_starts).codes
        correct(self.scorer, self.queries, self.context.lead, known.codes, known.lead, evaluator.informative)
        found = [
            _cheapest_and_sparsest(self._found(level, count, starts), count, self.queries.base) for level, count in levels
        ]
        return np.concatenate(found, axis=1)

    def _found(self, level: float, count: int, starts: Floats) -> Found:
        """Return candidates by the surrogate, and note the queries for which it finds more than are evaluated."""
        found = self.search.run_queries(self.context.domain, self._demanding(level), starts, wanted=1)
        self.context.evaluator.limits.note_complete(np.flatnonzero(found.count > count), False)
        return found

    def _demanding(self, level: float) -> Queries:
        need, targets = np.full(len(self.queries.need), level * self.scorer.error), self.context.targets
        if isinstance(targets, Within):
            need = np.minimum(need, 0.2 * (targets.high - targets.low))
        return self.queries._replace(need=self.queries.need + need)


def _cheapest_and_sparsest(found: Found, count: int, base: Floats) -> Floats:
    """Return the `count` cheapest candidates and the two with the fewest changes; the base where there are none."""
    rows, pool, _ = found.codes.shape
    there = np.arange(pool) < found.count[:, None]
    changes = np.where(there, (found.codes != base[:, None, :]).sum(axis=2), base.shape[1] + 1)
    sparsest = np.argsort(changes, axis=1, kind="stable")[:, :2]
    order = np.concatenate([np.tile(np.arange(min(count, pool)), (rows, 1)), sparsest], axis=1)
    codes = np.take_along_axis(found.codes, order[:, :, None], 1)
    return np.where(np.take_along_axis(there, order, 1)[:, :, None], codes, base[:, None, :])


def _best(context: SearchContext, known: Evaluated, count: int) -> Pool:
    """Return the cheapest rows known to reach the target, by set of changed features; the base where there are fewer."""
    pool = Pool.start(known.codes, known.reached, context.domain, context.distance, lead=known.margin)
    return pool.distinct(context.domain.base).best(count).filled(context.domain.base)


def _nearer(context: SearchContext, known: Evaluated) -> Floats:
    """Return candidates between the best known ones and the query: without one change, and with less of one number."""
    best = _best(context, known, context.config.shrunk_candidates)
    start = np.full(len(known.codes), -1.0) if context.start is None else context.start
    failed = np.where(np.isfinite(known.margin) & ~known.reached, known.margin, -np.inf)
    less = less_of_one_number(best, known.codes, failed, start, context.domain, context.distance)
    return np.concatenate([without_one_change(best.codes, context.domain.base), less], axis=1)
