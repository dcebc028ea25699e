"""What an explainer remembers of the data it has seen, for `update` and `drift`: counts and sums, and rows if it may."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder
from fasterce.predictor import Answers, Numbers
from fasterce.profile import LEVELS, Floats, Profile, bend, positive
from fasterce.schema import MISSING, Schema
from fasterce.surrogate.runtime import Surrogate

BINS = 10
INNER = np.linspace(0, 1, BINS + 1)[1:-1]
ROWS_AT_ONCE = 1_000
SLACK = 1e-9

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Memory:
    """Everything here but `rows` is a sum or a count, and can be added to exactly.

    seen, updates   rows seen since `fit` and calls of `update` since then, arrays without dimensions
    mean, squares   of every feature where it is not missing, the second as the sum of squared deviations
    cuts            (features, BINS - 1) where numbers are cut into bins, as `fit` found them
    counts          how many rows fell into every bin and category, feature after feature; missing ones come last
    answer_cuts     where the model's answers are cut into bins if they are numbers, empty if they are classes
    classes         how often the model answered each class, or a number of each bin
    reconstruction  mean and deviation of the loss of rows kept from the autoencoder's training, and how many there were
    rows            a fair sample of all rows seen, none where rows must not be kept
    """

    seen: NDArray[np.int64]
    updates: NDArray[np.int64]
    mean: Floats
    squares: Floats
    cuts: Floats
    counts: NDArray[np.int64]
    answer_cuts: Floats
    classes: NDArray[np.int64]
    reconstruction: Floats
    rows: Floats

    @classmethod
    def start(
        cls,
        codes: Floats,
        rows: Floats,
        answer_cuts: Floats,
        classes: NDArray[np.int64],
        unseen: Floats,
        schema: Schema,
    ) -> "Memory":
        """`unseen` holds the losses of rows kept from training, `rows` what may be kept of `codes`."""
        cuts = np.quantile(codes, INNER, axis=0, method="nearest").T.copy()
        for j, values in present_values(codes, schema):
            cuts[j] = np.quantile(values, INNER, method="nearest") if len(values) else 0.0
        _, mean, squares = moments(codes, schema)
        return cls(
            seen=np.asarray(len(codes), dtype=np.int64),
            updates=np.asarray(0, dtype=np.int64),
            mean=mean,
            squares=squares,
            cuts=cuts,
            counts=tally(codes, cuts, schema),
            answer_cuts=answer_cuts,
            classes=classes,
            reconstruction=summed_up(unseen),
            rows=rows,
        )

    def and_rows(self, new: Floats, schema: Schema) -> "Memory":
        """The same with more rows counted; `rows` and what depends on the model stay as they are."""
        before, (now, mean, squares) = self.present(schema), moments(new, schema)
        gap, both = mean - self.mean, np.maximum(before + now, 1)
        return replace(
            self,
            seen=np.asarray(int(self.seen) + len(new), dtype=np.int64),
            updates=np.asarray(self.updates + 1),
            mean=self.mean + gap * (now / both),
            squares=self.squares + squares + gap**2 * (before * now / both),
            counts=self.counts + tally(new, self.cuts, schema),
        )

    def present(self, schema: Schema) -> NDArray[np.int64]:
        """How many values of every feature were there; a missing category is a category."""
        present, last = np.full(len(schema), self.seen), np.cumsum(sizes(schema)) - 1
        gappy = gappy_numbers(schema)
        present[gappy] -= self.counts[last[gappy]]
        return present

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name; `answer_cuts` only where there are any."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in named.items() if name != "answer_cuts" or len(array)}


def sizes(schema: Schema) -> list[int]:
    """How many counts every feature has."""
    return [BINS + feature.gappy if feature.numeric else feature.states for feature in schema.features]


def gappy_numbers(schema: Schema) -> list[int]:
    return [j for j, feature in enumerate(schema.features) if feature.numeric and feature.gappy]


def present_values(codes: Floats, schema: Schema) -> Iterator[tuple[int, Floats]]:
    """Every number that may be missing, with the values that are there."""
    for j in gappy_numbers(schema):
        yield j, codes[codes[:, j] != MISSING, j]


def moments(codes: Floats, schema: Schema) -> tuple[NDArray[np.int64], Floats, Floats]:
    """How many values every feature has, their mean and the sum of their squared deviations; zeros where there are none."""
    present, mean = np.full(codes.shape[1], len(codes)), codes.mean(axis=0)
    squares = ((codes - mean) ** 2).sum(axis=0)
    for j, values in present_values(codes, schema):
        present[j], mean[j] = len(values), values.mean() if len(values) else 0.0
        squares[j] = ((values - mean[j]) ** 2).sum()
    return present, mean, squares


def tally(codes: Floats, cuts: Floats, schema: Schema) -> NDArray[np.int64]:
    """How many rows fall into every bin and category, feature after feature."""
    counts = []
    for j, (feature, size) in enumerate(zip(schema.features, sizes(schema), strict=True)):
        place = np.searchsorted(cuts[j], codes[:, j], side="right") if feature.numeric else codes[:, j].astype(np.intp)
        if feature.numeric and feature.gappy:
            place = np.where(codes[:, j] == MISSING, BINS, place)
        counts.append(np.bincount(place, minlength=size))
    return np.concatenate(counts).astype(np.int64)


def cuts_of_answers(answers: Answers, numbers: Numbers | None) -> Floats:
    """Where a model's numbers are to be cut into bins of as many answers each; nowhere if it answers classes."""
    if numbers is None or answers.scores is None:
        return np.zeros(0)
    # A little lower, so that an answer given again with another last bit falls into the same bin.
    return np.asarray(np.quantile(numbers.values(answers.scores), INNER, method="nearest") - SLACK * numbers.scale)


def tally_answers(answers: Answers, numbers: Numbers | None, cuts: Floats, classes: int) -> NDArray[np.int64]:
    """How often each class was answered, or a number of each bin."""
    if numbers is None or answers.scores is None:
        return np.bincount(answers.classes, minlength=classes).astype(np.int64)
    place = np.searchsorted(cuts, numbers.values(answers.scores), side="right")
    return np.bincount(place, minlength=BINS).astype(np.int64)


def merged_profile(profile: Profile, memory: Memory, new: Floats, schema: Schema) -> Profile:
    """The profile of everything seen and `new`.

    Where all rows are remembered it is measured anew. Otherwise ranges, deviations and shares are exact, and quantiles come
    from the remembered rows, or without these from the old quantiles, each standing for as many rows as it has to.
    """
    if len(memory.rows) == memory.seen:
        return Profile.measure(np.concatenate([memory.rows, new]), schema)
    old = memory.rows if len(memory.rows) else profile.levels.T
    after, before = memory.and_rows(new, schema), memory.present(schema)
    std = np.sqrt(after.squares / np.maximum(after.present(schema), 1))
    merged = _merged(old, float(memory.seen), new, profile.spread.T, std)
    for j in gappy_numbers(schema):
        mine, fresh, levels, spread = (_present(part, j) for part in (old, new, profile.levels.T, profile.spread.T))
        mine = mine if len(mine) else levels
        if len(mine) + len(fresh):
            for name, values in _merged(mine, float(before[j]), fresh, spread, std[j : j + 1]).items():
                merged[name][j] = values[0]
    return Profile(**merged, frequency=_shares(after, schema))


def _present(points: Floats, j: int) -> Floats:
    return points[points[:, j] != MISSING, j : j + 1]


def _merged(old: Floats, seen: float, new: Floats, spread: Floats, std: Floats) -> dict[str, Floats]:
    """What a profile says of numbers, where `old` points stand for `seen` ones and `spread` reaches to both ends of them."""
    points = np.concatenate([old, new])
    weight = np.repeat([seen / max(len(old), 1), 1.0], [len(old), len(new)])
    known = np.concatenate([points, spread])
    low, high = known.min(axis=0), known.max(axis=0)
    levels = weighted_quantiles(points, weight, np.linspace(0, 1, LEVELS))
    levels[:, 0], levels[:, -1] = low, high
    median = levels[:, LEVELS // 2]
    mad = weighted_quantiles(np.abs(points - median), weight, np.array([0.5]))[:, 0]
    bent = bend(points, median, positive(std))
    bent_mean = np.average(bent, axis=0, weights=weight)
    return {
        "low": low,
        "high": high,
        "median": median,
        "std": positive(std),
        "mad": positive(mad, std),
        "bent_mean": bent_mean,
        "bent_std": positive(np.sqrt(np.average((bent - bent_mean) ** 2, axis=0, weights=weight))),
        "levels": levels,
        "spread": np.stack([np.quantile(np.unique(c), np.linspace(0, 1, LEVELS), method="nearest") for c in known.T]),
    }


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
    """The paper's loss of every row: distance over the numbers, one minus cosine for every category and every gap."""
    rebuilt = autoencoder.decode(autoencoder.encode(matrix))
    numbers = len(codec.numeric)
    loss = np.zeros(len(matrix))
    if numbers:
        loss += np.sqrt(((matrix - rebuilt)[:, :numbers] ** 2).mean(axis=1))
    for block in codec.one_hot:
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
