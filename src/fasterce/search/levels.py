"""Values to try for every row: quantiles over rows and over distinct values, and every category.

Where a value may be missing, that is one more.
"""

from collections.abc import Sequence

import numpy as np

from fasterce.config import SearchConfig
from fasterce.data.codec import Codec
from fasterce.typing import Floats, Indices

DEFAULTS = SearchConfig()

Levels = tuple[Indices, Floats]


def coarse_levels(codec: Codec, config: SearchConfig = DEFAULTS) -> Levels:
    """Return few values per feature: quantiles over rows and over distinct values, and every frequent category."""
    return _thinned(codec, _levels_each(codec, config.total_coarse_levels, config.coarse_levels, config.min_levels))


def dense_levels(codec: Codec, bends: Sequence[Floats] = (), config: SearchConfig = DEFAULTS) -> Levels:
    """Return more values, for ranking by the surrogate, which costs no model rows.

    `bends` are values per feature where the model was seen to bend: the knots of its surrogate that are no quantiles.
    """
    return _thinned(codec, _levels_each(codec, config.total_dense_levels, config.dense_levels, config.min_levels), bends)


def _thinned(codec: Codec, count: int, besides: Sequence[Floats] = ()) -> Levels:
    numbers = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        merged = _quantiles(codec, int(j), count)
        thinned = merged[np.unique(np.round(np.linspace(0, len(merged) - 1, count)).astype(np.intp))]
        numbers[j] = _or_missing(codec, int(j), np.union1d(thinned, besides[j]) if len(besides) else thinned)
    for block in codec.blocks:
        numbers[block.feature] = _or_missing(codec, block.feature, block.codes.astype(np.float64))
    return _listed(numbers)


def fine_levels(codec: Codec, config: SearchConfig = DEFAULTS) -> Levels:
    """Return many values, for rows where fewer find nothing, and every category in the data."""
    count = _levels_each(codec, config.total_fine_levels, config.fine_levels, config.min_levels)
    values = [np.full(0, 0.0)] * len(codec.schema)
    for j in codec.numeric:
        values[j] = _or_missing(codec, int(j), _quantiles(codec, int(j), count))
    for j, held in codec.observed.items():
        values[j] = held.astype(np.float64)
    return _listed(values)


def _levels_each(codec: Codec, in_all: int, most: int, least: int) -> int:
    """Return the number of levels per feature, fewer for many features: they cost memory and model rows."""
    return int(np.clip(in_all // max(len(codec.numeric), 1), least, most))


def _quantiles(codec: Codec, j: int, count: int) -> Floats:
    pick = np.round(np.linspace(0, codec.profile.levels.shape[1] - 1, count)).astype(np.intp)
    return np.unique(np.concatenate([codec.profile.levels[j, pick], codec.profile.spread[j, pick]]))


def _or_missing(codec: Codec, j: int, values: Floats) -> Floats:
    feature = codec.schema.features[j]
    return np.union1d(values, feature.missing_code) if feature.missing == "may_appear" else values


def _listed(values: list[Floats]) -> Levels:
    feature = np.repeat(np.arange(len(values)), [len(some) for some in values])
    return feature.astype(np.intp), np.concatenate(values)
