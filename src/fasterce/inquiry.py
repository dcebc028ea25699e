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

from fasterce.explanation import NONE_FOUND, Answers
from fasterce.options import Wanted
from fasterce.outcome import Confirming, Ledger
from fasterce.predictor import Predictor
from fasterce.profile import Floats
from fasterce.progress import Progress
from fasterce.rules import Rules
from fasterce.search import variants
from fasterce.search.dialogue import converse
from fasterce.search.goal import Goal, Indices, Mask
from fasterce.search.judge import Asks, Best, Judge, Told, any_of
from fasterce.search.pool import Pool
from fasterce.search.propose import apart
from fasterce.search.task import Knowledge, Task
from fasterce.search.verify import verify
from fasterce.trials import TURNS

BY_SCORES, TRIED = 3, 4
# Standard deviations by which answers go on where scores do not help, turn by turn.
MARGINS = (0.0, 0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Source:
    """Whom a search asks. `final` says that finding nothing settles the matter, `labels` that it goes by the model's
    own labels already."""

    ask: Asks
    informative: bool
    final: bool
    labels: bool = False


def sources(predictor: Predictor, twin: Any, raw: bool) -> list[Source]:
    """`raw`: labels do not tell whether a number is the wanted one."""
    found = [] if twin is None else [Source(twin.ask, predictor.use_scores, final=False)]
    if predictor.use_scores:
        found.append(Source(predictor.ask, informative=True, final=True))
    return found if raw else [*found, Source(predictor.ask_labels, informative=False, final=True, labels=True)]


def inquire(ledger: Ledger, confirming: Confirming, asked: Sequence[Source], knowledge: Knowledge, wanted: Wanted) -> Answers:
    """Every open row is settled; `started` counts for the deadline from here."""
    started = perf_counter()
    attempts = (_attempt(ledger, confirming, source, knowledge, wanted, started) for source in asked if ledger.open.size)
    answers = Answers.merge([_empty(ledger.codes), *attempts])
    ledger.settle_rest(ledger.open, wanted.method, np.zeros(ledger.open.size, dtype=bool), "")
    ledger.remark_several(answers)
    ledger.remark_unsteady(confirming.shares, wanted.trials)
    if wanted.method != "all":
        ledger.remark_fewer(answers, wanted.n)
    return answers


def _attempt(
    ledger: Ledger, confirming: Confirming, source: Source, knowledge: Knowledge, wanted: Wanted, started: float
) -> Answers:
    rows = _affordable(ledger, confirming, source, wanted)
    began = perf_counter()
    answered = source.ask(ledger.codes[rows])
    each = (perf_counter() - began) / max(len(rows), 1)
    confirming.asked[rows] += source.final
    goal = wanted.target.goal(answered)
    every = np.arange(len(rows))
    domain, blocked = wanted.rules.domain(ledger.codes[rows])
    searching = (answered.classes >= 0) & ~goal.reached(answered, every)
    searching[list(blocked)] = False
    place = np.flatnonzero(searching)
    limits = wanted.limits(confirming.asked[rows[place]], started, each, free=not source.final)
    before = limits.left
    domain = domain.take(place)
    judge = Judge(source.ask, goal.take(place), source.informative, limits, knowledge.lowest, domain)
    scores = None if answered.scores is None else answered.scores[place]
    task = Task(
        knowledge,
        domain,
        judge,
        wanted.rules.named,
        wanted.step,
        wanted.margin,
        priced=wanted.distance,
        start=judge.goal.margins(Told(answered.classes[place], scores), np.arange(len(place)), knowledge.lowest),
        realism=wanted.realism,
        diversity=wanted.diversity,
    )
    highest = np.full(len(place), -np.inf)
    if source.informative:
        judge.heard = lambda some, margin: np.maximum.at(highest, some, margin)
    confirming.own[rows] = answered.classes
    confirming.pending = np.zeros(0, dtype=np.intp) if source.labels else rows
    answers = _search(task, rows[place], confirming, wanted)
    confirming.ask_pending()
    if before is not None and limits.left is not None:
        confirming.asked[rows[place]] += before - limits.left
    if source.informative and task.start is not None:
        confirming.note_progress(rows[place], task.start, highest)
    doubtful = ledger.record(rows, confirming.word_on(rows), answered, goal, confirming.predictor.failure)
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
            parts.append(_steadily(task.take(block), rows[block], confirming, wanted))
    return Answers.merge(parts) if parts else _empty(task.domain.row)


def _steadily(task: Task, rows: Indices, confirming: Confirming, wanted: Wanted) -> Answers:
    """Where answers must stand trials, search farther beyond the boundary as long as none of a row's does."""
    if not wanted.trials:
        return _search_block(task, rows, confirming, wanted)
    kept = []
    needs = [trial.first_need(task) for trial in wanted.trials if trial.share > 0]
    every, need = np.arange(len(rows)), np.max(needs, axis=0) if needs else np.zeros(len(rows))
    for turn in range(TURNS):
        some, once = _turned(task.take(every), need, turn, wanted)
        found, lack = _tried(_search_block(some, rows[every], confirming, once), task, rows, confirming, wanted)
        kept.append(found.first(wanted.n))
        again = ~np.isin(rows[every], found.query) & _left_for_another(confirming.asked[rows[every]], wanted)
        every, need = every[again], np.maximum(1.5 * need[again], lack[every[again]])
        if not every.size or not needs or task.judge.limits.over:
            break
    return Answers.merge(kept)


def _turned(task: Task, need: Floats, turn: int, wanted: Wanted) -> tuple[Task, Wanted]:
    """First farther by the scores. Where that leads nowhere, since scores may not tell how deep inside an answer is, on by
    standard deviations; in the end known rows that have the answer. Then several are tried."""
    several = replace(wanted, n=max(wanted.n, TRIED))
    if turn < BY_SCORES and task.judge.informative:
        return _demanding(task, need), wanted if wanted.n == 1 else several
    if turn == TURNS - 1:
        return task, replace(several, variants=[(wanted.variants[0][0], variants.known_rows)])
    return replace(task, margin=max(task.margin, MARGINS[turn])), several if turn or wanted.n > 1 else wanted


def _left_for_another(asked: Indices, wanted: Wanted) -> Mask:
    return np.ones(len(asked), dtype=bool) if wanted.budget is None else asked + 2 * wanted.set_aside <= wanted.budget


def _demanding(task: Task, need: Floats) -> Task:
    start = None if task.start is None else task.start - need
    return replace(task, judge=task.judge.demanding(need), start=start)


def _tried(found: Answers, task: Task, rows: Indices, confirming: Confirming, wanted: Wanted) -> tuple[Answers, Floats]:
    """The answers that stand all trials, and the lead that others would need."""
    place = np.searchsorted(rows, found.query)
    steady, need = np.ones(len(found), dtype=bool), np.zeros(len(rows))
    for trial in wanted.trials:
        held = trial.test(found.codes, task.goal, place)
        np.add.at(confirming.asked, found.query, trial.questions)
        found = found.with_share(trial.kind, held.share)
        steady &= held.share >= trial.share
        np.maximum.at(need, place, np.nan_to_num(held.need))
        confirming.note_share(found.query, trial.kind, held.share)
    return found.where(steady), need


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

    def confirm(own: Indices, codes: Floats) -> tuple[Mask, Floats]:
        said = confirming(rows[own], codes)
        return wanted.target.confirmed(task.goal, said, own), wanted.target.value(task.goal, said, own)

    kept, value = verify(pool, group, task.domain, confirm, wanted.n)
    confirming.refused[rows] = any_of(pool.valid) & ~any_of(kept)
    if wanted.n > 1:
        kept &= ~pool.repeated(kept)
    row, candidate = np.nonzero(kept)
    order = np.lexsort((candidate, pool.cost[row, candidate], row))
    row, candidate = row[order], candidate[order]
    codes = pool.codes[row, candidate]
    return Answers(
        query=rows[row],
        rank=np.arange(len(row)) - np.searchsorted(row, row),
        method=np.array(names, dtype=object)[group[candidate]],
        before=task.domain.row[row],
        codes=codes,
        distance=task.distance.total(codes, task.domain.row[row]),
        score=value[row, candidate],
        nn_ratio=apart(task, row, codes) if wanted.method == "all" else np.zeros(0),
    )


def _best_so_far(task: Task) -> Pool:
    """What a search cut short had found; every row counts as stopped."""
    best = task.judge.best
    assert best is not None
    task.judge.limits.stop()
    return Pool.start(best.codes[:, None], np.isfinite(best.cost)[:, None], task.domain, task.distance)


def _empty(codes: Floats) -> Answers:
    none = np.zeros(0, dtype=np.intp)
    return Answers(none, none, np.zeros(0, dtype=object), codes[:0], codes[:0], np.zeros(0))


def plain_task(
    ledger: Ledger, predictor: Predictor, knowledge: Knowledge, rules: Rules, step: float
) -> tuple[Task, Goal] | None:
    """The task of a single row, by the model's own word; None where there is nothing to search for."""
    rows = ledger.open
    said = predictor.last_word(predictor.table.frame(ledger.codes[rows]), ledger.target.raw)
    goal = ledger.target.goal(said)
    ledger.record(rows, said, said, goal, predictor.failure)
    if not ledger.open.size:
        return None
    domain, _ = rules.domain(ledger.codes[rows])
    return Task(knowledge, domain, Judge(predictor.ask, goal, predictor.use_scores), rules.named, step), goal
