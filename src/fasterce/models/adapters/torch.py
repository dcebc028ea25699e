"""PyTorch modules, given tensors a function of yours makes from a frame, or the codec's matrix."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.errors import InputError, MissingExtraError, ModelError
from fasterce.models.adapters.base import (
    Activation,
    Adapter,
    Labels,
    as_classes,
    as_probabilities,
    check_activation,
    check_probabilities,
)
from fasterce.typing import Floats, Floats32

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Task = Literal["classification", "regression"]
Inputs = Callable[[pd.DataFrame], Any]

# A matrix product may round differently for one row and for many: every call has this many rows.
BLOCK = 256


class TorchModel(Adapter):
    """An `nn.Module`, evaluated without gradients in evaluation mode; its mode is restored afterwards.

    Parameters
    ----------
    module : torch.nn.Module
        Returns one output per row, or one per row and class.
    inputs : callable
        From a DataFrame to what the module takes: a tensor or array, or a tuple or dictionary of them.
    classes : sequence, optional
        The labels in the order of the outputs; 0 and 1 by default.
    activation : {"softmax", "sigmoid", None}, default="softmax"
        What turns outputs into probabilities. "softmax" of one output is that of it and 0; None if they are probabilities.
    task : {"classification", "regression"}, default="classification"
        "regression" for a module whose one output is the number it predicts.
    """

    def __init__(
        self,
        module: "Module",
        inputs: Inputs,
        *,
        classes: Labels | None = None,
        activation: Activation = "softmax",
        task: Task = "classification",
    ) -> None:
        if not callable(inputs):
            raise InputError("models.torch_inputs", option="inputs", received=type(inputs).__name__)
        check_activation(activation)
        if task not in ("classification", "regression"):
            expected = ("classification", "regression")
            raise InputError("options.unknown_choice", option="task", expected=expected, received=task)
        self.module, self.inputs, self.activation = module, inputs, activation
        self._running = Lock()
        super().__init__(None if task == "regression" else as_classes(classes, len(classes or (0, 1))))

    @classmethod
    def on_matrix(
        cls,
        module: "Module",
        encoding: "CodecMatrix | tuple[Schema | None, pd.DataFrame]",
        *,
        classes: Labels | None = None,
        activation: Activation = "softmax",
        task: Task = "classification",
    ) -> "TorchModel":
        """Return an adapter for a module trained on a `CodecMatrix`: numbers standardised, categories one-hot."""
        matrix = encoding if isinstance(encoding, CodecMatrix) else CodecMatrix(encoding[1], encoding[0])
        return cls(module, matrix, classes=classes, activation=activation, task=task)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_running"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._running = Lock()

    def evaluate(self, frame: pd.DataFrame) -> Floats:
        outputs = self._forward(frame)
        if outputs.ndim == 2 and outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        if self.predicts_numbers:
            if outputs.ndim != 1:
                raise ModelError("models.one_output", received=outputs.shape[1])
            return outputs
        found = as_probabilities(outputs, self.activation, len(self.classes_))
        return check_probabilities(found) if self.activation is None else found

    def _forward(self, frame: pd.DataFrame) -> Floats:
        torch = _torch()
        rows = len(frame)
        padded = frame.iloc[np.minimum(np.arange(-(-rows // BLOCK) * BLOCK), rows - 1)]
        given = _map(_tensor, self.inputs(padded))
        _check_length(given, len(padded))
        with self._running, _evaluation_mode(self.module), torch.no_grad():
            parts = [self._part(given, start) for start in range(0, len(padded), BLOCK)]
        return np.concatenate([part.detach().cpu().numpy() for part in parts])[:rows].astype(np.float64)

    def _part(self, given: Any, start: int) -> "Tensor":
        part = _map(lambda tensor: tensor[start : start + BLOCK], given)
        if isinstance(part, Mapping):
            return self.module(**part)
        return self.module(*part) if isinstance(part, tuple) else self.module(part)


class CodecMatrix:
    """Turns a DataFrame into the matrix the autoencoder gets, as float32: the input of `TorchModel.on_matrix`.

    `width` is its number of columns: one per number and one per category in the training rows.
    """

    def __init__(self, X: pd.DataFrame, schema: Schema | None = None) -> None:
        self.table = Table.like(X, schema or Schema.infer(X))
        codes = self._codes(X)
        self.codec = Codec(self.table.schema, Profile.measure(codes, self.table.schema))
        self.width = self.codec.width

    def __call__(self, frame: pd.DataFrame) -> Floats32:
        return self.codec.encode(self._codes(frame)).astype(np.float32)

    def _codes(self, frame: pd.DataFrame) -> Floats:
        reading = self.table.read(frame)
        if reading.first_problem is not None:
            raise InputError(reading.first_problem)
        return reading.codes


@contextmanager
def _evaluation_mode(module: "Module") -> Iterator[None]:
    """Evaluation mode; afterwards every part of the module has the mode it had."""
    modes = [(part, part.training) for part in module.modules()] if hasattr(module, "modules") else []
    if any(training for _, training in modes):
        module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _map(function: Callable[[Any], Any], given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: function(part) for name, part in given.items()}
    return tuple(function(part) for part in given) if isinstance(given, (tuple, list)) else function(given)


def _tensor(part: object) -> "Tensor":
    """Return a tensor; PyTorch warns about read-only arrays, which pandas returns."""
    kept = part if not isinstance(part, np.ndarray) or part.flags.writeable else part.copy()
    found: Tensor = _torch().as_tensor(kept)
    return found


def _check_length(given: Any, rows: int) -> None:
    parts = given.values() if isinstance(given, Mapping) else given if isinstance(given, tuple) else [given]
    for part in parts:
        if part.ndim == 0 or len(part) != rows:
            raise ModelError("models.tensor_rows", expected=rows, received=tuple(part.shape))


def _torch() -> ModuleType:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError("torch", "train", "A PyTorch model") from error
