"""Check that a model keeps the contract of `fasterce.models.protocol.Model`: `check_adapter(model, X)`."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
    problems = list(_problems(_Case(adapt(model), X.head(MOST_ROWS), exact)))
    if problems:
        raise AssertionError("\n".join(problem.text() for problem in problems))


@dataclass(frozen=True)
class _Case:
    """The model under test and the rows to evaluate."""

    model: Model
    X: pd.DataFrame
    exact: bool

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

    @property
    def classes(self) -> Objects | None:
        found: Objects | None = getattr(self.model, "classes_", None)
        return found


def _problems(case: _Case) -> Iterator[Problem]:
    first = _first_prediction(case)
    if first is not None:
        yield first
        return
    labels = case.labels(case.X)
    evaluations: list[tuple[str, Evaluation, Objects]] = [("predict", case.labels, labels)]
    if callable(getattr(case.model, "predict_proba", None)):
        try:
            probabilities = case.probabilities(case.X.copy())
        except Exception as error:
            yield make_problem("models.check_probabilities_raise", cause=_cause(error))
            return
        evaluations.append(("predict_proba", lambda frame: case.probabilities(frame.copy()), probabilities))
    yield from _label_problems(case, labels)
    if len(evaluations) > 1:
        yield from _probability_problems(case, labels, probabilities)
    for name, evaluate, expected in evaluations:
        yield from _batch_problems(case, name, evaluate, expected)
        yield from _frame_problems(case, name)
    yield from _empty_problems(case)


def _first_prediction(case: _Case) -> Problem | None:
    """Return what is wrong with the very first prediction; nothing else can be checked then."""
    rows = len(case.X)
    try:
        found = case.predict(case.X.copy())
    except Exception as error:
        return make_problem("models.check_predict_raises", rows=rows, cause=_cause(error))
    if found.ndim == 0:
        return make_problem("models.check_one_value", rows=rows)
    if len(found) != rows:
        return make_problem("models.check_count", rows=rows, found=len(found))
    if found.size != rows:
        return make_problem("models.check_label_shape", shape=str(found.shape))
    missing = pd.isna(found.reshape(rows))
    return make_problem("models.check_missing_labels", rows=rows, missing=int(missing.sum())) if missing.any() else None


def _label_problems(case: _Case, labels: Objects) -> Iterator[Problem]:
    if predicts_numbers(case.model):
        if labels.dtype.kind not in "fiu" or not np.isfinite(labels.astype(float)).all():
            yield make_problem("models.check_numbers", received=[plain(label) for label in labels[:3]])
        return
    seen = {plain(label) for label in labels}
    if len(seen) > MOST_LABELS:
        yield make_problem("models.check_too_many_labels", count=len(seen))
    classes = case.classes
    if classes is None:
        return
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        yield make_problem("models.check_classes_type", type=type(classes).__name__)
        return
    known = [plain(label) for label in classes]
    if len(set(known)) < len(known):
        yield make_problem("models.check_classes_repeated", received=known)
    unknown = [label for label in seen if label not in known]
    if unknown:
        yield make_problem("models.check_classes_incomplete", expected=known, received=unknown)


def _probability_problems(case: _Case, labels: Objects, probabilities: Objects) -> Iterator[Problem]:
    classes = case.classes
    if classes is None:
        yield make_problem("models.check_no_classes")
        return
    expected = (len(labels), len(classes))
    if probabilities.shape != expected:
        yield make_problem("models.check_probability_shape", expected=str(expected), shape=str(probabilities.shape))
        return
    if probabilities.dtype.kind not in "fiu" or not np.isfinite(probabilities).all():
        yield make_problem("models.check_probability_numbers")
        return
    low, high = float(probabilities.min()), float(probabilities.max())
    if low < -EXACT or high > 1 + EXACT:
        yield make_problem("models.check_probability_range", low=f"{low:.4g}", high=f"{high:.4g}")
    sums = probabilities.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > LOOSE:
        yield make_problem("models.check_probability_sum", total=f"{sums[worst]:.4g}", row=worst)
    yield from _agreement_problems(labels, probabilities, [plain(label) for label in classes])


def _agreement_problems(labels: Objects, probabilities: Objects, classes: list[object]) -> Iterator[Problem]:
    """The label must have the largest probability; with two classes any threshold will do."""
    position = {label: k for k, label in enumerate(classes)}
    own = np.array([position.get(plain(label), -1) for label in labels])
    behind = (own >= 0) & (probabilities[np.arange(len(own)), own] < probabilities.max(axis=1) - EXACT)
    if not behind.any():
        return
    if len(classes) == 2:
        second = probabilities[:, 1]
        above, below = second[own == 1], second[own == 0]
        if len(above) == 0 or len(below) == 0 or below.max() <= above.min() + EXACT:
            return
    row = int(behind.argmax())
    likeliest = classes[int(probabilities[row].argmax())]
    yield make_problem("models.check_label_not_likeliest", row=row, expected=likeliest, received=plain(labels[row]))


def _batch_problems(case: _Case, name: str, evaluate: Evaluation, expected: Objects) -> Iterator[Problem]:
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
        try:
            found = attempt()
        except Exception as error:
            yield make_problem("models.check_raised", violated=contract, cause=_cause(error))
            continue
        if found.shape != wanted.shape:
            shapes = {"shape": str(found.shape), "expected": str(wanted.shape)}
            yield make_problem("models.check_other_shape", violated=contract, **shapes)
        elif not case.same(found, wanted):
            apart = (found != wanted).reshape(len(found), -1).any(axis=1)
            row = int(apart.argmax())
            values = {"found": str(found[row]), "expected": str(wanted[row])}
            yield make_problem("models.check_differs", violated=contract, count=int(apart.sum()), rows=len(found), **values)


def _by_threads(case: _Case, evaluate: Evaluation, expected: Objects) -> Objects:
    """Return the first predictions that differ, or the last."""
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: evaluate(case.X), range(THREADS * TURNS)))
    return next((predictions for predictions in found if not case.same(predictions, expected)), found[-1])


def _frame_problems(case: _Case, name: str) -> Iterator[Problem]:
    given, before = case.X.copy(), case.X.copy()
    (case.predict if name == "predict" else case.probabilities)(given)
    try:
        pd.testing.assert_frame_equal(given, before)
    except AssertionError:
        yield make_problem("models.check_changes_frame", method=name)


def _empty_problems(case: _Case) -> Iterator[Problem]:
    try:
        found = case.predict(case.X.iloc[:0])
    except Exception as error:
        if not str(error).strip():
            yield make_problem("models.check_empty_raises", cause=_cause(error))
        return
    if found.ndim == 0 or len(found):
        yield make_problem("models.check_empty_shape", shape=str(found.shape))


def _cause(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".rstrip(". ")
