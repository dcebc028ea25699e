"""The run of a search: from queries to verified counterfactuals.

Candidates are evaluated by the fastest source: the compiled model if there is one, then the model by its scores, then by its
labels. Queries for which a source and the model disagree are left to the next source. The model's `predict` evaluates the
queries and their counterfactuals together, in one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile import CompiledConstraints
from fasterce.constraints.compile.domain import Domain
from fasterce.errors import Problem, make_problem
from fasterce.explanation import NONE_FOUND, CounterfactualArrays
from fasterce.fitting.state import SearchState
from fasterce.io.progress import Progress
from fasterce.kernels.arrays import Scorer
from fasterce.models.predictions import Evaluate, Predictions
from fasterce.models.predictor import Predictor
from fasterce.options import PaperOptions
from fasterce.search import methods
from fasterce.search.context import SearchContext
from fasterce.search.engines import paper
from fasterce.search.evaluator import Evaluator, any_of
from fasterce.search.limits import Best, Limits
from fasterce.search.plan import SearchPlan
from fasterce.search.pool import ORIGINS, Pool
from fasterce.search.proof import proven_infeasible
from fasterce.search.propose import apart
from fasterce.search.query_targets import QueryTargets
from fasterce.search.results import CUT_SHORT_BY, QueryLedger, Verifier, stopped_problem
from fasterce.search.rounds import run_rounds
from fasterce.search.verify import verify
from fasterce.typing import Floats, Indices, Mask

# Rounds of a robust search that demand higher scores, before candidates are moved by standard deviations.
ROUNDS_BY_SCORES = 3
# Counterfactuals per query that a later round checks.
CHECKED = 4
# Standard deviations beyond the decision boundary where scores do not help, per round.
MARGINS = (0.0, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Source:
    """What evaluates the candidates of a search.

    evaluate     predictions of rows of codes
    informative  whether it gives scores, not only labels
    final        whether a query without a candidate is closed, or left to the next source
    labels       whether the labels are those of the model's `predict`
    scorer       the exact scorer, if there is one
    """

    evaluate: Evaluate
    informative: bool
    final: bool
    labels: bool = False
    scorer: Scorer | None = None


def sources(predictor: Predictor, compiled: Any, raw: bool) -> list[Source]:
    """Return the sources in their order; `raw`: the target is a number or a score, which labels do not tell."""
    found = []
    if compiled is not None:
        scorer = None if raw and compiled.labels_apart else compiled.scorer
        found.append(Source(compiled.evaluate, predictor.use_scores, final=False, scorer=scorer))
    if predictor.use_scores:
        found.append(Source(predictor.evaluate, informative=True, final=True))
    return found if raw else [*found, Source(predictor.evaluate_labels, informative=False, final=True, labels=True)]


def run_search(
    ledger: QueryLedger, verifier: Verifier, sources: Sequence[Source], state: SearchState, plan: SearchPlan
) -> CounterfactualArrays:
    """Search and close every open query; the time of the deadline starts here."""
    started = perf_counter()
    if plan.options.engine == "paper" and plan.options.permitted_range:
        state = paper.within_ranges(state, plan.constraints)
    parts = [_search_with(source, ledger, verifier, state, plan, started) for source in sources if ledger.open.size]
    found = CounterfactualArrays.merge(parts or [_empty(ledger.codes)])
    ledger.close_rest(ledger.open, plan.options.method, np.zeros(ledger.open.size, dtype=bool), plan.stopping_limits)
    ledger.note_several_changes(found)
    ledger.note_not_robust(verifier.shares, plan.checks)
    ledger.note_withheld(verifier.withheld)
    if plan.options.method != "all":
        ledger.note_shortfall(found, plan.options.n, verifier.search_ends)
    return found


def _search_with(
    source: Source, ledger: QueryLedger, verifier: Verifier, state: SearchState, plan: SearchPlan, started: float
) -> CounterfactualArrays:
    """Search the open queries with one source; queries the model does not confirm stay open for the next."""
    rows = _affordable(ledger, verifier, source, plan)
    began = perf_counter()
    predictions = source.evaluate(ledger.codes[rows])
    seconds_each = (perf_counter() - began) / max(len(rows), 1)
    verifier.usage[rows] += source.final
    targets = plan.target.for_queries(predictions)
    domain, blocked = plan.constraints.domain(ledger.codes[rows])
    searched = (predictions.classes >= 0) & ~targets.reached(predictions, np.arange(len(rows)))
    searched[list(blocked)] = False
    place = np.flatnonzero(searched)
    limits = plan.limits(verifier.usage[rows[place]], started, seconds_each, free=not source.final)
    if searched.all():
        context = _context(source, state, plan, domain, targets, predictions, limits)
    else:
        context = _context(source, state, plan, domain.take(place), targets.take(place), predictions.take(place), limits)
    if source.final and source.informative and verifier.predictor.scores_are_returned:
        context.evaluator.kept_scores = []
    verifier.own[rows] = predictions.classes
    verifier.pending = np.zeros(0, dtype=np.intp) if source.labels else rows
    found = _search_counted(context, rows[place], verifier, plan)
    doubtful = ledger.record(rows, verifier.own_predictions(rows), predictions, targets, verifier.predictor.failure)
    found = found.without(doubtful)
    ledger.close_found(found)
    for position, problem in blocked.items():
        if ledger.status[rows[position]] == "":
            ledger.close([int(rows[position])], NONE_FOUND, replace(problem, row=int(rows[position])))
    refused = rows[:0] if source.labels else rows[verifier.refused[rows]]
    _close_searched(ledger, rows[place], np.union1d(doubtful, refused), limits.stopped, source, plan)
    return found


def _context(
    source: Source,
    state: SearchState,
    plan: SearchPlan,
    domain: Domain,
    targets: QueryTargets,
    predictions: Predictions,
    limits: Limits,
) -> SearchContext:
    every = np.arange(len(domain.base))
    # The paper's rows are evaluated as decoded: its engine checks constraints afterwards.
    linked = None if plan.options.engine == "paper" else domain
    return SearchContext(
        state,
        domain,
        Evaluator(source.evaluate, targets, source.informative, limits, state.lowest, linked),
        plan.constraints.named,
        plan.options.paper,
        plan.options.margin,
        priced=plan.distance,
        start=targets.margins(predictions, every, state.lowest),
        lead=targets.leads(predictions, every, state.lowest),
        realism=plan.options.realism,
        diversity=plan.options.diversity,
        scorer=source.scorer,
        wanted=max(plan.options.n, CHECKED if plan.checks else 1),
        free=not source.final,
    )


def _search_counted(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Search, count the model rows of each query, and note how near the best candidate of each came to the target."""
    evaluator, limits = context.evaluator, context.evaluator.limits
    before, highest = limits.left, np.full(len(rows), -np.inf)
    if evaluator.informative:
        evaluator.note_margins = lambda some, margin: np.maximum.at(highest, some, margin)
    found = _search(context, rows, verifier, plan)
    verifier.evaluate_pending()
    if before is not None and limits.left is not None:
        verifier.usage[rows] += before - limits.left
    if evaluator.informative and context.start is not None:
        verifier.note_progress(rows, context.start, highest)
    return found


def _affordable(ledger: QueryLedger, verifier: Verifier, source: Source, plan: SearchPlan) -> Indices:
    """Return the open queries whose budget suffices for a search; the others are closed."""
    rows = ledger.open
    if plan.options.budget is None or not source.final:
        return rows
    spent = verifier.usage[rows] + 1 + plan.set_aside > plan.options.budget
    ledger.close_rest(rows[spent], plan.options.method, np.ones(int(spent.sum()), dtype=bool), plan.stopping_limits)
    return rows[~spent]


def _close_searched(
    ledger: QueryLedger, rows: Indices, doubtful: Indices, stopped: Mask, source: Source, plan: SearchPlan
) -> None:
    """Close queries without a counterfactual, unless they are doubtful or the next source may find one."""
    if stopped.any():
        ledger.add(rows[stopped], stopped_problem(CUT_SHORT_BY, plan.stopping_limits))
    left = ledger.status[rows] == ""
    if not left.any():
        return
    left &= ~np.isin(rows, doubtful)
    if not source.final:
        left &= stopped
    ledger.close_rest(rows[left], plan.options.method, stopped[left], plan.stopping_limits)


def _search(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Search and verify in blocks, to bound memory; most batches are one block.

    `rows` are the positions of the queries in the table.
    """
    size = plan.engine.rows_at_once(context.state)
    blocks = [np.arange(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
    progress = Progress(plan.progress if len(blocks) > 1 else False)
    parts = []
    for block in progress.track(blocks, "explaining"):
        if context.evaluator.limits.over:
            context.evaluator.limits.stopped[block] = True
        else:
            some = context if len(blocks) == 1 else context.take(block)
            parts.append(_search_robustly(some, rows[block], verifier, plan))
    return CounterfactualArrays.merge(parts) if parts else _empty(context.domain.row)


def _search_robustly(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Where counterfactuals must pass robustness checks, search farther beyond the decision boundary until one passes."""
    if not plan.checks:
        return _search_block(context, rows, verifier, plan)
    kept = []
    needs = [check.first_need(context) for check in plan.checks if check.share > 0]
    every, need = np.arange(len(rows)), np.max(needs, axis=0) if needs else np.zeros(len(rows))
    for turn in range(plan.config.robustness_rounds):
        some, once = _robustness_round(context.take(every), need, turn, plan)
        found, missing = _checked(_search_block(some, rows[every], verifier, once), context, rows, verifier, plan)
        kept.append(found.first(plan.options.n))
        again = ~np.isin(rows[every], found.query) & _affords_round(verifier.usage[rows[every]], plan)
        every, need = every[again], np.maximum(1.5 * need[again], missing[every[again]])
        if not every.size or not needs or context.evaluator.limits.over:
            break
    return CounterfactualArrays.merge(kept)


def _robustness_round(context: SearchContext, need: Floats, turn: int, plan: SearchPlan) -> tuple[SearchContext, SearchPlan]:
    """Return context and plan of a round.

    The first rounds demand higher scores. Scores may not tell how far a candidate is from the boundary, so later rounds move
    candidates by standard deviations, and the last takes known rows of the target. Later rounds check several candidates.
    """
    several = replace(plan, options=replace(plan.options, n=max(plan.options.n, CHECKED)))
    if turn < ROUNDS_BY_SCORES and context.evaluator.informative:
        return _demanding(context, need), plan if plan.options.n == 1 else several
    if turn == plan.config.robustness_rounds - 1 and plan.options.engine == "hybrid":
        return context, replace(several, variants=[(plan.variants[0][0], methods.known_rows)])
    farther = replace(context, margin=max(context.margin, MARGINS[min(turn, len(MARGINS) - 1)]))
    return farther, several if turn or plan.options.n > 1 else plan


def _affords_round(usage: Indices, plan: SearchPlan) -> Mask:
    """Return which queries have model rows left for another round."""
    budget = plan.options.budget
    return np.ones(len(usage), dtype=bool) if budget is None else usage + 2 * plan.set_aside <= budget


def _demanding(context: SearchContext, need: Floats) -> SearchContext:
    start = None if context.start is None else context.start - need
    return replace(context, evaluator=context.evaluator.demanding(need), start=start)


def _checked(
    found: CounterfactualArrays, context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan
) -> tuple[CounterfactualArrays, Floats]:
    """Return the counterfactuals that pass all checks, and the margin that those of each query need to pass."""
    place = np.searchsorted(rows, found.query)
    passed, need = np.ones(len(found), dtype=bool), np.zeros(len(rows))
    for check in plan.checks:
        held = check.test(found.codes, context.targets, place)
        np.add.at(verifier.usage, found.query, check.model_rows)
        found = found.with_share(check.kind, held.share)
        passed &= held.share >= check.share
        np.maximum.at(need, place, np.nan_to_num(held.need))
        verifier.note_share(found.query, check.kind, held.share)
    return found.where(passed), need


def _search_block(context: SearchContext, rows: Indices, verifier: Verifier, plan: SearchPlan) -> CounterfactualArrays:
    """Search with all methods, verify the best candidates in one call, and rank those the model confirms by distance."""
    if context.evaluator.limits.until is not None:

        def distance(own: Indices, codes: Floats) -> Floats:
            return context.distance.total(codes, context.domain.row[own])

        context.evaluator.best = Best(context.domain.row.copy(), np.full(len(rows), np.inf), distance)
    pools = run_rounds(context.evaluator, [variant(context, plan.options.n) for _, variant in plan.variants])
    if pools is None:
        pools = [_best_so_far(context)]
    pool = reduce(Pool.__add__, pools)
    group = np.repeat(np.arange(len(pools)), [part.codes.shape[1] for part in pools])

    def confirm(own: Indices, codes: Floats) -> tuple[Mask, Floats]:
        predictions = verifier(rows[own], codes)
        reached = plan.target.confirmed(context.targets, predictions, own)
        return reached, plan.target.value(context.targets, predictions, own)

    legal = context.domain.contains(pool.codes)
    kept, value = verify(pool, group, context.domain, confirm, plan.options.n, plan.config.verification_attempts, legal)
    verifier.withheld[rows] += (pool.valid & ~legal).sum(axis=1)
    verifier.refused[rows] = any_of(pool.valid) & ~any_of(kept)
    if plan.options.n > 1 and plan.options.engine == "hybrid":
        verifier.search_ends[rows] = _search_ends(context)
    if context.searches_exactly and not any(check.share > 0 for check in plan.checks):
        _note_search(context, rows, any_of(pool.valid), verifier, plan)
    if plan.options.n > 1:
        kept &= ~pool.repeated(kept)
    return _ranked(context, rows, plan, pool, group, kept, value)


def _ranked(
    context: SearchContext, rows: Indices, plan: SearchPlan, pool: Pool, group: Indices, kept: Mask, value: Floats
) -> CounterfactualArrays:
    """Return the kept candidates of each query, the cheapest first; `group` is the position of the method of each."""
    names = np.array([name for name, _ in plan.variants], dtype=object)
    row, candidate = np.nonzero(kept)
    order = np.lexsort((candidate, pool.cost[row, candidate], row))
    row, candidate = row[order], candidate[order]
    codes = pool.codes[row, candidate]
    scores = context.evaluator.pop_scores(codes)
    return CounterfactualArrays(
        query=rows[row],
        rank=np.arange(len(row)) - np.searchsorted(row, row),
        method=names[group[candidate]],
        before=context.domain.row[row],
        codes=codes,
        distance=context.distance.total(codes, context.domain.row[row]),
        score=value[row, candidate],
        nn_ratio=apart(context, row, codes) if plan.options.method == "all" else np.zeros(0),
        probabilities=np.zeros((0, 0)) if scores is None else np.exp(scores),
        origin=np.array(ORIGINS, dtype=object)[pool.origin[row, candidate]],
    )


def _search_ends(context: SearchContext) -> NDArray[np.object_]:
    """Return what ended the search of each query for further counterfactuals."""
    if context.searches_exactly:
        done, option = "search.all_pairs", "costly_units" if context.is_costly else "max_expanded"
    else:
        done, option = "search.all_proposed", "free_guided_candidates" if context.free else "guided_candidates"
    limit = make_problem("search.limit_reached", option=option, limit=getattr(context.config, option))
    complete = context.evaluator.limits.is_complete()
    return np.array([Problem(done) if one else limit for one in complete], dtype=object)


def _note_search(context: SearchContext, rows: Indices, found: Mask, verifier: Verifier, plan: SearchPlan) -> None:
    """Note what was tried for queries without a candidate, and whether that is all there is."""
    none = np.flatnonzero(~found)
    candidates = context.shared.found
    if none.size and context.scorer is not None:
        some = context.domain.take(none), context.targets.take(none)
        if candidates is not None:
            verifier.edits[rows[none]] = candidates.scored[none]
        most = plan.config.max_enumerated
        verifier.proven[rows[none]] = proven_infeasible(context.scorer, *some, context.evaluator.lowest, most)


def _best_so_far(context: SearchContext) -> Pool:
    """Return the best candidates of a search that ran out of time, and note all its queries as stopped."""
    best = context.evaluator.best
    assert best is not None
    context.evaluator.limits.stop()
    return Pool.start(best.codes[:, None], np.isfinite(best.cost)[:, None], context.domain, context.distance)


def _empty(codes: Floats) -> CounterfactualArrays:
    none = np.zeros(0, dtype=np.intp)
    return CounterfactualArrays(none, none, np.zeros(0, dtype=object), codes[:0], codes[:0], np.zeros(0))


def plain_context(
    ledger: QueryLedger, predictor: Predictor, state: SearchState, constraints: CompiledConstraints, step: float
) -> tuple[SearchContext, QueryTargets] | None:
    """Return the context of a single query, evaluated by the model itself; None if there is nothing to search for."""
    rows = ledger.open
    predictions = predictor.verify(predictor.table.frame(ledger.codes[rows]), ledger.target.raw)
    targets = ledger.target.for_queries(predictions)
    ledger.record(rows, predictions, predictions, targets, predictor.failure)
    if not ledger.open.size:
        return None
    domain, _ = constraints.domain(ledger.codes[rows])
    evaluator = Evaluator(predictor.evaluate, targets, predictor.use_scores)
    return SearchContext(state, domain, evaluator, constraints.named, PaperOptions(step=step)), targets
