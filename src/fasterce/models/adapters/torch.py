"""PyTorch modules, with a user's function from a frame to tensors, or with the matrix of the codec."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema, infer
from fasterce.data.table import Table
from fasterce.errors import InputError, ModelError, import_extra
from fasterce.models.adapters import base
from fasterce.options import check_choice
from fasterce.typing import Floats, Floats32

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

Task = Literal["classification", "regression"]
Inputs = Callable[[pd.DataFrame], Any]

# A matrix product may round differently for one row and for many: every call has this many rows.
BLOCK = 256


class TorchModel(base.Adapter):
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
        classes: base.Labels | None = None,
        activation: base.Activation = "softmax",
        task: Task = "classification",
    ) -> None:
        if not callable(inputs):
            raise InputError("models.torch_inputs", option="inputs", received=type(inputs).__name__)
        check_choice("activation", activation, base.ACTIVATIONS)
        check_choice("task", task, ("classification", "regression"))
        self.module, self.inputs, self.activation = module, inputs, activation
        self._running = Lock()
        super().__init__(None if task == "regression" else base.as_classes(classes, len(classes or (0, 1))))

    @classmethod
    def on_matrix(
        cls, module: "Module", encoding: "CodecMatrix | tuple[Schema | None, pd.DataFrame]", **options: Any
    ) -> "TorchModel":
        """Return an adapter for a module trained on a `CodecMatrix`.

        Parameters
        ----------
        module : torch.nn.Module
            The module.
        encoding : CodecMatrix or (Schema or None, DataFrame)
            The matrix it was trained on, or the schema and the training rows.
        **options
            `classes`, `activation` and `task` of `TorchModel`.

        Returns
        -------
        TorchModel
        """
        matrix = encoding if isinstance(encoding, CodecMatrix) else CodecMatrix(encoding[1], encoding[0])
        return cls(module, matrix, **options)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_running"}

    def __setstate__(self, state: dict[str, object]) -> None:
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
        found = base.as_probabilities(outputs, self.activation, len(self.classes_))
        return base.check_probabilities(found) if self.activation is None else found

    def _forward(self, frame: pd.DataFrame) -> Floats:
        torch = import_extra("torch", "torch", "A PyTorch model")
        rows = len(frame)
        padded = frame.iloc[np.minimum(np.arange(-(-rows // BLOCK) * BLOCK), rows - 1)]
        given = self.inputs(padded)
        named = isinstance(given, Mapping)
        listed = given.values() if named else given if isinstance(given, (tuple, list)) else [given]
        tensors = [_tensor(torch, part, len(padded)) for part in listed]
        found = []
        with self._running, _evaluation_mode(self.module), torch.no_grad():
            for start in range(0, len(padded), BLOCK):
                block = [tensor[start : start + BLOCK] for tensor in tensors]
                output = self.module(**dict(zip(given, block, strict=True))) if named else self.module(*block)
                found.append(output.detach().cpu().numpy())
        return np.concatenate(found)[:rows].astype(np.float64)


class CodecMatrix:
    """Convert a DataFrame to a float32 matrix, the input of `TorchModel.on_matrix`.

    Numbers are standardised and categories one-hot, as for the autoencoder.

    Parameters
    ----------
    X : DataFrame
        The training rows.
    schema : Schema, optional
        By default inferred from `X`.

    Attributes
    ----------
    width : int
        Number of columns of the matrix: one per number and one per category.
    """

    def __init__(self, X: pd.DataFrame, schema: Schema | None = None) -> None:
        self.table = Table.like(X, schema or infer(X))
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
    """Set evaluation mode; restore the mode of every submodule afterwards."""
    modes = [(part, part.training) for part in module.modules()] if hasattr(module, "modules") else []
    if any(training for _, training in modes):
        module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _tensor(torch: ModuleType, part: object, rows: int) -> "Tensor":
    """Return a tensor with one entry per row; PyTorch warns about read-only arrays, which pandas returns."""
    kept = part if not isinstance(part, np.ndarray) or part.flags.writeable else part.copy()
    found: Tensor = torch.as_tensor(kept)
    if found.ndim == 0 or len(found) != rows:
        raise ModelError("models.tensor_rows", expected=rows, received=tuple(found.shape))
    return found
