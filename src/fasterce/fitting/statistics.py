"""Statistics of the training rows, for `update` and `drift`: counts and sums, and a sample of rows where allowed."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.data.profile import LEVELS, Profile, put_column, summarise_values
from fasterce.data.schema import MISSING, Schema
from fasterce.models.predictions import Predictions
from fasterce.models.predictor import Numbers
from fasterce.surrogate.runtime import Surrogate
from fasterce.typing import Floats, Indices

# Part of the artifact's format: the shapes of `cuts`, `counts` and `classes`.
BINS = 10
INNER = np.linspace(0, 1, BINS + 1)[1:-1]
# Relative to the scale of predictions: a prediction repeated with another last bit falls into the same bin.
ROUNDING = 1e-9

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingStatistics:
    """Everything here but `rows` is a sum or a count, and can be added to exactly.

    seen, updates    rows seen since `fit` and calls of `update` since then, arrays without dimensions
    mean, squares    of every feature where it is not missing, the second as the sum of squared deviations
    cuts             (features, BINS - 1) bounds of the bins of numbers, as measured by `fit`
    counts           rows per bin and category, feature after feature; missing ones come last
    prediction_cuts  bounds of the bins of a regression model's predictions, empty for a classifier
    classes          rows per predicted class, or per bin of predictions
    reconstruction   mean and deviation of the loss of rows held out from the autoencoder's training, and their number
    rows             a random sample of all rows seen, none where rows must not be kept
    """

    seen: Counts
    updates: Counts
    mean: Floats
    squares: Floats
    cuts: Floats
    counts: Counts
    prediction_cuts: Floats
    classes: Counts
    reconstruction: Floats
    rows: Floats

    @classmethod
    def start(
        cls,
        codes: Floats,
        rows: Floats,
        prediction_cuts: Floats,
        classes: Counts,
        unseen: Floats,
        schema: Schema,
    ) -> "TrainingStatistics":
        """Measure training rows; `unseen` are the losses of held-out rows, `rows` the rows of `codes` that may be kept."""
        cuts = np.quantile(codes, INNER, axis=0, method="nearest").T.copy()
        for j, values in present_values(codes, schema):
            cuts[j] = np.quantile(values, INNER, method="nearest") if len(values) else 0.0
        none, counts = np.asarray(0, dtype=np.int64), np.zeros(sum(sizes(schema)), dtype=np.int64)
        mean, squares = np.zeros((2, len(schema)))
        empty = cls(none, none, mean, squares, cuts, counts, prediction_cuts, classes, summarise(unseen), rows)
        return replace(empty.add_rows(codes, schema), updates=none)

    def add_rows(self, new: Floats, schema: Schema) -> "TrainingStatistics":
        """Return the statistics with more rows; `rows` and what depends on the model stay as they are."""
        before, (now, mean, squares) = self.present(schema), moments(new, schema)
        gap, both = mean - self.mean, np.maximum(before + now, 1)
        return replace(
            self,
            seen=np.asarray(int(self.seen) + len(new), dtype=np.int64),
            updates=np.asarray(self.updates + 1),
            mean=self.mean + gap * (now / both),
            squares=self.squares + squares + gap**2 * (before * now / both),
            counts=self.counts + count_values(new, self.cuts, schema),
        )

    def present(self, schema: Schema) -> Counts:
        """Return the number of values present per feature; a missing category counts as a category."""
        present, last = np.full(len(schema), self.seen), np.cumsum(sizes(schema)) - 1
        present[schema.nullable_numbers] -= self.counts[last[schema.nullable_numbers]]
        return present

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name; `prediction_cuts` only where there are any."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in named.items() if name != "prediction_cuts" or len(array)}


def sizes(schema: Schema) -> list[int]:
    """Return the number of counts per feature."""
    return [BINS + feature.nullable if feature.numeric else feature.n_codes for feature in schema.features]


def present_values(codes: Floats, schema: Schema) -> Iterator[tuple[int, Floats]]:
    """Yield every numeric feature that may be missing, with the values present."""
    for j in schema.nullable_numbers:
        yield j, codes[codes[:, j] != MISSING, j]


def moments(codes: Floats, schema: Schema) -> tuple[Counts, Floats, Floats]:
    """Return per feature the number of values, their mean and the sum of their squared deviations; zeros without values."""
    present, mean = np.full(codes.shape[1], len(codes)), codes.mean(axis=0)
    squares = ((codes - mean) ** 2).sum(axis=0)
    for j, values in present_values(codes, schema):
        present[j], mean[j] = len(values), values.mean() if len(values) else 0.0
        squares[j] = ((values - mean[j]) ** 2).sum()
    return present, mean, squares


def count_values(codes: Floats, cuts: Floats, schema: Schema) -> Counts:
    """Return the rows per bin and category, feature after feature."""
    counts = []
    for j, (feature, size) in enumerate(zip(schema.features, sizes(schema), strict=True)):
        place = np.searchsorted(cuts[j], codes[:, j], side="right") if feature.numeric else codes[:, j].astype(np.intp)
        if feature.numeric and feature.nullable:
            place = np.where(codes[:, j] == MISSING, BINS, place)
        counts.append(np.bincount(place, minlength=size))
    return np.concatenate(counts).astype(np.int64)


def prediction_cuts(predictions: Predictions, numbers: Numbers | None) -> Floats:
    """Return the bounds of bins with the same number of predictions each; none for a classifier."""
    if numbers is None or predictions.scores is None:
        return np.zeros(0)
    cuts = np.quantile(numbers.values(predictions.scores), INNER, method="nearest")
    return np.asarray(cuts - ROUNDING * numbers.scale)


def count_predictions(predictions: Predictions, numbers: Numbers | None, cuts: Floats, classes: int) -> Counts:
    """Return the rows per predicted class, or per bin of predictions."""
    if numbers is None or predictions.scores is None:
        return np.bincount(predictions.classes, minlength=classes).astype(np.int64)
    place = np.searchsorted(cuts, numbers.values(predictions.scores), side="right")
    return np.bincount(place, minlength=BINS).astype(np.int64)


def merged_profile(profile: Profile, statistics: TrainingStatistics, new: Floats, schema: Schema) -> Profile:
    """Return the profile of everything seen and `new`.

    It is measured where all rows are kept. Otherwise ranges, deviations and shares are exact, and quantiles come from the
    rows kept, or else from the old quantiles, each weighted by the rows it stands for.
    """
    if len(statistics.rows) == statistics.seen:
        return Profile.measure(np.concatenate([statistics.rows, new]), schema)
    old = statistics.rows if len(statistics.rows) else profile.levels.T
    after, before = statistics.add_rows(new, schema), statistics.present(schema)
    std = np.sqrt(after.squares / np.maximum(after.present(schema), 1))
    merged = _merged(old, float(statistics.seen), new, profile.spread.T, std)
    for j in schema.nullable_numbers:
        parts = (old, new, profile.levels.T, profile.spread.T)
        mine, fresh, levels, spread = (part[part[:, j] != MISSING, j : j + 1] for part in parts)
        mine = mine if len(mine) else levels
        if len(mine) + len(fresh):
            put_column(merged, j, _merged(mine, float(before[j]), fresh, spread, std[j : j + 1]))
    categorical = np.repeat([not feature.numeric for feature in schema.features], sizes(schema))
    return Profile(**merged, frequency=np.asarray(after.counts[categorical] / float(after.seen)))


def _merged(old: Floats, seen: float, new: Floats, spread: Floats, std: Floats) -> dict[str, Floats]:
    """Return the numeric part of a profile, where `old` points stand for `seen` rows and `spread` has both ends of these."""
    points = np.concatenate([old, new])
    weight = np.repeat([seen / max(len(old), 1), 1.0], [len(old), len(new)])
    known = np.concatenate([points, spread])
    levels = weighted_quantiles(points, weight, np.linspace(0, 1, LEVELS))
    levels[:, 0], levels[:, -1] = known.min(axis=0), known.max(axis=0)
    # Copies, since compiled kernels take contiguous arrays only.
    median = levels[:, LEVELS // 2].copy()
    mad = weighted_quantiles(np.abs(points - median), weight, np.array([0.5]))[:, 0].copy()
    return summarise_values(points, known, weight, median=median, std=std, mad=mad, levels=levels)


def weighted_quantiles(points: Floats, weight: Floats, shares: Floats) -> Floats:
    """Return (features, shares): the value of every feature below which a share of the weight lies."""
    order = np.argsort(points, axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0) - weight[order] / 2
    ordered = np.take_along_axis(points, order, axis=0)
    found = [np.searchsorted(column, shares * weight.sum()) for column in below.T]
    return np.stack([column[np.minimum(place, len(points) - 1)] for column, place in zip(ordered.T, found, strict=True)])


def summarise(losses: Floats) -> Floats:
    """Return mean, deviation and number of losses."""
    return np.array([losses.mean(), losses.std(), len(losses)]) if len(losses) else np.zeros(3)


def surrogate_agreement(surrogate: Surrogate, codes: Floats, classes: Indices, batch_rows: int) -> float:
    """Return the share of rows for which the surrogate predicts the class of the model; 0 without rows."""
    if not len(codes):
        return 0.0
    labels = [surrogate.labels(codes[start : start + batch_rows]) for start in range(0, len(codes), batch_rows)]
    return float(np.mean(np.concatenate(labels) == classes))
