"""From open rows to confirmed answers: search by whatever answers fastest, let the model itself have the last word.

Sources take turns: a compiled twin if there is one, the model by its scores, the model by its labels. Each leaves to the
next the rows it was wrong about. The model's own word is asked once, together, for the rows and for their answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any

import numpy as np

from fasterce.constraints.compile import CompiledConstraints
from fasterce.explanation import NONE_FOUND, CounterfactualArrays
from fasterce.fitting.state import SearchState
from fasterce.io.progress import Progress
from fasterce.kernels.arrays import Scorer
from fasterce.models.predictions import Evaluate
from fasterce.models.predictor import Predictor
from fasterce.search import methods
from fasterce.search.context import SearchContext
from fasterce.search.judge import Best, Judge, any_of
from fasterce.search.plan import SearchPlan
from fasterce.search.pool import Pool
from fasterce.search.proof import proven_infeasible
from fasterce.search.propose import apart
from fasterce.search.query_targets import QueryTargets
from fasterce.search.results import CUT_SHORT_BY, QueryLedger, Verifier, stopped_problem
from fasterce.search.rounds import run_rounds
from fasterce.search.verify import verify
from fasterce.typing import Floats, Indices, Mask

BY_SCORES, TRIED = 3, 4
# Standard deviations by which answers go on where scores do not help, turn by turn.
MARGINS = (0.0, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Source:
    """Whom a search asks. `final` says that finding nothing settles the matter, `labels` that it goes by the model's
    own labels already."""

    evaluate: Evaluate
    informative: bool
    final: bool
    labels: bool = False
    scorer: Scorer | None = None


def sources(predictor: Predictor, compiled: Any, raw: bool) -> list[Source]:
    """`raw`: labels do not tell whether a number is the wanted one."""
    found = [] if compiled is None else [Source(compiled.evaluate, predictor.use_scores, final=False, scorer=compiled.scorer)]
    if predictor.use_scores:
        found.append(Source(predictor.evaluate, informative=True, final=True))
    return found if raw else [*found, Source(predictor.evaluate_labels, informative=False, final=True, labels=True)]


def run_search(
    ledger: QueryLedger, verifier: Verifier, sources: Sequence[Source], state: SearchState, plan: SearchPlan
) -> CounterfactualArrays:
    """Every open row is settled; `started` counts for the deadline from here."""
    started = perf_counter()
    attempts = (_attempt(ledger, verifier, source, state, plan, started) for source in sources if ledger.open.size)
    answers = CounterfactualArrays.merge([_empty(ledger.codes), *attempts])
    ledger.close_rest(ledger.open, plan.options.method, np.zeros(ledger.open.size, dtype=bool), plan.stopping_limits)
    ledger.note_several_changes(answers)
    ledger.note_not_robust(verifier.shares, plan.checks)
    if plan.options.method != "all":
        ledger.note_shortfall(answers, plan.options.n)
    return answers


def _attempt(
    ledger: QueryLedger, verifier: Verifier, source: Source, state: SearchState, plan: SearchPlan, started: float
) -> CounterfactualArrays:
    rows = _affordable(ledger, verifier, source, plan)
    began = perf_counter()
    answered = source.evaluate(ledger.codes[rows])
    each = (perf_counter() - began) / max(len(rows), 1)
    verifier.usage[rows] += source.final
    targets = plan.target.for_queries(answered)
    every = np.arange(len(rows))
    domain, blocked = plan.constraints.domain(ledger.codes[rows])
    searching = (answered.classes >= 0) & ~targets.reached(answered, every)
    searching[list(blocked)] = False
    place = np.flatnonzero(searching)
    limits = plan.limits(verifier.usage[rows[place]], started, each, free=not source.final)
    before = limits.left
    domain = domain.take(place)
    judge = Judge(source.evaluate, targets.take(place), source.informative, limits, state.lowest, domain)
    context = SearchContext(
        state,
        domain,
        judge,
        plan.constraints.named,
        plan.options.step,
        plan.options.margin,
        priced=plan.distance,
        start=judge.targets.margins(answered.take(place), np.arange(len(place)), state.lowest),
        realism=plan.options.realism,
        diversity=plan.options.diversity,
        scorer=source.scorer,
        several=plan.options.n > 1 or bool(plan.checks),
    )
    highest = np.full(len(place), -np.inf)
    if source.informative:
        judge.note_margins = lambda some, margin: np.maximum.at(highest, some, margin)
    verifier.own[rows] = answered.classes
    verifier.pending = np.zeros(0, dtype=np.intp) if source.labels else rows
    answers = _search(context, rows[place], verifier, plan)
    verifier.evaluate_pending()
    if before is not None and limits.left is not None:
        verifier.usage[rows[place]] += before - limits.left
    if source.informative and context.start is not None:
        verifier.note_progress(rows[place], context.start, highest)
    doubtful = ledger.record(rows, verifier.own_predictions(rows), answered, targets, verifier.predictor.failure)
    answers = answers.without(doubtful)
    ledger.close_found(answers)
    for position, problem in blocked.items():
        if ledger.status[rows[position]] == "":
            ledger.close([int(rows[position])], NONE_FOUND, replace(problem, row=int(rows[position])))
    refused = rows[:0] if source.labels else rows[verifier.refused[rows]]
    _finish(ledger, rows[place], np.union1d(doubtful, refused), limits.stopped, source, plan)
    return answers


def _affordable(ledger: QueryLedger, verifier: Verifier, source: Source, plan: SearchPlan) -> Indices:
    """Open rows with enough of their budget left to be asked at all; the others are stopped."""
    rows = ledger.open
    if plan.options.budget is None or not source.final:
        return rows
    spent = verifier.usage[rows] + 1 + plan.set_aside > plan.options.budget
    ledger.close_rest(rows[spent], plan.options.method, np.ones(int(spent.sum()), dtype=bool), plan.stopping_limits)
    return rows[~spent]


def _finish(ledger: QueryLedger, rows: Indices, doubtful: Indices, stopped: Mask, source: Source, plan: SearchPlan) -> None:
    if stopped.any():
        ledger.add(rows[stopped], stopped_problem(CUT_SHORT_BY, plan.stopping_limits))
    left = (ledger.status[rows] == "") & ~np.isin(rows, doubtful)
    if not source.final:
        left &= stopped
    ledger.close_rest(rows[left], plan.options.method, stopped[left], plan.stopping_limits)


def _search(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Search and verify, block by block; one block is all there is unless the batch is very large.

    `rows` are the positions of the context's rows in the table that came in.
    """
    size = plan.reading.rows_at_once(context.state)
    blocks = [np.arange(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
    progress = Progress(plan.progress if len(blocks) > 1 else False)
    parts = []
    for block in progress.track(blocks, "explaining"):
        if context.judge.limits.over:
            context.judge.limits.stopped[block] = True
        else:
            parts.append(_steadily(context.take(block), rows[block], verifier, plan))
    return CounterfactualArrays.merge(parts) if parts else _empty(context.domain.row)


def _steadily(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Where answers must stand checks, search farther beyond the boundary as long as none of a row's does."""
    if not plan.checks:
        return _search_block(context, rows, verifier, plan)
    kept = []
    needs = [check.first_need(context) for check in plan.checks if check.share > 0]
    every, need = np.arange(len(rows)), np.max(needs, axis=0) if needs else np.zeros(len(rows))
    for turn in range(plan.config.robustness_rounds):
        some, once = _turned(context.take(every), need, turn, plan)
        found, lack = _tried(_search_block(some, rows[every], verifier, once), context, rows, verifier, plan)
        kept.append(found.first(plan.options.n))
        again = ~np.isin(rows[every], found.query) & _left_for_another(verifier.usage[rows[every]], plan)
        every, need = every[again], np.maximum(1.5 * need[again], lack[every[again]])
        if not every.size or not needs or context.judge.limits.over:
            break
    return CounterfactualArrays.merge(kept)


def _turned(context: SearchContext, need: Floats, turn: int, plan: SearchPlan) -> tuple[SearchContext, SearchPlan]:
    """First farther by the scores. Where that leads nowhere, since scores may not tell how deep inside an answer is, on by
    standard deviations; in the end known rows that have the answer. Then several are tried."""
    several = replace(plan, options=replace(plan.options, n=max(plan.options.n, TRIED)))
    if turn < BY_SCORES and context.judge.informative:
        return _demanding(context, need), plan if plan.options.n == 1 else several
    if turn == plan.config.robustness_rounds - 1:
        return context, replace(several, variants=[(plan.variants[0][0], methods.known_rows)])
    return replace(context, margin=max(context.margin, MARGINS[turn])), several if turn or plan.options.n > 1 else plan


def _left_for_another(asked: Indices, plan: SearchPlan) -> Mask:
    budget = plan.options.budget
    return np.ones(len(asked), dtype=bool) if budget is None else asked + 2 * plan.set_aside <= budget


def _demanding(context: SearchContext, need: Floats) -> SearchContext:
    start = None if context.start is None else context.start - need
    return replace(context, judge=context.judge.demanding(need), start=start)


def _tried(
    found: CounterfactualArrays, context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan
) -> tuple[CounterfactualArrays, Floats]:
    """The answers that stand all checks, and the lead that others would need."""
    place = np.searchsorted(rows, found.query)
    steady, need = np.ones(len(found), dtype=bool), np.zeros(len(rows))
    for check in plan.checks:
        held = check.test(found.codes, context.targets, place)
        np.add.at(verifier.usage, found.query, check.model_rows)
        found = found.with_share(check.kind, held.share)
        steady &= held.share >= check.share
        np.maximum.at(need, place, np.nan_to_num(held.need))
        verifier.note_share(found.query, check.kind, held.share)
    return found.where(steady), need


def _search_block(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Verify the best of every variant in one question, and rank what the model confirms, nearest first."""
    names = [name for name, _ in plan.variants]
    if context.judge.limits.until is not None:
        price: Any = lambda own, codes: context.distance.total(codes, context.domain.row[own])  # noqa: E731
        context.judge.best = Best(context.domain.row.copy(), np.full(len(rows), np.inf), price)
    pools = run_rounds(context.judge, [variant(context, plan.options.n) for _, variant in plan.variants])
    if pools is None:
        pools = [_best_so_far(context)]
    pool = reduce(Pool.__add__, pools)
    group = np.repeat(np.arange(len(pools)), [part.codes.shape[1] for part in pools])

    def confirm(own: Indices, codes: Floats) -> tuple[Mask, Floats]:
        said = verifier(rows[own], codes)
        return plan.target.confirmed(context.targets, said, own), plan.target.value(context.targets, said, own)

    kept, value = verify(pool, group, context.domain, confirm, plan.options.n, plan.config.verification_attempts)
    verifier.refused[rows] = any_of(pool.valid) & ~any_of(kept)
    if context.searches_exactly and not plan.checks:
        _note_search(context, rows, any_of(pool.valid), verifier, plan)
    if plan.options.n > 1:
        kept &= ~pool.repeated(kept)
    row, candidate = np.nonzero(kept)
    order = np.lexsort((candidate, pool.cost[row, candidate], row))
    row, candidate = row[order], candidate[order]
    codes = pool.codes[row, candidate]
    return CounterfactualArrays(
        query=rows[row],
        rank=np.arange(len(row)) - np.searchsorted(row, row),
        method=np.array(names, dtype=object)[group[candidate]],
        before=context.domain.row[row],
        codes=codes,
        distance=context.distance.total(codes, context.domain.row[row]),
        score=value[row, candidate],
        nn_ratio=apart(context, row, codes) if plan.options.method == "all" else np.zeros(0),
    )


def _note_search(context: SearchContext, rows: Indices, found: Mask, verifier: Verifier, plan: SearchPlan) -> None:
    """Note what was tried for queries without a candidate, and whether that is all there is."""
    none = np.flatnonzero(~found)
    if none.size and context.scorer is not None and "candidates" in context.__dict__:
        some = context.domain.take(none), context.targets.take(none)
        verifier.edits[rows[none]] = context.candidates.scored[none]
        most = plan.config.max_enumerated
        verifier.proven[rows[none]] = proven_infeasible(context.scorer, *some, context.judge.lowest, most)


def _best_so_far(context: SearchContext) -> Pool:
    """What a search cut short had found; every row counts as stopped."""
    best = context.judge.best
    assert best is not None
    context.judge.limits.stop()
    return Pool.start(best.codes[:, None], np.isfinite(best.cost)[:, None], context.domain, context.distance)


def _empty(codes: Floats) -> CounterfactualArrays:
    none = np.zeros(0, dtype=np.intp)
    return CounterfactualArrays(none, none, np.zeros(0, dtype=object), codes[:0], codes[:0], np.zeros(0))


def plain_context(
    ledger: QueryLedger, predictor: Predictor, state: SearchState, constraints: CompiledConstraints, step: float
) -> tuple[SearchContext, QueryTargets] | None:
    """The context of a single row, by the model's own word; None where there is nothing to search for."""
    rows = ledger.open
    said = predictor.verify(predictor.table.frame(ledger.codes[rows]), ledger.target.raw)
    targets = ledger.target.for_queries(said)
    ledger.record(rows, said, said, targets, predictor.failure)
    if not ledger.open.size:
        return None
    domain, _ = constraints.domain(ledger.codes[rows])
    return SearchContext(
        state, domain, Judge(predictor.evaluate, targets, predictor.use_scores), constraints.named, step
    ), targets
