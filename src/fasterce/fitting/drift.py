"""Compare new rows with the training rows: distributions, and whether the learned parts still fit them."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fasterce.config import FitConfig
from fasterce.data.schema import MISSING
from fasterce.errors import InputError, Problem, shorten
from fasterce.fitting.report import prediction_agreement
from fasterce.fitting.state import FittedState, SearchState
from fasterce.fitting.statistics import (
    Counts,
    TrainingStatistics,
    count_predictions,
    count_values,
    sizes,
    summarise,
    surrogate_agreement,
)
from fasterce.fitting.validate import MIN_ROWS
from fasterce.latent.autoencoder import reconstruction_losses
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import Predictor
from fasterce.typing import Floats, Indices
from fasterce.viz.grid import Displayable, Sheet

DEFAULTS = FitConfig()
SHOWN_DIGITS = 4
# Differences below these are rounding.
SHARE_ROUNDING, LOSS_ROUNDING = 1e-12, 1e-9

Measure = Callable[[Counts, Counts], Floats]


@dataclass(frozen=True)
class Compared:
    """One measure, then and now.

    Attributes
    ----------
    then, now : float
        The measure on the training rows, and on the new rows.
    limit : float
        The value from which `now` counts as drift.
    drifted : bool
        Whether `now` is beyond `limit`.
    """

    then: float
    now: float
    limit: float
    drifted: bool

    def __str__(self) -> str:
        return f"{self.then:.3f} → {self.now:.3f} (limit {self.limit:.3f}{', beyond it' if self.drifted else ''})"


@dataclass(frozen=True)
class DriftReport(Displayable):
    """The result of `FasterCE.drift`.

    Attributes
    ----------
    frame : DataFrame
        One line per feature: `measure` (population stability index for a number, total variation for a category), `value`,
        `limit`, `drifted`, `then` and `now` (the mean of the values present, or the share of the most frequent category).
        If values may be missing: their shares `missing_then` and `missing_now`.
    classes : DataFrame
        Share of each predicted class, then and now; for a regression, the share of predictions in ten bins.
    class_shift : Compared
        Total variation of `classes`; for a regression, their stability index.
    reconstruction : Compared
        Mean loss of the autoencoder on rows it was not trained on.
    hyperplane : Compared
        Agreement of the prediction hyperplane with the model, on training rows and on the new rows.
    surrogate : Compared or None
        The same of the surrogate, `then` on edited rows it was not trained on; None without a surrogate.
    rows, unreadable : int
        Rows compared, and rows that cannot be read.
    problem : Problem or None
        The problem of the first row that cannot be read.
    """

    frame: pd.DataFrame
    classes: pd.DataFrame
    class_shift: Compared
    reconstruction: Compared
    hyperplane: Compared
    surrogate: Compared | None
    rows: int
    unreadable: int
    problem: Problem | None

    @property
    def drifted(self) -> bool:
        """Whether any measure is beyond its limit, or rows cannot be read."""
        return bool(self._signs)

    @property
    def _signs(self) -> list[str]:
        moved = self.frame.index[self.frame["drifted"]]
        signs = {
            f"{len(moved)} of {len(self.frame)} features have moved ({shorten(moved, 4)})": len(moved) > 0,
            "the model's predictions are distributed differently": self.class_shift.drifted,
            "the autoencoder reconstructs these rows less accurately": self.reconstruction.drifted,
            "the prediction hyperplane agrees less with the model": self.hyperplane.drifted,
            "the surrogate agrees less with the model": self.surrogate is not None and self.surrogate.drifted,
            f"{self.unreadable} rows cannot be read": self.unreadable > 0,
        }
        return [text for text, drifted in signs.items() if drifted]

    @property
    def verdict(self) -> str:
        """One sentence: what has changed and what to do about it."""
        if not self._signs:
            return f"No drift: {self.rows} rows look like the training rows, and the learned parts fit them."
        advice = "Fit the explainer again." if self.unreadable else "Update the explainer."
        return f"Drift in {self.rows} rows: {'; '.join(self._signs)}. {advice}"

    def _sheet(self) -> Sheet:
        lines = [
            self._predictions(),
            f"Reconstruction loss: {self.reconstruction}",
            f"Prediction hyperplane agrees with the model: {self.hyperplane}",
        ]
        lines += [f"Surrogate agrees with the model: {self.surrogate}"] if self.surrogate else []
        lines += [f"First row that cannot be read: {self.problem}"] if self.problem else []
        return Sheet.from_frame(self.verdict, self.frame.sort_values("drifted", ascending=False, kind="stable"), tuple(lines))

    def _predictions(self) -> str:
        if isinstance(self.classes.index, pd.IntervalIndex):
            upper = self.classes.iloc[len(self.classes) // 2 :]
            share = f"{upper['then'].sum():.1%} → {upper['now'].sum():.1%}"
            return f"Predictions of {upper.index[0].left:.6g} or more: {share}; stability index {self.class_shift}"
        shares = ", ".join(f"{line.Index} {line.then:.1%} → {line.now:.1%}" for line in self.classes.itertuples())
        return f"Predicted classes: {shares}; total variation {self.class_shift}"


def compare(state: FittedState, predictor: Predictor, rows: object, seed: int) -> DriftReport:
    """Compare rows with everything seen so far; rows that cannot be read are counted."""
    config = state.search.config.fit
    reading = state.table.read(rows)
    readable = np.setdiff1d(np.arange(len(reading.codes)), list(reading.problems))
    if len(readable) < MIN_ROWS:
        code = "fitting.too_few_readable_rows" if reading.problems else "fitting.too_few_rows"
        first = {"first": reading.first_problem} if reading.problems else {}
        raise InputError(code, option="new_rows", expected=MIN_ROWS, received=len(readable), **first)
    codes = reading.codes[readable]
    predictions = predictor.evaluate(codes)
    known = predictions.classes != FAILED
    if not known.any():
        raise predictor.error()
    predictions, statistics, search = predictions.take(known), state.statistics, state.search
    bins = len(statistics.classes)
    now = count_predictions(predictions, state.numbers, statistics.prediction_cuts, bins)[:bins]
    frame, shift = _compare_distributions(statistics, codes, now, search, seed, config)
    seen = int(statistics.classes.sum())
    shares = {"then": statistics.classes / seen, "now": now / now.sum()}
    latent = search.autoencoder.encode(search.codec.encode(codes[known]))
    on_plane, _ = prediction_agreement(search.hyperplanes, latent, predictions.classes)
    return DriftReport(
        frame=frame,
        classes=pd.DataFrame(shares, index=_names(state)),
        class_shift=shift,
        reconstruction=compare_reconstruction(statistics, search, codes, config),
        hyperplane=_compare_agreement(state.report.agreement, on_plane, seen, int(known.sum()), config),
        surrogate=compare_surrogate(statistics, search, codes[known], predictions.classes, config),
        rows=len(codes),
        unreadable=len(reading.problems),
        problem=reading.first_problem,
    )


def agreement(state: FittedState, predictor: Predictor) -> float:
    """Return the share of stored examples for which the model predicts the class stored with them."""
    labels = predictor.predict_labels(state.table.frame(state.search.examples))
    return float(np.mean(labels == state.search.example_classes))


def _names(state: FittedState) -> pd.Index:
    """Return the classes, or the bins of a regression model's predictions."""
    if state.numbers is None:
        return pd.Index(state.classes, name="class", tupleize_cols=False)
    shown = np.round(state.statistics.prediction_cuts, SHOWN_DIGITS - math.floor(math.log10(state.numbers.scale)))
    breaks = np.concatenate([[-np.inf], shown, [np.inf]])
    return pd.IntervalIndex.from_breaks(breaks, closed="left", name="prediction")


def compare_reconstruction(statistics: TrainingStatistics, search: SearchState, codes: Floats, config: FitConfig) -> Compared:
    """Compare the autoencoder's loss with that of the held-out rows of `fit`; a large increase beyond noise is drift."""
    then, deviation, count = (float(value) for value in statistics.reconstruction)
    losses = reconstruction_losses(search.autoencoder, search.codec, search.codec.encode(codes))
    now, spread, rows = (float(value) for value in summarise(losses))
    variance = deviation**2 / max(count, 1) + max(deviation, spread) ** 2 / max(rows, 1)
    limit = then + max(config.drift_max_loss_increase * then, config.drift_standard_errors * variance**0.5)
    return Compared(then, now, limit, now > limit + LOSS_ROUNDING)


def compare_surrogate(
    statistics: TrainingStatistics, search: SearchState, codes: Floats, classes: Indices, config: FitConfig
) -> Compared | None:
    """Compare the surrogate's agreement with the model; None without a surrogate."""
    if search.surrogate is None:
        return None
    now = surrogate_agreement(search.surrogate, codes, classes, config.surrogate_batch_rows)
    return _compare_agreement(search.surrogate.agreement, now, int(statistics.classes.sum()), len(codes), config)


def _compare_agreement(then: float, now: float, before: int, after: int, config: FitConfig) -> Compared:
    """Compare shares of `before` and `after` rows; one that has dropped by much, beyond noise, is drift."""
    likely = np.clip(then, 1 / (before + 2), 1 - 1 / (before + 2))
    error = (likely * (1 - likely) * (1 / max(before, 1) + 1 / max(after, 1))) ** 0.5
    limit = then - max(config.drift_max_agreement_loss, float(config.drift_standard_errors * error))
    return Compared(then, now, limit, now < limit)


def _compare_distributions(
    statistics: TrainingStatistics, codes: Floats, classes: Counts, search: SearchState, seed: int, config: FitConfig
) -> tuple[pd.DataFrame, Compared]:
    """Compare the distributions of all features and of the classes, with limits for all of them together."""
    schema = search.codec.schema
    ends = np.cumsum(sizes(schema))[:-1]
    before, now = np.split(statistics.counts, ends), np.split(count_values(codes, statistics.cuts, schema), ends)
    numeric = [feature.numeric for feature in schema.features]
    measures: list[Measure] = [stability_index if number else total_variation for number in numeric]
    measures.append(stability_index if len(statistics.prediction_cuts) else total_variation)
    value, limit = limits([*before, statistics.classes], [*now, classes], measures, seed, config)
    drifted = value > limit + SHARE_ROUNDING
    kinds, then = list(zip(numeric, before, strict=True)), np.where(statistics.present(schema) > 0, statistics.mean, np.nan)
    frame = pd.DataFrame(
        {
            "measure": ["stability index" if number else "total variation" for number in numeric],
            "value": value[:-1],
            "limit": limit[:-1],
            "drifted": drifted[:-1],
            "then": [float(then[j]) if number else _share(old, old) for j, (number, old) in enumerate(kinds)],
            "now": [_mean(codes[:, j]) if number else _share(now[j], old) for j, (number, old) in enumerate(kinds)],
        },
        index=pd.Index(schema.names, name="feature", tupleize_cols=False),
    )
    if any(feature.nullable for feature in schema.features):
        for name, counts in (("missing_then", before), ("missing_now", now)):
            frame[name] = [c[-1] / c.sum() if f.nullable else 0.0 for f, c in zip(schema.features, counts, strict=True)]
    return frame, Compared(0.0, float(value[-1]), float(limit[-1]), bool(drifted[-1]))


def _mean(values: Floats) -> float:
    there = values[values != MISSING]
    return float(there.mean()) if len(there) else float("nan")


def _share(counts: Counts, before: Counts) -> float:
    """Return the share of the category that was the most frequent."""
    return float(counts[before.argmax()] / counts.sum())


def limits(
    before: list[Counts], now: list[Counts], measures: list[Measure], seed: int, config: FitConfig = DEFAULTS
) -> tuple[Floats, Floats]:
    """Return the value of each measure, and a limit for each.

    Rows seen before and now are permuted, which for counts is a multivariate hypergeometric draw. The values of all
    measures, each in its own standard deviations, are pooled; the limit is set so that the expected number
    of false alarms in a report is `drift_false_alarms`, whatever the shapes of the distributions.
    """
    rng = np.random.default_rng([seed, len(before)])
    permutations = config.drift_permutations
    value, middle, deviation = np.zeros((3, len(before)))
    pooled = np.zeros((len(before), permutations))
    for j, (old, new, measure) in enumerate(zip(before, now, measures, strict=True)):
        drawn = rng.multivariate_hypergeometric(old + new, int(new.sum()), permutations)
        permuted = measure(old + new - drawn, drawn)
        middle[j], deviation[j] = permuted.mean(), max(float(permuted.std()), 1e-12)
        pooled[j] = (permuted - middle[j]) / deviation[j]
        value[j] = measure(old[None], new[None])[0]
    highest = np.sort(pooled, axis=None)[-int(config.drift_false_alarms * permutations)]
    return value, np.asarray(middle + highest * deviation)


def stability_index(before: Counts, now: Counts) -> Floats:
    """Return the population stability index of counts (..., bins), with half a row added to every bin."""
    p, q = _smoothed(before), _smoothed(now)
    return np.asarray(((q - p) * np.log(q / p)).sum(axis=-1))


def _smoothed(counts: Counts) -> Floats:
    smoothed = counts + 0.5
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))


def total_variation(before: Counts, now: Counts) -> Floats:
    """Return the share of rows that would have to change category."""
    shares = [part / np.maximum(part.sum(axis=-1, keepdims=True), 1) for part in (before, now)]
    return np.asarray(0.5 * np.abs(shares[0] - shares[1]).sum(axis=-1))
