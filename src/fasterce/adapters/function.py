"""Functions of your own as a model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.adapters.base import as_classes, label_array
from fasterce.errors import InputError, ModelError

Ask = Callable[[Any], Any]


class FunctionModel:
    """Functions from a DataFrame: `predict` gives labels, `predict_proba` chances (N, C) in the order of `classes`.

    A bare function is a model that answers labels. This is for chances: with `predict_proba` alone the label is the class
    with the largest, with both the label has the last word.
    """

    def __init__(
        self, predict: Ask | None = None, *, predict_proba: Ask | None = None, classes: Sequence[Any] | None = None
    ) -> None:
        if not callable(predict) and not callable(predict_proba):
            raise InputError(f"FunctionModel must be given a function; got {predict!r:.60} and {predict_proba!r:.60}.")
        if predict_proba is not None and classes is None:
            raise InputError(
                "FunctionModel must be told the classes, in the order of the columns of predict_proba; got none."
            )
        if classes is not None and (isinstance(classes, (str, bytes)) or len(set(classes)) < max(2, len(classes))):
            raise InputError(f"classes must be a list of at least two different labels; got {classes!r:.100}.")
        self._labels = predict
        self._chances = predict_proba
        self._classes = None if classes is None else label_array(classes)

    @property
    def classes_(self) -> NDArray[Any]:
        if self._classes is None:
            raise AttributeError("classes_: none were named")
        return self._classes

    @property
    def predict_proba(self) -> Callable[[Any], NDArray[Any]]:
        if self._chances is None:
            raise AttributeError("predict_proba: no such function was given")
        return self._ask_chances

    def predict(self, frame: Any) -> NDArray[Any]:
        if self._labels is not None:
            return np.asarray(self._labels(frame))
        return np.asarray(self.classes_[self._ask_chances(frame).argmax(axis=1)])

    def _ask_chances(self, frame: Any) -> NDArray[Any]:
        assert self._chances is not None
        chances = np.asarray(self._chances(frame))
        if chances.ndim != 2:
            raise ModelError(f"predict_proba must give an array (N, C); got one of shape {chances.shape}.")
        as_classes(self.classes_.tolist(), chances.shape[1], "predict_proba")
        return chances
