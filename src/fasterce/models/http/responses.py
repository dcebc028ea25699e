"""What a far side answered, read as labels or chances; anything else becomes one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fasterce.adapters.http.client import FarSideError
from fasterce.errors import InputError, shorten
from fasterce.profile import Floats

Gives = Literal["auto", "labels", "chances"]
Columns = Mapping[str, Any]

LABELS = ("label", "prediction", "predictions", "predict", "output_label", "class")
CHANCES = ("probability", "probabilities", "predict_proba", "output_probability", "chances")
SLACK = 1e-6
# Some servers round what they send.
SUM_SLACK = 0.01


@dataclass(frozen=True)
class Told:
    """One batch: a label a row, or chances (N, C), or both; `names` are the classes where the answer itself has them."""

    labels: NDArray[Any] | None
    chances: Floats | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader:
    """Which part of an answer is what. `label` and `chances` are names in it, found out where they are None."""

    classes: tuple[Any, ...] | None
    gives: Gives
    label: str | None = None
    chances: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.gives not in ("auto", "labels", "chances"):
            raise InputError(f"gives must be 'auto', 'labels' or 'chances'; got {self.gives!r}.")
        if self.classes is not None and len(set(self.classes)) < max(len(self.classes), 2):
            raise InputError(f"classes must be at least two different ones; got {shorten(self.classes)}.")

    def read(self, columns: Columns, rows: int) -> Told:
        for name, values in columns.items():
            if not isinstance(values, list) or len(values) != rows:
                got = f"{len(values)} answers" if isinstance(values, list) else f"a {type(values).__name__}"
                raise FarSideError(f"The far side must answer once for every row; got {got} for {rows} rows ({name!r:.40}).")
        label, chances = self._label(columns), self._chances(columns)
        if chances is None and label is None:
            raise FarSideError(
                f"The far side's answer must say which part is the label or the chances (label=, chances=); got the parts "
                f"{shorten(columns, 4)}."
            )
        read = Told(None, None) if chances is None else self._matrix(chances)
        return Told(None if label is None else self._named(_labels(label)), read.chances, read.names)

    def _chances(self, columns: Columns) -> Any:
        if self.gives == "labels":
            return None
        if self.chances is not None:
            wanted = [self.chances] if isinstance(self.chances, str) else list(self.chances)
            _check_there(wanted, columns)
            return columns[wanted[0]] if isinstance(self.chances, str) else _side_by_side(columns, wanted)
        if self.classes is not None and all(str(name) in columns for name in self.classes):
            return _side_by_side(columns, [str(name) for name in self.classes])
        found = next((columns[name] for name in CHANCES if name in columns and _wide(columns[name])), None)
        if found is None:
            found = next((values for values in columns.values() if _wide(values)), None)
        if found is None and self.gives == "chances" and len(columns) == 1:
            found = next(iter(columns.values()))
        if found is None and self.gives == "chances":
            raise FarSideError(f"The far side must answer with chances; got the parts {shorten(columns, 4)}.")
        return found

    def _label(self, columns: Columns) -> Any:
        if self.gives == "chances" and self.label is None:
            return None
        if self.label is not None:
            _check_there([self.label], columns)
            return columns[self.label]
        narrow = {name: values for name, values in columns.items() if not _wide(values)}
        if len(narrow) == 1 and len(columns) <= 2:
            return next(iter(narrow.values()))
        return next((narrow[name] for name in LABELS if name in narrow), None)

    def _matrix(self, values: list[Any]) -> Told:
        """Chances as (N, C); a single one a row is that of the second class."""
        names: tuple[str, ...] = ()
        if isinstance(values[0], dict):
            names = tuple(map(str, self.classes or values[0]))
            if any(not isinstance(row, dict) or set(row) != set(names) for row in values):
                raise FarSideError(f"The far side must give a chance for each of {shorten(names, 4)}; got other names.")
            values = [[row[name] for name in names] for row in values]
        chances = _numbers(values)
        if chances.ndim == 1 or chances.shape[1] == 1:
            second = chances.reshape(len(values))
            chances = np.stack([1.0 - second, second], axis=1)
        if self.classes is not None and chances.shape[1] != len(self.classes):
            raise FarSideError(f"The far side must give {len(self.classes)} chances a row; got {chances.shape[1]}.")
        if (chances < -SLACK).any() or (chances > 1 + SLACK).any():
            raise FarSideError("The far side must give chances between 0 and 1; got other numbers.")
        if (np.abs(chances.sum(axis=1) - 1) > SUM_SLACK).any():
            raise FarSideError("The far side must give chances that sum to 1 for every row; got other sums.")
        return Told(None, chances, names)

    def _named(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Positions as the classes they stand for, where these are not whole numbers themselves."""
        if self.classes is None or all(isinstance(name, int) for name in self.classes):
            return labels
        if labels.dtype.kind in "iuf" and (labels == np.round(labels)).all():
            places = np.clip(labels, -1, len(self.classes)).astype(np.intp)
            if (places < 0).any() or (places >= len(self.classes)).any():
                raise FarSideError(f"The far side must answer a class from 0 to {len(self.classes) - 1}; got another number.")
            named = np.empty(len(places), dtype=object)
            named[:] = [self.classes[place] for place in places]
            return named
        return labels


def _check_there(wanted: Sequence[str], columns: Columns) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise FarSideError(f"The far side's answer must have the part {missing[0]!r}; got {shorten(columns, 4)}.")


def _side_by_side(columns: Columns, names: Sequence[str]) -> list[Any]:
    return list(map(list, zip(*(columns[name] for name in names), strict=True)))


def _wide(values: list[Any]) -> bool:
    """Whether there is more than one value a row."""
    return bool(values) and (isinstance(values[0], dict) or (isinstance(values[0], list) and len(values[0]) > 1))


def _numbers(values: list[Any]) -> Floats:
    try:
        found = np.asarray(values)
    except ValueError:
        raise FarSideError("The far side must give as many chances for every row; got rows of different lengths.") from None
    if found.dtype.kind not in "fiu" or found.ndim > 2 or not np.isfinite(found).all():
        raise FarSideError("The far side must give chances as finite numbers; got something else.")
    return found.astype(np.float64)


def _labels(values: list[Any]) -> NDArray[Any]:
    flat = [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
    kinds = set(map(type, flat))
    if not kinds <= {int, float, bool, str}:
        got = "a missing one" if type(None) in kinds else "something nested"
        raise FarSideError(f"The far side must answer one label or number a row; got {got}.")
    if kinds <= {int, float} or kinds == {bool}:
        return np.array(flat)
    found = np.empty(len(flat), dtype=object)
    found[:] = flat
    return found
