"""What the adapters share: chances into labels, frames into what a library takes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce import frames
from fasterce.errors import InputError, ModelError, shorten, unknown_name
from fasterce.profile import Floats

Array = NDArray[Any]
SUM_ERROR = 1e-3


class Adapter(ABC):
    """A library's model as labels and chances, or as numbers; `respond` is all a library has to add.

    `classes` are the labels in the order of the model's outputs; None for a model that answers numbers.
    """

    def __init__(self, classes: Array | None) -> None:
        self._classes = classes

    @abstractmethod
    def respond(self, frame: pd.DataFrame) -> Floats:
        """Chances (N, C) where there are classes, else numbers (N,)."""

    @property
    def answers_numbers(self) -> bool:
        return self._classes is None

    @property
    def classes_(self) -> Array:
        if self._classes is None:
            raise AttributeError("classes_: this model answers numbers")
        return self._classes

    def predict(self, frame: Any) -> Array:
        if self._classes is None:
            return self._respond(frame)
        return np.asarray(self._classes[self._respond(frame).argmax(axis=1)])

    @property
    def predict_proba(self) -> Callable[[Any], Floats]:
        if self._classes is None:
            raise AttributeError("predict_proba: this model answers numbers")
        return self._respond

    def _respond(self, frame: Any) -> Floats:
        rows = as_pandas(frame)
        if len(rows) == 0:
            return np.zeros(0 if self._classes is None else (0, len(self._classes)))
        return self.respond(rows)


def as_pandas(frame: Any) -> pd.DataFrame:
    """A table of any kind as pandas."""
    found = frames.as_pandas(frame, "rows")
    if not isinstance(found, pd.DataFrame):
        raise InputError(f"The model must be asked about a DataFrame; got {type(frame).__name__}.")
    return found


def as_classes(classes: Sequence[Any] | None, count: int, what: str) -> Array:
    """The labels of `count` outputs: 0 to C-1 unless the user names them."""
    if classes is None:
        return np.arange(count)
    if isinstance(classes, (str, bytes)) or len(classes) != count:
        got = repr(classes) if isinstance(classes, (str, bytes)) else f"{len(classes)}: {shorten(classes)}"
        raise InputError(f"classes must name the {count} classes of {what}, in its order; got {got}.")
    return label_array(classes)


def label_array(labels: Sequence[Any]) -> Array:
    """Labels as they are: NumPy would turn a mixture into text."""
    listed = list(labels)
    if len({type(label) for label in listed}) == 1:
        found = np.asarray(listed)
        if found.ndim == 1 and found.dtype.kind in "biufU":
            return found
    kept = np.empty(len(listed), dtype=object)
    kept[:] = listed
    return kept


def two_columns(chance: Floats) -> Floats:
    """The chance of the second of two classes as chances of both."""
    return np.stack([1 - chance, chance], axis=1)


def sigmoid(logits: Floats) -> Floats:
    wide = np.asarray(logits, dtype=np.float64)
    small = np.exp(-np.abs(wide))
    return np.asarray(np.where(wide >= 0, 1 / (1 + small), small / (1 + small)))


def softmax(logits: Floats) -> Floats:
    wide = np.asarray(logits, dtype=np.float64)
    raised = np.exp(wide - wide.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def check_chances(chances: Floats, what: str) -> Floats:
    """Chances that lie between 0 and 1 and sum to 1; logits taken for chances are told."""
    within = (chances >= -SUM_ERROR).all() and (np.abs(chances.sum(axis=1) - 1) <= SUM_ERROR * chances.shape[1]).all()
    if not within:
        worst = int(np.abs(chances.sum(axis=1) - 1).argmax())
        raise ModelError(
            f"{what} must give chances that sum to 1 for every row; got {shorten(chances[worst].round(4).tolist(), 3)} "
            "(logits? then say activation='softmax', or 'sigmoid' for one output)."
        )
    return chances


def in_order(frame: pd.DataFrame, names: Sequence[str], what: str) -> pd.DataFrame:
    """The columns a model knows by name, in its order; columns it does not know are left out."""
    if list(frame.columns) == list(names):
        return frame
    own = {str(column): column for column in frame.columns}
    missing = [name for name in names if name not in own]
    if missing:
        raise InputError(f"{what} must be given its column {missing[0]!r}; {unknown_name('column', missing[0], own)}")
    return frame[[own[name] for name in names]]


def with_columns(frame: pd.DataFrame, changed: Mapping[Any, pd.Series]) -> pd.DataFrame:
    """The frame with some columns replaced; the one given stays as it is."""
    if not changed:
        return frame
    return pd.DataFrame({name: changed.get(name, frame[name]) for name in frame.columns}, columns=frame.columns)


def is_text(column: pd.Series) -> bool:
    """Whether a column holds categories in any form, not numbers."""
    dtype = column.dtype
    return isinstance(dtype, pd.CategoricalDtype) or not (
        pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    )


def as_categories(column: pd.Series, categories: Sequence[Any], what: str) -> pd.Series:
    """A column in the categories a model was trained with; a stranger among them is told, never taken for missing."""
    cast = to_categories(column, categories)
    lost = (cast.isna() & column.notna()).to_numpy()
    if lost.any():
        strange = column.iloc[int(lost.argmax())]
        raise InputError(f"{what}: {unknown_name(f'category in column {column.name!r}', strange, categories)}")
    return cast


def to_categories(column: pd.Series, categories: Sequence[Any]) -> pd.Series:
    """The same with strangers as missing values."""
    wanted = pd.CategoricalDtype(pd.Index(categories))
    if column.dtype == wanted:
        return column
    known = pd.Index(categories, dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = np.append(known.get_indexer(column.cat.categories.astype(object)), -1)[column.cat.codes.to_numpy()]
    else:
        places = known.get_indexer(pd.Index(column, dtype=object))
    return pd.Series(pd.Categorical.from_codes(places, dtype=wanted), index=column.index, name=column.name)


def matrix(frame: pd.DataFrame, what: str) -> Floats:
    """All columns as numbers, in the frame's order; missing ones as NaN."""
    return side_by_side([frame[name] for name in frame.columns], what)


def side_by_side(columns: Sequence[pd.Series], what: str) -> Floats:
    """The same of columns that are no frame: making one costs more than all the rest of a small question."""
    words = [is_text(column) for column in columns]
    for column, wordy in zip(columns, words, strict=True):
        if wordy and not _numeric_object(column):
            raise InputError(f"{what} must be given numbers alone; got text in column {column.name!r}.")
    held = [column.astype(object) if wordy else column for column, wordy in zip(columns, words, strict=True)]
    return np.stack([_floats(column) for column in held], axis=1)


def _floats(column: pd.Series) -> Floats:
    """pandas takes many times longer where it is told what to do with missing values, which plain numbers have as NaN."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64))
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _numeric_object(column: pd.Series) -> bool:
    """Categories and plain objects may be numbers all the same."""
    inferred = pd.api.types.infer_dtype(column.astype(object), skipna=True)
    return inferred in ("integer", "floating", "mixed-integer-float", "boolean", "empty")


def type_names(model: Any) -> set[tuple[str, str]]:
    """(package, class) of a model's type and its bases: to know a library's model without importing the library."""
    return {(base.__module__.split(".")[0], base.__name__) for base in type(model).__mro__}
