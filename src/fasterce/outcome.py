"""Bookkeeping between the rows that came in and the records that go out: every row keeps its place and gets a status."""

from collections.abc import Callable
from functools import reduce
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.errors import InputError, shorten, unknown_name
from fasterce.explanation import (
    ALREADY_TARGET,
    FOUND,
    INVALID_INPUT,
    MODEL_ERROR,
    NONE_FOUND,
    Answers,
    Explanation,
)
from fasterce.predictor import FAILED, Predictor
from fasterce.profile import Floats
from fasterce.progress import Progress
from fasterce.rules import Rules
from fasterce.search import paper, sweep, variants
from fasterce.search.dialogue import Search, converse
from fasterce.search.judge import Indices, Judge
from fasterce.search.pool import Pool
from fasterce.search.project import Domain
from fasterce.search.task import Knowledge, Task
from fasterce.search.verify import verify
from fasterce.table import Reading

BESIDES = 100

Variant = Callable[[Task, int], Search]
Label = Callable[[Indices, Floats], Indices]
NOTHING = {
    "closest": "No change within the rules was found that the model answers with the wanted class.",
    "sparse": "No single feature was found that, changed alone within the rules, makes the model answer the wanted class.",
    "realistic": "No realistic change within the rules was found that the model answers with the wanted class.",
    "all": "None of the three variants found a change within the rules that the model answers with the wanted class.",
}


def check_options(n: int, step: float, margin: float) -> None:
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise InputError(f"n must be a whole number of at least 1; got {n!r}.")
    for name, value, least in (("step", step, 1e-6), ("margin", margin, 0.0)):
        if not isinstance(value, Real) or not least <= float(value) < float("inf"):
            raise InputError(f"{name} must be a number of at least {least:g}; got {value!r}.")


def choose_variants(method: str, reading: str) -> list[tuple[str, Variant]]:
    readings = {"movement": variants.VARIANTS, "paper": paper.VARIANTS}
    if reading not in readings:
        raise InputError(unknown_name("reading", reading, readings))
    known = readings[reading]
    if method == "all":
        return list(known.items())
    if method not in known:
        raise InputError(unknown_name("method", method, [*known, "all"]))
    return [(method, known[method])]


class Ledger:
    """One line a row: status (empty while open), reason, predicted class, wanted class."""

    def __init__(self, reading: Reading) -> None:
        rows = len(reading.codes)
        self.codes = reading.codes
        self.status = np.full(rows, "", dtype=object)
        self.reason = np.full(rows, "", dtype=object)
        self.predicted = np.full(rows, FAILED, dtype=np.intp)
        self.target = np.full(rows, FAILED, dtype=np.intp)
        for row, sentence in reading.problems.items():
            self._close(row, INVALID_INPUT, sentence)

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    def predict(self, predictor: Predictor, wanted: int | None) -> None:
        """Ask about the rows themselves; settle those the model fails on and those already where they should be."""
        rows = self.open
        classes = predictor.label(predictor.table.frame(self.codes[rows]))
        failed = classes == FAILED
        self.predicted[rows] = classes
        self.target[rows] = np.where(failed, FAILED, 1 - classes) if wanted is None else wanted
        self._close(rows[failed], MODEL_ERROR, predictor.failure)
        self._close(rows[~failed & (classes == self.target[rows])], ALREADY_TARGET, "")

    def task(self, knowledge: Knowledge, rules: Rules, predictor: Predictor, step: float, margin: float) -> Task:
        """The search for the rows still open; rows whose rules leave nothing to become are closed."""
        domain = self._restrict(rules)
        rows = self.open
        judge = Judge(predictor.ask, self.target[rows], predictor.use_scores)
        return Task(knowledge, domain, judge, rules.named, step, margin)

    def _restrict(self, rules: Rules) -> Domain:
        rows = self.open
        domain, blocked = rules.domain(self.codes[rows])
        for position, sentence in blocked.items():
            self._close(rows[position], NONE_FOUND, f"{sentence} (row {rows[position]}).")
        return domain.take(np.flatnonzero(self.status[rows] == ""))

    def confirming(self, predictor: Predictor, rows: pd.DataFrame) -> Label:
        """The model's own labels for counterfactuals of some rows, as they will be returned."""

        def label(positions: Indices, codes: Floats) -> Indices:
            given = rows.iloc[positions]
            return predictor.label(predictor.table.as_returned(given, self.codes[positions], codes))

        return label

    def first_line(self) -> str:
        return f"{self.status[0]}: {self.reason[0]}" if self.reason[0] else str(self.status[0])

    def settle(self, answers: Answers, method: str) -> None:
        self._close(np.unique(answers.query), FOUND, "")
        self._close(self.open, NONE_FOUND, NOTHING[method])

    def _close(self, rows: Any, word: str, sentence: str) -> None:
        self.status[rows], self.reason[rows] = word, sentence


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


def search(
    task: Task,
    rows: Indices,
    variants: list[tuple[str, Variant]],
    label: Label,
    n: int,
    show: bool | None,
) -> Answers:
    """Search and verify, block by block; one block is all there is unless the batch is very large.

    `rows` are the positions of the task's rows in the table that came in.
    """
    questions = len(variants) * (len(sweep.coarse_levels(task.knowledge.codec)[0]) + BESIDES)
    blocks = task.parts(np.arange(len(rows)), questions) or [np.arange(0)]
    progress = Progress(show if len(blocks) > 1 else False)
    return Answers.merge([_search(task.take(b), rows[b], variants, label, n) for b in progress.track(blocks, "explaining")])


def _search(task: Task, rows: Indices, variants: list[tuple[str, Variant]], label: Label, n: int) -> Answers:
    """Verify the best of every variant in one question, and rank what the model confirms, nearest first."""
    names = [name for name, _ in variants]
    pools = converse(task.judge, [variant(task, n) for _, variant in variants])
    pool = reduce(Pool.__add__, pools)
    group = np.repeat(np.arange(len(pools)), [part.codes.shape[1] for part in pools])
    kept = verify(pool, group, task.domain, task.judge.target, lambda own, codes: label(rows[own], codes), n)
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


def labelled(classes: tuple[Any, ...], positions: NDArray[np.intp], index: pd.Index) -> pd.Series:
    """Class positions as the model's own labels, None where there is none."""
    return pd.Series([classes[k] if k >= 0 else None for k in positions], index=index, dtype=object)


def explanation(rows: pd.DataFrame, ledger: Ledger, answers: Answers, predictor: Predictor, seconds: float) -> Explanation:
    return Explanation(
        rows=rows.copy(),
        status=pd.Series(ledger.status, index=rows.index, dtype=object, name="status"),
        reason=pd.Series(ledger.reason, index=rows.index, dtype=object, name="reason"),
        prediction=labelled(predictor.classes, ledger.predicted, rows.index).rename("prediction"),
        target=labelled(predictor.classes, ledger.target, rows.index).rename("target"),
        answers=answers,
        table=predictor.table,
        asked=predictor.asked,
        seconds=seconds,
    )
