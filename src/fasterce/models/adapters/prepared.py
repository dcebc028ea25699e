"""Models wrapped by a step before or after: a frame prepared for an estimator, other names for classes."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from fasterce.data.frames import as_pandas
from fasterce.errors import InputError
from fasterce.models.adapters.base import SCORE_METHODS, Labels, labels_at, named_classes
from fasterce.typing import Objects


class PreparedModel:
    """An estimator with a function that prepares its input; scores and classes are those of the estimator.

    Parameters
    ----------
    model : object
        The estimator.
    prepare : callable
        From a DataFrame to the input of the estimator.
    """

    def __init__(self, model: object, prepare: Callable[[pd.DataFrame], object]) -> None:
        self.model = model
        self.prepare = prepare

    def predict(self, frame: object) -> Objects:
        """Return one label or number per row."""
        return self._evaluate("predict", frame)

    @property
    def predicts_numbers(self) -> bool:
        """Whether the estimator is a regressor."""
        return predicts_numbers(self.model)

    def __getattr__(self, name: str) -> object:
        model = self.__dict__.get("model")
        if name in SCORE_METHODS and callable(getattr(model, name, None)):
            return partial(self._evaluate, name)
        if name == "classes_" and model is not None:
            return model.classes_
        raise AttributeError(name)

    def _evaluate(self, method: str, frame: object) -> Objects:
        return np.asarray(getattr(self.model, method)(self.prepare(as_pandas(frame, "rows"))))


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
        """Return one named class per row."""
        predict = getattr(self.model, "predict", self.model)
        labels = np.asarray(predict(frame))  # type: ignore[operator]
        return labels_at(self.classes_, labels.reshape(len(labels)))

    def __getattr__(self, name: str) -> object:
        if name in SCORE_METHODS and "model" in self.__dict__ and callable(getattr(self.model, name, None)):
            return getattr(self.model, name)
        raise AttributeError(name)


def predicts_numbers(model: object) -> bool:
    """Return whether a model declares that it predicts numbers: as scikit-learn's regressors do, or as an adapter."""
    if getattr(model, "predicts_numbers", False) is True:
        return True
    try:
        # scikit-learn 1.7 warns about objects without tags, later versions raise.
        return hasattr(model, "__sklearn_tags__") and bool(is_regressor(model))
    except (AttributeError, TypeError):
        return False


def without_names(frame: pd.DataFrame) -> pd.DataFrame | Objects:
    """Return a frame for an estimator fitted on a plain array, which warns at every call with column names."""
    if not all(isinstance(name, str) for name in frame.columns):
        return frame
    if all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.to_numpy()


def fitted_without_names(model: object) -> bool:
    """Return whether an estimator of scikit-learn was fitted on an array; others may need a frame."""
    first = model
    while type(first).__module__.startswith("sklearn.pipeline") and getattr(first, "steps", None):
        first = first.steps[0][1]  # type: ignore[attr-defined]
    known = type(first).__module__.startswith("sklearn.") and type(first).__name__ != "FunctionTransformer"
    return known and hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
