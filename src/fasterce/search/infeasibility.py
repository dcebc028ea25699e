"""Diagnose queries without a counterfactual: blocking constraints, a counterfactual without them, the best attempt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fasterce.constraints.compile import ActiveConstraint, CompiledConstraints
from fasterce.data.table import Table, TableReading
from fasterce.explanation import NONE_FOUND, BlockingConstraint, Change, CounterfactualArrays, Infeasibility
from fasterce.search import methods
from fasterce.search.plan import SearchPlan
from fasterce.search.results import QueryLedger, Verifier
from fasterce.typing import Floats, Indices, Mask

CLOSEST = (("closest", methods.closest),)

RunSearch = Callable[..., CounterfactualArrays]


@dataclass
class _Lifted:
    """The cheapest counterfactual per row (in codes) with some constraints lifted, its cost, and these constraints."""

    codes: Floats
    cost: Floats
    limits: list[tuple[ActiveConstraint, ...]]

    @classmethod
    def nothing(cls, codes: Floats) -> "_Lifted":
        return cls(codes.copy(), np.full(len(codes), np.inf), [()] * len(codes))

    def take(self, rows: Indices, codes: Floats, cost: Floats, limits: Sequence[tuple[ActiveConstraint, ...]]) -> None:
        """Keep counterfactuals that lift fewer constraints, or as many at a lower cost."""
        for row, code, price, lifted in zip(rows, codes, cost, limits, strict=True):
            known = (len(self.limits[row]) or np.inf, self.cost[row])
            if (len(lifted), price) < known:
                self.codes[row], self.cost[row], self.limits[row] = code, price, lifted


def diagnose(
    ledger: QueryLedger, verifier: Verifier, plan: SearchPlan, run_search: RunSearch, started: float
) -> dict[int, Infeasibility]:
    """Return the reason for every row without a counterfactual, as far as the time allows; `run_search` searches again."""
    rows = np.flatnonzero(ledger.status == NONE_FOUND)
    if not rows.size or not plan.options.diagnose or plan.options.budget is not None:
        return {}
    until = None if plan.options.deadline is None else started + plan.options.deadline
    lifted = _unlocked(ledger.codes[rows], rows, verifier, plan, run_search, until)
    infeasible = {}
    for k, row in enumerate(map(int, rows)):
        found = _infeasibility(ledger.codes[row], lifted, k, verifier.progress[row], plan.constraints)
        found = replace(found, proven=bool(verifier.proven[row]), edits=int(verifier.edits[row]))
        ledger.problems[row] += tuple(found.problems)
        infeasible[row] = found
    return infeasible


def _unlocked(
    codes: Floats, rows: Indices, verifier: Verifier, plan: SearchPlan, run_search: RunSearch, until: float | None
) -> _Lifted:
    """Search without any constraint, which shows those that may block; then lift one at a time, for rows that violate
    several."""
    found = _Lifted.nothing(codes)
    constraints = plan.constraints
    if not constraints.active or plan.clock.past(until):
        return found

    def search(some: Indices, by: CompiledConstraints) -> CounterfactualArrays:
        left = None if until is None else max(until - perf_counter(), 1e-3)
        part = Verifier(verifier.predictor, verifier.rows.iloc[rows[some]], codes[some], verifier.raw)
        options = replace(plan.options, n=1, deadline=left, method="closest", engine="hybrid")
        once = replace(plan, options=options, constraints=by, checks=checks, variants=CLOSEST)
        return run_search(QueryLedger(TableReading(codes[some]), plan.target), part, plan=once)

    checks = tuple(check for check in plan.checks if check.share > 0)
    every = np.arange(len(rows))
    free = search(every, replace(constraints, active=()))
    broken = np.stack([constraints.broken(limit, free.before, free.codes) for limit in constraints.active], axis=1)
    sets = [tuple(limit for limit, is_broken in zip(constraints.active, line, strict=True) if is_broken) for line in broken]
    found.take(free.query, free.codes, free.distance, sets)
    # Each row lifts its own constraints, those its unconstrained result violates first: the diagnosis of a row does not
    # depend on the other rows.
    several = broken.sum(axis=1) > 1
    for turn in (broken, ~broken):
        for limit, tried in zip(constraints.active, _first(turn, several, plan.config.max_lifted_constraints).T, strict=True):
            some = free.query[tried]
            if some.size and not plan.clock.past(until):
                other = search(some, constraints.without(limit))
                found.take(some[other.query], other.codes, other.distance, [(limit,)] * len(other))
        several = np.array([len(found.limits[row]) > 1 for row in free.query], dtype=bool)
    return found


def _first(limits: Mask, rows: Mask, count: int) -> Mask:
    """Return the first `count` constraints of some rows."""
    return np.asarray(limits & rows[:, None] & (np.cumsum(limits, axis=1) <= count))


def _infeasibility(row: Floats, lifted: _Lifted, k: int, progress: float, constraints: CompiledConstraints) -> Infeasibility:
    limits = tuple(BlockingConstraint(limit.text, limit.origin, limit.columns) for limit in lifted.limits[k])
    changes = _changes(constraints.table, row, lifted.codes[k])
    way = None if np.isnan(progress) else float(progress)
    return Infeasibility(limits, changes, bool(constraints.active), way)


def _changes(table: Table, before: Floats, after: Floats) -> tuple[Change, ...]:
    return tuple(Change.of(table, j, before[j], after[j]) for j in map(int, np.flatnonzero(before != after)))
