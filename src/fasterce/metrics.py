"""How good counterfactuals are, on plain tables: anyone's answers can be scored, not only ours."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.predictor import Predictor
from fasterce.profile import Floats, Profile
from fasterce.schema import Schema
from fasterce.search.distance import Distance
from fasterce.table import Table


@dataclass(frozen=True)
class Scale:
    """The training data's ranges and deviations, against which changes are measured."""

    table: Table
    codec: Codec

    @classmethod
    def of(cls, X_train: pd.DataFrame, schema: Schema | None = None) -> "Scale":
        table = Table.like(X_train, schema or Schema.infer(X_train))
        return cls(table, Codec(table.schema, Profile.measure(table.read(X_train).codes, table.schema)))

    def codes(self, rows: pd.DataFrame) -> Floats:
        return self.table.read(rows).codes


def validity(model: object, scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the model's own label differs between each row and its counterfactual."""
    predictor = Predictor(model, scale.table)
    classes = predictor.learn_classes(np.concatenate([scale.codes(rows), scale.codes(counterfactuals)]))
    return np.asarray(classes[: len(rows)] != classes[len(rows) :])


def features_changed(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """Sparsity: how many features differ."""
    return np.asarray((scale.codes(rows) != scale.codes(counterfactuals)).sum(axis=1))


def gower_l1(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
    """Sum over features of |change| / range in the training data, and 1 for a changed category."""
    distance = Distance.gower(scale.codec.profile.span, scale.codec.numeric)
    return distance.total(scale.codes(counterfactuals), scale.codes(rows))


def proximity(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
    """The paper's: Euclidean over continuous features divided by the median absolute deviation, averaged over them,
    plus the share of categories that differ. A feature whose deviation is zero is divided by its standard deviation."""
    change = scale.codes(counterfactuals) - scale.codes(rows)
    numeric, categorical = scale.codec.numeric, scale.codec.categorical
    scaled = change[:, numeric] / scale.codec.profile.mad[numeric]
    continuous = np.sqrt((scaled**2).sum(axis=1)) / max(len(numeric), 1)
    matching = (change[:, categorical] != 0).sum(axis=1) / max(len(categorical), 1)
    return np.asarray(continuous + matching)
