"""Other names for the classes of a model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.adapters.base import as_classes
from fasterce.adapters.prepared import SCORES, says_numbers
from fasterce.errors import InputError, ModelError


class RenamedModel:
    """A model that answers 0, 1, … by the names of its classes; scores stay as they are."""

    def __init__(self, model: Any, classes: Sequence[Any]) -> None:
        if says_numbers(model):
            raise InputError(f"classes must be None for a model that answers numbers; got {list(classes)!r:.100}.")
        own = getattr(model, "classes_", None)
        known = range(len(classes)) if own is None else list(own)
        if list(known) != list(range(len(known))):
            raise InputError(
                f"classes must be None for a model that names its own, {list(known)!r:.100}; got {classes!r:.100}."
            )
        self.model = model
        self.classes_ = as_classes(classes, len(known), "the model")

    def predict(self, frame: Any) -> NDArray[Any]:
        ask: Callable[[Any], Any] = self.model.predict if hasattr(self.model, "predict") else self.model
        labels = np.asarray(ask(frame)).reshape(len(frame))
        places = labels.astype(np.intp)
        if (places != labels).any() or (len(places) and not 0 <= places.min() <= places.max() < len(self.classes_)):
            raise ModelError(f"The model must answer 0 to {len(self.classes_) - 1} for the classes named; got others.")
        return np.asarray(self.classes_[places])

    def __getattr__(self, name: str) -> Any:
        if name in SCORES and "model" in self.__dict__ and callable(getattr(self.model, name, None)):
            return getattr(self.model, name)
        raise AttributeError(name)
