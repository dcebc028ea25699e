"""A user's functions as a model."""

from collections.abc import Callable

import numpy as np

from fasterce.errors import InputError, ModelError
from fasterce.models.adapters.base import Labels, WithClasses, label_array, method_if, named_classes
from fasterce.typing import Objects

PredictFunction = Callable[..., object]


class FunctionModel(WithClasses):
    """Functions of a DataFrame as a model.

    A bare function is a model that predicts labels; this class adds probabilities. With `predict_proba` alone, the label is
    the class with the largest probability; with both, `predict` decides the label.

    Parameters
    ----------
    predict : callable, optional
        From a DataFrame to labels.
    predict_proba : callable, optional
        From a DataFrame to probabilities (N, C) in the order of `classes`.
    classes : sequence, optional
        The labels; needed with `predict_proba`.
    """

    def __init__(
        self,
        predict: PredictFunction | None = None,
        *,
        predict_proba: PredictFunction | None = None,
        classes: Labels | None = None,
    ) -> None:
        if not callable(predict) and not callable(predict_proba):
            raise InputError("models.no_function", received=predict if predict_proba is None else predict_proba)
        if predict_proba is not None and classes is None:
            raise InputError("models.classes_needed", option="classes")
        if classes is not None and (isinstance(classes, (str, bytes)) or len(set(classes)) < max(2, len(classes))):
            raise InputError("models.classes_not_distinct", option="classes", received=classes)
        self._labels = predict
        self._probabilities = predict_proba
        self._classes = None if classes is None else label_array(classes)

    def predict(self, frame: object) -> Objects:
        """Return one label per row."""
        if self._labels is not None:
            return np.asarray(self._labels(frame))
        return np.asarray(self.classes_[self.predict_proba(frame).argmax(axis=1)])

    @method_if(lambda self: self._probabilities is not None)
    def predict_proba(self, frame: object) -> Objects:
        """Return probabilities (N, C) in the order of `classes_`."""
        assert self._probabilities is not None
        found = np.asarray(self._probabilities(frame))
        if found.ndim != 2:
            raise ModelError("models.not_a_matrix", received=found.shape)
        named_classes(self.classes_.tolist(), found.shape[1])
        return found
