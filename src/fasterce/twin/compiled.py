"""The twin itself: codes in, class positions and scores out, counted, without a DataFrame on the way."""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.predictor import FAILED, Answers, Asked, Classes
from fasterce.profile import Floats
from fasterce.twin.engine import Engine
from fasterce.twin.front import Front

SMALLEST_CHANCE = 1e-12


@dataclass(frozen=True)
class Reading:
    """How a graph's output is read.

    `scores` names the model's method whose values the output holds, or is None where it holds labels. `order` gives for
    every wanted class its column of the scores. `keep` says whether the scores are part of the answer. Averages of many
    trees are rounded to `decimals`: summed in single precision, two classes with as many trees each would not tie.
    """

    classes: tuple[Any, ...]
    order: tuple[int, ...]
    scores: str | None
    keep: bool
    decimals: int | None = None

    def answers(self, output: NDArray[Any]) -> Answers:
        if self.scores is None:
            return Answers(self._positions(output.reshape(len(output))))
        scores = self._scores(output)
        failed = ~np.isfinite(scores).all(axis=1)
        best = scores.argmax(axis=1)
        return Answers(np.where(failed, FAILED, best) if failed.any() else best, scores if self.keep else None)

    def _positions(self, labels: NDArray[Any]) -> Classes:
        found = np.full(len(labels), FAILED, dtype=np.intp)
        for position, label in enumerate(self.classes):
            found[labels == label] = position
        return found

    def _scores(self, output: NDArray[Any]) -> Floats:
        scores = output.astype(np.float64).reshape(len(output), -1)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        scores = scores[:, self.order]
        if self.decimals is not None:
            scores = np.round(scores, self.decimals)
        return np.log(np.maximum(scores, SMALLEST_CHANCE)) if self.scores == "predict_proba" else scores


class Twin:
    """Answers like the model it was made from; `session` gives each user counters of their own."""

    def __init__(self, front: Front, engine: Engine, reading: Reading, kind: str, agreement: float = 0.0) -> None:
        self.front = front
        self.engine = engine
        self.reading = reading
        self.kind = kind
        self.agreement = agreement
        self.asked = Asked()
        self._counting = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Twin, (self.front, self.engine, self.reading, self.kind, self.agreement)

    def session(self) -> "Twin":
        """The same twin with counters at zero; any number of them may be asked at once."""
        return Twin(self.front, self.engine, self.reading, self.kind, self.agreement)

    def ask(self, codes: Floats) -> Answers:
        if len(codes) == 0:
            none = np.zeros((0, len(self.reading.classes)))
            return Answers(np.zeros(0, dtype=np.intp), none if self.reading.keep else None)
        with self._counting:
            self.asked.calls += 1
            self.asked.rows += len(codes)
        return self.reading.answers(self.engine.answer(self.front.inputs, codes))
