"""The contract of a model, for anyone to run on their own: `check_adapter(model, X)`."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.adapters import adapt, says_numbers
from fasterce.errors import InputError, shorten
from fasterce.predictor import find_predict
from fasterce.schema import plain

Array = NDArray[Any]
Ask = Callable[[pd.DataFrame], Array]

MOST_ROWS = 500
SINGLE_ROWS = 12
THREADS, TURNS = 2, 4
EXACT, LOOSE = 1e-6, 1e-3
LOOSE_SHARE = 0.01
MOST_LABELS = 100


def check_adapter(model: Any, X: pd.DataFrame, *, exact: bool = True) -> None:
    """Ask a model about rows of `X` in every way this library does; an AssertionError has a sentence for each broken rule.

    `exact=False` is for models that round differently in other company (a GPU, a service in single precision): one label
    in a hundred may differ, and chances by a thousandth.
    """
    if not isinstance(X, pd.DataFrame) or len(X) < 2:
        raise InputError("X must be a DataFrame of at least two rows the model can answer; got something else.")
    broken = list(_broken_rules(_Case(adapt(model), X.head(MOST_ROWS), exact)))
    if broken:
        raise AssertionError("\n".join(broken))


@dataclass(frozen=True)
class _Case:
    model: Any
    X: pd.DataFrame
    exact: bool

    @property
    def numbers(self) -> bool:
        return says_numbers(self.model)

    def predict(self, frame: pd.DataFrame) -> Array:
        return np.asarray(find_predict(self.model)(frame))

    def labels(self, frame: pd.DataFrame) -> Array:
        return self.predict(frame.copy()).reshape(len(frame))

    def same(self, found: Array, wanted: Array) -> bool:
        """The same labels, or numbers and chances but for rounding."""
        if found.shape != wanted.shape:
            return False
        if found.dtype.kind == wanted.dtype.kind == "f":
            return bool(np.allclose(found.astype(float), wanted.astype(float), rtol=self._slack, atol=self._slack))
        return float(np.mean(found != wanted)) <= (0.0 if self.exact else LOOSE_SHARE)

    @property
    def _slack(self) -> float:
        return EXACT if self.exact else LOOSE

    def questions(self) -> Iterator[tuple[str, Ask, Array]]:
        """What can be asked, and what it says of all rows."""
        yield "predict", self.labels, self.labels(self.X)
        if callable(getattr(self.model, "predict_proba", None)):
            yield "predict_proba", self._chances, self._chances(self.X)

    def _chances(self, frame: pd.DataFrame) -> Array:
        return np.asarray(self.model.predict_proba(frame.copy()))


def _broken_rules(case: _Case) -> Iterator[str]:
    first = _first_answer(case)
    if first is not None:
        yield first
        return
    try:
        questions = list(case.questions())
    except Exception as error:
        yield f"predict_proba must answer every row predict answers; it raised {_said(error)}."
        return
    yield from _broken_labels(case, questions[0][2])
    if len(questions) > 1:
        yield from _broken_chances(case, questions[0][2], questions[1][2])
    for name, ask, wanted in questions:
        yield from _broken_company(case, name, ask, wanted)
        yield from _broken_frame(case, name)
    yield from _broken_empty(case)


def _first_answer(case: _Case) -> str | None:
    """What is wrong with the very first answer; nothing else can be asked then."""
    rows = len(case.X)
    try:
        found = case.predict(case.X.copy())
    except Exception as error:
        return f"predict must answer the {rows} rows of X; it raised {_said(error)}."
    if found.ndim == 0 or len(found) != rows:
        got = "one value" if found.ndim == 0 else f"{len(found)} answers"
        return f"predict must answer once for every row; got {got} for {rows} rows."
    if found.size != rows:
        return f"predict must give one label a row; got an array of shape {found.shape}."
    missing = pd.isna(found.reshape(rows))
    if missing.any():
        return f"predict must give a label for every row; got none for {int(missing.sum())} of {rows} rows."
    return None


def _broken_labels(case: _Case, labels: Array) -> Iterator[str]:
    if case.numbers:
        if labels.dtype.kind not in "fiu" or not np.isfinite(labels.astype(float)).all():
            yield f"predict must give finite numbers, since the model says it answers numbers; got {shorten(labels, 3)}."
        return
    seen = {plain(label) for label in labels}
    if len(seen) > MOST_LABELS:
        yield f"predict must give class labels; got {len(seen)} different ones (a regression? answers_numbers must be True)."
    declared = getattr(case.model, "classes_", None)
    if declared is None:
        return
    if not isinstance(declared, np.ndarray) or declared.ndim != 1:
        yield f"classes_ must be a one-dimensional array; got {type(declared).__name__}."
        return
    known = [plain(label) for label in declared]
    if len(set(known)) < len(known):
        yield f"classes_ must name every class once; got {shorten(known)}."
    strangers = [label for label in seen if label not in known]
    if strangers:
        yield f"classes_ must contain every label predict gives; got {shorten(strangers)} beside {shorten(known)}."


def _broken_chances(case: _Case, labels: Array, chances: Array) -> Iterator[str]:
    declared = getattr(case.model, "classes_", None)
    if declared is None:
        yield "classes_ must say of which classes predict_proba gives the chances; there is none."
        return
    if chances.shape != (len(labels), len(declared)):
        yield f"predict_proba must have the shape {(len(labels), len(declared))}; got {chances.shape}."
        return
    if chances.dtype.kind not in "fiu" or not np.isfinite(chances).all():
        yield "predict_proba must give finite numbers; got others."
        return
    if (chances < -EXACT).any() or (chances > 1 + EXACT).any():
        yield f"predict_proba must give chances between 0 and 1; got {chances.min():.4g} to {chances.max():.4g}."
    sums = chances.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > LOOSE:
        yield f"predict_proba must sum to 1 in every row; got {sums[worst]:.4g} in row {worst}."
    yield from _broken_agreement(labels, chances, [plain(label) for label in declared])


def _broken_agreement(labels: Array, chances: Array, classes: list[Any]) -> Iterator[str]:
    """The label has the largest chance; of two classes a threshold other than a half will do."""
    place = {label: k for k, label in enumerate(classes)}
    own = np.array([place.get(plain(label), -1) for label in labels])
    known = own >= 0
    best = chances.max(axis=1)
    behind = known & (chances[np.arange(len(own)), own] < best - EXACT)
    if not behind.any():
        return
    if len(classes) == 2:
        second = chances[:, 1]
        above, below = second[own == 1], second[own == 0]
        if len(above) == 0 or len(below) == 0 or below.max() <= above.min() + EXACT:
            return
    row = int(behind.argmax())
    yield (
        f"predict must give the class with the largest chance; got {labels[row]!r} in row {row}, where predict_proba prefers "
        f"{classes[int(chances[row].argmax())]!r} (are the columns in the order of classes_?)."
    )


def _broken_company(case: _Case, name: str, ask: Ask, wanted: Array) -> Iterator[str]:
    """A row's answer is its own: asked again, alone, elsewhere in the table, under another index, by two threads."""
    rows = len(case.X)
    turned = np.arange(rows)[::-1]
    mixed = np.random.default_rng(0).permutation(rows)
    alone = np.unique(np.linspace(0, rows - 1, SINGLE_ROWS).astype(int))
    other = case.X.set_axis([f"row {k // 2}" for k in range(rows)], axis=0)
    rules: list[tuple[str, Callable[[], Array], Array]] = [
        ("give the same answers when asked again", lambda: ask(case.X), wanted),
        (
            "answer one row as it answers it among others",
            lambda: np.concatenate([ask(case.X.iloc[[k]]) for k in alone]),
            wanted[alone],
        ),
        ("answer a row the same wherever it stands", lambda: ask(case.X.iloc[turned]), wanted[turned]),
        ("answer a row the same in any order", lambda: ask(case.X.iloc[mixed]), wanted[mixed]),
        ("not look at the index", lambda: ask(other), wanted),
        ("give the same answers to two threads at once", lambda: _by_threads(case, ask, wanted), wanted),
    ]
    if getattr(case.model, "by_name", False):
        columns = case.X.columns[::-1]
        rules.append(("find its columns by name, in any order", lambda: ask(case.X[columns]), wanted))
    for rule, question, expected in rules:
        try:
            found = question()
        except Exception as error:
            yield f"{name} must {rule}; it raised {_said(error)}."
            continue
        if not case.same(found, expected):
            yield f"{name} must {rule}; got {_difference(found, expected)}."


def _by_threads(case: _Case, ask: Ask, wanted: Array) -> Array:
    """The first answer that differs, or the last."""
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: ask(case.X), range(THREADS * TURNS)))
    return next((answer for answer in found if not case.same(answer, wanted)), found[-1])


def _broken_frame(case: _Case, name: str) -> Iterator[str]:
    given, before = case.X.copy(), case.X.copy()
    (case.predict if name == "predict" else case.model.predict_proba)(given)
    try:
        pd.testing.assert_frame_equal(given, before)
    except AssertionError:
        yield f"{name} must leave the frame it is given as it is; it changed it."


def _broken_empty(case: _Case) -> Iterator[str]:
    try:
        found = case.predict(case.X.iloc[:0])
    except Exception as error:
        if not str(error).strip():
            yield f"predict must answer no rows with no labels, or say what is wrong; it raised {_said(error)}."
        return
    if found.ndim == 0 or len(found):
        yield f"predict must answer no rows with no labels, or say what is wrong; got an array of shape {found.shape}."


def _difference(found: Array, wanted: Array) -> str:
    if found.shape != wanted.shape:
        return f"an array of shape {found.shape} for one of {wanted.shape}"
    apart = (found != wanted).reshape(len(found), -1).any(axis=1)
    row = int(apart.argmax())
    return f"other answers for {int(apart.sum())} of {len(found)} rows, such as {found[row]} for {wanted[row]}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()[:200]}".rstrip(". ")
