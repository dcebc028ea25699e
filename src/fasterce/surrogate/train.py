"""Train the surrogate: tables and one hidden layer, fitted to the model's predictions for real and edited rows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from fasterce.config import SurrogateConfig
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.latent.runtime import Layer, on_one_thread
from fasterce.latent.training import Adam, DenseLayers, one_cycle_rate
from fasterce.models.predictions import Predictions
from fasterce.surrogate.knots import at_bends, quantile_knots
from fasterce.surrogate.runtime import NO_LIMIT, Surrogate
from fasterce.typing import Floats, Floats32, Indices

DEFAULTS = SurrogateConfig()
# Scores are logarithms of probabilities of at least 1e-12.
ZERO_SCORE = np.log(1e-12) + 1e-6
# Ratio of the standard deviation to the median absolute deviation of normal noise.
NORMAL_MAD = 1.48
MIN_ERROR = 1e-6


def edited_rows(
    codes: Floats,
    classes: Indices,
    codec: Codec,
    rng: np.random.Generator,
    bends: Sequence[Floats] = (),
    config: SurrogateConfig = DEFAULTS,
) -> Floats:
    """Return rows, the same number of every class, with a few features changed.

    New values are those of other rows, any value of the range, values at which the model bends, or any category.
    """
    count = config.edited_rows(codes.shape[1])
    seen = np.unique(classes[classes >= 0])
    anchors = [rng.choice(np.flatnonzero(classes == label), count) for label in seen]
    base = codes[np.stack(anchors, axis=1).reshape(-1)[:count]].copy()
    edits = rng.integers(1, config.max_edits + 1, size=count)
    for turn in range(config.max_edits):
        feature = rng.integers(codes.shape[1], size=count)
        value = codes[rng.integers(len(codes), size=count), feature]
        elsewhere = rng.random(count) < config.random_value_share
        value = np.where(elsewhere, _random_values(codec, feature, rng, config), value)
        value = at_bends(bends, feature, value, rng, config) if any(map(len, bends)) else value
        now = np.flatnonzero(turn < edits)
        base[now, feature[now]] = value[now]
    return np.asarray(base)


def _random_values(codec: Codec, feature: Indices, rng: np.random.Generator, config: SurrogateConfig) -> Floats:
    """Draw a value from the range of a number, sometimes MISSING where it may be, or any category in the data."""
    place = rng.random(len(feature))
    spread = codec.profile.spread
    value = spread[feature, (place * spread.shape[1]).astype(np.intp)]
    for j in codec.numeric:
        declared = codec.schema.features[j]
        if declared.declared:
            mine = (feature == j) & (rng.random(len(feature)) < config.declared_range_share)
            low, high = max(declared.lower, -1e100), min(declared.upper, 1e100)
            value[mine] = np.round(low + place[mine] * (high - low), declared.decimals)
    for j in codec.nullable:
        value[(feature == j) & (rng.random(len(feature)) < config.missing_share)] = MISSING
    for j, held in codec.observed.items():
        mine = feature == j
        value[mine] = held[(place[mine] * len(held)).astype(np.intp)]
    return np.asarray(value)


def lowest_score(scores: Floats | None, config: SurrogateConfig = DEFAULTS) -> float:
    """Return the lower end of scores: half the smallest probability above 0 if 0 is frequent, as in averages of trees."""
    if scores is None or not len(scores):
        return NO_LIMIT
    zero = scores <= ZERO_SCORE
    if zero.all() or float(zero.any(axis=1).mean()) <= config.zero_score_share:
        return NO_LIMIT
    return float(np.where(zero, np.inf, scores).min() - np.log(2.0))


def leads(predictions: Predictions, classes: int, lowest: float = NO_LIMIT) -> Floats:
    """Return the training targets: log-odds of two classes, centred scores of several, or labels as ±1."""
    if predictions.scores is None:
        truth = np.where(predictions.classes[:, None] == np.arange(classes), 1.0, -1.0)
        return np.asarray(truth[:, 1:2] if classes == 2 else truth)
    scores = np.maximum(predictions.scores, lowest)
    return np.asarray(scores[:, 1:2] - scores[:, :1] if classes == 2 else scores - scores.mean(axis=1, keepdims=True))


def train_surrogate(
    codes: Floats,
    predictions: Predictions,
    codec: Codec,
    classes: int,
    seed: int,
    lowest: float = NO_LIMIT,
    bends: Sequence[Floats] = (),
    config: SurrogateConfig = DEFAULTS,
) -> Surrogate | None:
    """Return the surrogate, None with too few rows: the search then evaluates the model instead."""
    usable = np.flatnonzero(predictions.classes >= 0)
    if len(usable) < config.min_rows:
        return None
    rng = np.random.default_rng(seed)
    usable = rng.permutation(usable)
    tables = _Tables(codec, bends, config)
    truth = leads(predictions, classes, lowest)[usable]
    scored = predictions.scores is not None
    scale = float(truth.std()) or 1.0 if scored else 1.0
    held = min(config.held_out_rows, len(usable) // 5)
    rows, wanted = tables.matrix(codes[usable[held:]]), (truth[held:] / scale).astype(np.float32)
    with on_one_thread():
        first, last = _descend(rows, wanted, scored, codes.shape[1], rng, config)
    surrogate = Surrogate(
        knots=tables.knots,
        entries=tables.fold(first.weight.astype(np.float32)),
        start=tables.start,
        numeric=tables.numeric,
        bias=first.bias.astype(np.float32),
        weight=(last.weight * scale).astype(np.float32),
        offset=(last.bias * scale).astype(np.float32),
        error=0.0,
        agreement=0.0,
    )
    error, agreement = _quality(surrogate, codes[usable[:held]], truth[:held])
    return replace(surrogate, error=max(error, MIN_ERROR) if scored else config.label_error, agreement=agreement)


class _Tables:
    """The knots of every feature, and rows as weights on them."""

    def __init__(self, codec: Codec, bends: Sequence[Floats] = (), config: SurrogateConfig = DEFAULTS) -> None:
        self.codec = codec
        self.numeric = np.array([feature.numeric for feature in codec.schema.features])
        values = quantile_knots(codec, config)
        for j in codec.numeric if len(bends) else ():
            values[j] = np.union1d(values[j], bends[j])
        self.knots = np.concatenate(values)
        self.start = np.concatenate([[0], np.cumsum([len(some) for some in values])]).astype(np.int64)

    def matrix(self, codes: Floats) -> csr_array:
        """Return rows as weights on the knots, two per number and one per category, followed by the encoded numbers."""
        below, share, bent = self.places(codes)
        width = len(self.knots)
        above = np.minimum(below[:, self.numeric] + 1, width - 1)
        numbers = np.broadcast_to(width + np.arange(bent.shape[1]), bent.shape)
        columns = np.hstack([below, above, numbers]).astype(np.int32)
        weights = np.hstack([1 - share, share[:, self.numeric], bent])
        ends = np.arange(len(codes) + 1, dtype=np.int32) * columns.shape[1]
        return csr_array((weights.ravel(), columns.ravel(), ends), shape=(len(codes), width + bent.shape[1]))

    def places(self, codes: Floats) -> tuple[NDArray[np.int64], Floats32, Floats32]:
        """Return per value the entry at or below it and the share of the next one; and the encoded numbers."""
        below = np.empty(codes.shape, dtype=np.int64)
        share = np.zeros(codes.shape, dtype=np.float32)
        for j, numeric in enumerate(self.numeric):
            first, end = self.start[j], self.start[j + 1]
            if not numeric:
                below[:, j] = codes[:, j].astype(np.int64)
            else:
                knots = self.knots[first:end]
                below[:, j] = place = np.clip(
                    np.searchsorted(knots, codes[:, j], side="right") - 1, 0, max(0, len(knots) - 2)
                )
                width = knots[np.minimum(place + 1, len(knots) - 1)] - knots[place]
                share[:, j] = np.clip((codes[:, j] - knots[place]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
            below[:, j] += first
        bent = self.codec.encode(codes)[:, : len(self.codec.numeric)].astype(np.float32)
        return below, share, bent

    def fold(self, weight: Floats32) -> Floats32:
        """Return entries (E, H) from the first weight (E + numbers, H); encoded numbers are added at the knots."""
        entries = weight[: len(self.knots)].copy()
        rows = np.repeat(self.codec.profile.median[None, :], len(self.knots), axis=0)
        for column, j in enumerate(self.codec.numeric):
            mine = slice(self.start[j], self.start[j + 1])
            rows[mine, j] = self.knots[mine]
            bent = self.codec.encode(_any_categories(rows[mine], self.codec))[:, column]
            entries[mine] += bent[:, None].astype(np.float32) * weight[len(self.knots) + column]
        return entries


def _any_categories(rows: Floats, codec: Codec) -> Floats:
    rows = rows.copy()
    rows[:, codec.categorical] = 0.0
    return rows


def _descend(
    rows: csr_array, truth: Floats32, scored: bool, features: int, rng: np.random.Generator, config: SurrogateConfig
) -> list[Layer]:
    network = DenseLayers((rows.shape[1], config.hidden, truth.shape[1]), (True, False), rng)
    adam, loss = Adam(network.parameters), huber_slope if scored else logistic_slope
    steps = int(np.clip(config.steps_per_feature * features, config.min_steps, config.max_steps))
    passes = steps * config.batch // len(truth) + 1
    order = np.concatenate([rng.permutation(len(truth)) for _ in range(passes)])
    for step in range(steps):
        batch = order[step * config.batch : (step + 1) * config.batch]
        network.backward(loss(network.forward(rows[batch]), truth[batch]))
        adam.step(network.gradient, config.learning_rate * one_cycle_rate(step, steps))
    return network.layers()


def huber_slope(outputs: Floats32, truth: Floats32) -> Floats32:
    """Return the derivative of the mean Huber loss."""
    return np.asarray(np.clip(outputs - truth, -1.0, 1.0) / truth.size)


def logistic_slope(outputs: Floats32, truth: Floats32) -> Floats32:
    """Return the derivative of the mean logistic loss, labels being ±1."""
    return np.asarray(-truth * expit(-outputs * truth) / truth.size)


def _quality(surrogate: Surrogate, codes: Floats, truth: Floats) -> tuple[float, float]:
    """Return the error of its margins near the boundary, and its agreement, on rows it was not trained on."""
    found = surrogate.outputs_of(codes[:, None])[:, 0]
    if truth.shape[1] == 1:
        same, lead, off = (found > 0) == (truth > 0), np.abs(truth), np.abs(found - truth)
    else:
        same = found.argmax(axis=1) == truth.argmax(axis=1)
        two = np.sort(truth, axis=1)[:, -2:]
        lead, off = (two[:, 1] - two[:, 0])[:, None], np.abs(found - truth).max(axis=1, keepdims=True)
    near = lead <= np.median(lead)
    return float(NORMAL_MAD * np.median(off[near])), float(np.mean(same))
