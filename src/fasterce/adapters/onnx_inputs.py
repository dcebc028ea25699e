"""What an ONNX model is fed: which columns go into which input, and what their values are there."""

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fasterce.adapters.base import Array, is_text, side_by_side
from fasterce.errors import InputError, ModelError, shorten, unknown_name

WHAT = "The ONNX model"
NUMBERS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
TEXT = "tensor(string)"
FRACTIONS = ("tensor(float)", "tensor(double)", "tensor(float16)")

Fed = Mapping[str, Array]
Plan = Sequence[tuple[Any, Sequence[Any]]]


class Feeding:
    """Frames as a model's inputs take them. `given` are the columns the user named for an input, `missing_text` what stands
    for a missing text, None to refuse it."""

    def __init__(self, inputs: Sequence[Any], given: Mapping[str, Sequence[Any]], missing_text: str | None) -> None:
        self.inputs = inputs
        self.given = {name: list(columns) for name, columns in given.items()}
        self.missing_text = missing_text

    def __call__(self, rows: pd.DataFrame) -> Fed:
        """A tensor for every input, one row a row."""
        return {held.name: self._tensor(held, [rows[name] for name in names]) for held, names in self.plan(rows)}

    def plan(self, rows: pd.DataFrame) -> Plan:
        """Every input with the columns it takes, in their order."""
        if len(self.inputs) == 1 and not self.given and not _is_column(self.inputs[0], rows):
            return [(self.inputs[0], list(_only_numbers(rows, self.inputs[0])))]
        own = {str(name): name for name in rows.columns}
        tidy = {re.sub(r"\W", "_", text): name for text, name in own.items()}
        return [(held, self._columns(held, rows, own, tidy)) for held in self.inputs]

    def _columns(self, held: Any, rows: pd.DataFrame, own: Mapping[str, Any], tidy: Mapping[str, Any]) -> Sequence[Any]:
        """The columns named for an input, or the one it is named like."""
        wanted = self.given.get(held.name)
        if wanted is None:
            found = own.get(held.name, tidy.get(held.name))
            if found is None:
                raise InputError(f"{WHAT} must be given its input {held.name!r}; {unknown_name('column', held.name, own)}")
            wanted = [found]
        strangers = [name for name in wanted if name not in rows.columns]
        if strangers:
            raise InputError(unknown_name(f"column for the input {held.name!r}", strangers[0], rows.columns))
        return wanted

    def _tensor(self, held: Any, columns: Sequence[pd.Series]) -> Array:
        width = _width(held)
        if isinstance(width, int) and width != len(columns):
            raise InputError(
                f"{WHAT} must be given {width} columns in its input {held.name!r}; got {len(columns)}: "
                f"{shorten(column.name for column in columns)}."
            )
        if held.type == TEXT:
            found = np.stack([self._text(column, held) for column in columns], axis=1)
        elif held.type in NUMBERS:
            found = _numeric(held, columns)
        else:
            raise ModelError(f"{WHAT} must take tensors of numbers or text; its input {held.name!r} is {held.type}.")
        return found[:, 0] if is_flat(held) else found

    def _text(self, column: pd.Series, held: Any) -> Array:
        values = column.to_numpy(dtype=object)
        absent = pd.isna(values)
        if absent.any() and self.missing_text is None:
            raise InputError(
                f"{WHAT} must not be given missing text, since its input {held.name!r} is text; got some in column "
                f"{column.name!r} (missing_text= says what stands for it)."
            )
        words = np.array([str(value) for value in values], dtype=object)
        words[absent] = self.missing_text
        return words


def is_flat(held: Any) -> bool:
    """Whether an input takes a vector, not a matrix of one column."""
    return len(held.shape) == 1


def _width(held: Any) -> Any:
    return 1 if is_flat(held) or not held.shape else held.shape[1]


def _is_column(held: Any, rows: pd.DataFrame) -> bool:
    return held.name in map(str, rows.columns) and (rows.shape[1] == 1 or _width(held) == 1)


def _only_numbers(rows: pd.DataFrame, held: Any) -> Sequence[Any]:
    """All columns, or the numbers of a mixed table, for a matrix that is as wide as there are numbers."""
    numbers = [name for name in rows.columns if not is_text(rows[name])]
    fits = held.type in NUMBERS and len(held.shape) > 1 and held.shape[1] == len(numbers)
    if not fits or len(numbers) == rows.shape[1]:
        return list(rows.columns)
    left_out = [name for name in rows.columns if name not in numbers]
    warnings.warn(
        f"{WHAT} takes a matrix of {len(numbers)} numbers, so it is not given the text in {shorten(left_out)}: changing it "
        "can change nothing (inputs= says otherwise).",
        UserWarning,
        stacklevel=2,
    )
    return numbers


def _numeric(held: Any, columns: Sequence[pd.Series]) -> Array:
    what = f"{WHAT}'s input {held.name!r} ({held.type})"
    numbers = side_by_side(columns, what)
    if held.type in FRACTIONS:
        return numbers.astype(NUMBERS[held.type])
    absent = np.isnan(numbers).any(axis=0)
    if absent.any():
        raise InputError(
            f"{what} must not be given missing values; got some in column {columns[int(absent.argmax())].name!r}."
        )
    broken = (numbers != np.round(numbers)).any(axis=0)
    if broken.any():
        raise InputError(f"{what} must be given whole numbers; got others in column {columns[int(broken.argmax())].name!r}.")
    return numbers.astype(NUMBERS[held.type])
