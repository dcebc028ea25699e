"""Bookkeeping between the rows that came in and the records that go out: every row keeps its place and gets a status."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.explanation import (
    ALREADY_TARGET,
    FOUND,
    INVALID_INPUT,
    MODEL_ERROR,
    NONE_FOUND,
    STOPPED,
    Answers,
    Explanation,
    Refusal,
    TwinUse,
)
from fasterce.predictor import FAILED, Final, Predictor
from fasterce.profile import Floats
from fasterce.search.goal import Goal, Indices, Mask, Said
from fasterce.table import Reading
from fasterce.targets import Target
from fasterce.trials import Trial

NOTHING = {
    "closest": "No change within the rules was found that the model gives the wanted answer for.",
    "sparse": "No few features were found that, changed within the rules, make the model give the wanted answer.",
    "realistic": "No realistic change within the rules was found that the model gives the wanted answer for.",
    "all": "None of the three variants found a change within the rules that the model gives the wanted answer for.",
}
FEWER_THAN_TWO = "Only 1 answer was found; {} were wanted."
FEWER = "Only {} different answers were found; {} were wanted."
UNSTEADY = {
    "robust": "An answer was found, but none that holds under {:.0%} of small shakes; the best holds under {:.0%}.",
    "survived": "An answer was found, but none that {:.0%} of the refitted models agree with; the best has {:.0%} of them.",
}
NO_SINGLE = "No single feature was found that flips it alone; these {} together do."


class Ledger:
    """One line a row: status (empty while open), reason, predicted class, and the number wanted of it if it is one."""

    def __init__(self, reading: Reading, target: Target) -> None:
        rows = len(reading.codes)
        self.codes = reading.codes
        self.target = target
        self.status = np.full(rows, "", dtype=object)
        self.reason = np.full(rows, "", dtype=object)
        self.predicted = np.full(rows, FAILED, dtype=np.intp)
        self.value = np.full(rows, np.nan)
        for row, sentence in reading.problems.items():
            self.close(row, INVALID_INPUT, sentence)

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    def record(self, rows: Indices, own: Final, supposed: Said, goal: Goal, failure: str) -> Indices:
        """Note the model's own word. Settled are rows it fails on and rows already where they should be; the rows
        returned are those about which the search supposed something else."""
        every = np.arange(len(rows))
        self.predicted[rows] = own.classes
        self.value[rows] = self.target.value(goal, own, every)
        failed = own.classes == FAILED
        self.close(rows[failed], MODEL_ERROR, failure)
        there = self.target.confirmed(goal, own, every)
        alike = own.classes == supposed.classes
        same = alike & (there == goal.reached(supposed, every))
        # A goal may follow from the class supposed; where that is the model's own, its word settles what was searched.
        self.close(rows[~failed & alike & there], ALREADY_TARGET, "")
        return np.asarray(rows[~failed & ~same])

    def settle_found(self, answers: Answers) -> None:
        self.close(np.unique(answers.query), FOUND, "")

    def settle_rest(self, rows: Indices, method: str, stopped: Mask, why: str) -> None:
        """Rows without an answer: stopped early or searched in vain."""
        self.close(rows[~stopped], NONE_FOUND, NOTHING[method])
        self.close(rows[stopped], STOPPED, f"{why} before an answer was found.")

    def remark(self, rows: Indices, sentence: str) -> None:
        """A reason beside an answer that was found."""
        mine = rows[self.status[rows] == FOUND]
        self.reason[mine] = [f"{self.reason[row]} {sentence}".strip() for row in mine]

    def remark_several(self, answers: Answers) -> None:
        """Say so where the sparse variant had to change more than one feature."""
        several = (answers.method == "sparse") & (answers.rank == 0)
        count = answers.changed.sum(axis=1)
        for size in np.unique(count[several & (count > 1)]):
            self.remark(answers.query[several & (count == size)], NO_SINGLE.format(size))

    def remark_fewer(self, answers: Answers, n: int) -> None:
        """Say so where there are fewer answers than were wanted."""
        count = np.bincount(answers.query, minlength=len(self.status))
        for few in range(1, n):
            said = FEWER.format(few, n) if few > 1 else FEWER_THAN_TWO.format(n)
            self.remark(np.flatnonzero(count == few), said)

    def remark_unsteady(self, best: dict[str, Floats], trials: Sequence[Trial]) -> None:
        """Where answers were found but none stood its trials, say how far the best came."""
        for trial in trials:
            share = best.get(trial.kind, np.zeros(0))
            for row in np.flatnonzero((self.status == NONE_FOUND) & (share >= 0)) if len(share) else ():
                self.reason[row] = UNSTEADY[trial.kind].format(trial.share, share[row])

    def close(self, rows: Any, word: str, sentence: str) -> None:
        self.status[rows], self.reason[rows] = word, sentence

    def first_line(self) -> str:
        return f"{self.status[0]}: {self.reason[0]}" if self.reason[0] else str(self.status[0])


class Confirming:
    """The model's own labels for counterfactuals as they will be returned; rows it was not yet asked about by `predict`
    itself are asked in the same breath."""

    def __init__(self, predictor: Predictor, rows: pd.DataFrame, codes: Floats, raw: bool = False) -> None:
        self.predictor = predictor
        self.rows = rows
        self.codes = codes
        self.raw = raw
        self.own = np.full(len(codes), FAILED, dtype=np.intp)
        self.values: Floats | None = None
        self.pending = np.zeros(0, dtype=np.intp)
        self.refused = np.zeros(len(codes), dtype=bool)
        self.asked = np.zeros(len(codes), dtype=np.intp)
        self.shares: dict[str, Floats] = {}
        self.progress = np.full(len(codes), np.nan)

    def __call__(self, positions: Indices, codes: Floats) -> Final:
        every = np.concatenate([self.pending, positions])
        every_codes = np.concatenate([self.codes[self.pending], codes])
        frame = self.predictor.table.as_returned(self.rows.iloc[every], self.codes[every], every_codes)
        said = self.predictor.last_word(frame, self.raw)
        np.add.at(self.asked, every, 1)
        self.note(self.pending, said.take(slice(0, len(self.pending))))
        found, self.pending = said.take(slice(len(self.pending), None)), np.zeros(0, dtype=np.intp)
        return found

    def ask_pending(self) -> None:
        """Rows nobody has asked about yet."""
        if len(self.pending):
            self(np.zeros(0, dtype=np.intp), self.codes[:0])

    def note(self, rows: Indices, said: Final) -> None:
        """What the model itself says of rows as they are."""
        self.own[rows] = said.classes
        if said.values is not None:
            if self.values is None:
                self.values = np.full((len(self.own), said.values.shape[1]), np.nan)
            self.values[rows] = said.values

    def note_progress(self, rows: Indices, start: Floats, best: Floats) -> None:
        """How much of the way from where each row is to the boundary the best try has come."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            way = np.clip(1.0 - best / start, 0.0, 1.0)
        self.progress[rows] = np.fmax(self.progress[rows], way)

    def note_share(self, rows: Indices, kind: str, share: Floats) -> None:
        """The best share of trials any answer to each row has stood so far."""
        best = self.shares.setdefault(kind, np.full(len(self.own), -1.0))
        np.maximum.at(best, rows, share)

    def word_on(self, rows: Indices) -> Final:
        values = None if self.values is None else self.values[rows]
        return self.predictor.final(self.own[rows], values)


def labelled(classes: tuple[Any, ...], positions: NDArray[np.intp], index: pd.Index) -> pd.Series:
    """Class positions as the model's own labels, None where there is none."""
    return pd.Series([classes[k] if k >= 0 else None for k in positions], index=index, dtype=object)


def _predictions(ledger: Ledger, predictor: Predictor, index: pd.Index) -> pd.Series:
    """The model's labels, or its numbers."""
    if predictor.numbers is not None:
        return pd.Series(ledger.value, index, name="prediction")
    return labelled(predictor.classes, ledger.predicted, index).rename("prediction")


def explanation(
    rows: pd.DataFrame,
    ledger: Ledger,
    answers: Answers,
    predictor: Predictor,
    twin: TwinUse | None,
    seconds: float,
    refusals: dict[int, Refusal],
) -> Explanation:
    return Explanation(
        rows=rows.copy(),
        status=pd.Series(ledger.status, index=rows.index, dtype=object, name="status"),
        reason=pd.Series(ledger.reason, index=rows.index, dtype=object, name="reason"),
        prediction=_predictions(ledger, predictor, rows.index),
        target=pd.Series(ledger.target.shown(predictor.classes, ledger.predicted), rows.index, dtype=object, name="target"),
        score=pd.Series(ledger.value, rows.index, name="score"),
        answers=answers,
        table=predictor.table,
        asked=predictor.asked,
        seconds=seconds,
        twin=twin,
        refusals=refusals,
    )
