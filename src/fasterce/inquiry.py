"""From open rows to confirmed answers: search by whatever answers fastest, let the model itself have the last word.

Sources take turns: a compiled twin if there is one, the model by its scores, the model by its labels. Each leaves to the
next the rows it was wrong about. The model's own label is asked once, together, for the rows and for their answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import numpy as np

from fasterce.errors import InputError, shorten, unknown_name
from fasterce.explanation import NONE_FOUND, Answers
from fasterce.outcome import Confirming, Ledger
from fasterce.predictor import Predictor
from fasterce.profile import Floats
from fasterce.progress import Progress
from fasterce.rules import Rules
from fasterce.search import paper, variants
from fasterce.search.dialogue import Search, converse
from fasterce.search.distance import Distance
from fasterce.search.judge import Asks, Best, Indices, Judge, Limits, Mask, any_of, margins
from fasterce.search.pool import Pool
from fasterce.search.task import Knowledge, Task
from fasterce.search.verify import TRIES, verify

Variant = Callable[[Task, int], Search]
FEWEST_SEARCHED = 1


@dataclass(frozen=True)
class Source:
    """Whom a search asks. `final` says that finding nothing settles the matter, `labels` that it goes by the model's
    own labels already."""

    ask: Asks
    informative: bool
    final: bool
    labels: bool = False


@dataclass(frozen=True)
class Wanted:
    """What the caller asked for, checked."""

    method: str
    variants: Sequence[tuple[str, Variant]]
    reading: Any
    rules: Rules
    distance: Distance
    n: int
    step: float
    margin: float
    realism: float
    budget: int | None
    deadline: float | None
    progress: bool | None

    @property
    def set_aside(self) -> int:
        """Questions kept back for a row's own label and for those of its answers, and of others if these are refused."""
        return 1 + TRIES * self.n * len(self.variants)

    def limits(self, spent: Indices, started: float, each: float, free: bool) -> Limits:
        """What is left of each row's budget, a twin may be asked for free; and of the time, less what it will take to ask
        for the labels of the rows and of their answers."""
        left = None if self.budget is None or free else np.maximum(self.budget - self.set_aside - spent, 0)
        last_word = each * len(spent) * (1 + self.n * len(self.variants))
        until = None if self.deadline is None else started + self.deadline - last_word
        return Limits(left, until, np.zeros(len(spent), dtype=bool), each)

    def why_stopped(self) -> str:
        limits = [f"budget of {self.budget} rows asked"] if self.budget is not None else []
        limits += [f"deadline of {self.deadline:g} s"] if self.deadline is not None else []
        return f"Stopped at the {' or the '.join(limits)}"


def sources(predictor: Predictor, twin: Any) -> list[Source]:
    found = [] if twin is None else [Source(twin.ask, predictor.use_scores, final=False)]
    if predictor.use_scores:
        found.append(Source(predictor.ask, informative=True, final=True))
    return [*found, Source(predictor.ask_labels, informative=False, final=True, labels=True)]


def inquire(ledger: Ledger, confirming: Confirming, asked: Sequence[Source], knowledge: Knowledge, wanted: Wanted) -> Answers:
    """Every open row is settled; `started` counts for the deadline from here."""
    started = perf_counter()
    attempts = (_attempt(ledger, confirming, source, knowledge, wanted, started) for source in asked if ledger.open.size)
    return Answers.merge([_nothing(ledger), *attempts])


def _attempt(
    ledger: Ledger, confirming: Confirming, source: Source, knowledge: Knowledge, wanted: Wanted, started: float
) -> Answers:
    rows = _affordable(ledger, confirming, source, wanted)
    began = perf_counter()
    answered = source.ask(ledger.codes[rows])
    each = (perf_counter() - began) / max(len(rows), 1)
    confirming.asked[rows] += source.final
    target = ledger.target_for(answered.classes)
    domain, blocked = wanted.rules.domain(ledger.codes[rows])
    searching = (answered.classes >= 0) & (answered.classes != target)
    searching[list(blocked)] = False
    place = np.flatnonzero(searching)
    scores = None if answered.scores is None else answered.scores[place]
    start = margins(answered.classes[place], scores, target[place], knowledge.lowest)
    limits = wanted.limits(confirming.asked[rows[place]], started, each, free=not source.final)
    before = limits.left
    judge = Judge(source.ask, target[place], source.informative, limits, knowledge.lowest)
    task = Task(
        knowledge,
        domain.take(place),
        judge,
        wanted.rules.named,
        wanted.step,
        wanted.margin,
        priced=wanted.distance,
        start=start,
        realism=wanted.realism,
    )
    confirming.own[rows] = answered.classes
    confirming.pending = np.zeros(0, dtype=np.intp) if source.labels else rows
    answers = _search(task, rows[place], confirming, wanted)
    confirming(np.zeros(0, dtype=np.intp), ledger.codes[:0])
    if before is not None and limits.left is not None:
        confirming.asked[rows[place]] += before - limits.left
    doubtful = ledger.record(rows, confirming.own[rows], answered.classes, confirming.predictor.failure)
    answers = answers.without(doubtful)
    ledger.settle_found(answers)
    for position, sentence in blocked.items():
        if ledger.status[rows[position]] == "":
            ledger.close(rows[position], NONE_FOUND, f"{sentence} (row {rows[position]}).")
    refused = rows[:0] if source.labels else rows[confirming.refused[rows]]
    _finish(ledger, rows[place], np.union1d(doubtful, refused), limits.stopped, source, wanted)
    return answers


def _affordable(ledger: Ledger, confirming: Confirming, source: Source, wanted: Wanted) -> Indices:
    """Open rows with enough of their budget left to be asked at all; the others are stopped."""
    rows = ledger.open
    if wanted.budget is None or not source.final:
        return rows
    spent = confirming.asked[rows] + 1 + wanted.set_aside > wanted.budget
    ledger.settle_rest(rows[spent], wanted.method, np.ones(int(spent.sum()), dtype=bool), wanted.why_stopped())
    return rows[~spent]


def _finish(ledger: Ledger, rows: Indices, doubtful: Indices, stopped: Mask, source: Source, wanted: Wanted) -> None:
    if stopped.any():
        ledger.remark(rows[stopped], f"{wanted.why_stopped()}: a nearer answer may exist.")
    left = (ledger.status[rows] == "") & ~np.isin(rows, doubtful)
    if not source.final:
        left &= stopped
    ledger.settle_rest(rows[left], wanted.method, stopped[left], wanted.why_stopped() if stopped.any() else "")


def _search(task: Task, rows: Indices, confirming: Confirming, wanted: Wanted) -> Answers:
    """Search and verify, block by block; one block is all there is unless the batch is very large.

    `rows` are the positions of the task's rows in the table that came in.
    """
    size = wanted.reading.rows_at_once(task.knowledge)
    blocks = [np.arange(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
    progress = Progress(wanted.progress if len(blocks) > 1 else False)
    parts = []
    for block in progress.track(blocks, "explaining"):
        if task.judge.limits.over:
            task.judge.limits.stopped[block] = True
        else:
            parts.append(_search_block(task.take(block), rows[block], confirming, wanted))
    return Answers.merge(parts) if parts else _empty(task.domain.row)


def _search_block(task: Task, rows: Indices, confirming: Confirming, wanted: Wanted) -> Answers:
    """Verify the best of every variant in one question, and rank what the model confirms, nearest first."""
    names = [name for name, _ in wanted.variants]
    if task.judge.limits.until is not None:
        price: Any = lambda own, codes: task.distance.total(codes, task.domain.row[own])  # noqa: E731
        task.judge.best = Best(task.domain.row.copy(), np.full(len(rows), np.inf), price)
    pools = converse(task.judge, [variant(task, wanted.n) for _, variant in wanted.variants])
    if pools is None:
        pools = [_best_so_far(task)]
    pool = reduce(Pool.__add__, pools)
    group = np.repeat(np.arange(len(pools)), [part.codes.shape[1] for part in pools])
    label: Callable[[Indices, Floats], Indices] = lambda own, codes: confirming(rows[own], codes)  # noqa: E731
    kept = verify(pool, group, task.domain, task.judge.target, label, wanted.n)
    confirming.refused[rows] = any_of(pool.valid) & ~any_of(kept)
    row, candidate = np.nonzero(kept)
    order = np.lexsort((candidate, pool.cost[row, candidate], row))
    row, candidate = row[order], candidate[order]
    return Answers(
        query=rows[row],
        rank=np.arange(len(row)) - np.searchsorted(row, row),
        method=np.array(names, dtype=object)[group[candidate]],
        before=task.domain.row[row],
        codes=pool.codes[row, candidate],
        distance=task.distance.total(pool.codes[row, candidate], task.domain.row[row]),
    )


def _best_so_far(task: Task) -> Pool:
    """What a search cut short had found; every row counts as stopped."""
    best = task.judge.best
    assert best is not None
    task.judge.limits.stop()
    return Pool.start(best.codes[:, None], np.isfinite(best.cost)[:, None], task.domain, task.distance)


def _nothing(ledger: Ledger) -> Answers:
    return _empty(ledger.codes)


def _empty(codes: Floats) -> Answers:
    none = np.zeros(0, dtype=np.intp)
    return Answers(none, none, np.zeros(0, dtype=object), codes[:0], codes[:0], np.zeros(0))


def choose_target(predictor: Predictor, target: Any) -> int | None:
    """The position of the wanted class; None stands for 'the other one' of two."""
    if target is not None:
        return predictor.position(target)
    if len(predictor.classes) != 2:
        raise InputError(
            f"target must name the wanted class, one of {shorten(predictor.classes)}, "
            f"because the model has {len(predictor.classes)} classes; got None."
        )
    return None


def choose_reading(reading: str) -> Any:
    """The module whose variants are run."""
    readings = {"movement": variants, "paper": paper}
    if reading not in readings:
        raise InputError(unknown_name("reading", reading, readings))
    return readings[reading]


def choose_variants(method: str, reading: Any) -> list[tuple[str, Variant]]:
    known = reading.VARIANTS
    if method == "all":
        return list(known.items())
    if method not in known:
        raise InputError(unknown_name("method", method, [*known, "all"]))
    return [(method, known[method])]


def check_options(wanted: Wanted) -> Wanted:
    if isinstance(wanted.n, bool) or not isinstance(wanted.n, Integral) or wanted.n < 1:
        raise InputError(f"n must be a whole number of at least 1; got {wanted.n!r}.")
    for name, value, least in (("step", wanted.step, 1e-6), ("margin", wanted.margin, 0.0)):
        if not isinstance(value, Real) or not least <= float(value) < float("inf"):
            raise InputError(f"{name} must be a number of at least {least:g}; got {value!r}.")
    if isinstance(wanted.realism, bool) or not isinstance(wanted.realism, Real) or not 0.0 <= float(wanted.realism) <= 1.0:
        raise InputError(f"realism must be a number from 0 (close) to 1 (realistic); got {wanted.realism!r}.")
    _check_limits(wanted.budget, wanted.deadline, 1 + wanted.set_aside + FEWEST_SEARCHED)
    return replace(wanted, n=int(wanted.n), realism=float(wanted.realism))


def plain_task(ledger: Ledger, predictor: Predictor, knowledge: Knowledge, rules: Rules, step: float) -> Task | None:
    """The task of a single row, by the model's labels; None where there is nothing to search for."""
    rows = ledger.open
    labels = predictor.ask_labels(ledger.codes[rows]).classes
    ledger.record(rows, labels, labels, predictor.failure)
    if not ledger.open.size:
        return None
    domain, _ = rules.domain(ledger.codes[rows])
    return Task(knowledge, domain, Judge(predictor.ask, ledger.target[rows], predictor.use_scores), rules.named, step)


def _check_limits(budget: Any, deadline: Any, least: int) -> None:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, Integral) or int(budget) < least):
        raise InputError(f"budget must be a whole number of rows asked an explanation, at least {least}; got {budget!r}.")
    sound = isinstance(deadline, Real) and not isinstance(deadline, bool) and 0 < float(deadline) < float("inf")
    if deadline is not None and not sound:
        raise InputError(f"deadline must be a number of seconds above 0; got {deadline!r}.")
