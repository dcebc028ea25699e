"""Status, problems and verification of queries, and the explanation made of them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.data.frames import copied
from fasterce.data.table import TableReading
from fasterce.errors import Problem, make_problem
from fasterce.explanation import (
    ALREADY_TARGET,
    FOUND,
    INVALID_INPUT,
    MODEL_ERROR,
    NONE_FOUND,
    STOPPED,
    CounterfactualArrays,
    Explanation,
)
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import Predictor
from fasterce.search.query_targets import QueryTargets
from fasterce.search.robustness import RobustnessCheck
from fasterce.search.target import Target
from fasterce.typing import Floats, Indices, Mask

NOTHING_FOUND = {
    "closest": "search.no_closest",
    "sparse": "search.no_sparse",
    "realistic": "search.no_realistic",
    "all": "search.no_method",
}
STOPPED_BY = {
    "budget": "search.stopped_by_budget",
    "deadline": "search.stopped_by_deadline",
    "budget_or_deadline": "search.stopped_by_budget_or_deadline",
}
CUT_SHORT_BY = {
    "budget": "search.cut_short_by_budget",
    "deadline": "search.cut_short_by_deadline",
    "budget_or_deadline": "search.cut_short_by_budget_or_deadline",
}
NOT_ROBUST = {"robust": "search.not_robust", "ensemble_agreement": "search.not_agreed"}


class QueryLedger:
    """What is known of each query: status (empty while open), problems, predicted class, and the score or number the target
    is about."""

    def __init__(self, reading: TableReading, target: Target) -> None:
        rows = len(reading.codes)
        self.codes = reading.codes
        self.target = target
        self.status = np.full(rows, "", dtype=object)
        self.problems: list[tuple[Problem, ...]] = [()] * rows
        self.predicted = np.full(rows, FAILED, dtype=np.intp)
        self.value = np.full(rows, np.nan)
        for row, problem in reading.problems.items():
            self.close([row], INVALID_INPUT, problem)

    @property
    def open(self) -> Indices:
        return np.flatnonzero(self.status == "")

    @property
    def reason(self) -> list[str]:
        """The problems of each query as text."""
        return _texts(self.problems)

    def record(
        self, rows: Indices, own: Predictions, supposed: Predictions, targets: QueryTargets, failure: Problem | None
    ) -> Indices:
        """Note the model's predictions for queries; close those it fails on and those that have the target already.

        Returns the queries whose results do not count: those the model fails on, and those for which the search had supposed
        another prediction.
        """
        every = np.arange(len(rows))
        self.predicted[rows] = own.classes
        self.value[rows] = self.target.value(targets, own, every)
        failed = own.classes == FAILED
        self.close(rows[failed], MODEL_ERROR, *([] if failure is None else [failure]))
        there = self.target.confirmed(targets, own, every)
        alike = own.classes == supposed.classes
        same = alike & (there == targets.reached(supposed, every))
        # Targets may follow from the supposed class; where that is the model's own, its prediction decides.
        self.close(rows[~failed & alike & there], ALREADY_TARGET)
        return np.asarray(rows[failed | ~same])

    def close_found(self, arrays: CounterfactualArrays) -> None:
        """Close the queries that have a counterfactual."""
        self.close(np.unique(arrays.query), FOUND)

    def close_rest(self, rows: Indices, method: str, stopped: Mask, limits: Mapping[str, float | None]) -> None:
        """Close queries without a counterfactual: searched in vain, or stopped by a budget or deadline."""
        self.close(rows[~stopped], NONE_FOUND, Problem(NOTHING_FOUND[method]))
        if stopped.any():
            self.close(rows[stopped], STOPPED, stopped_problem(STOPPED_BY, limits))

    def add(self, rows: Indices, problem: Problem) -> None:
        """Add a problem to queries that have a counterfactual."""
        for row in rows[self.status[rows] == FOUND]:
            self.problems[row] += (problem,)

    def note_several_changes(self, arrays: CounterfactualArrays) -> None:
        """Note where the sparse method had to change more than one feature."""
        several = (arrays.method == "sparse") & (arrays.rank == 0)
        count = arrays.changed.sum(axis=1)
        for size in np.unique(count[several & (count > 1)]):
            self.add(arrays.query[several & (count == size)], make_problem("search.no_single_feature", count=int(size)))

    def note_shortfall(self, arrays: CounterfactualArrays, n: int, ends: NDArray[np.object_]) -> None:
        """Note where there are fewer counterfactuals than `n`, and what ended the search of each query, if known."""
        count = np.bincount(arrays.query, minlength=len(self.status))
        for few in range(1, n):
            code = "search.fewer_than_wanted" if few > 1 else "search.one_found"
            self.add(np.flatnonzero(count == few), make_problem(code, count=few, wanted=n))
        for row in np.flatnonzero((count > 0) & (count < n)):
            if ends[row] is not None:
                self.add(np.array([row]), ends[row])

    def note_not_robust(self, best: dict[str, Floats], checks: Sequence[RobustnessCheck]) -> None:
        """Where counterfactuals were found but none passed the robustness checks, note the best share."""
        for check in checks:
            share = best.get(check.kind, np.zeros(0))
            for row in np.flatnonzero((self.status == NONE_FOUND) & (share >= 0)) if len(share) else ():
                shares = {"share": round(100 * check.share), "best": round(100 * float(share[row]))}
                self.problems[row] = (make_problem(NOT_ROBUST[check.kind], **shares),)

    def note_withheld(self, count: Indices) -> None:
        """Note how many rows that reach the target were withheld from each query since they break a constraint."""
        for row in np.flatnonzero(count):
            if self.status[row] in (FOUND, NONE_FOUND):
                self.problems[row] += (make_problem("search.withheld", count=int(count[row])),)

    def close(self, rows: Iterable[int], status: str, *problems: Problem) -> None:
        for row in rows:
            self.status[row], self.problems[row] = status, problems


def stopped_problem(codes: Mapping[str, str], limits: Mapping[str, float | None]) -> Problem:
    """Return the problem of a search that a budget, a deadline or either of both has stopped."""
    given = {name: value for name, value in limits.items() if value is not None}
    return make_problem(codes["_or_".join(given)], **given)


class Verifier:
    """Labels of counterfactuals as they will be returned, from the model's own `predict`.

    Queries that `predict` has not seen yet are evaluated in the same call. The predictions are kept for the explanation.
    """

    def __init__(self, predictor: Predictor, rows: pd.DataFrame, codes: Floats, raw: bool = False) -> None:
        self.predictor = predictor
        self.rows = rows
        self.codes = codes
        self.raw = raw
        self.own = np.full(len(codes), FAILED, dtype=np.intp)
        self.values: Floats | None = None
        self.pending = np.zeros(0, dtype=np.intp)
        self.refused = np.zeros(len(codes), dtype=bool)
        self.usage = np.zeros(len(codes), dtype=np.intp)
        self.shares: dict[str, Floats] = {}
        self.progress = np.full(len(codes), np.nan)
        self.proven = np.zeros(len(codes), dtype=bool)
        self.edits = np.zeros(len(codes), dtype=np.int64)
        self.search_ends = np.full(len(codes), None, dtype=object)
        self.withheld = np.zeros(len(codes), dtype=np.int64)
        self._verified: dict[tuple[int, bytes], tuple[int, Floats | None]] = {}

    def __call__(self, positions: Indices, codes: Floats) -> Predictions:
        every = np.concatenate([self.pending, positions])
        every_codes = np.concatenate([self.codes[self.pending], codes])
        predictions = self.predictor.verify_returned(self.rows, every, self.codes[every], every_codes, self.raw)
        np.add.at(self.usage, every, 1)
        self.note(self.pending, predictions.take(slice(0, len(self.pending))))
        found, self.pending = predictions.take(slice(len(self.pending), None)), np.zeros(0, dtype=np.intp)
        values = [None] * len(codes) if found.values is None else list(found.values)
        self._verified |= zip(_keys(positions, codes), zip(found.classes.tolist(), values, strict=True), strict=True)
        return found

    def predictions_of(self, arrays: CounterfactualArrays) -> Predictions:
        """Return what the model predicted for counterfactuals when they were verified."""
        found = [self._verified[key] for key in _keys(arrays.query, arrays.codes)]
        values = [value for _, value in found if value is not None]
        classes = np.array([position for position, _ in found], dtype=np.intp)
        return Predictions(classes, values=np.stack(values) if values and len(values) == len(found) else None)

    def evaluate_pending(self) -> None:
        """Evaluate the queries that no verification has evaluated yet."""
        if len(self.pending):
            self(np.zeros(0, dtype=np.intp), self.codes[:0])

    def note(self, rows: Indices, predictions: Predictions) -> None:
        """Keep the model's predictions for queries."""
        self.own[rows] = predictions.classes
        if predictions.values is not None:
            if self.values is None:
                self.values = np.full((len(self.own), predictions.values.shape[1]), np.nan)
            self.values[rows] = predictions.values

    def note_progress(self, rows: Indices, start: Floats, best: Floats) -> None:
        """Keep how much of the way from each query to the decision boundary the best attempt has come."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            way = np.clip(1.0 - best / start, 0.0, 1.0)
        self.progress[rows] = np.fmax(self.progress[rows], way)

    def note_share(self, rows: Indices, kind: str, share: Floats) -> None:
        """Keep the best share of a robustness check that any counterfactual of each query has reached."""
        best = self.shares.setdefault(kind, np.full(len(self.own), -1.0))
        np.maximum.at(best, rows, share)

    def own_predictions(self, rows: Indices) -> Predictions:
        """Return the model's predictions for queries."""
        values = None if self.values is None else self.values[rows]
        return self.predictor.with_scores(self.own[rows], values)


def _keys(query: Indices, codes: Floats) -> list[tuple[int, bytes]]:
    return [(row, code.tobytes()) for row, code in zip(query.tolist(), np.ascontiguousarray(codes), strict=True)]


def labelled(classes: tuple[object, ...], positions: NDArray[np.intp], index: pd.Index, name: str | None = None) -> pd.Series:
    """Return class positions as labels of the model, None where there is none."""
    return pd.Series([classes[k] if k >= 0 else None for k in positions], index=index, dtype=object, name=name)


def _series(ledger: QueryLedger, predictor: Predictor, index: pd.Index) -> dict[str, Any]:
    """Return what makes each column of the result. It holds arrays and classes only, no model."""
    column = partial(pd.Series, index=index, dtype=object)
    prediction = partial(labelled, predictor.classes, ledger.predicted, index, "prediction")
    if predictor.numbers is not None:
        prediction = partial(pd.Series, ledger.value, index, name="prediction")
    return {
        "status": partial(column, ledger.status, name="status"),
        "reason": partial(_reasons, tuple(ledger.problems), index),
        "prediction": prediction,
        "target": partial(column, ledger.target.shown(predictor.classes, ledger.predicted), name="target"),
        "score": partial(pd.Series, ledger.value, index, name="score"),
    }


def _texts(problems: Sequence[Sequence[Problem]]) -> list[str]:
    return [" ".join(problem.text() for problem in one) for one in problems]


def _reasons(problems: Sequence[Sequence[Problem]], index: pd.Index) -> pd.Series:
    return pd.Series(_texts(problems), index=index, dtype=object, name="reason")


def with_predictions(arrays: CounterfactualArrays, verifier: Verifier) -> CounterfactualArrays:
    """Return counterfactuals with the labels and probabilities that verification obtained."""
    verified = verifier.predictions_of(arrays)
    probabilities = arrays.probabilities if arrays.probabilities.shape[1] else None
    if verified.values is not None and verifier.predictor.numbers is None:
        probabilities = verified.values
    return arrays.with_predictions(verified.classes, probabilities)


def explanation(ledger: QueryLedger, verifier: Verifier, arrays: CounterfactualArrays, **about: Any) -> Explanation:
    """Return the result of a call; `arrays` have the model's predictions, `about` are further fields of the result."""
    rows, predictor = copied(verifier.rows), verifier.predictor
    return Explanation(
        rows=rows,
        **_series(ledger, predictor, rows.index),
        arrays=arrays,
        probabilities=verifier.values if predictor.numbers is None else None,
        problems=tuple(ledger.problems),
        table=predictor.table,
        usage=predictor.usage,
        classes=predictor.classes if predictor.numbers is None else (),
        **about,
    )
