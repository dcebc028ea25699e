"""PyTorch modules, on tensors your own function makes of a frame, or on our codec's matrix."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import Any, Literal

import numpy as np
import pandas as pd

from fasterce.adapters.base import Adapter, as_classes, check_chances, sigmoid, softmax, two_columns
from fasterce.codec import Codec
from fasterce.errors import InputError, MissingExtraError, ModelError
from fasterce.profile import Floats, Profile
from fasterce.schema import Schema
from fasterce.table import Table

Activation = Literal["softmax", "sigmoid"] | None
Task = Literal["classification", "regression"]
Inputs = Callable[[pd.DataFrame], Any]

WHAT = "The PyTorch module"
# A matrix product may round differently for one row and for many: every call has this many.
BLOCK = 256


class TorchModel(Adapter):
    """An `nn.Module` asked in evaluation mode and without gradients; the mode it was in is put back.

    Parameters
    ----------
    module : gives one output a row, or one for every class.
    inputs : from a DataFrame to what the module takes: a tensor or array, or a tuple or dictionary of them.
    classes : the labels in the order of the outputs; None for two, 0 and 1.
    activation : what makes chances of the outputs: "softmax" (one output: of that and 0), "sigmoid" (one output), or None
        where they are chances already.
    task : "regression" for a module whose one output is the number it predicts.
    """

    def __init__(
        self,
        module: Any,
        inputs: Inputs,
        *,
        classes: Sequence[Any] | None = None,
        activation: Activation = "softmax",
        task: Task = "classification",
    ) -> None:
        if not callable(inputs):
            raise InputError(f"inputs must be a function from a DataFrame to tensors; got {type(inputs).__name__}.")
        if activation not in ("softmax", "sigmoid", None):
            raise InputError(f"activation must be 'softmax', 'sigmoid' or None; got {activation!r}.")
        if task not in ("classification", "regression"):
            raise InputError(f"task must be 'classification' or 'regression'; got {task!r}.")
        self.module, self.inputs, self.activation = module, inputs, activation
        self._asking = Lock()
        super().__init__(None if task == "regression" else as_classes(classes, len(classes or (0, 1)), WHAT.lower()))

    @classmethod
    def on_matrix(
        cls,
        module: Any,
        encoding: "CodecMatrix | tuple[Schema | None, pd.DataFrame]",
        *,
        classes: Sequence[Any] | None = None,
        activation: Activation = "softmax",
        task: Task = "classification",
    ) -> "TorchModel":
        """A module trained on the matrix of a `CodecMatrix`: numbers standardised, categories one-hot."""
        held = encoding if isinstance(encoding, CodecMatrix) else CodecMatrix(encoding[1], encoding[0])
        return cls(module, held, classes=classes, activation=activation, task=task)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_asking"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._asking = Lock()

    def respond(self, frame: pd.DataFrame) -> Floats:
        outputs = self._forward(frame)
        if outputs.ndim == 2 and outputs.shape[1] == 1:
            outputs = outputs[:, 0]
        if self.answers_numbers:
            if outputs.ndim != 1:
                raise ModelError(f"{WHAT} must give one number a row for a regression; got {outputs.shape[1]}.")
            return outputs
        return self._chances(outputs)

    def _chances(self, outputs: Floats) -> Floats:
        if outputs.ndim == 1:
            found = two_columns(outputs if self.activation is None else sigmoid(outputs))
        elif self.activation == "sigmoid":
            raise ModelError(f"{WHAT} must give one output a row for activation='sigmoid'; got {outputs.shape[1]}.")
        else:
            found = softmax(outputs) if self.activation == "softmax" else outputs
        if found.shape[1] != len(self.classes_):
            raise ModelError(
                f"{WHAT} must give an output for each of {len(self.classes_)} classes; got {found.shape[1]} (name them all "
                "with classes=)."
            )
        return check_chances(found, WHAT) if self.activation is None else found

    def _forward(self, frame: pd.DataFrame) -> Floats:
        torch = _torch()
        rows = len(frame)
        padded = frame.iloc[np.minimum(np.arange(-(-rows // BLOCK) * BLOCK), rows - 1)]
        given = _map(_tensor, self.inputs(padded))
        _check_length(given, len(padded))
        with self._asking, _evaluating(self.module), torch.no_grad():
            parts = [self._part(given, start) for start in range(0, len(padded), BLOCK)]
        return np.concatenate([part.detach().cpu().numpy() for part in parts])[:rows].astype(np.float64)

    def _part(self, given: Any, start: int) -> Any:
        part = _map(lambda tensor: tensor[start : start + BLOCK], given)
        if isinstance(part, Mapping):
            return self.module(**part)
        return self.module(*part) if isinstance(part, tuple) else self.module(part)


class CodecMatrix:
    """From a DataFrame to the matrix our autoencoder sees, as float32: what `TorchModel.on_matrix` is trained on.

    `width` is its number of columns: one a number, one for every category in the training rows.
    """

    def __init__(self, X: pd.DataFrame, schema: Schema | None = None) -> None:
        self.table = Table.like(X, schema or Schema.infer(X))
        codes = self._codes(X)
        self.codec = Codec(self.table.schema, Profile.measure(codes, self.table.schema))
        self.width = self.codec.width

    def __call__(self, frame: pd.DataFrame) -> Any:
        return self.codec.encode(self._codes(frame)).astype(np.float32)

    def _codes(self, frame: pd.DataFrame) -> Floats:
        reading = self.table.read(frame)
        if reading.problems:
            raise InputError(reading.problems[min(reading.problems)])
        return reading.codes


class _evaluating:
    """Evaluation mode for a while; every part of the module gets back the mode it was in."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __enter__(self) -> None:
        self.modes = [(part, part.training) for part in self.module.modules()] if hasattr(self.module, "modules") else []
        if any(training for _, training in self.modes):
            self.module.eval()

    def __exit__(self, *_: object) -> None:
        for part, training in self.modes:
            part.training = training


def _map(function: Callable[[Any], Any], given: Any) -> Any:
    if isinstance(given, Mapping):
        return {name: function(part) for name, part in given.items()}
    return tuple(function(part) for part in given) if isinstance(given, (tuple, list)) else function(given)


def _tensor(part: Any) -> Any:
    """PyTorch warns of arrays it may not write to, as pandas hands them out."""
    kept = part if not isinstance(part, np.ndarray) or part.flags.writeable else part.copy()
    return _torch().as_tensor(kept)


def _check_length(given: Any, rows: int) -> None:
    parts = given.values() if isinstance(given, Mapping) else given if isinstance(given, tuple) else [given]
    for part in parts:
        if part.ndim == 0 or len(part) != rows:
            raise ModelError(f"inputs must give {rows} entries for {rows} rows; got a tensor of shape {tuple(part.shape)}.")


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError("torch", "train", "A PyTorch model") from error
