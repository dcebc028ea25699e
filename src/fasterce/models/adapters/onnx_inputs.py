"""Inputs of an ONNX model: which columns go into which input, and their values there."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pandas as pd

from fasterce.errors import InputError, ModelError, unknown, warn
from fasterce.models.adapters.base import is_text, matrix
from fasterce.typing import Objects

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

Fed = Mapping[str, Objects]


class OnnxInput(Protocol):
    """What is used of an input or output of an ONNX session."""

    name: str
    type: str
    shape: list[int | str | None]


Plan = Sequence[tuple[OnnxInput, Sequence[Hashable]]]


class InputFeed:
    """Turns frames into a model's inputs.

    Parameters
    ----------
    inputs : sequence
        The inputs the session declares.
    given : mapping
        The columns the user named per input.
    missing_text : str or None
        Replaces missing text; None refuses it.
    """

    def __init__(
        self, inputs: Sequence[OnnxInput], given: Mapping[str, Sequence[Hashable]], missing_text: str | None
    ) -> None:
        self.inputs = inputs
        self.given = {name: list(columns) for name, columns in given.items()}
        self.missing_text = missing_text

    def __call__(self, rows: pd.DataFrame) -> Fed:
        """Return one tensor per input."""
        return {tensor.name: self._tensor(tensor, [rows[name] for name in names]) for tensor, names in self.plan(rows)}

    def plan(self, rows: pd.DataFrame) -> Plan:
        """Return every input with the columns it takes, in their order."""
        if len(self.inputs) == 1 and not self.given and not _is_column(self.inputs[0], rows):
            return [(self.inputs[0], list(_only_numbers(rows, self.inputs[0])))]
        own = {str(name): name for name in rows.columns}
        by_name = {re.sub(r"\W", "_", text): name for text, name in own.items()} | own
        return [(tensor, self._columns(tensor, rows, by_name)) for tensor in self.inputs]

    def _columns(self, tensor: OnnxInput, rows: pd.DataFrame, by_name: Mapping[str, Hashable]) -> Sequence[Hashable]:
        """Return the columns the user named for an input, or the column of its name, as written or with underscores."""
        wanted = self.given.get(tensor.name)
        if wanted is None:
            if tensor.name not in by_name:
                raise InputError(unknown("models.missing_column", tensor.name, map(str, rows.columns), library="ONNX"))
            return [by_name[tensor.name]]
        missing = [name for name in wanted if name not in rows.columns]
        if missing:
            raise InputError(unknown("models.unknown_input_column", missing[0], rows.columns, input=tensor.name))
        return wanted

    def _tensor(self, tensor: OnnxInput, columns: Sequence[pd.Series]) -> Objects:
        width = _width(tensor)
        if isinstance(width, int) and width != len(columns):
            names = [column.name for column in columns]
            raise InputError("models.input_width", expected=width, received=names, input=tensor.name, count=len(names))
        if tensor.type == TEXT:
            found = np.stack([self._text(column, tensor) for column in columns], axis=1)
        elif tensor.type in NUMBERS:
            found = _numeric(tensor, columns)
        else:
            raise ModelError("models.input_type", received=tensor.type, input=tensor.name)
        return found[:, 0] if is_flat(tensor) else found

    def _text(self, column: pd.Series, tensor: OnnxInput) -> Objects:
        values = column.to_numpy(dtype=object)
        absent = pd.isna(values)
        if absent.any() and self.missing_text is None:
            raise InputError("models.missing_text", column=column.name, input=tensor.name)
        words = np.array([str(value) for value in values], dtype=object)
        words[absent] = self.missing_text
        return words


def is_flat(tensor: OnnxInput) -> bool:
    """Return whether an input takes a vector, not a matrix of one column."""
    return len(tensor.shape) == 1


def _width(tensor: OnnxInput) -> int | str | None:
    return 1 if is_flat(tensor) or not tensor.shape else tensor.shape[1]


def _is_column(tensor: OnnxInput, rows: pd.DataFrame) -> bool:
    return tensor.name in map(str, rows.columns) and (rows.shape[1] == 1 or _width(tensor) == 1)


def _only_numbers(rows: pd.DataFrame, tensor: OnnxInput) -> Sequence[Hashable]:
    """Return all columns, or for a matrix as wide as the table has numeric columns, these."""
    numbers = [name for name in rows.columns if not is_text(rows[name])]
    fits = tensor.type in NUMBERS and len(tensor.shape) > 1 and tensor.shape[1] == len(numbers)
    if not fits or len(numbers) == rows.shape[1]:
        return list(rows.columns)
    left_out = [name for name in rows.columns if name not in numbers]
    warn("models.text_unused", expected=len(numbers), received=left_out)
    return numbers


def _numeric(tensor: OnnxInput, columns: Sequence[pd.Series]) -> Objects:
    numbers = matrix(columns, "ONNX")
    if tensor.type in FRACTIONS:
        return numbers.astype(NUMBERS[tensor.type])
    absent = np.isnan(numbers).any(axis=0)
    if absent.any():
        raise InputError("models.missing_in_input", column=columns[int(absent.argmax())].name, input=tensor.name)
    broken = (numbers != np.round(numbers)).any(axis=0)
    if broken.any():
        raise InputError("models.fraction_in_input", column=columns[int(broken.argmax())].name, input=tensor.name)
    return numbers.astype(NUMBERS[tensor.type])
