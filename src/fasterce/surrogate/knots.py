"""Where the copy's tables have entries: quantiles of the data, and values at which the model was seen to bend.

Trees jump at thresholds of their own. A pocket that flips may lie between two quantiles, and a copy that knows only these
would never see it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.schema import MISSING

KNOTS, KNOTS_IN_ALL, FEWEST_KNOTS = 16, 1000, 6
ASKED = 40_000
FEWEST_ROWS, MOST_ROWS = 8, 64
FEWEST_VALUES = 16
MOST, MOST_IN_ALL = 16, 128
LITTLE = 0.05
A_BEND, ALL_BENDS = 0.05, 0.25

Indices = NDArray[np.intp]
Leads = Callable[[Floats], Floats]


def quantile_knots(codec: Codec) -> list[Floats]:
    """Where the tables have entries in any case: quantiles and bounds of numbers, every category."""
    each = int(np.clip(KNOTS_IN_ALL // max(len(codec.numeric), 1), FEWEST_KNOTS, KNOTS))
    return [
        _knots(codec, j, each) if feature.numeric else np.arange(feature.states, dtype=np.float64)
        for j, feature in enumerate(codec.schema.features)
    ]


def _knots(codec: Codec, j: int, count: int) -> Floats:
    profile, feature = codec.profile, codec.schema.features[j]
    pick = np.round(np.linspace(0, profile.levels.shape[1] - 1, count)).astype(np.intp)
    ends = [feature.lower, feature.upper] if feature.declared else []
    inside = [profile.levels[j, pick], profile.spread[j, pick], [end for end in ends if abs(end) < 1e100]]
    # As the first knot, missing has an entry of its own: from so far away, a value below all others is at the next one.
    return np.unique(np.concatenate([*inside, [MISSING] * feature.gappy]))


def find_bends(leads: Leads, codes: Floats, classes: Indices, codec: Codec, rng: np.random.Generator) -> list[Floats]:
    """For every feature of the schema the values at which it bends between quantile knots, none for categories.

    `leads` (rows, C) of codes is what the model says, NaN where it fails; some `codes` of every class are varied. Of very
    many numbers there is too much to ask: then none are looked for.
    """
    found = [np.zeros(0)] * len(codec.schema)
    most = ASKED // (FEWEST_ROWS * max(len(codec.numeric), 1))
    values = [_values(codec, int(j), most) for j in codec.numeric if most >= FEWEST_VALUES]
    count = sum(len(some) for some in values)
    rows = _rows_of_every_class(classes, int(np.clip(ASKED // max(count, 1), FEWEST_ROWS, MOST_ROWS)), rng)
    if not count or not rows.size:
        return found
    said = leads(_varied(codes[rows], codec.numeric, values)).reshape(len(rows), count, -1)
    said = said[np.isfinite(said).all(axis=(1, 2))]
    little = LITTLE * float(said.std()) if said.size else np.inf
    ends = np.cumsum([len(some) for some in values])
    curves = [np.moveaxis(part, 1, 2).reshape(-1, part.shape[1]) for part in np.split(said, ends[:-1], axis=1)]
    knots = quantile_knots(codec)
    known = [np.flatnonzero(np.isin(own, knots[j])) for j, own in zip(codec.numeric, values, strict=True)]
    bent = [corners(*each, little) for each in zip(values, curves, known, strict=True)]
    sharpest = np.sort(np.concatenate([sharp for _, sharp in bent]))[::-1][:MOST_IN_ALL]
    for j, own, (place, sharp) in zip(codec.numeric, values, bent, strict=True):
        found[j] = np.sort(own[place[sharp >= sharpest.min(initial=np.inf)]])
    return found


def corners(values: Floats, curves: Floats, known: Indices, little: float) -> tuple[Indices, Floats]:
    """Where straight lines through the ends and the places known so far are farthest from all curves (N, V), again and
    again; and how far that was."""
    kept = np.union1d(known, [0, len(values) - 1])
    place: list[int] = []
    sharp: list[float] = []
    while len(curves) and len(place) < min(MOST, len(values) - len(kept)):
        off = np.sqrt(((curves - _between(values, curves[:, kept], kept)) ** 2).mean(axis=0))
        place.append(int(off.argmax()))
        sharp.append(float(off.max()))
        if sharp[-1] <= little:
            return np.array(place[:-1], dtype=np.intp), np.array(sharp[:-1])
        kept = np.sort(np.append(kept, place[-1]))
    return np.array(place, dtype=np.intp), np.array(sharp)


def _between(values: Floats, known: Floats, kept: Indices) -> Floats:
    """Curves (N, V) drawn straight through what is known at the positions kept."""
    below = np.clip(np.searchsorted(kept, np.arange(len(values)), side="right") - 1, 0, max(0, len(kept) - 2))
    above = np.minimum(below + 1, len(kept) - 1)
    width = values[kept[above]] - values[kept[below]]
    share = np.where(width > 0, (values - values[kept[below]]) / np.where(width > 0, width, 1.0), 0.0)
    return np.asarray(known[:, below] * (1 - share) + known[:, above] * share)


def _values(codec: Codec, j: int, most: int) -> Floats:
    """Quantiles over people and over distinct values, as many as can be asked about."""
    every = np.unique(np.concatenate([codec.profile.levels[j], codec.profile.spread[j]]))
    return every[np.unique(np.round(np.linspace(0, len(every) - 1, most)).astype(np.intp))]


def _rows_of_every_class(classes: Indices, count: int, rng: np.random.Generator) -> Indices:
    """As many of each, of the first ones where there are more classes than rows wanted."""
    seen = np.unique(classes[classes >= 0])
    each = -(-count // max(len(seen), 1))
    drawn = [rng.permutation(np.flatnonzero(classes == label))[:each] for label in seen]
    return np.concatenate([np.zeros(0, dtype=np.intp), *drawn])[:count]


def _varied(rows: Floats, features: Indices, values: list[Floats]) -> Floats:
    """Every row with every value of every feature in its place."""
    feature = np.repeat(features, [len(some) for some in values])
    varied = np.repeat(rows[:, None, :], len(feature), axis=1)
    varied[:, np.arange(len(feature)), feature] = np.concatenate(values)
    return np.asarray(varied.reshape(-1, rows.shape[1]))


def at_bends(bends: Sequence[Floats], feature: Indices, value: Floats, rng: np.random.Generator) -> Floats:
    """Values of many features, some of them moved to where the feature bends: more of them, the more often it does."""
    count = np.array([len(some) for some in bends])
    padded = np.zeros((len(bends), max(1, count.max(initial=0))))
    for j, some in enumerate(bends):
        padded[j, : len(some)] = some
    place, moved = rng.random(len(feature)), rng.random(len(feature)) < np.minimum(A_BEND * count, ALL_BENDS)[feature]
    return np.where(moved, padded[feature, (place * count[feature]).astype(np.intp)], value)
