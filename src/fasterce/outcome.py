"""Bookkeeping between the rows that came in and the records that go out: every row keeps its place and gets a status."""

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
    TwinUse,
)
from fasterce.predictor import FAILED, Predictor
from fasterce.profile import Floats
from fasterce.search.judge import Indices, Mask
from fasterce.table import Reading

NOTHING = {
    "closest": "No change within the rules was found that the model answers with the wanted class.",
    "sparse": "No few features were found that, changed within the rules, make the model answer the wanted class.",
    "realistic": "No realistic change within the rules was found that the model answers with the wanted class.",
    "all": "None of the three variants found a change within the rules that the model answers with the wanted class.",
}
NO_SINGLE = "No single feature was found that flips it alone; these {} together do."


class Ledger:
    """One line a row: status (empty while open), reason, predicted class, wanted class."""

    def __init__(self, reading: Reading, wanted: int | None) -> None:
        rows = len(reading.codes)
        self.codes = reading.codes
        self.wanted = wanted
        self.status = np.full(rows, "", dtype=object)
        self.reason = np.full(rows, "", dtype=object)
        self.predicted = np.full(rows, FAILED, dtype=np.intp)
        for row, sentence in reading.problems.items():
            self.close(row, INVALID_INPUT, sentence)

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    @property
    def target(self) -> Indices:
        return self.target_for(self.predicted)

    def target_for(self, predicted: Indices) -> Indices:
        """The wanted class where there is one, else the other of two."""
        other = 1 - predicted if self.wanted is None else np.full(len(predicted), self.wanted, dtype=np.intp)
        return np.where(predicted == FAILED, FAILED, other)

    def record(self, rows: Indices, predicted: Indices, supposed: Indices, failure: str) -> Indices:
        """Note the model's own labels. Settled are rows it fails on and rows already where they should be; the rows
        returned are those whose label is not the one the search supposed."""
        self.predicted[rows] = predicted
        self.close(rows[predicted == FAILED], MODEL_ERROR, failure)
        known = (predicted != FAILED) & (predicted == supposed)
        self.close(rows[known & (predicted == self.target_for(predicted))], ALREADY_TARGET, "")
        return np.asarray(rows[(predicted != FAILED) & (predicted != supposed)])

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

    def close(self, rows: Any, word: str, sentence: str) -> None:
        self.status[rows], self.reason[rows] = word, sentence

    def first_line(self) -> str:
        return f"{self.status[0]}: {self.reason[0]}" if self.reason[0] else str(self.status[0])


class Confirming:
    """The model's own labels for counterfactuals as they will be returned; rows it was not yet asked about by `predict`
    itself are asked in the same breath."""

    def __init__(self, predictor: Predictor, rows: pd.DataFrame, codes: Floats) -> None:
        self.predictor = predictor
        self.rows = rows
        self.codes = codes
        self.own = np.full(len(codes), FAILED, dtype=np.intp)
        self.pending = np.zeros(0, dtype=np.intp)
        self.refused = np.zeros(len(codes), dtype=bool)
        self.asked = np.zeros(len(codes), dtype=np.intp)

    def __call__(self, positions: Indices, codes: Floats) -> Indices:
        every = np.concatenate([self.pending, positions])
        every_codes = np.concatenate([self.codes[self.pending], codes])
        if not len(every):
            return every
        frame = self.predictor.table.as_returned(self.rows.iloc[every], self.codes[every], every_codes)
        labels = self.predictor.label(frame)
        np.add.at(self.asked, every, 1)
        self.own[self.pending] = labels[: len(self.pending)]
        self.pending, found = np.zeros(0, dtype=np.intp), labels[len(self.pending) :]
        return found


def labelled(classes: tuple[Any, ...], positions: NDArray[np.intp], index: pd.Index) -> pd.Series:
    """Class positions as the model's own labels, None where there is none."""
    return pd.Series([classes[k] if k >= 0 else None for k in positions], index=index, dtype=object)


def explanation(
    rows: pd.DataFrame, ledger: Ledger, answers: Answers, predictor: Predictor, twin: TwinUse | None, seconds: float
) -> Explanation:
    ledger.remark_several(answers)
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
        twin=twin,
    )
