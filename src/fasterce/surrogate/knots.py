"""Knots of the surrogate's tables: quantiles of the data, and values at which the model was found to bend.

Trees jump at thresholds of their own. A small interval that flips may lie between two quantiles, where a surrogate with
quantile knots alone would miss it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fasterce.config import SurrogateConfig
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.typing import Floats, Indices

DEFAULTS = SurrogateConfig()

Leads = Callable[[Floats], Floats]


def quantile_knots(codec: Codec, config: SurrogateConfig = DEFAULTS) -> list[Floats]:
    """Return the knots of every feature: quantiles and bounds of numbers, every category."""
    share = config.total_knots // max(len(codec.numeric), 1)
    each = int(np.clip(share, config.min_knots, config.knots_per_feature))
    return [
        _knots(codec, j, each) if feature.numeric else np.arange(feature.n_codes, dtype=np.float64)
        for j, feature in enumerate(codec.schema.features)
    ]


def _knots(codec: Codec, j: int, count: int) -> Floats:
    profile, feature = codec.profile, codec.schema.features[j]
    pick = np.round(np.linspace(0, profile.levels.shape[1] - 1, count)).astype(np.intp)
    ends = [feature.lower, feature.upper] if feature.declared else []
    inside = [profile.levels[j, pick], profile.spread[j, pick], [end for end in ends if abs(end) < 1e100]]
    # MISSING is so far below all values that interpolation never reaches its entry.
    return np.unique(np.concatenate([*inside, [MISSING] * feature.nullable]))


def extra_knots(tables: Sequence[Floats], codec: Codec, config: SurrogateConfig = DEFAULTS) -> list[Floats]:
    """Return the knots of a surrogate's tables that are not quantile knots: where the model was found to bend."""
    return [np.setdiff1d(*pair) for pair in zip(tables, quantile_knots(codec, config), strict=True)]


def find_bends(
    leads: Leads,
    codes: Floats,
    classes: Indices,
    codec: Codec,
    rng: np.random.Generator,
    config: SurrogateConfig = DEFAULTS,
) -> list[Floats]:
    """Return per feature the values between quantile knots at which the model bends, none for categories.

    `leads` returns the margins (rows, C) of codes, NaN where the model fails; some `codes` of every class are varied. With
    too many numeric features for the budget of model rows no bends are searched for.
    """
    found = [np.zeros(0)] * len(codec.schema)
    budget = config.bend_model_rows
    most = budget // (config.min_bend_queries * max(len(codec.numeric), 1))
    values = [_values(codec, int(j), most) for j in codec.numeric if most >= config.min_bend_values]
    count = sum(len(each) for each in values)
    queries = int(np.clip(budget // max(count, 1), config.min_bend_queries, config.max_bend_queries))
    rows = _rows_of_every_class(classes, queries, rng)
    if not count or not rows.size:
        return found
    margins = leads(_varied(codes[rows], codec.numeric, values)).reshape(len(rows), count, -1)
    margins = margins[np.isfinite(margins).all(axis=(1, 2))]
    tolerance = config.min_bend * float(margins.std()) if margins.size else np.inf
    ends = np.cumsum([len(each) for each in values])
    curves = [np.moveaxis(part, 1, 2).reshape(-1, part.shape[1]) for part in np.split(margins, ends[:-1], axis=1)]
    knots = quantile_knots(codec, config)
    known = [np.flatnonzero(np.isin(own, knots[j])) for j, own in zip(codec.numeric, values, strict=True)]
    bent = [corners(*each, tolerance, config.bends_per_feature) for each in zip(values, curves, known, strict=True)]
    sharpest = np.sort(np.concatenate([sharp for _, sharp in bent]))[::-1][: config.total_bends]
    for j, own, (place, sharp) in zip(codec.numeric, values, bent, strict=True):
        found[j] = np.sort(own[place[sharp >= sharpest.min(initial=np.inf)]])
    return found


def corners(
    values: Floats, curves: Floats, known: Indices, tolerance: float, most: int = DEFAULTS.bends_per_feature
) -> tuple[Indices, Floats]:
    """Return the positions to add for lines through the ends and the known positions to follow all curves (N, V).

    Repeatedly adds the position with the largest error until it is within the tolerance; also returns the errors.
    """
    kept = np.union1d(known, [0, len(values) - 1])
    place: list[int] = []
    sharp: list[float] = []
    while len(curves) and len(place) < min(most, len(values) - len(kept)):
        off = np.sqrt(((curves - _between(values, curves[:, kept], kept)) ** 2).mean(axis=0))
        place.append(int(off.argmax()))
        sharp.append(float(off.max()))
        if sharp[-1] <= tolerance:
            return np.array(place[:-1], dtype=np.intp), np.array(sharp[:-1])
        kept = np.sort(np.append(kept, place[-1]))
    return np.array(place, dtype=np.intp), np.array(sharp)


def _between(values: Floats, known: Floats, kept: Indices) -> Floats:
    """Interpolate curves (N, V) linearly between the positions kept."""
    below = np.clip(np.searchsorted(kept, np.arange(len(values)), side="right") - 1, 0, max(0, len(kept) - 2))
    above = np.minimum(below + 1, len(kept) - 1)
    width = values[kept[above]] - values[kept[below]]
    share = np.where(width > 0, (values - values[kept[below]]) / np.where(width > 0, width, 1.0), 0.0)
    return np.asarray(known[:, below] * (1 - share) + known[:, above] * share)


def _values(codec: Codec, j: int, most: int) -> Floats:
    """Return quantiles over rows and over distinct values, thinned to `most`."""
    every = np.unique(np.concatenate([codec.profile.levels[j], codec.profile.spread[j]]))
    return every[np.unique(np.round(np.linspace(0, len(every) - 1, most)).astype(np.intp))]


def _rows_of_every_class(classes: Indices, count: int, rng: np.random.Generator) -> Indices:
    """Return `count` rows at random, the same number of each class."""
    seen = np.unique(classes[classes >= 0])
    each = -(-count // max(len(seen), 1))
    drawn = [rng.permutation(np.flatnonzero(classes == label))[:each] for label in seen]
    return np.concatenate([np.zeros(0, dtype=np.intp), *drawn])[:count]


def _varied(rows: Floats, features: Indices, values: list[Floats]) -> Floats:
    """Return every row with every value of every feature."""
    feature = np.repeat(features, [len(some) for some in values])
    varied = np.repeat(rows[:, None, :], len(feature), axis=1)
    varied[:, np.arange(len(feature)), feature] = np.concatenate(values)
    return np.asarray(varied.reshape(-1, rows.shape[1]))


def at_bends(
    bends: Sequence[Floats],
    feature: Indices,
    value: Floats,
    rng: np.random.Generator,
    config: SurrogateConfig = DEFAULTS,
) -> Floats:
    """Move some values of features to a bend of the feature; more of them, the more bends it has."""
    count = np.array([len(some) for some in bends])
    padded = np.zeros((len(bends), max(1, count.max(initial=0))))
    for j, some in enumerate(bends):
        padded[j, : len(some)] = some
    share = np.minimum(config.edits_per_bend * count, config.max_bend_edits)
    place, moved = rng.random(len(feature)), rng.random(len(feature)) < share[feature]
    return np.where(moved, padded[feature, (place * count[feature]).astype(np.intp)], value)
