"""ONNX models, through ONNX Runtime: one input a column, one matrix, or what you say."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from os import PathLike, fspath
from typing import Any

import numpy as np

from fasterce.adapters.base import (
    Array,
    as_classes,
    as_pandas,
    check_chances,
    label_array,
    sigmoid,
    softmax,
    two_columns,
)
from fasterce.adapters.onnx_inputs import FRACTIONS, NUMBERS, TEXT, WHAT, Fed, Feeding
from fasterce.adapters.torch import Activation
from fasterce.errors import InputError, MissingExtraError, ModelError, shorten
from fasterce.profile import Floats

SILENT = 4
# A row's answer must not depend on its company: every run has this many rows, on one thread.
BLOCK = 128
LABELS = (TEXT, "tensor(int64)", "tensor(int32)", "tensor(bool)")
MAPS = "seq(map("
CLASS_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")


class OnnxModel:
    """A model in an ONNX file, its bytes, or an `InferenceSession` of your own.

    Inputs named like columns get these; the only input of a model gets all columns (or all numbers, where it is as wide), in
    the table's order. One float output a row is a number (a regression) unless classes or an activation are given; then it is
    the second class's chance.

    Parameters
    ----------
    model : a path, bytes, or a session. A session made here runs on one thread, so that a row's answer is always the same.
    classes : the labels in the order of the outputs, where the file does not tell them or tells 0, 1, …
    inputs : {input: [columns]} for a model with several inputs that are more than one column wide.
    activation : "softmax" or "sigmoid" where the only output is logits; None where it is chances.
    missing_text : what a missing text is for the model; None refuses it. Missing numbers are NaN.
    """

    def __init__(
        self,
        model: Any,
        *,
        classes: Sequence[Any] | None = None,
        inputs: Mapping[str, Sequence[Any]] | None = None,
        activation: Activation = None,
        missing_text: str | None = None,
    ) -> None:
        if activation not in ("softmax", "sigmoid", None):
            raise InputError(f"activation must be 'softmax', 'sigmoid' or None; got {activation!r}.")
        self._graph = _graph(model)
        self.session = model if self._graph is None else _start(self._graph)
        self._activation = activation
        self.feed = Feeding(self.session.get_inputs(), inputs or {}, missing_text)
        self.block = _block(self.feed.inputs)
        self._label, self._score = _outputs(self.session.get_outputs())
        self._read_classes(classes)

    def __deepcopy__(self, memo: Any) -> "OnnxModel":
        return self  # Nothing in it changes, and a session cannot be copied.

    def __reduce__(self) -> tuple[Any, ...]:
        if self._graph is None:
            raise TypeError("An OnnxModel of a session cannot be pickled; make it from a path or bytes.")
        named = None if self._classes is None else self._classes.tolist()
        return _again, (self._graph, named, self.feed.given, self._activation, self.feed.missing_text)

    @property
    def by_name(self) -> bool:
        return len(self.feed.inputs) > 1

    @property
    def answers_numbers(self) -> bool:
        return self._numbers

    @property
    def classes_(self) -> Array:
        if self._classes is None:
            raise AttributeError("classes_: the model does not tell its classes")
        return self._classes

    @property
    def predict_proba(self) -> Callable[[Any], Floats]:
        if self._score is None or self._classes is None or self._numbers:
            raise AttributeError("predict_proba: the model has no chances, or does not tell of which classes")
        return self._ask_chances

    def predict(self, frame: Any) -> Array:
        rows = as_pandas(frame)
        if len(rows) == 0:
            return self._none()
        return self.labels_of(self.feed(rows))

    def _none(self) -> Array:
        if self._numbers:
            return np.zeros(0)
        return np.zeros(0, dtype=object) if self._classes is None else self._classes[:0]

    def labels_of(self, fed: Fed) -> Array:
        """What `predict` answers, of what the inputs are fed."""
        if self._numbers:
            return _flat(self._run(fed, self._score)).astype(np.float64)
        if self._label is None:
            return np.asarray(self.classes_[self._raw_chances(fed).argmax(axis=1)])
        labels = _flat(self._run(fed, self._label))
        return labels if self._named is None else self._names(labels)

    def chances_of(self, fed: Fed) -> Floats:
        """What `predict_proba` answers, of what the inputs are fed."""
        return check_chances(self._raw_chances(fed), WHAT)

    def _names(self, labels: Array) -> Array:
        """Labels 0 to C-1 by the names the user gave; other labels are the user's already."""
        assert self._named is not None
        if labels.dtype.kind not in "iub":
            return labels
        places = labels.astype(np.intp)
        if len(places) and (places.min() < 0 or places.max() >= len(self._named)):
            raise ModelError(f"{WHAT} must answer 0 to {len(self._named) - 1} for the classes named; got {places.max()}.")
        return self._named[places]

    def _ask_chances(self, frame: Any) -> Floats:
        rows = as_pandas(frame)
        return np.zeros((0, len(self.classes_))) if len(rows) == 0 else self.chances_of(self.feed(rows))

    def _raw_chances(self, fed: Fed) -> Floats:
        found = self._run(fed, self._score).astype(np.float64)
        if found.ndim == 1 or found.shape[1] == 1:
            flat = _flat(found)
            return two_columns(sigmoid(flat) if self._activation else flat)
        if self._activation == "sigmoid":
            raise ModelError(f"{WHAT} must give one output a row for activation='sigmoid'; got {found.shape[1]}.")
        if found.shape[1] != len(self.classes_):
            raise ModelError(f"{WHAT} must give a chance for each of {len(self.classes_)} classes; got {found.shape[1]}.")
        return softmax(found) if self._activation == "softmax" else found

    def _run(self, fed: Fed, output: Any) -> Array:
        """One output for all rows, block by block."""
        rows, size = len(next(iter(fed.values()))), self.block
        padding = -rows % size
        if padding:
            fed = {name: np.concatenate([part, part[-1:].repeat(padding, axis=0)]) for name, part in fed.items()}
        found = [
            self._read(self._ask({name: part[start : start + size] for name, part in fed.items()}, output))
            for start in range(0, rows + padding, size)
        ]
        if any(part.ndim == 0 or len(part) != size for part in found):
            raise ModelError(
                f"{WHAT} must answer once for every row; got an output of shape {found[0].shape} for {size} rows."
            )
        return np.concatenate(found)[:rows]

    def _ask(self, fed: Mapping[str, Array], output: Any) -> Any:
        try:
            return self.session.run([output.name], fed)[0]
        except Exception as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"{WHAT} cannot answer: {said[0][:300].rstrip('.')}.") from error

    def _read(self, answer: Any) -> Array:
        """ZipMap's list of dictionaries as columns in the order of the classes."""
        if not isinstance(answer, list):
            return np.asarray(answer)
        keys = self._keys or self._in_order_of_classes(answer[0])
        return np.array([[row[key] for key in keys] for row in answer])

    def _in_order_of_classes(self, mapped: Mapping[Any, float]) -> list[Any]:
        """The keys as the classes are named; in their own order where the names are others."""
        named = [] if self._named is None else self._named.tolist()
        return named if set(named) == set(mapped) else list(mapped)

    def _read_classes(self, classes: Sequence[Any] | None) -> None:
        """What the outputs are chances of: as named, as the graph says, or 0, 1, …"""
        single = _width(self._score) == 1
        self._numbers = self._label is None and single and classes is None and self._activation is None
        self._named = None if classes is None else label_array(classes)
        count = 2 if single else _width(self._score)
        mapped = self._score is not None and self._score.type.startswith(MAPS)
        self._keys = self._mapped_keys() if mapped else []
        if mapped:
            count = len(self._keys) or None
        if self._named is not None and count is not None:
            as_classes(self._named.tolist(), count, WHAT.lower())
        self._classes = self._named if self._named is not None else None if self._numbers else self._own_classes(count)

    def _own_classes(self, count: int | None) -> Array | None:
        stored = self._keys or _class_labels(self._graph, count)
        if stored:
            return label_array(stored)
        text = self._label is not None and self._label.type == TEXT
        return None if count is None or text else np.arange(count)

    def _mapped_keys(self) -> list[Any]:
        """The keys of ZipMap's dictionaries: any row shows them."""
        fed = {held.name: _blank(held, self.block) for held in self.feed.inputs}
        quiet = import_module("onnxruntime").RunOptions()
        quiet.log_severity_level = SILENT
        try:
            return self._in_order_of_classes(self.session.run([self._score.name], fed, quiet)[0][0])
        except Exception:
            return self._in_order_of_classes(dict.fromkeys(_class_labels(self._graph, None) or (), 0.0))


def _flat(answers: Array) -> Array:
    """One value a row; anything else cannot be reshaped."""
    return answers.reshape(len(answers))


def _blank(held: Any, rows: int) -> Array:
    """A tensor an input takes, of zeros or empty text; where a width is open, one column."""
    shape = [rows, *(size if isinstance(size, int) else 1 for size in held.shape[1:])]
    return (
        np.full(shape, "", dtype=object) if held.type == TEXT else np.zeros(shape, dtype=NUMBERS.get(held.type, np.float32))
    )


def _again(
    graph: bytes, classes: Any, inputs: Mapping[str, Sequence[Any]], activation: Activation, missing_text: str | None
) -> OnnxModel:
    return OnnxModel(graph, classes=classes, inputs=inputs, activation=activation, missing_text=missing_text)


def _graph(model: Any) -> bytes | None:
    """The bytes of a model; None for a session, which keeps them to itself."""
    if isinstance(model, (bytes, bytearray)):
        return bytes(model)
    if isinstance(model, (str, PathLike)):
        try:
            with open(fspath(model), "rb") as file:
                return file.read()
        except OSError as error:
            raise InputError(f"The ONNX file must be readable; got {error}.") from error
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    if hasattr(model, "get_inputs") and hasattr(model, "run"):
        return None
    raise InputError(f"model must be a path, bytes or an InferenceSession; got {type(model).__name__}.")


def _start(graph: bytes) -> Any:
    try:
        runtime = import_module("onnxruntime")
    except ImportError as error:
        raise MissingExtraError("onnxruntime", "onnx", "An ONNX model") from error
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = SILENT
    try:
        return runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(f"The file must be an ONNX model; ONNX Runtime says: {said[0][:200].rstrip('.')}.") from error


def _block(inputs: Sequence[Any]) -> int:
    """Rows a run: what the model fixes, or ours."""
    fixed = {held.shape[0] for held in inputs if held.shape and isinstance(held.shape[0], int)}
    return max(1, fixed.pop()) if len(fixed) == 1 else BLOCK


def _outputs(outputs: Sequence[Any]) -> tuple[Any, Any]:
    """The label's output and the one of chances or numbers, by their types; either may be None."""
    labels = [held for held in outputs if held.type in LABELS and _width(held) in (1, None)]
    scores = [held for held in outputs if held.type in FRACTIONS or held.type.startswith(MAPS)]
    likely = [held for held in scores if "prob" in held.name.lower()] or scores
    if not labels and not scores:
        shown = shorten([f"{held.name} ({held.type})" for held in outputs])
        raise ModelError(f"{WHAT} must have an output of labels, chances or numbers; got {shown}.")
    return labels[0] if labels else None, likely[0] if likely else None


def _width(output: Any) -> int | None:
    """How many values a row an output has, if it says so."""
    if output is None or output.type.startswith(MAPS):
        return None
    if len(output.shape) == 1:
        return 1
    width = output.shape[-1]
    return width if len(output.shape) == 2 and isinstance(width, int) else None


def _class_labels(graph: bytes | None, count: int | None) -> list[Any] | None:
    """The labels a classifier inside the graph holds, if the package `onnx` is there to read it and they are beyond doubt."""
    if graph is None:
        return None
    try:
        onnx = import_module("onnx")
    except ImportError:
        return None
    model = onnx.load_model_from_string(graph)
    found = [_plain(value) for node in model.graph.node for value in _attributes(node)]
    found += [_plain(onnx.numpy_helper.to_array(held).tolist()) for held in model.graph.initializer if "classes" in held.name]
    fitting = {tuple(labels) for labels in found if len(labels) > 1 and count in (None, len(labels))}
    return list(fitting.pop()) if len(fitting) == 1 else None


def _attributes(node: Any) -> list[Any]:
    held = [part for part in node.attribute if part.name in CLASS_LABELS]
    return [list(part.strings) or list(part.ints) for part in held]


def _plain(labels: Any) -> list[Any]:
    listed = labels if isinstance(labels, list) else [labels]
    return [label.decode() if isinstance(label, bytes) else label for label in listed]
