"""Check that a model keeps the contract of `fasterce.models.protocol.Model`: `check_adapter(model, X)`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fasterce.data.dtypes import plain
from fasterce.errors import InputError, Problem, make_problem
from fasterce.models.adapters import adapt, predicts_numbers
from fasterce.models.predictor import find_predict
from fasterce.models.protocol import Model
from fasterce.typing import Objects

Evaluation = Callable[[pd.DataFrame], Objects]

MOST_ROWS = 500
SINGLE_ROWS = 12
THREADS, TURNS = 2, 4
EXACT, LOOSE = 1e-6, 1e-3
LOOSE_SHARE = 0.01
MOST_LABELS = 100


def check_adapter(model: object, X: pd.DataFrame, *, exact: bool = True) -> None:
    """Evaluate a model on rows of `X` in every way this library does.

    Parameters
    ----------
    model : object
        A model with `predict`, or a function.
    X : pandas.DataFrame
        At least two rows that the model accepts; at most 500 are used.
    exact : bool, default=True
        False for models that round differently from batch to batch (a GPU, a service in single precision): one label in a
        hundred may differ, and probabilities by a thousandth.

    Raises
    ------
    AssertionError
        With one line per violation of the contract.
    """
    if not isinstance(X, pd.DataFrame) or len(X) < 2:
        raise InputError("models.check_rows", option="X")
    case = _Case(adapt(model), X.head(MOST_ROWS), exact)
    _check(case)
    if case.problems:
        raise AssertionError("\n".join(problem.text() for problem in case.problems))


@dataclass(frozen=True)
class _Case:
    """The model under test, the rows to evaluate, and the violations of the contract found so far."""

    model: Model
    X: pd.DataFrame
    exact: bool
    problems: list[Problem] = field(default_factory=list)

    def require(self, kept: bool, code: str, **fields: object) -> bool:
        """Return whether a part of the contract is kept; note the problem if not."""
        if not kept:
            self.problems.append(make_problem(code, **fields))
        return kept

    def attempt(self, evaluate: Callable[[], Objects], code: str, **fields: object) -> Objects | None:
        """Return what the model does; note the problem and return None if it raises."""
        try:
            return evaluate()
        except Exception as error:
            self.require(False, code, cause=_cause(error), **fields)
            return None

    def predict(self, frame: pd.DataFrame) -> Objects:
        return np.asarray(find_predict(self.model)(frame))

    def labels(self, frame: pd.DataFrame) -> Objects:
        return self.predict(frame.copy()).reshape(len(frame))

    def probabilities(self, frame: pd.DataFrame) -> Objects:
        predict_proba: Evaluation = getattr(self.model, "predict_proba")  # noqa: B009 - a model need not have it
        return np.asarray(predict_proba(frame))

    def same(self, found: Objects, expected: Objects) -> bool:
        """Return whether labels are the same, numbers and probabilities up to rounding."""
        if found.shape != expected.shape:
            return False
        if found.dtype.kind == expected.dtype.kind == "f":
            slack = EXACT if self.exact else LOOSE
            return bool(np.allclose(found.astype(float), expected.astype(float), rtol=slack, atol=slack))
        return float(np.mean(found != expected)) <= (0.0 if self.exact else LOOSE_SHARE)


def _check(case: _Case) -> None:
    if not _check_first_prediction(case):
        return
    labels = case.labels(case.X)
    evaluations: list[tuple[str, Evaluation, Objects]] = [("predict", case.labels, labels)]
    if callable(getattr(case.model, "predict_proba", None)):
        probabilities = case.attempt(lambda: case.probabilities(case.X.copy()), "models.check_probabilities_raise")
        if probabilities is None:
            return
        evaluations.append(("predict_proba", lambda frame: case.probabilities(frame.copy()), probabilities))
        _check_probabilities(case, labels, probabilities)
    _check_labels(case, labels)
    for name, evaluate, expected in evaluations:
        _check_batches(case, name, evaluate, expected)
        _check_frame(case, name)
    _check_empty(case)


def _check_first_prediction(case: _Case) -> bool:
    """Return whether the very first prediction is usable; nothing else can be checked if not."""
    rows = len(case.X)
    found = case.attempt(lambda: case.predict(case.X.copy()), "models.check_predict_raises", rows=rows)
    if found is None or not case.require(found.ndim > 0, "models.check_one_value", rows=rows):
        return False
    if not case.require(len(found) == rows, "models.check_count", rows=rows, found=len(found)):
        return False
    if not case.require(found.size == rows, "models.check_label_shape", shape=str(found.shape)):
        return False
    missing = int(pd.isna(found.reshape(rows)).sum())
    return case.require(missing == 0, "models.check_missing_labels", rows=rows, missing=missing)


def _check_labels(case: _Case, labels: Objects) -> None:
    if predicts_numbers(case.model):
        finite = labels.dtype.kind in "fiu" and bool(np.isfinite(labels.astype(float)).all())
        case.require(finite, "models.check_numbers", received=[plain(label) for label in labels[:3]])
        return
    seen, classes = {plain(label) for label in labels}, getattr(case.model, "classes_", None)
    case.require(len(seen) <= MOST_LABELS, "models.check_too_many_labels", count=len(seen))
    if classes is None:
        return
    is_vector = isinstance(classes, np.ndarray) and classes.ndim == 1
    if case.require(is_vector, "models.check_classes_type", type=type(classes).__name__):
        known = [plain(label) for label in classes]
        case.require(len(set(known)) == len(known), "models.check_classes_repeated", received=known)
        unknown = [label for label in seen if label not in known]
        case.require(not unknown, "models.check_classes_incomplete", expected=known, received=unknown)


def _check_probabilities(case: _Case, labels: Objects, probabilities: Objects) -> None:
    classes = getattr(case.model, "classes_", None)
    if classes is None:
        case.require(False, "models.check_no_classes")
        return
    shape, expected = probabilities.shape, (len(labels), len(classes))
    if not case.require(shape == expected, "models.check_probability_shape", expected=str(expected), shape=str(shape)):
        return
    finite = probabilities.dtype.kind in "fiu" and bool(np.isfinite(probabilities).all())
    if not case.require(finite, "models.check_probability_numbers"):
        return
    low, high = float(probabilities.min()), float(probabilities.max())
    within = low >= -EXACT and high <= 1 + EXACT
    case.require(within, "models.check_probability_range", low=f"{low:.4g}", high=f"{high:.4g}")
    sums = probabilities.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    total = float(sums[worst])
    case.require(abs(total - 1) <= LOOSE, "models.check_probability_sum", total=f"{total:.4g}", row=worst)
    _check_agreement(case, labels, probabilities, [plain(label) for label in classes])


def _check_agreement(case: _Case, labels: Objects, probabilities: Objects, classes: list[object]) -> None:
    """The label must have the largest probability; with two classes any threshold will do."""
    position = {label: k for k, label in enumerate(classes)}
    own = np.array([position.get(plain(label), -1) for label in labels])
    behind = (own >= 0) & (probabilities[np.arange(len(own)), own] < probabilities.max(axis=1) - EXACT)
    if not behind.any():
        return
    if len(classes) == 2:
        above, below = probabilities[own == 1, 1], probabilities[own == 0, 1]
        if len(above) == 0 or len(below) == 0 or below.max() <= above.min() + EXACT:
            return
    row = int(behind.argmax())
    likeliest = classes[int(probabilities[row].argmax())]
    case.require(False, "models.check_label_not_likeliest", row=row, expected=likeliest, received=plain(labels[row]))


def _check_batches(case: _Case, name: str, evaluate: Evaluation, expected: Objects) -> None:
    """The prediction of a row must not depend on the batch, the order of rows, the index or the thread."""
    rows = len(case.X)
    reverse = np.arange(rows)[::-1]
    mixed = np.random.default_rng(0).permutation(rows)
    alone = np.unique(np.linspace(0, rows - 1, SINGLE_ROWS).astype(int))
    other = case.X.set_axis([f"row {k // 2}" for k in range(rows)], axis=0)
    checks: list[tuple[str, Callable[[], Objects], Objects]] = [
        ("repeat", lambda: evaluate(case.X), expected),
        ("alone", lambda: np.concatenate([evaluate(case.X.iloc[[k]]) for k in alone]), expected[alone]),
        ("position", lambda: evaluate(case.X.iloc[reverse]), expected[reverse]),
        ("order", lambda: evaluate(case.X.iloc[mixed]), expected[mixed]),
        ("index", lambda: evaluate(other), expected),
        ("threads", lambda: _by_threads(case, evaluate, expected), expected),
    ]
    if getattr(case.model, "by_name", False):
        columns = case.X.columns[::-1]
        checks.append(("columns", lambda: evaluate(case.X[columns]), expected))
    for check, attempt, wanted in checks:
        contract = Problem(f"models.check_{check}", details={"method": name})
        found = case.attempt(attempt, "models.check_raised", violated=contract)
        if found is not None:
            _check_same(case, contract, found, wanted)


def _check_same(case: _Case, contract: Problem, found: Objects, wanted: Objects) -> None:
    shapes = {"shape": str(found.shape), "expected": str(wanted.shape)}
    if not case.require(found.shape == wanted.shape, "models.check_other_shape", violated=contract, **shapes):
        return
    if not case.same(found, wanted):
        apart = (found != wanted).reshape(len(found), -1).any(axis=1)
        row = int(apart.argmax())
        values = {"found": str(found[row]), "expected": str(wanted[row]), "count": int(apart.sum()), "rows": len(found)}
        case.require(False, "models.check_differs", violated=contract, **values)


def _by_threads(case: _Case, evaluate: Evaluation, expected: Objects) -> Objects:
    """Return the first predictions that differ, or the last."""
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: evaluate(case.X), range(THREADS * TURNS)))
    return next((predictions for predictions in found if not case.same(predictions, expected)), found[-1])


def _check_frame(case: _Case, name: str) -> None:
    given = case.X.copy()
    (case.predict if name == "predict" else case.probabilities)(given)
    try:
        pd.testing.assert_frame_equal(given, case.X)
    except AssertionError:
        case.require(False, "models.check_changes_frame", method=name)


def _check_empty(case: _Case) -> None:
    try:
        found = case.predict(case.X.iloc[:0])
    except Exception as error:
        case.require(str(error).strip() != "", "models.check_empty_raises", cause=_cause(error))
        return
    case.require(found.ndim > 0 and len(found) == 0, "models.check_empty_shape", shape=str(found.shape))


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".rstrip(". ")
