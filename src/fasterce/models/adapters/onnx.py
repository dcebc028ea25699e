"""ONNX models, through ONNX Runtime: one input per column, one matrix, or as you declare."""

import os
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fasterce.data.frames import as_pandas
from fasterce.errors import InputError, MissingExtraError, ModelError, import_extra, problem_of
from fasterce.io.processes import NO_TELEMETRY
from fasterce.models.adapters import base
from fasterce.models.adapters.onnx_inputs import FRACTIONS, NUMBERS, TEXT, Fed, InputFeed, OnnxInput
from fasterce.options import check_choice
from fasterce.typing import Floats, Objects

if TYPE_CHECKING:
    import pandas as pd
    from onnxruntime import InferenceSession

# Log level of ONNX Runtime for fatal errors only.
SILENT = 4
# The prediction for a row must not depend on the others: every run has this many rows, on one thread.
BLOCK = 128
LABELS = (TEXT, "tensor(int64)", "tensor(int32)", "tensor(bool)")
MAPS = "seq(map("
CLASS_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")


class OnnxModel(base.Adapter):
    """A model in an ONNX file, its bytes, or an `InferenceSession` of your own.

    Inputs named like columns get these; the only input of a model gets all columns (or all numbers, where it is as wide), in
    the table's order. One float output per row is a number (a regression) unless classes or an activation are given; then
    it is the probability of the second class.

    Parameters
    ----------
    model : path, bytes or onnxruntime.InferenceSession
        A session made here runs on one thread, so that predictions are reproducible.
    classes : sequence, optional
        The labels in the order of the outputs, where the file does not name them or names them 0, 1, ...
    inputs : mapping, optional
        {input: [columns]} for a model with several inputs that are more than one column wide.
    activation : {"softmax", "sigmoid", None}, default=None
        For a model whose only output is logits; None if it returns probabilities.
    missing_text : str, optional
        Replaces missing text; None refuses it. Missing numbers are NaN.
    """

    def __init__(
        self,
        model: Any,
        *,
        classes: base.Labels | None = None,
        inputs: Mapping[str, Sequence[Hashable]] | None = None,
        activation: base.Activation = None,
        missing_text: str | None = None,
    ) -> None:
        check_choice("activation", activation, base.ACTIVATIONS)
        self.graph = _graph(model)
        self.session: InferenceSession = model if self.graph is None else _start(self.graph)
        self.activation = activation
        self.feed = InputFeed(self.session.get_inputs(), inputs or {}, missing_text)
        self.block = _block(self.feed.inputs)
        self._label, self._score = _outputs(self.session.get_outputs())
        single = _width(self._score) == 1
        numbers = self._label is None and single and classes is None and activation is None
        self._named = None if classes is None else base.label_array(classes)
        self._keys = self._mapped_keys()
        count = len(self._keys) or (2 if single else _width(self._score))
        if self._named is not None and count is not None:
            base.named_classes(self._named.tolist(), count)
        super().__init__(self._own_classes(count) if self._named is None and not numbers else self._named)
        self.predicts_numbers = numbers
        self.has_probabilities &= self._score is not None
        self.by_name = len(self.feed.inputs) > 1

    def __deepcopy__(self, memo: object) -> "OnnxModel":
        return self  # Nothing in it changes, and a session cannot be copied.

    def __reduce__(self) -> tuple[object, ...]:
        if self.graph is None:
            raise TypeError("An OnnxModel of a session cannot be pickled; make it from a path or bytes.")
        make = partial(OnnxModel, inputs=self.feed.given, activation=self.activation, missing_text=self.feed.missing_text)
        return (make if self._classes is None else partial(make, classes=self._classes.tolist())), (self.graph,)

    def predict(self, frame: object) -> Objects:
        """Return one label or number per row."""
        rows = as_pandas(frame, "rows")
        if len(rows) == 0:
            return np.zeros(0, dtype=np.float64 if self.predicts_numbers else object)
        return self.labels_of(self.feed(rows))

    def evaluate(self, frame: "pd.DataFrame") -> Floats:
        return self.probabilities_of(self.feed(frame))

    def labels_of(self, fed: Fed) -> Objects:
        """Return what `predict` does, from the model's inputs."""
        if self.predicts_numbers:
            return _flat(self._run(fed, self._score)[0]).astype(np.float64)
        if self._label is None:
            return self._most_likely(self._as_probabilities(*self._run(fed, self._score)))
        return self._as_labels(*self._run(fed, self._label))

    def probabilities_of(self, fed: Fed) -> Floats:
        """Return what `predict_proba` does, from the model's inputs."""
        return base.check_probabilities(self._as_probabilities(*self._run(fed, self._score)))

    def labels_and_probabilities_of(self, fed: Fed) -> tuple[Objects, Floats]:
        """Return what `predict` and `predict_proba` do, from one run of the model."""
        if self._label is None:
            probabilities = self.probabilities_of(fed)
            return self._most_likely(probabilities), probabilities
        labels, scores = self._run(fed, self._label, self._score)
        return self._as_labels(labels), base.check_probabilities(self._as_probabilities(scores))

    def _most_likely(self, probabilities: Floats) -> Objects:
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def _as_labels(self, output: Objects) -> Objects:
        labels = _flat(output)
        # Labels that are not positions need no names.
        if self._named is None or labels.dtype.kind not in "iub":
            return labels
        return base.labels_at(self._named, labels)

    def _as_probabilities(self, output: Objects) -> Floats:
        return base.as_probabilities(output.astype(np.float64), self.activation, len(self.classes_))

    def _run(self, fed: Fed, *outputs: OnnxInput | None) -> list[Objects]:
        """Return outputs for all rows, computed block by block."""
        names = [output.name for output in outputs if output is not None]
        rows, size = len(next(iter(fed.values()))), self.block
        padding = -rows % size
        if padding:
            fed = {name: np.concatenate([part, part[-1:].repeat(padding, axis=0)]) for name, part in fed.items()}
        blocks = [
            self._run_block({name: part[start : start + size] for name, part in fed.items()}, names)
            for start in range(0, rows + padding, size)
        ]
        found = [[self._read(part) for part in parts] for parts in zip(*blocks, strict=True)]
        for parts in found:
            if any(part.ndim == 0 or len(part) != size for part in parts):
                raise ModelError("models.prediction_count", received=parts[0].shape, rows=size)
        return [np.concatenate(parts)[:rows] for parts in found]

    def _run_block(self, fed: Fed, outputs: list[str]) -> list[object]:
        try:
            return list(self.session.run(outputs, fed))
        except Exception as error:
            raise ModelError("models.onnx_failed", cause=problem_of(error)) from error

    def _read(self, output: object) -> Objects:
        """Return an output as an array; ZipMap's list of dictionaries as columns in the order of the classes."""
        if not isinstance(output, list):
            return np.asarray(output)
        keys = self._keys or self._in_order_of_classes(output[0])
        return np.array([[row[key] for key in keys] for row in output])

    def _in_order_of_classes(self, mapped: Mapping[Hashable, float]) -> list[Hashable]:
        """Return the keys in the order of the named classes; in their own order where the names differ."""
        named = [] if self._named is None else self._named.tolist()
        return named if set(named) == set(mapped) else list(mapped)

    def _own_classes(self, count: int | None) -> Objects | None:
        stored = self._keys or _class_labels(self.graph, count)
        if stored:
            return base.label_array(stored)
        text = self._label is not None and self._label.type == TEXT
        return None if count is None or text else np.arange(count)

    def _mapped_keys(self) -> list[Hashable]:
        """Return the keys of ZipMap's dictionaries, which any row has; none where the scores are an array."""
        if self._score is None or not self._score.type.startswith(MAPS):
            return []
        fed = {tensor.name: _blank(tensor, self.block) for tensor in self.feed.inputs}
        quiet = import_module("onnxruntime").RunOptions()
        quiet.log_severity_level = SILENT
        try:
            return self._in_order_of_classes(self.session.run([self._score.name], fed, quiet)[0][0])
        except Exception:
            return self._in_order_of_classes(dict.fromkeys(_class_labels(self.graph, None) or (), 0.0))


def _flat(output: Objects) -> Objects:
    """Return one value per row; anything else cannot be reshaped."""
    return output.reshape(len(output))


def _blank(tensor: OnnxInput, rows: int) -> Objects:
    """Return a tensor an input takes, of zeros or empty text; one column where the width is open."""
    shape = [rows, *(size if isinstance(size, int) else 1 for size in tensor.shape[1:])]
    if tensor.type == TEXT:
        return np.full(shape, "", dtype=object)
    return np.zeros(shape, dtype=NUMBERS.get(tensor.type, np.float32))


def _graph(model: object) -> bytes | None:
    """Return the bytes of a model; None for a session, from which they cannot be read."""
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, PathLike)):
        try:
            return Path(model).read_bytes()
        except OSError as error:
            raise InputError("models.unreadable_file", cause=problem_of(error)) from error
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return None
    raise InputError("models.not_onnx", option="model", received=type(model).__name__)


def start_session(graph: bytes) -> "InferenceSession":
    """Return a session of one thread, without telemetry."""
    os.environ.setdefault(*NO_TELEMETRY)
    runtime = import_extra("onnxruntime", "onnx", "An ONNX model")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _start(graph: bytes) -> "InferenceSession":
    try:
        return start_session(graph)
    except MissingExtraError:
        raise
    except Exception as error:
        raise ModelError("models.onnx_file", cause=problem_of(error)) from error


def _block(inputs: Sequence[OnnxInput]) -> int:
    """Return the rows per run: as the model fixes them, or `BLOCK`."""
    fixed = {tensor.shape[0] for tensor in inputs if tensor.shape and isinstance(tensor.shape[0], int)}
    return max(1, int(fixed.pop() or 1)) if len(fixed) == 1 else BLOCK


def _outputs(outputs: Sequence[OnnxInput]) -> tuple[OnnxInput | None, OnnxInput | None]:
    """Return the output with labels and the one with probabilities or numbers, by their types; either may be None."""
    labels = [output for output in outputs if output.type in LABELS and _width(output) in (1, None)]
    scores = [output for output in outputs if output.type in FRACTIONS or output.type.startswith(MAPS)]
    likely = [output for output in scores if "prob" in output.name.lower()] or scores
    if not labels and not scores:
        raise ModelError("models.onnx_outputs", received=[f"{output.name} ({output.type})" for output in outputs])
    return labels[0] if labels else None, likely[0] if likely else None


def _width(output: OnnxInput | None) -> int | None:
    """Return the number of values per row of an output, if it declares one."""
    if output is None or output.type.startswith(MAPS):
        return None
    if len(output.shape) == 1:
        return 1
    width = output.shape[-1]
    return width if len(output.shape) == 2 and isinstance(width, int) else None


def _class_labels(graph: bytes | None, count: int | None) -> list[Hashable] | None:
    """Return the labels stored in the graph, if the package `onnx` is installed and they are unambiguous."""
    if graph is None:
        return None
    try:
        onnx = import_module("onnx")
    except ImportError:
        return None
    model = onnx.load_model_from_string(graph)
    found = [_plain(value) for node in model.graph.node for value in _attributes(node)]
    stored = [tensor for tensor in model.graph.initializer if "classes" in tensor.name]
    found += [_plain(onnx.numpy_helper.to_array(tensor).tolist()) for tensor in stored]
    fitting = {tuple(labels) for labels in found if len(labels) > 1 and count in (None, len(labels))}
    return list(fitting.pop()) if len(fitting) == 1 else None


def _attributes(node: Any) -> list[list[bytes] | list[int]]:
    return [list(part.strings) or list(part.ints) for part in node.attribute if part.name in CLASS_LABELS]


def _plain(labels: object) -> list[Hashable]:
    listed = labels if isinstance(labels, list) else [labels]
    return [label.decode() if isinstance(label, bytes) else label for label in listed]
