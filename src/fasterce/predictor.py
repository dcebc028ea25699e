"""The user's model, asked and counted: typed frames in, class positions and scores out.

Labels alone are enough. Scores are used only where they were seen to say the same as the labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.adapters import adapt
from fasterce.errors import FasterCEError, InputError, ModelError, shorten, unknown_name
from fasterce.latent.runtime import threads_for
from fasterce.profile import Floats
from fasterce.schema import plain
from fasterce.table import Table

Scores = Literal["auto", "never"]
Classes = NDArray[np.intp]

FAILED = -1
MOST_CLASSES = 100
MOST_FRACTIONS = 10
FIRST_SPLITS, MOST_SPLITS = 32, 64
REGAINED_SPLITS = 3
SCORE_AGREEMENT = 0.999
BELOW_AND_ABOVE = ("below", "above")


@dataclass
class Asked:
    """How often the model was called and about how many rows."""

    calls: int = 0
    rows: int = 0

    def __add__(self, more: "Asked") -> "Asked":
        return Asked(self.calls + more.calls, self.rows + more.rows)


@dataclass(frozen=True)
class Answers:
    """One class position a row (`FAILED` where the model failed), and a score a class if there is one."""

    classes: Classes
    scores: Floats | None = None

    def __add__(self, more: "Answers") -> "Answers":
        both = None if self.scores is None or more.scores is None else np.concatenate([self.scores, more.scores])
        return Answers(np.concatenate([self.classes, more.classes]), both)


@dataclass(frozen=True)
class Final:
    """The model's own last word: class positions and, where a number was asked for, chances (N, C) or predictions (N, 1)."""

    classes: Classes
    values: Floats | None = None
    scores: Floats | None = None

    def take(self, rows: slice) -> "Final":
        values, scores = (None if part is None else part[rows] for part in (self.values, self.scores))
        return Final(self.classes[rows], values, scores)


@dataclass(frozen=True)
class Numbers:
    """How a model that answers numbers is read: as two classes, below and above `middle`, that lead by the distance from
    it in units of `scale`."""

    middle: float
    scale: float

    def scores(self, values: Floats) -> Floats:
        lead = (values - self.middle) / self.scale
        return np.stack([-lead / 2, lead / 2], axis=1)

    def values(self, scores: Floats) -> Floats:
        """The numbers that have these scores."""
        return np.asarray(self.middle + self.scale * (scores[:, 1] - scores[:, 0]))


class Predictor:
    """Asks a model about rows of codes. `numbers` is set where the model answers numbers instead of classes."""

    def __init__(
        self,
        model: Any,
        table: Table,
        classes: Sequence[Any] = (),
        use_scores: bool = False,
        numbers: Numbers | None = None,
    ) -> None:
        self.numbers = numbers
        self.model = adapt(model)
        self.table = table
        self.classes = tuple(plain(label) for label in classes)
        self.use_scores = use_scores
        self.asked = Asked()
        self.learning = False
        self.failure = ""
        self._predict = find_predict(self.model)

    def learn_classes(self, codes: Floats) -> NDArray[Any]:
        """Ask about training rows and note the labels; raises what `fit` should raise."""
        labels = self._labels(self.table.frame(codes))
        if labels is None or bool(pd.isna(labels).any()):
            raise ModelError(self.failure or "The model must answer a label for every row; got missing labels.")
        seen = pd.unique(pd.Series(labels, dtype=object))
        declared = getattr(self.model, "classes_", None)
        known = list(declared) if isinstance(declared, np.ndarray) and declared.ndim == 1 else sorted_labels(seen)
        if len(known) > MOST_CLASSES or (len(known) > MOST_FRACTIONS and _fractions(known)):
            raise ModelError(
                f"The model must answer class labels; got {len(known)} different ones, starting with {shorten(known, 3)} "
                "(a regression model? then say task='regression')."
            )
        self.classes = tuple(plain(label) for label in known)
        self.learning = declared is None
        strangers = [label for label in seen if plain(label) not in self.classes]
        if strangers:
            raise ModelError(f"The model must answer one of {shorten(self.classes)}; got {shorten(strangers)}.")
        return labels

    def answers(self, codes: Floats) -> bool:
        """Whether the model answers these rows at all; `failure` says why not."""
        return self._labels(self.table.frame(codes)) is not None

    def learn_numbers(self, codes: Floats) -> None:
        """The same for a model that answers numbers: what is in the middle of them, and how far they spread."""
        labels = self._labels(self.table.frame(codes))
        values = None if labels is None else _as_numbers(labels)
        if values is None:
            raise ModelError(self.failure or "The model must answer one finite number a row; got something else.")
        middle = float(np.median(values))
        self.numbers = Numbers(middle, float(np.std(values)) or 1.0)
        self.classes, self.use_scores = BELOW_AND_ABOVE, True

    @property
    def has_chances(self) -> bool:
        return self.numbers is None and find_scores(self.model) == "predict_proba"

    def position(self, label: Any) -> int:
        """The position of a class, whatever scalar type the caller writes it in."""
        if np.ndim(label) == 0 and not pd.isna(label) and label in self.classes:
            return self.classes.index(label)
        raise InputError(unknown_name("target class", label, self.classes))

    def trust_scores(self, codes: Floats) -> bool:
        """Whether the model has scores that name the same class as its labels on these rows."""
        if len(codes) == 0 or find_scores(self.model) is None:
            return False
        frame = self.table.frame(codes)
        scores = self._score(frame)
        labels = self._labels(frame)
        if scores is None or labels is None:
            return False
        return float(np.mean(scores.argmax(axis=1) == self._positions(labels))) >= SCORE_AGREEMENT

    def ask(self, codes: Floats) -> Answers:
        """One batched question. Rows the model fails on are found by halving and marked, never raised."""
        if len(codes) == 0:
            return Answers(np.zeros(0, dtype=np.intp), np.zeros((0, len(self.classes))) if self.use_scores else None)
        question = self._score if self.use_scores else self._labels
        found = self._halving(question, self.table.frame(codes), [FIRST_SPLITS])
        if not self.use_scores:
            return Answers(np.concatenate([self._positions(part) for part in found]))
        scores = np.concatenate([self._no_scores(size) if isinstance(size, int) else size for size in found])
        failed = ~np.isfinite(scores).all(axis=1)
        return Answers(np.where(failed, FAILED, np.nan_to_num(scores).argmax(axis=1)), scores)

    def ask_labels(self, codes: Floats) -> Answers:
        """The same question, but for labels only."""
        return Answers(self.label(self.table.frame(codes)))

    def label(self, frame: pd.DataFrame) -> Classes:
        """The model's own labels, even where `ask` goes by scores: what verification rests on."""
        if len(frame) == 0:
            return np.zeros(0, dtype=np.intp)
        if self.numbers is not None:
            return self.last_word(frame, raw=True).classes
        found = self._halving(self._labels, frame, [FIRST_SPLITS])
        return np.concatenate([self._positions(part) for part in found])

    def last_word(self, frame: pd.DataFrame, raw: bool) -> Final:
        """What verification rests on: labels, or where `raw` the chances or numbers themselves."""
        if not raw:
            return Final(self.label(frame))
        question = self._chances if self.numbers is None else self._values
        width = len(self.classes) if self.numbers is None else 1
        if len(frame) == 0:
            return Final(np.zeros(0, dtype=np.intp), np.zeros((0, width)))
        found = self._halving(question, frame, [FIRST_SPLITS])
        values = np.concatenate([np.full((part, width), np.nan) if isinstance(part, int) else part for part in found])
        failed = ~np.isfinite(values).all(axis=1)
        scores = self._scores_of(values)
        return Final(np.where(failed, FAILED, np.nan_to_num(scores).argmax(axis=1)), values, scores)

    def final(self, classes: Classes, values: Floats | None) -> Final:
        """A last word said earlier."""
        return Final(classes, values, None if values is None else self._scores_of(values))

    def _scores_of(self, values: Floats) -> Floats:
        return np.log(np.maximum(values, 1e-12)) if self.numbers is None else self.numbers.scores(values[:, 0])

    def _values(self, frame: pd.DataFrame) -> Floats | None:
        labels = self._labels(frame)
        values = None if labels is None else _as_numbers(labels)
        if values is None:
            self.failure = self.failure or "The model must answer one finite number a row; got something else."
            return None
        return values[:, None]

    def _chances(self, frame: pd.DataFrame) -> Floats | None:
        answer = self._call(self.model.predict_proba, frame)
        if answer is None or answer.dtype.kind not in "fiub" or answer.shape != (len(frame), len(self.classes)):
            self.failure = self.failure or f"The model must give {len(self.classes)} chances a row; got something else."
            return None
        return answer.astype(np.float64)

    def _halving(self, question: Callable[[pd.DataFrame], Any], frame: pd.DataFrame, splits: list[int]) -> list[Any]:
        """Answers in order; a part the model fails on is split until single rows fail, or its length stands for it.

        Splitting goes on while some parts succeed: a model that only ever fails is not asked for long.
        """
        answer = question(frame)
        if answer is not None:
            splits[0] = min(splits[0] + REGAINED_SPLITS, MOST_SPLITS)
            return [answer]
        if len(frame) == 1 or splits[0] <= 0:
            return [len(frame)]
        splits[0] -= 1
        half = len(frame) // 2
        return [
            *self._halving(question, frame.iloc[:half].reset_index(drop=True), splits),
            *self._halving(question, frame.iloc[half:].reset_index(drop=True), splits),
        ]

    def _call(self, function: Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> NDArray[Any] | None:
        self.asked.calls += 1
        self.asked.rows += len(frame)
        frame = frame if _is_ours(self.model) else self.table.native(frame)
        try:
            with threads_for(len(frame)):
                answer = np.asarray(function(frame))
        except FasterCEError as error:
            self.failure = str(error)
            return None
        except Exception as error:
            self.failure = f"The model raised {type(error).__name__}: {str(error)[:200]}"
            return None
        if answer.ndim == 0 or len(answer) != len(frame):
            got = "one value" if answer.ndim == 0 else f"{len(answer)} answers"
            self.failure = f"The model must answer once for every row; got {got} for {len(frame)} rows."
            return None
        return answer

    def _labels(self, frame: pd.DataFrame) -> NDArray[Any] | None:
        answer = self._call(self._predict, frame)
        if answer is not None and answer.ndim > 1:
            if answer.size != len(frame):
                self.failure = f"The model must answer one label a row; got an array of shape {answer.shape}."
                return None
            answer = answer.reshape(len(frame))
        return answer

    def _score(self, frame: pd.DataFrame) -> Floats | None:
        """A score a class whose largest is the label: log-probabilities or decision values."""
        if self.numbers is not None:
            values = self._values(frame)
            return None if values is None else self.numbers.scores(values[:, 0])
        name = find_scores(self.model)
        if name is None:
            return None
        answer = self._call(getattr(self.model, name), frame)
        if answer is None or answer.dtype.kind not in "fiub":
            return None
        if answer.ndim == 1 and len(self.classes) == 2:
            answer = np.stack([-answer, answer], axis=1)
        if answer.shape != (len(frame), len(self.classes)):
            self.failure = f"The model must score {len(self.classes)} classes; got an array of shape {answer.shape}."
            return None
        scores = answer.astype(np.float64)
        if not np.isfinite(scores).all():
            self.failure = "The model must score every row with finite numbers; got a missing or infinite score."
        return np.log(np.maximum(scores, 1e-12)) if name == "predict_proba" else scores

    def _positions(self, labels: NDArray[Any] | int) -> Classes:
        if isinstance(labels, int):
            return np.full(labels, FAILED, dtype=np.intp)
        if self.learning:
            self._note_new(labels)
        positions = pd.Index(self.classes, dtype=object).get_indexer(pd.Index(labels.astype(object), dtype=object))
        strange = np.flatnonzero(positions < 0)
        if strange.size:
            got = labels[strange[0]]
            shown = "a missing label" if pd.isna(got) else repr(plain(got))
            self.failure = f"The model must answer one of {shorten(self.classes)}; got {shown}."
        return np.asarray(positions, dtype=np.intp)

    def _note_new(self, labels: NDArray[Any]) -> None:
        seen = (plain(label) for label in pd.unique(pd.Series(labels, dtype=object)) if not pd.isna(label))
        self.classes += tuple(label for label in seen if label not in self.classes)

    def _no_scores(self, rows: int) -> Floats:
        return np.full((rows, len(self.classes)), np.nan)


def find_predict(model: Any) -> Callable[[pd.DataFrame], Any]:
    predict = getattr(model, "predict", None)
    if callable(predict):
        return predict  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    hint = " (a file? fasterce.models.load_model loads it)" if isinstance(model, (str, PathLike)) else ""
    raise InputError(f"model must have a predict method or be callable; got {type(model).__name__}{hint}.")


def find_scores(model: Any) -> str | None:
    for name in ("predict_proba", "decision_function"):
        if callable(getattr(model, name, None)):
            return name
    return None


def _is_ours(model: Any) -> bool:
    """Our own adapters take pandas, whatever kind of table `fit` saw."""
    return type(model).__module__.startswith("fasterce.")


def _fractions(labels: Sequence[Any]) -> bool:
    return any(isinstance(label, (float, np.floating)) and float(label) % 1 for label in labels)


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _as_numbers(answers: NDArray[Any]) -> Floats | None:
    """Answers as floats, None if one of them is no finite number."""
    try:
        values = answers.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None
