"""ONNX models run unchanged, with inputs made without a DataFrame.

The same graph in the same blocks gives the same bits: a search finds what it would with the model.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from fasterce.data.table import Table
from fasterce.errors import FasterCEError, ModelError
from fasterce.models.adapters import OnnxModel
from fasterce.models.adapters.onnx_inputs import FRACTIONS, NUMBERS, TEXT, OnnxInput, is_flat
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import StoredDtypes
from fasterce.models.compiled.session import Inputs, Prepare, in_parts
from fasterce.typing import Floats, Indices, Objects


@dataclass(frozen=True)
class CompiledInput:
    """One input of the model. Column k is feature `features[k]`: a number, or a category looked up in `known[k]`."""

    name: str
    features: Indices
    known: tuple[Objects | None, ...]
    dtype: DTypeLike
    flat: bool

    def of(self, codes: Floats) -> Objects:
        if all(words is None for words in self.known):
            found = codes[:, self.features].astype(self.dtype)
        else:
            found = np.empty((len(codes), len(self.features)), dtype=self.dtype)
            for k, (j, words) in enumerate(zip(self.features, self.known, strict=True)):
                found[:, k] = codes[:, j] if words is None else words[codes[:, j].astype(np.intp)]
        return found[:, 0] if self.flat else found


@dataclass(frozen=True)
class TensorPreprocessor:
    """All inputs of an ONNX model."""

    tensors: tuple[CompiledInput, ...]
    stored: StoredDtypes

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        """Return all inputs; `rows` is the number of codes, since the model pads by itself."""
        values = self.stored.apply(codes)
        return {tensor.name: tensor.of(values) for tensor in self.tensors}


class SessionBackend:
    """The session of an ONNX model, run for labels or for probabilities."""

    def __init__(self, model: OnnxModel, probabilities: bool) -> None:
        self.model = model
        self.probabilities = probabilities

    def __reduce__(self) -> tuple[object, ...]:
        return SessionBackend, (self.model, self.probabilities)

    def run(self, prepare: Prepare, codes: Floats) -> Objects:
        return in_parts(lambda part: self._halving(prepare(part, len(part))), codes, self.model.block)

    def _halving(self, fed: Inputs) -> Objects:
        """Return the outputs in order; rows the model fails on are found by halving, as `Predictor` does."""
        rows = len(next(iter(fed.values())))
        try:
            return self.model.probabilities_of(fed) if self.probabilities else self.model.labels_of(fed)
        except ModelError:
            if rows == 1:
                return self._failed()
        half = rows // 2
        parts = ({name: tensor[rows_of] for name, tensor in fed.items()} for rows_of in (slice(half), slice(half, None)))
        return np.concatenate([self._halving(part) for part in parts])

    def _failed(self) -> Objects:
        return np.full((1, len(self.model.classes_)), np.nan) if self.probabilities else np.array([None], dtype=object)


class DirectModel:
    """An ONNX model evaluated on codes: it gets what it would get from their frame, and runs once for labels and
    probabilities."""

    def __init__(self, model: OnnxModel, preprocessor: TensorPreprocessor) -> None:
        self.model = model
        self.preprocessor = preprocessor

    def __call__(self, codes: Floats) -> tuple[Objects, Floats]:
        """Return labels (N,) and probabilities (N, C)."""
        # Codes are filled up to whole blocks here: that takes less time than for every input.
        padded = np.concatenate([codes, codes[-1:].repeat(-len(codes) % self.model.block, axis=0)])
        labels, probabilities = self.model.labels_and_probabilities_of(self.preprocessor.inputs(padded, len(padded)))
        return labels[: len(codes)], probabilities[: len(codes)]


# The inputs of each model for the table it was used with last, None where it needs frames.
_PREPROCESSORS: WeakKeyDictionary[OnnxModel, tuple[Table, TensorPreprocessor | None]] = WeakKeyDictionary()


def direct_model(model: object, table: Table, codes: Floats) -> DirectModel | None:
    """Return the model for codes of a table; None if a row may hold more than its codes, or the model is another one.

    `codes` has at least one known row.
    """
    if not isinstance(model, OnnxModel) or not model.has_probabilities or not table.is_exact:
        return None
    known = _PREPROCESSORS.get(model)
    if known is None or known[0] is not table:
        known = _PREPROCESSORS[model] = table, _preprocessor_or_none(model, table, codes)
    return None if known[1] is None else DirectModel(model, known[1])


def _preprocessor_or_none(model: OnnxModel, table: Table, codes: Floats) -> TensorPreprocessor | None:
    try:
        return session_preprocessor(model, table, codes[:1]) if len(codes) else None
    except FasterCEError:
        return None


def session_preprocessor(model: OnnxModel, table: Table, codes: Floats) -> TensorPreprocessor:
    """Return how each input of the model is made, with every category as the model receives it; raises `NotCompiledError`."""
    frame = table.frame(_every_category(table, codes))
    with warnings.catch_warnings():
        # The warning about unused columns was given when the model was first evaluated.
        warnings.simplefilter("ignore")
        fed, plan = model.feed(frame), model.feed.plan(frame)
    # A category that the model rejects would fail a whole block of rows.
    model.labels_of(fed)
    tensors = tuple(_tensor(given, names, fed[given.name], table) for given, names in plan)
    return TensorPreprocessor(tensors, StoredDtypes.of(table))


def _every_category(table: Table, codes: Floats) -> Floats:
    """Return a known row with the categories of all features one after the other, repeated where a feature has fewer."""
    counts = [len(feature.categories) for feature in table.schema.features if not feature.numeric]
    rows = np.repeat(codes[:1], max(counts, default=1), axis=0)
    for j, feature in enumerate(table.schema.features):
        if not feature.numeric:
            rows[:, j] = np.arange(len(rows)) % len(feature.categories)
    return rows


def _tensor(given: OnnxInput, names: Sequence[object], fed: Objects, table: Table) -> CompiledInput:
    features = [table.schema.position(name) for name in names]
    columns = fed.reshape(len(fed), len(features)).T
    known = tuple(_categories(given, table, j, column) for j, column in zip(features, columns, strict=True))
    dtype: DTypeLike = object if given.type == TEXT else NUMBERS[given.type]
    return CompiledInput(given.name, np.array(features, dtype=np.intp), known, dtype, is_flat(given))


def _categories(given: OnnxInput, table: Table, j: int, column: Objects) -> Objects | None:
    feature = table.schema.features[j]
    if not feature.numeric:
        return column[: len(feature.categories)].copy()
    if given.type == TEXT:
        raise NotCompiledError("models.compile_text_input", column=feature.name, input=given.name)
    if given.type not in FRACTIONS and not feature.integer:
        raise NotCompiledError("models.compile_whole_input", column=feature.name, input=given.name)
    return None
