"""Quality of counterfactuals, measured on plain tables: those of any method, not only ours."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from fasterce.constraints import Constraint
from fasterce.constraints.compile import CompiledConstraints, PermittedRange
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import MISSING, Schema, infer
from fasterce.data.table import Table
from fasterce.models.predictor import Predictor
from fasterce.search.distance import Distance
from fasterce.typing import Floats, Mask

# Rows drawn to measure the usual distance between training rows.
MOST_REAL_ROWS = 2000
# Neighbours of the local outlier factor, as in scikit-learn.
NEIGHBOURS = 20
# Neighbours that vote in `ynn`, noise samples of `robustness` and their size in standard deviations.
VOTERS = 5
NOISE_SAMPLES = 50
NOISE_SIZE = 0.05


@dataclass(frozen=True)
class Scale:
    """Ranges and deviations of the training data, by which changes are measured. Make one with `Scale.of`.

    Attributes
    ----------
    table : Table
        Converts rows to codes.
    codec : Codec
        Has the ranges and deviations.
    """

    table: Table
    codec: Codec

    @classmethod
    def of(cls, X_train: pd.DataFrame, schema: Schema | None = None) -> "Scale":
        """Measure training rows; the schema is inferred if none is given.

        Parameters
        ----------
        X_train : DataFrame
            The training rows.
        schema : Schema, optional

        Returns
        -------
        Scale
        """
        table = Table.like(X_train, schema or infer(X_train))
        return cls(table, Codec(table.schema, Profile.measure(table.read(X_train).codes, table.schema)))

    def codes(self, rows: pd.DataFrame) -> Floats:
        """Return rows as one number per feature.

        Parameters
        ----------
        rows : DataFrame

        Returns
        -------
        ndarray of shape (N, features)
        """
        return self.table.read(rows).codes

    def shares(self, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
        """Return the change of each feature (N, features): |change| / range, 1 for a category or missing value that changes.

        Their sum is `gower_l1`.

        Parameters
        ----------
        rows : DataFrame
            The queries.
        counterfactuals : DataFrame
            One per query, with the same columns.

        Returns
        -------
        ndarray of shape (N, features)
        """
        after, before = self.codes(counterfactuals), self.codes(rows)
        flat = (after != before).astype(np.float64)
        missing_changed = (after == MISSING) != (before == MISSING)
        numeric = np.isin(np.arange(after.shape[1]), self.codec.numeric)
        return np.where(numeric & ~missing_changed, np.abs(after - before) / self.codec.profile.span, flat)

    def embed(self, rows: pd.DataFrame) -> Floats:
        """Return numbers / range and categories one-hot / 2: the Manhattan distance of two rows is their `gower_l1`.

        A missing number is at the median and 1 away from those present: `gower_l1` plus the distance to the median.

        Parameters
        ----------
        rows : DataFrame

        Returns
        -------
        ndarray of shape (N, columns)
        """
        codes, numeric = self.codes(rows), self.codec.numeric
        halves = {j: np.eye(self.table.schema.features[j].n_codes) / 2 for j in self.codec.categorical}
        one_hot = [half[codes[:, j].astype(np.intp)] for j, half in halves.items()]
        missing = (codes[:, self.codec.nullable] == MISSING).astype(np.float64)
        numbers = np.where(codes == MISSING, self.codec.profile.median, codes)[:, numeric]
        return np.hstack([numbers / self.codec.profile.span[numeric], *one_hot, missing])


@dataclass(frozen=True)
class EmbeddedRows:
    """Training rows as `Scale.embed` places them."""

    scale: Scale
    embedded: Floats

    @cached_property
    def neighbours(self) -> NearestNeighbors:
        """A search for the nearest of them."""
        return NearestNeighbors(metric="manhattan").fit(self.embedded)


class Peers(EmbeddedRows):
    """Training rows with the target prediction, to which counterfactuals are compared. Make them with `Peers.of`.

    Attributes
    ----------
    scale : Scale
        The scale of distances.
    embedded : ndarray
        The rows as `Scale.embed` returns them.
    """

    @classmethod
    def of(cls, model: object, scale: Scale, X_train: pd.DataFrame, target: object) -> "Peers":
        """Return the training rows whose prediction is `target`.

        Parameters
        ----------
        model : model
            With `predict` on a DataFrame.
        scale : Scale
        X_train : DataFrame
            The training rows.
        target : class

        Returns
        -------
        Peers
        """
        every = Neighbourhood.of(model, scale, X_train, target)
        return cls(scale, every.embedded[every.has_target])

    @cached_property
    def outliers(self) -> LocalOutlierFactor:
        """A local outlier factor fitted on them."""
        few = min(NEIGHBOURS, len(self.embedded) - 1)
        return LocalOutlierFactor(few, metric="manhattan", novelty=True).fit(self.embedded)

    @cached_property
    def usual_distance(self) -> float:
        """Mean distance from one of them to the nearest other, over at most 2,000 drawn with a fixed seed."""
        drawn = np.random.default_rng(0).permutation(len(self.embedded))[:MOST_REAL_ROWS]
        nearest, _ = self.neighbours.kneighbors(self.embedded[drawn], 2)
        return float(nearest[:, 1].mean())


@dataclass(frozen=True)
class Neighbourhood(EmbeddedRows):
    """All training rows, and which of them have the target prediction. Make one with `Neighbourhood.of`.

    Attributes
    ----------
    scale : Scale
        The scale of distances.
    embedded : ndarray
        The rows as `Scale.embed` returns them.
    has_target : ndarray of bool
        Whether the model predicts the target for each row.
    """

    has_target: Mask

    @classmethod
    def of(cls, model: object, scale: Scale, X_train: pd.DataFrame, target: object) -> "Neighbourhood":
        """Return the training rows, and which of them the model gives the target to.

        Parameters
        ----------
        model : model
            With `predict` on a DataFrame.
        scale : Scale
        X_train : DataFrame
            The training rows.
        target : class

        Returns
        -------
        Neighbourhood
        """
        labels = Predictor(model, scale.table).learn_classes(scale.codes(X_train))
        return cls(scale, scale.embed(X_train), np.asarray(labels == target))


def validity(model: object, scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether the model's label differs between each row and its counterfactual.

    Parameters
    ----------
    model : model
        With `predict` on a DataFrame.
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    predictor = Predictor(model, scale.table)
    classes = predictor.learn_classes(np.concatenate([scale.codes(rows), scale.codes(counterfactuals)]))
    return np.asarray(classes[: len(rows)] != classes[len(rows) :])


def changed(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Mask:
    """Return which features differ (N, features).

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of bool, shape (N, features)
    """
    return np.asarray(scale.codes(rows) != scale.codes(counterfactuals))


def features_changed(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> NDArray[np.intp]:
    """Return how many features differ (sparsity).

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of shape (N,)
    """
    return np.asarray(changed(scale, rows, counterfactuals).sum(axis=1))


def norms(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> dict[str, Floats]:
    """Return four norms of the change as a share of the range (1 for a category); l1 is `gower_l1`.

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    dict of ndarray of shape (N,)
    """
    shares = scale.shares(rows, counterfactuals)
    return {
        "l0": (shares > 0).sum(axis=1).astype(np.float64),
        "l1": shares.sum(axis=1),
        "l2": np.sqrt((shares**2).sum(axis=1)),
        "linf": shares.max(axis=1),
    }


def gower_l1(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
    """Return the sum over features of |change| / range in the training data, and 1 per changed category.

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of shape (N,)
    """
    distance = Distance.gower(scale.codec.profile.span, scale.codec.numeric, scale.codec.nullable)
    return distance.total(scale.codes(counterfactuals), scale.codes(rows))


def proximity(scale: Scale, rows: pd.DataFrame, counterfactuals: pd.DataFrame) -> Floats:
    """Return the proximity of the paper, by the formula of CERTIFAI: `distance="mad"`.

    The share of numeric features times the Euclidean norm of the changes, each divided by the median absolute deviation,
    plus the share of categorical features times the share of categories that differ. A feature whose deviation is zero is
    divided by its standard deviation; a number that becomes missing or is filled costs what a category does.

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of shape (N,)
    """
    distance = Distance.mad(scale.codec.profile.mad, scale.codec.numeric, scale.codec.nullable)
    return distance.total(scale.codes(counterfactuals), scale.codes(rows))


def nn_ratios(peers: Peers, counterfactuals: pd.DataFrame) -> Floats:
    """Return the distance to the nearest training row with the target prediction, divided by the usual one among such rows.

    Below 1 is nearer to real rows than these are to each other. NaN if every one of them has an exact duplicate.

    Parameters
    ----------
    peers : Peers
        Training rows with the target.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of shape (N,)
    """
    nearest, _ = peers.neighbours.kneighbors(peers.scale.embed(counterfactuals), 1)
    usual = peers.usual_distance
    return np.asarray(nearest[:, 0] / usual) if usual > 0 else np.full(len(counterfactuals), np.nan)


def nn_ratio(peers: Peers, counterfactuals: pd.DataFrame) -> float:
    """Return the mean of `nn_ratios`.

    Parameters
    ----------
    peers : Peers
        Training rows with the target.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    float
    """
    return float(nn_ratios(peers, counterfactuals).mean())


def inlier(peers: Peers, counterfactuals: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whether a local outlier factor fitted on training rows with the target prediction accepts each as an inlier.

    Parameters
    ----------
    peers : Peers
        Training rows with the target.
    counterfactuals : DataFrame
        One per query, with the same columns.

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    return np.asarray(peers.outliers.predict(peers.scale.embed(counterfactuals)) == 1)


def ynn(neighbourhood: Neighbourhood, counterfactuals: pd.DataFrame, voters: int = VOTERS) -> Floats:
    """Return the share of the nearest training rows of each counterfactual, of all classes, with the target prediction.

    Parameters
    ----------
    neighbourhood : Neighbourhood
    counterfactuals : DataFrame
        One per query, with the same columns.
    voters : int
        How many of the nearest rows are counted.

    Returns
    -------
    ndarray of shape (N,)
    """
    few = min(voters, len(neighbourhood.embedded))
    embedded = neighbourhood.scale.embed(counterfactuals)
    _, nearest = neighbourhood.neighbours.kneighbors(embedded, few)
    return np.asarray(neighbourhood.has_target[nearest].mean(axis=1))


def violations(
    scale: Scale,
    rows: pd.DataFrame,
    counterfactuals: pd.DataFrame,
    *,
    features_to_vary: Sequence[Hashable] | None = None,
    permitted_range: PermittedRange | None = None,
    constraints: Sequence[Constraint] = (),
) -> NDArray[np.intp]:
    """Return how many constraints each counterfactual violates, of the schema and given, and numbers outside their range.

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    rows : DataFrame
        The queries.
    counterfactuals : DataFrame
        One per query, with the same columns.
    features_to_vary, permitted_range, constraints : optional
        As in `FasterCE.explain`.

    Returns
    -------
    ndarray of int, shape (N,)
    """
    compiled = CompiledConstraints.compile(scale.table, scale.codec, features_to_vary, permitted_range, constraints)
    before, after = scale.codes(rows), scale.codes(counterfactuals)
    violated = [compiled.broken(one, before, after) for one in compiled.active]
    return np.asarray(np.sum([*violated, *_outside(scale, before, after).T], axis=0, dtype=np.intp))


def robustness(
    model: object,
    scale: Scale,
    counterfactuals: pd.DataFrame,
    target: object,
    *,
    rows: pd.DataFrame | None = None,
    samples: int = NOISE_SAMPLES,
    size: float = NOISE_SIZE,
    seed: int = 0,
) -> Floats:
    """Return the share of noise samples under which each counterfactual keeps the target prediction.

    Numbers get normal noise of `size` standard deviations of the training data, inside their range. With `rows` only the
    numbers that changed get noise: the paper's robustness of recourse, where the change is made imprecisely.

    Parameters
    ----------
    model : model
        With `predict` on a DataFrame.
    scale : Scale
        The training rows' statistics.
    counterfactuals : DataFrame
        One per query, with the same columns.
    target : class
    rows : DataFrame, optional
        The queries.
    samples : int
        Noise samples per counterfactual.
    size : float
        Standard deviation of the noise, in standard deviations of the column.
    seed : int, default 0

    Returns
    -------
    ndarray of shape (N,)
    """
    codes, spread = scale.codes(counterfactuals), np.zeros(len(scale.table.schema))
    spread[scale.codec.numeric] = size * scale.codec.profile.std[scale.codec.numeric]
    noise = np.random.default_rng(seed).standard_normal((len(codes), samples, len(spread))) * spread
    if rows is not None:
        noise *= changed(scale, rows, counterfactuals)[:, None, :]
    noisy = _with_noise(scale, codes, noise).reshape(-1, codes.shape[1])
    if not len(noisy):
        return np.zeros(0)
    labels = Predictor(model, scale.table).learn_classes(noisy)
    return np.asarray((labels == target).reshape(len(codes), samples).mean(axis=1))


def diversity(scale: Scale, counterfactuals: pd.DataFrame) -> float:
    """Return the mean `gower_l1` between two counterfactuals of one row, NaN for fewer than two.

    Parameters
    ----------
    scale : Scale
        The training rows' statistics.
    counterfactuals : DataFrame
        Those of one query.

    Returns
    -------
    float
    """
    if len(counterfactuals) < 2:
        return float("nan")
    first, second = np.triu_indices(len(counterfactuals), 1)
    return float(gower_l1(scale, counterfactuals.iloc[first], counterfactuals.iloc[second]).mean())


def agreement(first: Mask, second: Mask) -> Floats:
    """Return per row the features that both of two methods change as a share of those that either changes.

    1 where neither changes anything.

    Parameters
    ----------
    first, second : ndarray of bool, shape (N, features)
        As `changed` returns them.

    Returns
    -------
    ndarray of shape (N,)
    """
    both, either = (first & second).sum(axis=1), (first | second).sum(axis=1)
    return np.asarray(np.where(either > 0, both / np.maximum(either, 1), 1.0))


def _outside(scale: Scale, before: Floats, after: Floats) -> Mask:
    """Return which numbers moved beyond the observed range; a range declared in the schema is a constraint of its own."""
    seen = [(f.lower, f.upper) if f.numeric and not f.declared else (-np.inf, np.inf) for f in scale.table.schema.features]
    lower, upper = np.array(seen).T
    return np.asarray((after != before) & (after != MISSING) & ((after < lower) | (after > upper)))


def _with_noise(scale: Scale, codes: Floats, noise: Floats) -> Floats:
    """Return counterfactuals (N, features) under noise (N, samples, features): whole numbers stay whole, all in range."""
    noisy = np.repeat(codes[:, None, :], noise.shape[1], axis=1)
    for j in scale.codec.numeric:
        feature, own = scale.table.schema.features[j], codes[:, j][:, None]
        value = own + noise[:, :, j]
        value = np.round(value) if feature.integer else value
        value = np.clip(value, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
        noisy[:, :, j] = np.where((own == MISSING) | (noise[:, :, j] == 0), own, value)
    return noisy
