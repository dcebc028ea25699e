"""Estimators that answer as they should once the frame is made ready for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_regressor

from fasterce.adapters.base import as_pandas

SCORES = ("predict_proba", "decision_function")


class PreparedModel:
    """An estimator and what is done to a frame before it is asked; everything else is the estimator's own."""

    def __init__(self, model: Any, prepare: Callable[[pd.DataFrame], Any]) -> None:
        self.model = model
        self.prepare = prepare

    def predict(self, frame: Any) -> NDArray[Any]:
        return self._ask("predict", frame)

    @property
    def answers_numbers(self) -> bool:
        return says_numbers(self.model)

    def __getattr__(self, name: str) -> Any:
        if name in SCORES and callable(getattr(self.__dict__.get("model"), name, None)):
            return partial(self._ask, name)
        if name == "classes_" and "model" in self.__dict__:
            return self.model.classes_
        raise AttributeError(name)

    def _ask(self, method: str, frame: Any) -> NDArray[Any]:
        return np.asarray(getattr(self.model, method)(self.prepare(as_pandas(frame))))


def says_numbers(model: Any) -> bool:
    """Whether a model says of itself that it answers numbers: in scikit-learn's way, or as an adapter."""
    if getattr(model, "answers_numbers", False) is True:
        return True
    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):
        return False


def without_names(frame: pd.DataFrame) -> Any:
    """A frame for an estimator fitted on a plain array, which warns at every call where names come along."""
    if not all(isinstance(name, str) for name in frame.columns):
        return frame
    if all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return frame.to_numpy()


def fitted_without_names(model: Any) -> bool:
    """Fitted on an array, as far as scikit-learn's own estimators tell; others may well want a frame."""
    first = model
    while type(first).__module__.startswith("sklearn.pipeline") and getattr(first, "steps", None):
        first = first.steps[0][1]
    known = type(first).__module__.startswith("sklearn.") and type(first).__name__ != "FunctionTransformer"
    return known and hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
