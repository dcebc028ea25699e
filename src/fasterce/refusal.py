"""A useful no: which rule stands in the way, what would do without it (asked of the model), how far the best try came."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from fasterce.explanation import NONE_FOUND, Answers, Change, Refusal
from fasterce.options import Wanted
from fasterce.outcome import Confirming, Ledger
from fasterce.profile import Floats
from fasterce.rules import Limit, Rules
from fasterce.search import variants
from fasterce.search.goal import Indices, Mask
from fasterce.table import Reading, Table

MOST_LIFTED = 8
CLOSEST = (("closest", variants.closest),)

Inquire = Callable[..., Answers]


@dataclass
class _Lifted:
    """The cheapest answer of every row (in codes) with some limits lifted, what it costs, and which limits these are."""

    codes: Floats
    cost: Floats
    limits: list[tuple[Limit, ...]]

    @classmethod
    def nothing(cls, codes: Floats) -> "_Lifted":
        return cls(codes.copy(), np.full(len(codes), np.inf), [()] * len(codes))

    def take(self, rows: Indices, codes: Floats, cost: Floats, limits: Sequence[tuple[Limit, ...]]) -> None:
        """Note answers that lift fewer limits, or as many and cost less."""
        for row, code, price, lifted in zip(rows, codes, cost, limits, strict=True):
            known = (len(self.limits[row]) or np.inf, self.cost[row])
            if (len(lifted), price) < known:
                self.codes[row], self.cost[row], self.limits[row] = code, price, lifted


def explain_refusals(
    ledger: Ledger, confirming: Confirming, wanted: Wanted, inquire: Inquire, started: float
) -> dict[int, Refusal]:
    """For every row without an answer the reason why, as far as it can be found out in the time there is; `inquire`
    searches once more."""
    rows = np.flatnonzero(ledger.status == NONE_FOUND)
    if not rows.size or not wanted.why_not or wanted.budget is not None:
        return {}
    until = None if wanted.deadline is None else started + wanted.deadline
    lifted = _unlocked(ledger.codes[rows], rows, confirming, wanted, inquire, until)
    refusals = {}
    for k, row in enumerate(map(int, rows)):
        refusal = _refusal(ledger.codes[row], lifted, k, confirming.progress[row], wanted.rules)
        ledger.reason[row] = " ".join([str(ledger.reason[row]), *refusal.sentences])
        refusals[row] = refusal
    return refusals


def _unlocked(
    codes: Floats, rows: Indices, confirming: Confirming, wanted: Wanted, inquire: Inquire, until: float | None
) -> _Lifted:
    """First without any rule: what is broken then may be in the way. Then one by one, for rows that break several."""
    found = _Lifted.nothing(codes)
    rules = wanted.rules
    if not rules.limits or wanted.clock.past(until):
        return found

    def search(some: Indices, by: Rules) -> Answers:
        left = None if until is None else max(until - perf_counter(), 1e-3)
        part = Confirming(confirming.predictor, confirming.rows.iloc[rows[some]], codes[some], confirming.raw)
        once = replace(wanted, rules=by, n=1, trials=trials, deadline=left, method="closest", variants=CLOSEST)
        return inquire(Ledger(Reading(codes[some]), wanted.target), part, wanted=once)

    trials = tuple(trial for trial in wanted.trials if trial.share > 0)
    every = np.arange(len(rows))
    free = search(every, replace(rules, limits=()))
    broken = np.stack([rules.broken(limit, free.before, free.codes) for limit in rules.limits], axis=1)
    sets = [tuple(limit for limit, is_broken in zip(rules.limits, line, strict=True) if is_broken) for line in broken]
    found.take(free.query, free.codes, free.distance, sets)
    # Each row tries limits by itself, those its free answer breaks first, so that what is said of it does not depend on
    # its company.
    several = broken.sum(axis=1) > 1
    for turn in (broken, ~broken):
        for limit, tried in zip(rules.limits, _first(turn, several).T, strict=True):
            some = free.query[tried]
            if some.size and not wanted.clock.past(until):
                other = search(some, rules.without(limit))
                found.take(some[other.query], other.codes, other.distance, [(limit,)] * len(other))
        several = np.array([len(found.limits[row]) > 1 for row in free.query], dtype=bool)
    return found


def _first(limits: Mask, rows: Mask) -> Mask:
    """The first few limits of some rows."""
    return np.asarray(limits & rows[:, None] & (np.cumsum(limits, axis=1) <= MOST_LIFTED))


def _refusal(row: Floats, lifted: _Lifted, k: int, progress: float, rules: Rules) -> Refusal:
    limits = tuple(limit.text for limit in lifted.limits[k])
    changes = _changes(rules.table, row, lifted.codes[k])
    way = None if np.isnan(progress) else float(progress)
    return Refusal(limits, changes, bool(rules.limits), way)


def _changes(table: Table, before: Floats, after: Floats) -> tuple[Change, ...]:
    return tuple(
        Change(table.schema.names[j], table.value(j, before[j]), table.value(j, after[j]))
        for j in map(int, np.flatnonzero(before != after))
    )
