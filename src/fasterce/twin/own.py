"""Models that are their own twins: ONNX sessions and native boosters, fed from codes without a DataFrame on the way.

The same graph in the same blocks, and the same trees, give the same bits: a search on the twin finds what one on the model
would.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.adapters import LightGBMModel, OnnxModel, XGBoostModel
from fasterce.adapters.onnx_inputs import FRACTIONS, NUMBERS, TEXT, is_flat
from fasterce.codec import Indices
from fasterce.errors import ModelError
from fasterce.latent.runtime import threads_for
from fasterce.profile import Floats
from fasterce.table import Table, is_single
from fasterce.twin.engine import Inputs, Prepare, in_parts
from fasterce.twin.front import NoFrontError, TableFront, learn_front


@dataclass(frozen=True)
class Tensor:
    """One input of the model. Column k is feature `features[k]`: a number, or a category to be looked up in `known[k]`."""

    name: str
    features: Indices
    known: tuple[NDArray[Any] | None, ...]
    dtype: Any
    flat: bool

    def of(self, codes: Floats) -> NDArray[Any]:
        if all(words is None for words in self.known):
            found = codes[:, self.features].astype(self.dtype)
        else:
            found = np.empty((len(codes), len(self.features)), dtype=self.dtype)
            for k, (j, words) in enumerate(zip(self.features, self.known, strict=True)):
                found[:, k] = codes[:, j] if words is None else words[codes[:, j].astype(np.intp)]
        return found[:, 0] if self.flat else found


@dataclass(frozen=True)
class TensorsFront:
    """All inputs of a model. Columns of whole numbers cut fractions off, and single-precision ones round, as in a frame."""

    tensors: tuple[Tensor, ...]
    whole: Indices
    single: Indices

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        """The model pads by itself, so that `rows` are as many as there are."""
        held = codes.copy()
        held[:, self.whole] = np.trunc(held[:, self.whole])
        held[:, self.single] = held[:, self.single].astype(np.float32)
        return {tensor.name: tensor.of(held) for tensor in self.tensors}


class SessionEngine:
    """The model's own session, asked for labels or for chances."""

    def __init__(self, model: OnnxModel, chances: bool) -> None:
        self.model = model
        self.chances = chances

    def __reduce__(self) -> tuple[Any, ...]:
        return SessionEngine, (self.model, self.chances)

    def answer(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        return in_parts(lambda part: self._halving(prepare(part, len(part))), codes, self.model.block)

    def _halving(self, fed: Inputs) -> NDArray[Any]:
        """The answers in order; rows the model fails on are told from their neighbours, as the model's own are."""
        rows = len(next(iter(fed.values())))
        try:
            return self.model.chances_of(fed) if self.chances else self.model.labels_of(fed)
        except ModelError:
            if rows == 1:
                return self._failed()
        half = rows // 2
        parts = ({name: tensor[rows_of] for name, tensor in fed.items()} for rows_of in (slice(half), slice(half, None)))
        return np.concatenate([self._halving(part) for part in parts])

    def _failed(self) -> NDArray[Any]:
        return np.full((1, len(self.model.classes_)), np.nan) if self.chances else np.array([None], dtype=object)


class BoosterEngine:
    """A native booster, given a matrix of numbers and places of categories; it gives chances."""

    def __init__(self, model: XGBoostModel | LightGBMModel) -> None:
        self.model = model

    def __reduce__(self) -> tuple[Any, ...]:
        return BoosterEngine, (self.model,)

    def answer(self, prepare: Prepare, codes: Floats) -> NDArray[Any]:
        (matrix,) = prepare(codes, len(codes)).values()
        with threads_for(len(codes)):
            return self.model.respond_to(matrix)


def booster_front(model: XGBoostModel | LightGBMModel, table: Table, codes: Floats) -> TableFront:
    """The matrix a booster makes of a frame, category by category; raises `NoFrontError`."""
    return learn_front(model.ready, table, codes, False)


def session_front(model: OnnxModel, table: Table, codes: Floats) -> TensorsFront:
    """What the model's inputs take of each feature, every category as the model itself is fed it; raises `NoFrontError`."""
    frame = table.frame(_every_category(table, codes))
    with warnings.catch_warnings():
        # What a model is not given was told when it was first asked.
        warnings.simplefilter("ignore")
        fed, plan = model.feed(frame), model.feed.plan(frame)
    # A category the model refuses would fail a whole block of rows.
    model.labels_of(fed)
    numeric = [j for j, feature in enumerate(table.schema.features) if feature.numeric]
    whole = [j for j in numeric if pd.api.types.is_integer_dtype(table.dtypes[j])]
    single = [j for j in numeric if is_single(table.dtypes[j])]
    tensors = tuple(_tensor(held, names, fed[held.name], table) for held, names in plan)
    return TensorsFront(tensors, np.array(whole, dtype=np.intp), np.array(single, dtype=np.intp))


def _every_category(table: Table, codes: Floats) -> Floats:
    """A known row with the categories of all features one after the other, each beginning anew where it has fewer."""
    counts = [len(feature.categories) for feature in table.schema.features if not feature.numeric]
    rows = np.repeat(codes[:1], max(counts, default=1), axis=0)
    for j, feature in enumerate(table.schema.features):
        if not feature.numeric:
            rows[:, j] = np.arange(len(rows)) % len(feature.categories)
    return rows


def _tensor(held: Any, names: Any, fed: NDArray[Any], table: Table) -> Tensor:
    features = [table.schema.position(name) for name in names]
    columns = fed.reshape(len(fed), len(features)).T
    known = tuple(_known(held, table, j, column) for j, column in zip(features, columns, strict=True))
    dtype = object if held.type == TEXT else NUMBERS[held.type]
    return Tensor(held.name, np.array(features, dtype=np.intp), known, dtype, is_flat(held))


def _known(held: Any, table: Table, j: int, column: NDArray[Any]) -> NDArray[Any] | None:
    feature = table.schema.features[j]
    if not feature.numeric:
        return column[: len(feature.categories)].copy()
    if held.type == TEXT:
        raise NoFrontError(f"its input {held.name!r} is text and the column {feature.name!r} numbers")
    if held.type not in FRACTIONS and not feature.integer:
        raise NoFrontError(f"its input {held.name!r} takes whole numbers and the column {feature.name!r} has others")
    return None
