"""How good counterfactuals are, on plain tables: anyone's answers can be scored, not only ours."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from fasterce.codec import Codec
from fasterce.constraints import Rule
from fasterce.predictor import Predictor
from fasterce.profile import Floats, Profile
from fasterce.rules import Permitted, Rules
from fasterce.schema import MISSING, Schema
from fasterce.search.distance import Distance
from fasterce.table import Table

MOST_REAL_ROWS = 2000
NEIGHBOURS = 20
VOTERS = 5
SHAKES = 50
SHAKEN = 0.05

Mask = NDArray[np.bool_]


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

    def shares(self, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
        """Each feature's change (N, features): |change| / range, and 1 for a category that changes or a gap that closes or
        opens. Their sum is `gower_l1`."""
        after, before = self.codes(counterfactuals), self.codes(rows)
        flat = (after != before).astype(np.float64)
        gapped = (after == MISSING) != (before == MISSING)
        numeric = np.isin(np.arange(after.shape[1]), self.codec.numeric)
        return np.where(numeric & ~gapped, np.abs(after - before) / self.codec.profile.span, flat)

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


@dataclass(frozen=True)
class Neighbourhood:
    """All training rows, and which of them have the wanted prediction: who lives around a counterfactual."""

    scale: Scale
    embedded: Floats
    wanted: Mask

    @classmethod
    def of(cls, model: object, scale: Scale, X_train: pd.DataFrame, wanted: object) -> "Neighbourhood":
        labels = Predictor(model, scale.table).learn_classes(scale.codes(X_train))
        return cls(scale, scale.embed(X_train), np.asarray(labels == wanted))

    @cached_property
    def neighbours(self) -> Any:
        return NearestNeighbors(metric="manhattan").fit(self.embedded)


def validity(model: object, scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the model's own label differs between each row and its counterfactual."""
    predictor = Predictor(model, scale.table)
    classes = predictor.learn_classes(np.concatenate([scale.codes(rows), scale.codes(counterfactuals)]))
    return np.asarray(classes[: len(rows)] != classes[len(rows) :])


def changed(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Mask:
    """Which features differ (N, features)."""
    return np.asarray(scale.codes(rows) != scale.codes(counterfactuals))


def features_changed(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """Sparsity: how many features differ."""
    return np.asarray(changed(scale, rows, counterfactuals).sum(axis=1))


def norms(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> dict[str, Floats]:
    """The change as a vector of shares of the range (1 for a category): its length in four ways; l1 is `gower_l1`."""
    shares = scale.shares(rows, counterfactuals)
    return {
        "l0": (shares > 0).sum(axis=1).astype(np.float64),
        "l1": shares.sum(axis=1),
        "l2": np.sqrt((shares**2).sum(axis=1)),
        "linf": shares.max(axis=1),
    }


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


def nn_ratios(peers: Peers, counterfactuals: pd.DataFrame) -> Floats:
    """Distance to the nearest training row with the wanted prediction, divided by what is usual among such rows.

    Below 1 is nearer to real rows than these are to each other. Not a number if all of them have a twin.
    """
    nearest, _ = peers.neighbours.kneighbors(peers.scale.embed(counterfactuals), 1)
    usual = peers.usual_distance
    return np.asarray(nearest[:, 0] / usual) if usual > 0 else np.full(len(counterfactuals), np.nan)


def nn_ratio(peers: Peers, counterfactuals: pd.DataFrame) -> float:
    """The mean of `nn_ratios`."""
    return float(nn_ratios(peers, counterfactuals).mean())


def inlier(peers: Peers, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the local outlier factor, fitted on training rows with the wanted prediction, takes each for one of them."""
    return np.asarray(peers.outliers.predict(peers.scale.embed(counterfactuals)) == 1)


def ynn(neighbourhood: Neighbourhood, counterfactuals: pd.DataFrame, voters: int = VOTERS) -> Floats:
    """Share of each one's nearest training rows, of all classes, that have the wanted prediction: 1 is far from doubt."""
    few = min(voters, len(neighbourhood.embedded))
    embedded = neighbourhood.scale.embed(counterfactuals)
    _, nearest = neighbourhood.neighbours.kneighbors(embedded, few)
    return np.asarray(neighbourhood.wanted[nearest].mean(axis=1))


def violations(
    scale: Scale,
    rows: pd.DataFrame,
    counterfactuals: pd.DataFrame,
    *,
    features_to_vary: Sequence[Hashable] | None = None,
    permitted_range: Permitted | None = None,
    rules: Sequence[Rule] = (),
) -> NDArray[np.intp]:
    """How many limits each counterfactual breaks: the schema's and the given ones, and each number outside its range."""
    compiled = Rules.compile(scale.table, scale.codec, features_to_vary, permitted_range, rules)
    before, after = scale.codes(rows), scale.codes(counterfactuals)
    broken = sum((compiled.broken(limit, before, after).astype(np.intp) for limit in compiled.limits), _none(len(rows)))
    return np.asarray(broken + _outside(scale, before, after).sum(axis=1))


def robustness(
    model: object,
    scale: Scale,
    counterfactuals: pd.DataFrame,
    wanted: object,
    *,
    rows: pd.DataFrame | None = None,
    shakes: int = SHAKES,
    size: float = SHAKEN,
    seed: int = 0,
) -> Floats:
    """The share of random shakes under which each counterfactual keeps the wanted prediction.

    Numbers get normal noise of `size` standard deviations of the training data, inside their range. With `rows` only the
    numbers that changed are shaken: the paper's robustness of recourse, the same change asked of a slightly different row.
    """
    codes, spread = scale.codes(counterfactuals), np.zeros(len(scale.table.schema))
    spread[scale.codec.numeric] = size * scale.codec.profile.std[scale.codec.numeric]
    noise = np.random.default_rng(seed).standard_normal((len(codes), shakes, len(spread))) * spread
    if rows is not None:
        noise *= changed(scale, rows, counterfactuals)[:, None, :]
    shaken = _shaken(scale, codes, noise).reshape(-1, codes.shape[1])
    labels = Predictor(model, scale.table).learn_classes(shaken) if len(shaken) else np.zeros(0)
    return np.asarray((labels == wanted).reshape(len(codes), shakes).mean(axis=1)) if len(codes) else np.zeros(0)


def diversity(scale: Scale, counterfactuals: pd.DataFrame) -> float:
    """Of several counterfactuals of one row: the mean `gower_l1` of two of them. Not a number for fewer than two."""
    if len(counterfactuals) < 2:
        return float("nan")
    first, second = np.triu_indices(len(counterfactuals), 1)
    return float(gower_l1(scale, counterfactuals.iloc[first], counterfactuals.iloc[second]).mean())


def agreement(first: Mask, second: Mask) -> Floats:
    """How far two systems name the same features, row by row: those both change as a share of those either does.

    `first` and `second` are (N, features), as `changed` gives them; 1 where neither changes anything.
    """
    both, either = (first & second).sum(axis=1), (first | second).sum(axis=1)
    return np.asarray(np.where(either > 0, both / np.maximum(either, 1), 1.0))


def _none(length: int) -> NDArray[np.intp]:
    return np.zeros(length, dtype=np.intp)


def _outside(scale: Scale, before: Floats, after: Floats) -> Mask:
    """Numbers that were moved beyond the range seen; a range declared in the schema is a limit of its own."""
    seen = [feature.numeric and not feature.declared for feature in scale.table.schema.features]
    lower = np.where(seen, [feature.lower for feature in scale.table.schema.features], -np.inf)
    upper = np.where(seen, [feature.upper for feature in scale.table.schema.features], np.inf)
    return np.asarray((after != before) & (after != MISSING) & ((after < lower) | (after > upper)))


def _shaken(scale: Scale, codes: Floats, noise: Floats) -> Floats:
    """Answers (N, features) under noise (N, shakes, features): whole numbers stay whole, and all inside their range."""
    shaken = np.repeat(codes[:, None, :], noise.shape[1], axis=1)
    for j in scale.codec.numeric:
        feature, own = scale.table.schema.features[j], codes[:, j][:, None]
        value = own + noise[:, :, j]
        value = np.round(value) if feature.integer else value
        value = np.clip(value, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
        shaken[:, :, j] = np.where((own == MISSING) | (noise[:, :, j] == 0), own, value)
    return shaken
