"""How good counterfactuals are, on plain tables: anyone's answers can be scored, not only ours."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from fasterce.codec import Codec
from fasterce.predictor import Predictor
from fasterce.profile import Floats, Profile
from fasterce.schema import MISSING, Schema
from fasterce.search.distance import Distance
from fasterce.table import Table

MOST_REAL_ROWS = 2000
NEIGHBOURS = 20


@dataclass(frozen=True)
class Scale:
    """The training data's ranges and deviations, against which changes are measured."""

    table: Table
    codec: Codec

    @classmethod
    def of(cls, X_train: pd.DataFrame, schema: Schema | None = None) -> "Scale":
        """Measured on training rows; the schema is inferred where none is given."""
        table = Table.like(X_train, schema or Schema.infer(X_train))
        return cls(table, Codec(table.schema, Profile.measure(table.read(X_train).codes, table.schema)))

    def codes(self, rows: pd.DataFrame) -> Floats:
        """Rows as one number a feature."""
        return self.table.read(rows).codes

    def embed(self, rows: pd.DataFrame) -> Floats:
        """Numbers / range and categories one-hot / 2: the Manhattan distance of two rows is their `gower_l1`.

        A missing number stands at the median, 1 away from all that are there: `gower_l1` and the way to the median.
        """
        codes, numeric = self.codes(rows), self.codec.numeric
        halves = {j: np.eye(self.table.schema.features[j].states) / 2 for j in self.codec.categorical}
        one_hot = [half[codes[:, j].astype(np.intp)] for j, half in halves.items()]
        absent = (codes[:, self.codec.gappy] == MISSING).astype(np.float64)
        numbers = np.where(codes == MISSING, self.codec.profile.median, codes)[:, numeric]
        return np.hstack([numbers / self.codec.profile.span[numeric], *one_hot, absent])


@dataclass(frozen=True)
class Peers:
    """Training rows that have the wanted prediction: what a realistic counterfactual looks like."""

    scale: Scale
    embedded: Floats

    @classmethod
    def of(cls, model: object, scale: Scale, X_train: pd.DataFrame, wanted: object) -> "Peers":
        """The training rows the model answers with `wanted`."""
        labels = Predictor(model, scale.table).learn_classes(scale.codes(X_train))
        return cls(scale, scale.embed(X_train[np.asarray(labels == wanted)]))

    @cached_property
    def neighbours(self) -> Any:
        """A search for the nearest of them."""
        return NearestNeighbors(metric="manhattan").fit(self.embedded)

    @cached_property
    def outliers(self) -> Any:
        """A local outlier factor fitted on them."""
        few = min(NEIGHBOURS, len(self.embedded) - 1)
        return LocalOutlierFactor(few, metric="manhattan", novelty=True).fit(self.embedded)

    @cached_property
    def usual_distance(self) -> float:
        """Mean distance from one of them to the nearest other: of all, or of a few thousand drawn with a fixed seed."""
        drawn = np.random.default_rng(0).permutation(len(self.embedded))[:MOST_REAL_ROWS]
        nearest, _ = self.neighbours.kneighbors(self.embedded[drawn], 2)
        return float(nearest[:, 1].mean())


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
    distance = Distance.gower(scale.codec.profile.span, scale.codec.numeric, scale.codec.gappy)
    return distance.total(scale.codes(counterfactuals), scale.codes(rows))


def proximity(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
    """The paper's: Euclidean over continuous features divided by the median absolute deviation, averaged over them,
    plus the share of categories that differ. A feature whose deviation is zero is divided by its standard deviation; a
    number that goes missing or is filled counts as a category."""
    after, before = scale.codes(counterfactuals), scale.codes(rows)
    change, flipped = after - before, (after == MISSING) != (before == MISSING)
    numeric, categorical = scale.codec.numeric, scale.codec.categorical
    scaled = np.where(flipped, 0.0, change)[:, numeric] / scale.codec.profile.mad[numeric]
    continuous = np.sqrt((scaled**2).sum(axis=1)) / max(len(numeric), 1)
    differing = (change[:, categorical] != 0).sum(axis=1) + flipped[:, numeric].sum(axis=1)
    matching = differing / max(len(categorical), 1)
    return np.asarray(continuous + matching)


def nn_ratio(peers: Peers, counterfactuals: pd.DataFrame) -> float:
    """Mean distance to the nearest training row with the wanted prediction, divided by the same for such rows themselves.

    Below 1 is nearer to real rows than these are to each other. Not a number if all of them have a twin.
    """
    nearest, _ = peers.neighbours.kneighbors(peers.scale.embed(counterfactuals), 1)
    return float(nearest.mean() / peers.usual_distance) if peers.usual_distance > 0 else float("nan")


def inlier(peers: Peers, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the local outlier factor, fitted on training rows with the wanted prediction, takes each for one of them."""
    return np.asarray(peers.outliers.predict(peers.scale.embed(counterfactuals)) == 1)
