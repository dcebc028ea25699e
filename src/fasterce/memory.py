"""What an explainer remembers of the data it has seen, for `update` and `drift`: counts and sums, and rows if it may."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder
from fasterce.profile import LEVELS, Floats, Profile, bend, positive
from fasterce.schema import MISSING, Schema
from fasterce.surrogate.runtime import Surrogate

BINS = 10
ROWS_AT_ONCE = 1_000

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Memory:
    """Everything here but `rows` is a sum or a count, and can be added to exactly.

    seen, updates   rows seen since `fit` and calls of `update` since then, arrays without dimensions
    mean, squares   of every feature, the second as the sum of squared deviations
    cuts            (features, BINS - 1) where numbers are cut into bins, as `fit` found them
    counts          how many rows fell into every bin and category, feature after feature
    classes         how often the model answered each class
    reconstruction  mean and deviation of the loss of rows kept from the autoencoder's training, and how many there were
    rows            a fair sample of all rows seen, none where rows must not be kept
    """

    seen: NDArray[np.int64]
    updates: NDArray[np.int64]
    mean: Floats
    squares: Floats
    cuts: Floats
    counts: NDArray[np.int64]
    classes: NDArray[np.int64]
    reconstruction: Floats
    rows: Floats

    @classmethod
    def start(cls, codes: Floats, rows: Floats, classes: NDArray[np.int64], unseen: Floats, schema: Schema) -> "Memory":
        """`unseen` holds the losses of rows kept from training, `rows` what may be kept of `codes`."""
        inner = np.linspace(0, 1, BINS + 1)[1:-1]
        cuts = np.quantile(codes, inner, axis=0, method="nearest").T.copy()
        mean = codes.mean(axis=0)
        return cls(
            seen=np.asarray(len(codes), dtype=np.int64),
            updates=np.asarray(0, dtype=np.int64),
            mean=mean,
            squares=((codes - mean) ** 2).sum(axis=0),
            cuts=cuts,
            counts=tally(codes, cuts, schema),
            classes=classes,
            reconstruction=summed_up(unseen),
            rows=rows,
        )

    def and_rows(self, new: Floats, schema: Schema) -> "Memory":
        """The same with more rows counted; `rows` and what depends on the model stay as they are."""
        before, now = int(self.seen), len(new)
        gap = new.mean(axis=0) - self.mean
        return replace(
            self,
            seen=np.asarray(before + now, dtype=np.int64),
            updates=np.asarray(self.updates + 1),
            mean=self.mean + gap * (now / (before + now)),
            squares=self.squares + ((new - new.mean(axis=0)) ** 2).sum(axis=0) + gap**2 * (before * now / (before + now)),
            counts=self.counts + tally(new, self.cuts, schema),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def sizes(schema: Schema) -> list[int]:
    """How many counts every feature has."""
    return [BINS + feature.gappy if feature.numeric else feature.states for feature in schema.features]


def tally(codes: Floats, cuts: Floats, schema: Schema) -> NDArray[np.int64]:
    """How many rows fall into every bin and category, feature after feature."""
    counts = []
    for j, (feature, size) in enumerate(zip(schema.features, sizes(schema), strict=True)):
        place = np.searchsorted(cuts[j], codes[:, j], side="right") if feature.numeric else codes[:, j].astype(np.intp)
        if feature.numeric and feature.gappy:
            place = np.where(codes[:, j] == MISSING, BINS, place)
        counts.append(np.bincount(place, minlength=size))
    return np.concatenate(counts).astype(np.int64)


def merged_profile(profile: Profile, memory: Memory, new: Floats, schema: Schema) -> Profile:
    """The profile of everything seen and `new`.

    Where all rows are remembered it is measured anew. Otherwise ranges, deviations and shares are exact, and quantiles come
    from the remembered rows, or without these from the old quantiles, each standing for as many rows as it has to.
    """
    if len(memory.rows) == memory.seen:
        return Profile.measure(np.concatenate([memory.rows, new]), schema)
    old = memory.rows if len(memory.rows) else profile.levels.T
    points = np.concatenate([old, new])
    weight = np.repeat([float(memory.seen) / len(old), 1.0], [len(old), len(new)])
    after = memory.and_rows(new, schema)
    low, high = np.minimum(profile.low, new.min(axis=0)), np.maximum(profile.high, new.max(axis=0))
    std = np.sqrt(after.squares / after.seen)
    levels = weighted_quantiles(points, weight, np.linspace(0, 1, LEVELS))
    levels[:, 0], levels[:, -1] = low, high
    median = levels[:, LEVELS // 2]
    mad = weighted_quantiles(np.abs(points - median), weight, np.array([0.5]))[:, 0]
    bent = bend(points, median, positive(std))
    bent_mean = np.average(bent, axis=0, weights=weight)
    known = np.concatenate([points, profile.spread.T])
    return Profile(
        low=low,
        high=high,
        median=median,
        std=positive(std),
        mad=positive(mad, std),
        bent_mean=bent_mean,
        bent_std=positive(np.sqrt(np.average((bent - bent_mean) ** 2, axis=0, weights=weight))),
        levels=levels,
        spread=np.stack([np.quantile(np.unique(c), np.linspace(0, 1, LEVELS), method="nearest") for c in known.T]),
        frequency=_shares(after, schema),
    )


def _shares(memory: Memory, schema: Schema) -> Floats:
    categorical = np.repeat([not feature.numeric for feature in schema.features], sizes(schema))
    return np.asarray(memory.counts[categorical] / float(memory.seen))


def weighted_quantiles(points: Floats, weight: Floats, shares: Floats) -> Floats:
    """(features, shares): the value of every feature below which so much of the weight lies."""
    order = np.argsort(points, axis=0, kind="stable")
    below = np.cumsum(weight[order], axis=0) - weight[order] / 2
    ordered = np.take_along_axis(points, order, axis=0)
    found = [np.searchsorted(column, shares * weight.sum()) for column in below.T]
    return np.stack([column[np.minimum(place, len(points) - 1)] for column, place in zip(ordered.T, found, strict=True)])


def summed_up(losses: Floats) -> Floats:
    """Mean, deviation and number of losses."""
    return np.array([losses.mean(), losses.std(), len(losses)]) if len(losses) else np.zeros(3)


def reconstruction_losses(autoencoder: Autoencoder, codec: Codec, matrix: Floats) -> Floats:
    """The paper's loss of every row: distance over the numbers, one minus cosine for every category."""
    rebuilt = autoencoder.decode(autoencoder.encode(matrix))
    numbers = len(codec.numeric)
    loss = np.zeros(len(matrix))
    if numbers:
        loss += np.sqrt(((matrix - rebuilt)[:, :numbers] ** 2).mean(axis=1))
    for block in codec.blocks:
        truth, guess = matrix[:, block.columns], rebuilt[:, block.columns]
        length = np.sqrt((guess**2).sum(axis=1)) + np.finfo(float).tiny
        loss += truth.sum(axis=1) - (truth * guess).sum(axis=1) / length
    return loss


def copy_agreement(surrogate: Surrogate | None, codes: Floats, classes: Indices) -> float:
    """How often the copy names the class the model names; 0 without a copy."""
    if surrogate is None or not len(codes):
        return 0.0
    parts = [codes[start : start + ROWS_AT_ONCE] for start in range(0, len(codes), ROWS_AT_ONCE)]
    return float(np.mean(np.concatenate([_named(surrogate, part) for part in parts]) == classes))


def _named(surrogate: Surrogate, codes: Floats) -> Indices:
    own = surrogate.read(codes, np.arange(codes.shape[1]))
    found = surrogate.outputs(surrogate.hidden(own)[:, None])[:, 0]
    return np.asarray(found.argmax(axis=1) if found.shape[1] > 1 else found[:, 0] > 0).astype(np.intp)
