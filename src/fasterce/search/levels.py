"""Which values to try for everyone: quantiles over people and over distinct values, and every category.

Where a value may go missing, that is one more.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.surrogate.knots import quantile_knots

COARSE, FEWEST, COARSE_IN_ALL = 11, 5, 700
DENSE, DENSE_IN_ALL = 24, 700
FINE, FINE_IN_ALL = 129, 1500

Indices = NDArray[np.intp]
Levels = tuple[Indices, Floats]


def coarse_levels(codec: Codec) -> Levels:
    """Which values to try for everyone: quantiles over people and over distinct values, and every frequent category."""
    return _thinned(codec, _levels_each(codec, COARSE_IN_ALL, COARSE))


def dense_levels(codec: Codec, knots: Sequence[Floats] = ()) -> Levels:
    """The same but more of them, where ranking them costs no question: also where the model was seen to bend, which are
    the knots its copy has besides those every copy has."""
    bends = [np.setdiff1d(*pair) for pair in zip(knots, quantile_knots(codec), strict=True)] if len(knots) else ()
    return _thinned(codec, _levels_each(codec, DENSE_IN_ALL, DENSE), bends)


def _thinned(codec: Codec, count: int, besides: Sequence[Floats] = ()) -> Levels:
    numbers = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        merged = _quantiles(codec, int(j), count)
        thinned = merged[np.unique(np.round(np.linspace(0, len(merged) - 1, count)).astype(np.intp))]
        numbers[j] = _or_missing(codec, int(j), np.union1d(thinned, besides[j]) if len(besides) else thinned)
    for block in codec.blocks:
        numbers[block.feature] = _or_missing(codec, block.feature, block.codes.astype(np.float64))
    return _listed(numbers)


def fine_levels(codec: Codec) -> Levels:
    """For the few rows where that finds nothing: many more values, and every category anyone has."""
    count = _levels_each(codec, FINE_IN_ALL, FINE)
    values = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        values[j] = _or_missing(codec, int(j), _quantiles(codec, int(j), count))
    for j, held in codec.held.items():
        values[j] = held.astype(np.float64)
    return _listed(values)


def _levels_each(codec: Codec, in_all: int, most: int) -> int:
    """Fewer levels a feature where there are many features: questions cost memory and the model's time."""
    return int(np.clip(in_all // max(len(codec.numeric), 1), FEWEST, most))


def _quantiles(codec: Codec, j: int, count: int) -> Floats:
    pick = np.round(np.linspace(0, codec.profile.levels.shape[1] - 1, count)).astype(np.intp)
    return np.unique(np.concatenate([codec.profile.levels[j, pick], codec.profile.spread[j, pick]]))


def _or_missing(codec: Codec, j: int, values: Floats) -> Floats:
    feature = codec.schema.features[j]
    return np.union1d(values, feature.absent) if feature.missing == "may_appear" else values


def _listed(values: list[Floats]) -> Levels:
    feature = np.repeat(np.arange(len(values)), [len(some) for some in values])
    return feature.astype(np.intp), np.concatenate(values)


def nearest_level(codec: Codec) -> Indices:
    """For every edit made of the fine levels the position of the coarse edit of the same feature with the nearest value;
    -1 for the ends of a row's own range."""
    (coarse, coarse_value), (fine, fine_value) = (_laid_out(codec, some(codec)) for some in (coarse_levels, fine_levels))
    near = np.full(len(fine), -1, dtype=np.intp)
    for j in np.unique(fine):
        mine = np.flatnonzero((fine == j) & np.isfinite(fine_value))
        known = np.flatnonzero((coarse == j) & np.isfinite(coarse_value))
        if known.size:
            near[mine] = known[np.abs(fine_value[mine][:, None] - coarse_value[known]).argmin(axis=1)]
    return near


def _laid_out(codec: Codec, levels: Levels) -> Levels:
    """Levels in the order `edits` puts them, with NaN for the ends that differ from row to row."""
    feature, value = levels
    numeric, ends = np.isin(feature, codec.numeric), codec.numeric
    gaps = np.full(2 * len(ends), np.nan)
    order = np.concatenate([feature[numeric], ends, ends, feature[~numeric]])
    return order, np.concatenate([value[numeric], gaps, value[~numeric]])
