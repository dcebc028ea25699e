"""The compiled model: codes in, class positions and scores out, counted, without building a DataFrame."""

from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np

from fasterce.errors import FasterCEError
from fasterce.kernels.arrays import Scorer
from fasterce.models.compiled.session import Backend, Inputs
from fasterce.models.predictions import FAILED, Predictions
from fasterce.models.predictor import SMALLEST_PROBABILITY, ModelUsage
from fasterce.typing import Floats, Indices, Objects


class NotCompiledError(FasterCEError):
    """The model, or a part of it, cannot be compiled."""


class Preprocessor(Protocol):
    """Makes a backend's inputs from codes."""

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        """Return the inputs for these codes, padded with any valid values to a number of rows."""
        ...


class CodesPreprocessor:
    """Gives codes as they are, to a backend that takes them."""

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        return {"codes": codes}


class Reader(Protocol):
    """Reads the output of a backend as predictions of classes, with scores if `keep`."""

    @property
    def classes(self) -> tuple[Hashable, ...]: ...

    @property
    def keep(self) -> bool: ...

    def predictions(self, output: Objects) -> Predictions: ...


@dataclass(frozen=True)
class OutputReader:
    """Reads the output of a backend.

    Parameters
    ----------
    classes : tuple
        The labels, in the order of class positions.
    order : tuple of int
        For every class its column of the output.
    scores : str or None
        The method of the model whose values the output holds; None if it holds labels.
    keep : bool
        Whether predictions include the scores.
    decimals : int, optional
        Averages of many trees are rounded to this: summed in single precision, two classes with equally many votes would
        not tie.
    """

    classes: tuple[Hashable, ...]
    order: tuple[int, ...]
    scores: str | None
    keep: bool
    decimals: int | None = None

    def predictions(self, output: Objects) -> Predictions:
        """Return the output as predictions."""
        if self.scores is None:
            return Predictions(self._positions(output.reshape(len(output))))
        scores = self._scores(output)
        failed = ~np.isfinite(scores).all(axis=1)
        best = scores.argmax(axis=1)
        return Predictions(np.where(failed, FAILED, best) if failed.any() else best, scores if self.keep else None)

    def _positions(self, labels: Objects) -> Indices:
        found = np.full(len(labels), FAILED, dtype=np.intp)
        for position, label in enumerate(self.classes):
            found[labels == label] = position
        return found

    def _scores(self, output: Objects) -> Floats:
        scores = output.astype(np.float64).reshape(len(output), -1)
        if scores.shape[1] == 1:
            scores = np.hstack([-scores, scores])
        scores = scores[:, self.order]
        if self.decimals is not None:
            scores = np.round(scores, self.decimals)
        return np.log(np.maximum(scores, SMALLEST_PROBABILITY)) if self.scores == "predict_proba" else scores


class CompiledModel:
    """Predicts like the model it was compiled from; `session` returns one with its own counters."""

    def __init__(
        self, preprocessor: Preprocessor, backend: Backend, reader: Reader, kind: str, agreement: float = 0.0
    ) -> None:
        self.preprocessor = preprocessor
        self.backend = backend
        self.reader = reader
        self.kind = kind
        self.agreement = agreement
        self.usage = ModelUsage()
        self._counting = Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return CompiledModel, (self.preprocessor, self.backend, self.reader, self.kind, self.agreement)

    @property
    def scorer(self) -> Scorer | None:
        """The model's own structure as arrays for compiled loops, None where it could not be read."""
        return getattr(self.backend, "scorer", None)

    @property
    def labels_apart(self) -> bool:
        """Whether labels do not follow from scores: the scorer then knows the labels alone."""
        return getattr(self.reader, "labels_apart", False)

    def session(self) -> "CompiledModel":
        """Return the same compiled model with counters at zero; any number of them may be used at once."""
        return CompiledModel(self.preprocessor, self.backend, self.reader, self.kind, self.agreement)

    def evaluate(self, codes: Floats) -> Predictions:
        """Evaluate rows of codes."""
        if len(codes) == 0:
            none = np.zeros((0, len(self.reader.classes)))
            return Predictions(np.zeros(0, dtype=np.intp), none if self.reader.keep else None)
        with self._counting:
            self.usage.calls += 1
            self.usage.rows += len(codes)
        return self.reader.predictions(self.backend.run(self.preprocessor.inputs, codes))
