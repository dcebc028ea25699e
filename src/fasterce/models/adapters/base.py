"""Shared code of the adapters: probabilities to labels, frames to the input of a library."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.utils.metaestimators import available_if

from fasterce.data.dtypes import plain
from fasterce.data.frames import as_pandas
from fasterce.errors import InputError, ModelError, unknown
from fasterce.typing import Floats, Objects

Activation = Literal["softmax", "sigmoid", None]
ACTIVATIONS = get_args(Activation)
Labels = Sequence[Hashable]
SCORE_METHODS = ("predict_proba", "decision_function")
SUM_ERROR = 1e-3
# Names pandas has for inferred types that are numbers.
NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "empty")

Method = TypeVar("Method", bound=Callable[..., object])


def method_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Return a decorator for a method that a model only has where `check(model)` holds."""
    decorator: Callable[[Method], Method] = available_if(check)
    return decorator


class WithClasses:
    """A model whose classes may be unknown; then it has no `classes_`."""

    _classes: Objects | None

    @property
    def classes_(self) -> Objects:
        """The labels the model can predict."""
        if self._classes is None:
            raise AttributeError("classes_: this model has no classes, or does not name them; expected classes=[...].")
        return self._classes


class Adapter(WithClasses, ABC):
    """Base class of adapters: labels and probabilities, or numbers. A subclass needs `evaluate` only.

    Parameters
    ----------
    classes : ndarray or None
        The labels in the order of the model's outputs; None for a model that predicts numbers.

    Attributes
    ----------
    predicts_numbers, has_probabilities : bool
        What the model predicts; a subclass may change them after `__init__`.
    """

    def __init__(self, classes: Objects | None) -> None:
        self._classes = classes
        self.predicts_numbers = classes is None
        self.has_probabilities = classes is not None

    @abstractmethod
    def evaluate(self, frame: pd.DataFrame) -> Floats:
        """Return probabilities (N, C) where there are classes, else numbers (N,)."""

    def predict(self, frame: object) -> Objects:
        """Return one label or number per row."""
        if self._classes is None:
            return self._evaluate(frame)
        return np.asarray(self._classes[self._evaluate(frame).argmax(axis=1)])

    @method_if(lambda self: self.has_probabilities)
    def predict_proba(self, frame: object) -> Floats:
        """Return probabilities (N, C) in the order of `classes_`."""
        return self._evaluate(frame)

    def _evaluate(self, frame: object) -> Floats:
        rows = as_pandas(frame, "rows")
        if len(rows) == 0:
            return np.zeros(0 if self._classes is None else (0, len(self._classes)))
        return self.evaluate(rows)


def as_classes(classes: Labels | None, count: int | None) -> Objects | None:
    """Return the labels of `count` outputs: 0 to C-1 unless the user names them; None if the model predicts numbers."""
    if count is None:
        if classes is not None:
            raise InputError("models.classes_for_numbers", option="classes", received=list(classes))
        return None
    return np.arange(count) if classes is None else named_classes(classes, count)


def named_classes(classes: Labels, count: int) -> Objects:
    """Return the user's labels of `count` outputs."""
    if isinstance(classes, (str, bytes)) or len(classes) != count:
        received = classes if isinstance(classes, (str, bytes)) else list(classes)
        raise InputError("models.class_names", option="classes", expected=count, received=received)
    return label_array(classes)


def label_array(labels: Labels) -> Objects:
    """Return labels as they are: NumPy would turn a mixture into text."""
    listed = list(labels)
    if len({type(label) for label in listed}) == 1:
        found = np.asarray(listed)
        if found.ndim == 1 and found.dtype.kind in "biufU":
            return found
    return object_array(listed)


def object_array(values: Labels) -> Objects:
    """Return values as an array of objects."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def labels_at(classes: Objects, positions: Objects) -> Objects:
    """Return the labels at positions 0 to C-1 that a model predicted."""
    found = positions.astype(np.intp)
    outside = (found != positions) | (found < 0) | (found >= len(classes))
    if outside.any():
        raise ModelError("models.class_position", expected=len(classes) - 1, received=plain(positions[outside][0]))
    return np.asarray(classes[found])


def as_probabilities(outputs: Floats, activation: Activation, count: int) -> Floats:
    """Return outputs (N,) or (N, C) as probabilities of `count` classes; one output is that of the second class."""
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        single = outputs.reshape(len(outputs))
        found = two_columns(single if activation is None else expit(single))
    elif activation == "sigmoid":
        raise ModelError("models.one_output", received=outputs.shape[1])
    else:
        found = softmax(outputs, axis=1) if activation == "softmax" else outputs
    if found.shape[1] != count:
        raise ModelError("models.output_count", expected=count, received=found.shape[1])
    return found


def two_columns(probability: Floats) -> Floats:
    """Return the probability of the second of two classes as probabilities of both."""
    return np.stack([1 - probability, probability], axis=1)


def check_probabilities(probabilities: Floats) -> Floats:
    """Return probabilities between 0 and 1 that sum to 1; logits taken for probabilities are an error."""
    away = np.abs(probabilities.sum(axis=1) - 1)
    if not ((probabilities >= -SUM_ERROR).all() and (away <= SUM_ERROR * probabilities.shape[1]).all()):
        raise ModelError("models.not_probabilities", received=probabilities[int(away.argmax())].round(4).tolist())
    return probabilities


def ordered_columns(frame: pd.DataFrame, names: Sequence[str], library: str) -> pd.DataFrame:
    """Return the columns a model knows by name, in its order; columns it does not know are left out."""
    if list(frame.columns) == list(names):
        return frame
    own = {str(column): column for column in frame.columns}
    missing = [name for name in names if name not in own]
    if missing:
        raise InputError(unknown("models.missing_column", missing[0], own, library=library))
    return frame[[own[name] for name in names]]


def with_columns(frame: pd.DataFrame, changed: Mapping[Hashable, pd.Series]) -> pd.DataFrame:
    """Return the frame with some columns replaced."""
    if not changed:
        return frame
    return pd.DataFrame({name: changed.get(name, frame[name]) for name in frame.columns}, columns=frame.columns)


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds categories in any form, not numbers."""
    dtype = column.dtype
    return isinstance(dtype, pd.CategoricalDtype) or not (
        pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    )


def as_categories(column: pd.Series, categories: Labels, library: str) -> pd.Series:
    """Return a column in the categories a model was trained with; an unknown one is an error, not a missing value."""
    cast = to_categories(column, categories)
    lost = (cast.isna() & column.notna()).to_numpy()
    if lost.any():
        received = column.iloc[int(lost.argmax())]
        raise InputError(unknown("models.unknown_category", received, categories, column=column.name, library=library))
    return cast


def to_categories(column: pd.Series, categories: Labels) -> pd.Series:
    """Return a column in the categories a model was trained with, unknown ones as missing values."""
    wanted = pd.CategoricalDtype(pd.Index(categories))
    if column.dtype == wanted:
        return column
    known = pd.Index(categories, dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = np.append(known.get_indexer(column.cat.categories.astype(object)), -1)[column.cat.codes.to_numpy()]
    else:
        places = known.get_indexer(pd.Index(column, dtype=object))
    return pd.Series(pd.Categorical.from_codes(places, dtype=wanted), index=column.index, name=column.name)


def matrix(columns: Sequence[pd.Series], library: str) -> Floats:
    """Return columns as numbers side by side, missing ones as NaN. Building a frame would be slower for few rows."""
    return np.stack([_floats(column, library) for column in columns], axis=1)


def _floats(column: pd.Series, library: str) -> Floats:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        # Many times faster than with `na_value`.
        return np.asarray(column.to_numpy(dtype=np.float64))
    if is_text(column):
        # Categories and plain objects may hold numbers.
        column = column.astype(object)
        if pd.api.types.infer_dtype(column, skipna=True) not in NUMBERS:
            raise InputError("models.text_column", column=column.name, library=library)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def model_name(model: object) -> str:
    """Return the type of a model for people; a pipeline names its last step, and a function itself."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return f"{type(model).__name__} ({model_name(steps[-1][1])})"
    name = getattr(model, "__qualname__", "") if callable(model) and not hasattr(model, "predict") else ""
    return str(name or type(model).__name__)


def type_names(model: object) -> set[tuple[str, str]]:
    """Return (package, class) of a model's type and its bases: to recognise a model without importing its library."""
    return {(base.__module__.split(".")[0], base.__name__) for base in type(model).__mro__}
