"""The search where the model can only be evaluated: the surrogate proposes candidates, the model decides.

Each round runs the compiled search with the surrogate as scorer and evaluates the best candidates of all queries in one call.
What the model predicts for them corrects the surrogate for the next round. The last rounds bring the best candidates to the
decision boundary. All candidates that reach the target are returned, whatever the method and the number of counterfactuals.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fasterce.kernels.arrays import IDENTITY, NETWORK, NO_NETWORK, NO_TREES, Scorer
from fasterce.kernels.correct import correct
from fasterce.kernels.guided import LESS, TIGHT, keep_new, write_nearer
from fasterce.kernels.structs import as_struct, kept_struct
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, Evaluation, any_of
from fasterce.search.pool import EDITS, EXAMPLES, Pool
from fasterce.search.propose import more_examples
from fasterce.search.query_targets import Within
from fasterce.search.rounds import Proposal, Search, addressed, in_parallel
from fasterce.search.shrink import without_one_change
from fasterce.search.space import CandidateSearch, make_queries
from fasterce.search.sweep import single_edits
from fasterce.typing import Floats, Indices, Mask

LEVELS_PER_ROUND = 2
# In place of the surrogate where there is none.
NO_SCORER = Scorer(NETWORK, NO_TREES, NO_NETWORK, 1, IDENTITY, exact=False, error=0.0)


@dataclass(frozen=True)
class Evaluated:
    """Rows (queries, M, features) the model has evaluated, their margins, leads and costs (queries, M).

    Margins and leads are -inf where there is no row; costs are infinite where the target is not reached.
    """

    codes: Floats
    margin: Floats
    lead: Floats
    cost: Floats

    @classmethod
    def nothing(cls, base: Floats) -> "Evaluated":
        none = np.zeros((len(base), 0))
        return cls(np.zeros((len(base), 0, base.shape[1])), none, none, none)

    def __add__(self, other: "Evaluated") -> "Evaluated":
        pairs = zip(self.__dict__.values(), other.__dict__.values(), strict=True)
        return Evaluated(*(np.concatenate(pair, axis=1) for pair in pairs))

    def take(self, rows: Indices) -> "Evaluated":
        return Evaluated(*(values[rows] for values in self.__dict__.values()))

    def extended(self, rows: Indices, part: "Evaluated", base: Floats) -> "Evaluated":
        """Return the same with what `part`, which began as `take(rows)`, has been added; the base for other queries."""
        count = self.codes.shape[1]
        codes = np.repeat(base[:, None, :], part.codes.shape[1] - count, axis=1)
        margin, lead = np.full((2, *codes.shape[:2]), -np.inf)
        cost = np.full(codes.shape[:2], np.inf)
        codes[rows], cost[rows] = part.codes[:, count:], part.cost[:, count:]
        margin[rows], lead[rows] = part.margin[:, count:], part.lead[:, count:]
        return self + Evaluated(codes, margin, lead, cost)

    @property
    def reached(self) -> Mask:
        return self.margin > 0


Rounds = Generator[Proposal, list[Evaluation], Evaluated]


def search(context: SearchContext) -> Search:
    """Return all evaluated candidates that reach the target."""
    context.evaluator.limits.note_complete(np.arange(len(context.domain.base)), True)
    known, origin = yield from _search(context, Evaluated.nothing(context.domain.base))
    return Pool(known.codes, known.reached, known.cost, known.margin).from_origin(origin[:, None])


def _search(context: SearchContext, known: Evaluated) -> Generator[Proposal, list[Evaluation], tuple[Evaluated, Indices]]:
    """Return what was evaluated, and the origin of the first candidate of each query."""
    base, config, every = context.domain.base, context.config, context
    context = _of_read(context)
    guide = Guide(context)
    known = yield from _propose(guide, known, *_effort(context), base[:, None, :])
    origin = np.full(len(base), EDITS)
    for further, searched, start in ((_from_examples, context, EXAMPLES), (_from_single_edits, every, EDITS)):
        stuck = np.flatnonzero(~any_of(known.reached) | (context.state.surrogate is None))
        if stuck.size:
            some = yield from addressed(stuck, further(searched.take(stuck), known.take(stuck)))
            known = known.extended(stuck, some, base)
            origin[stuck] = start
        else:
            yield from _wait(max(1, _rounds(context, config.stuck_safety)))
    for turn in range(config.free_shrink_rounds if context.free else config.shrink_rounds):
        singles = [guide.single_changes(known)] if turn == 0 else []
        before = known
        known = yield from _evaluate(context, known, np.concatenate([guide.nearer(known), *singles], axis=1))
        if known is before and context.free:
            break
    return known, origin


def _of_read(context: SearchContext) -> SearchContext:
    """Return the context with the features frozen that the model does not read, unless constraints link them to others."""
    domain = context.domain
    return replace(context, domain=replace(domain, free=domain.free & (context.state.read | domain.links.linked)))


def _effort(context: SearchContext) -> tuple[Sequence[float], Sequence[int]]:
    """Return the margins of safety and the candidates at each; more where a compiled model is evaluated."""
    config = context.config
    if context.free:
        return config.free_guided_safety, config.free_guided_candidates
    return config.guided_safety, config.guided_candidates


def _stuck_effort(context: SearchContext) -> tuple[Sequence[float], Sequence[int]]:
    """Return the same for queries without a candidate."""
    return context.config.stuck_safety, context.config.stuck_candidates


def _rounds(context: SearchContext, safety: Sequence[float]) -> int:
    """Return the number of rounds of `_propose`."""
    return 0 if context.state.surrogate is None else -(-len(safety) // LEVELS_PER_ROUND)


def _wait(rounds: int) -> Generator[Proposal, list[Evaluation], None]:
    """Let rounds pass. Every query has its rounds at the same time, whatever the others need: methods that run beside each
    other share a budget, and who comes first must not depend on other queries."""
    for _ in range(rounds):
        yield []


def _propose(
    guide: "Guide", known: Evaluated, safety: Sequence[float], counts: Sequence[int], beside: Floats | None = None
) -> Rounds:
    """Rounds of candidates by the surrogate: so many at each margin of safety, two margins per round.

    `beside` (queries, K, features) are evaluated in the first round, or alone if there is no surrogate.
    """
    context = guide.context
    if context.state.surrogate is None:
        return known if beside is None else (yield from _evaluate(context, known, beside))
    levels = list(zip(safety, counts, strict=True))
    for first in range(0, len(levels), LEVELS_PER_ROUND):
        proposed = [guide.propose(known, levels[first : first + LEVELS_PER_ROUND]), guide.nearer(known)]
        proposed += [beside] if first == 0 and beside is not None else []
        known = yield from _evaluate(context, known, np.concatenate(proposed, axis=1))
    return known


def _from_examples(context: SearchContext, known: Evaluated) -> Rounds:
    """For queries without a candidate: known rows of the target, and candidates nearer to the query than these."""
    examples = context.domain.project(more_examples(context))
    return (yield from _propose(Guide(context), known, *_stuck_effort(context), examples))


def _from_single_edits(context: SearchContext, known: Evaluated) -> Rounds:
    """For queries still without a candidate: every single change, also of features the model was not seen to read, and what
    these suggest."""
    edits = single_edits(context.domain, context.state.coarse_levels)
    return (yield from _propose(Guide(context), known, *_stuck_effort(context), edits))


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
    known = yield from _propose(Guide(context), known, *_effort(context))
    return Pool(known.codes, known.reached, known.cost, known.margin)


def needed(context: SearchContext, pool: Pool) -> Search:
    """Return the first candidate of each query, and the others without changes they do not need.

    None of them becomes cheaper than the first: that one must not depend on how many are wanted.
    """
    base = context.domain.base
    # Candidates that needed every change; they are not evaluated again. The base stands for none.
    checked = base[:, None, :]
    for _ in range(context.config.needed_rounds if pool.codes.shape[1] else 0):
        rows, count, _ = pool.codes.shape
        codes = pool.filled(base).codes
        new = ~(codes[:, :, None] == checked[:, None]).all(axis=3).any(axis=2)
        fewer = context.domain.complete(without_one_change(codes, base))
        each = (rows, count, fewer.shape[1] // count)
        there = np.arange(each[2]) < np.where(new, (codes != base[:, None, :]).sum(axis=2), 0)[..., None]
        changed = (fewer != context.domain.row[:, None, :]).any(axis=2) & there.reshape(rows, -1)
        (evaluation,) = yield [Candidates(fewer, changed & context.domain.contains(fewer))]
        without = Pool.start(fewer, evaluation.valid, context.domain, context.distance, lead=evaluation.margin)
        spare = np.asarray(evaluation.valid.reshape(each).any(axis=2))
        spare[:, 0] = False
        checked = np.where(spare[..., None], base[:, None, :], codes)
        dropped = np.repeat(spare, each[2], axis=1) & (without.cost >= pool.cost[:, :1])
        pool = (pool.without(spare) + without.without(~dropped)).distinct(context.domain.row).best(count)
    return pool


def _evaluate(context: SearchContext, known: Evaluated, codes: Floats) -> Rounds:
    """Evaluate those of the candidates (queries, K, features) that are legal and new."""
    domain = context.domain
    codes, count = domain.complete(codes).copy(), np.zeros(len(codes), dtype=np.int64)
    keep_new(domain.row, known.codes, np.isfinite(known.margin), codes, count)
    codes = codes[:, : count.max(initial=0)]
    opened = np.arange(codes.shape[1]) < count[:, None]
    opened[opened] = domain.contains_own(np.nonzero(opened)[0], codes[opened])
    if not opened.any():
        yield []
        return known
    (evaluation,) = yield [Candidates(codes, opened)]
    cost = np.full(opened.shape, np.inf)
    cost[evaluation.valid] = context.distance.total(codes[evaluation.valid], domain.row[np.nonzero(evaluation.valid)[0]])
    return known + Evaluated(codes, evaluation.margin, evaluation.lead, cost)


class Guide:
    """The compiled search with the surrogate as scorer, corrected by what the model has predicted."""

    def __init__(self, context: SearchContext) -> None:
        self.context = context
        surrogate, config = context.state.surrogate, context.config.guided
        self.scorer = NO_SCORER if surrogate is None else surrogate.scorer
        queries = make_queries(context.domain, context.targets, context.evaluator.lowest)
        # The kernel overwrites the margins needed; those of the targets belong to other searches as well.
        self.queries, self.own_need = queries._replace(need=queries.need.copy()), queries.need
        self.search = CandidateSearch(self.scorer, context.distance, config, context.state.dense_levels)

    def propose(self, known: Evaluated, levels: Sequence[tuple[float, int]]) -> Floats:
        """Return candidates by the corrected surrogate: so many for each margin of safety, in errors of the surrogate."""
        assert self.context.lead is not None
        graded = self.context.evaluator.informative
        correct(self.scorer, self.queries, self.context.lead, known.codes, known.lead, graded)
        safety, most = (np.array(values) for values in zip(*levels, strict=True))
        proposed = self.search.propose(self.context.domain, self.queries, self._needs(safety), most)
        self._note_more(proposed, most)
        return proposed

    def _note_more(self, proposed: Floats, most: Indices) -> None:
        """Note the queries for which the surrogate may find more than are evaluated: those whose places are all taken."""
        last = proposed[:, np.cumsum(most) - TIGHT - 1]
        taken = (last != self.context.domain.base[:, None, :]).any(axis=(1, 2))
        self.context.evaluator.limits.note_complete(np.flatnonzero(taken), False)

    def single_changes(self, known: Evaluated) -> Floats:
        """Return the most promising single changes of queries for which none is known to suffice, the base for others.

        Where only labels are known, those that cost less than the best candidate are tried for all queries.
        """
        context, config = self.context, self.context.config
        alone = known.reached & ((known.codes != context.domain.row[:, None, :]).sum(axis=2) == 1)
        least = 0.0 if context.evaluator.informative else known.cost.min(axis=1, initial=np.inf)
        most_cost = np.where(any_of(alone), least, np.inf)
        count = config.single_changes if context.state.surrogate is not None and most_cost.any() else 0
        return self.search.propose_singles(context.domain, self.queries, most_cost, config.single_values, count)

    def _needs(self, safety: Floats) -> Floats:
        """Return the margins that candidates need by the surrogate (queries, levels)."""
        need, targets = np.outer(np.ones(len(self.own_need)), safety * self.scorer.error), self.context.targets
        if isinstance(targets, Within):
            need = np.minimum(need, 0.2 * (targets.high - targets.low)[:, None])
        return np.ascontiguousarray(self.own_need[:, None] + need)

    def nearer(self, known: Evaluated) -> Floats:
        """Return rows between the best known ones and their queries: without one change, and with less of one number."""
        base, config = self.context.domain.base, self.context.config
        most = config.free_shrunk_candidates if self.context.free else config.shrunk_candidates
        start = np.full(len(base), -1.0) if self.context.start is None else self.context.start
        out = np.repeat(base[:, None, :], most * (base.shape[1] + LESS), axis=1)
        scratch, chosen = np.empty((3, base.shape[1])), np.zeros(most, dtype=np.int64)
        space = kept_struct(self.search.space(self.context.domain))
        write_nearer(space, as_struct(self.queries), start, known.codes, known.margin, known.cost, chosen, scratch, out)
        return out
