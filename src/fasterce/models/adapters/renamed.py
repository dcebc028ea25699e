"""Other names for the classes of a model."""

import numpy as np

from fasterce.errors import InputError
from fasterce.models.adapters.base import SCORE_METHODS, Labels, labels_at, named_classes
from fasterce.models.adapters.prepared import predicts_numbers
from fasterce.typing import Objects


class RenamedModel:
    """A model that predicts 0, 1, ... with names for its classes; scores stay as they are.

    Parameters
    ----------
    model : object
        A model, or a function from a DataFrame to labels.
    classes : sequence
        The names of classes 0, 1, ...
    """

    def __init__(self, model: object, classes: Labels) -> None:
        if predicts_numbers(model):
            raise InputError("models.classes_for_numbers", option="classes", received=list(classes))
        own = getattr(model, "classes_", None)
        known = list(range(len(classes)) if own is None else own)
        if known != list(range(len(known))):
            raise InputError("models.classes_known", option="classes", expected=known, received=list(classes))
        self.model = model
        self.classes_ = named_classes(classes, len(known))

    def predict(self, frame: object) -> Objects:
        predict = getattr(self.model, "predict", self.model)
        labels = np.asarray(predict(frame))  # type: ignore[operator]
        return labels_at(self.classes_, labels.reshape(len(labels)))

    def __getattr__(self, name: str) -> object:
        if name in SCORE_METHODS and "model" in self.__dict__ and callable(getattr(self.model, name, None)):
            return getattr(self.model, name)
        raise AttributeError(name)
