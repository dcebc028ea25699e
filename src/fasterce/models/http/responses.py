"""The responses of a server, read as labels or probabilities; anything else is a `RemoteModelError`."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fasterce.data.dtypes import plain
from fasterce.errors import InputError
from fasterce.models.adapters.base import label_array, object_array
from fasterce.models.http.client import RemoteModelError
from fasterce.options import check_choice
from fasterce.typing import Floats, Objects

Gives = Literal["auto", "labels", "chances"]
Columns = Mapping[str, list[Any]]

LABELS = ("label", "prediction", "predictions", "predict", "output_label", "class")
CHANCES = ("probability", "probabilities", "predict_proba", "output_probability", "chances")
SLACK = 1e-6
# Some servers round probabilities.
SUM_SLACK = 0.01


@dataclass(frozen=True)
class Response:
    """One batch: labels (N,), or probabilities (N, C), or both; `names` are the classes where the response names them."""

    labels: Objects | None
    chances: Floats | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResponseReader:
    """Reads responses. `label` and `chances` are names of their parts, detected where they are None."""

    classes: Sequence[Hashable] | None = None
    gives: Gives = "auto"
    label: str | None = None
    chances: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_choice("gives", self.gives, ("auto", "labels", "chances"))
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(map(plain, self.classes)))
            if len(set(self.classes)) < max(len(self.classes), 2):
                raise InputError("models.classes_not_distinct", option="classes", received=self.classes)

    @property
    def class_array(self) -> Objects | None:
        """The classes as an array, where text and mixtures are objects; None if they are not known."""
        found = None if self.classes is None else label_array(self.classes)
        return found.astype(object) if found is not None and found.dtype.kind == "U" else found

    def read(self, columns: Columns, rows: int) -> Response:
        """Return the labels and probabilities among the parts of a response."""
        for name, values in columns.items():
            if not isinstance(values, list):
                raise RemoteModelError("models.http_part_type", received=type(values).__name__, part=name)
            if len(values) != rows:
                raise RemoteModelError("models.http_part_length", expected=rows, received=len(values), part=name)
        label, chances = self._label(columns), self._chances(columns)
        if chances is None and label is None:
            raise RemoteModelError("models.http_parts", received=list(columns))
        read = Response(None, None) if chances is None else self._matrix(chances)
        return Response(None if label is None else self._named(_labels(label)), read.chances, read.names)

    def _chances(self, columns: Columns) -> list[object] | None:
        if self.gives == "labels":
            return None
        if self.chances is not None:
            wanted = [self.chances] if isinstance(self.chances, str) else list(self.chances)
            _check_there(wanted, columns)
            return columns[wanted[0]] if isinstance(self.chances, str) else _zipped(columns, wanted)
        if self.classes is not None and all(str(name) in columns for name in self.classes):
            return _zipped(columns, [str(name) for name in self.classes])
        likely = [columns[name] for name in CHANCES if name in columns] + list(columns.values())
        found = next((values for values in likely if _wide(values)), None)
        if found is not None or self.gives == "auto":
            return found
        if len(columns) != 1:
            raise RemoteModelError("models.http_no_probabilities", received=list(columns))
        return likely[-1]

    def _label(self, columns: Columns) -> list[Any] | None:
        if self.gives == "chances" and self.label is None:
            return None
        if self.label is not None:
            _check_there([self.label], columns)
            return columns[self.label]
        narrow = {name: values for name, values in columns.items() if not _wide(values)}
        if len(narrow) == 1 and len(columns) <= 2:
            return next(iter(narrow.values()))
        return next((narrow[name] for name in LABELS if name in narrow), None)

    def _matrix(self, values: list[Any]) -> Response:
        """Return probabilities (N, C); a single one per row is that of the second class."""
        names: tuple[str, ...] = ()
        if isinstance(values[0], dict):
            names = tuple(map(str, self.classes or values[0]))
            if any(not isinstance(row, dict) or set(row) != set(names) for row in values):
                raise RemoteModelError("models.http_class_names", expected=names)
            values = [[row[name] for name in names] for row in values]
        chances = _numbers(values)
        if chances.ndim == 1 or chances.shape[1] == 1:
            second = chances.reshape(len(values))
            chances = np.stack([1.0 - second, second], axis=1)
        if self.classes is not None and chances.shape[1] != len(self.classes):
            raise RemoteModelError("models.http_probability_count", expected=len(self.classes), received=chances.shape[1])
        if ((chances < -SLACK) | (chances > 1 + SLACK)).any():
            raise RemoteModelError("models.http_probability_range")
        if (np.abs(chances.sum(axis=1) - 1) > SUM_SLACK).any():
            raise RemoteModelError("models.http_probability_sum")
        return Response(None, chances, names)

    def _named(self, labels: Objects) -> Objects:
        """Return positions as the classes at them, unless these are whole numbers themselves."""
        if self.classes is None or all(isinstance(name, int) for name in self.classes):
            return labels
        if labels.dtype.kind in "iuf" and (labels == np.round(labels)).all():
            if ((labels < 0) | (labels >= len(self.classes))).any():
                raise RemoteModelError("models.class_position", expected=len(self.classes) - 1)
            return object_array([self.classes[int(place)] for place in labels])
        return labels


def _check_there(wanted: Sequence[str], columns: Columns) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise RemoteModelError("models.http_missing_part", expected=missing[0], received=list(columns))


def _zipped(columns: Columns, names: Sequence[str]) -> list[object]:
    return list(map(list, zip(*(columns[name] for name in names), strict=True)))


def _wide(values: list[object]) -> bool:
    """Return whether there are several values per row."""
    return bool(values) and (isinstance(values[0], dict) or (isinstance(values[0], list) and len(values[0]) > 1))


def _numbers(values: list[object]) -> Floats:
    try:
        found = np.asarray(values)
    except ValueError:
        raise RemoteModelError("models.http_ragged") from None
    if found.dtype.kind not in "fiu" or found.ndim > 2 or not np.isfinite(found).all():
        raise RemoteModelError("models.http_probability_type")
    return found.astype(np.float64)


def _labels(values: list[object]) -> Objects:
    flat = [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
    kinds = set(map(type, flat))
    if not kinds <= {int, float, bool, str}:
        raise RemoteModelError("models.missing_label" if type(None) in kinds else "models.http_nested")
    if kinds <= {int, float} or kinds == {bool}:
        return np.array(flat)
    return object_array(flat)
