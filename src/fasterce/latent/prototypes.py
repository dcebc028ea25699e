"""Measure the data: typical distances within a class, features that change together, prototypes of each class."""

import numpy as np
from threadpoolctl import threadpool_limits

from fasterce.config import LatentConfig
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.search.distance import Distance
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = LatentConfig()


def typical_distances(
    distance: Distance, codes: Floats, classes: Indices, count: int, config: LatentConfig = DEFAULTS
) -> Floats:
    """Return per class the median distance from a row to its nearest neighbour of the same class."""
    typical = np.zeros(count)
    for label in range(count):
        mine = codes[classes == label]
        step = max(1, len(mine) // config.typical_distance_rows)
        away = [distance.total(mine, row) for row in mine[::step][: config.typical_distance_rows]]
        # The smallest distance is that to the row itself.
        nearest = [float(np.partition(each, 1)[1]) for each in away if len(each) > 1]
        typical[label] = float(np.median(nearest)) if nearest else 0.0
    return typical


def prototypes(latent: Floats, classes: Indices, seed: int, config: LatentConfig = DEFAULTS) -> tuple[Floats, Indices]:
    """Return a few centres of every class in latent space, and their classes."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - large, and only `fit` needs it

    centres, labels = [], []
    with threadpool_limits(1):
        for label in np.unique(classes):
            mine = latent[classes == label][: config.prototype_rows]
            count = int(np.clip(len(mine) // config.rows_per_prototype, 1, config.prototypes_per_class))
            found = KMeans(count, n_init=1, max_iter=50, random_state=seed).fit(mine).cluster_centers_
            centres.append(np.asarray(found, dtype=np.float64))
            labels += [label] * count
    return np.concatenate(centres), np.array(labels, dtype=np.intp)


def linked_groups(codes: Floats, codec: Codec, config: LatentConfig = DEFAULTS) -> Indices:
    """Return a group number per feature; features of one group nearly determine each other.

    Two numbers are linked by their rank correlation, two categories if each predicts the other nearly always and much
    better than the most frequent category does, a category and a number by the share of the variance of its ranks that the
    category explains. Rows with a missing number are left out.
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - large, and only `fit` needs it

    features = codes.shape[1]
    group = np.arange(features)
    if features > config.linked_max_features:
        return group
    some = codes[: config.linked_max_rows]
    there = some != MISSING
    rank = np.stack([rankdata(column) for column in some.T], axis=1)
    numeric = np.isin(np.arange(features), codec.numeric)
    for a in range(features):
        for b in range(a):
            both = there[:, a] & there[:, b]
            if group[a] != group[b] and _linked(some[both][:, [a, b]], rank[both][:, [a, b]], numeric[[a, b]], config):
                group[group == group[a]] = group[b]
    return np.unique(group, return_inverse=True)[1].astype(np.intp)


def _linked(values: Floats, rank: Floats, numeric: Mask, config: LatentConfig) -> bool:
    if len(rank) < config.linked_min_rows or (rank.std(axis=0) == 0).any():
        return False
    if numeric.all():
        return bool(abs(np.asarray(np.corrcoef(rank.T))[0, 1]) >= config.linked_threshold)
    if numeric.any():
        number, category = (0, 1) if numeric[0] else (1, 0)
        return _explained_variance(rank[:, number], values[:, category].astype(np.intp)) >= config.linked_threshold
    left, right = values.T.astype(np.intp)
    return _predicts(left, right, config) and _predicts(right, left, config)


def _predicts(left: Indices, right: Indices, config: LatentConfig) -> bool:
    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1.0)
    accuracy, base = table.max(axis=1).sum() / len(left), table.sum(axis=0).max() / len(left)
    return bool(accuracy >= config.linked_threshold and base <= config.linked_max_base)


def _explained_variance(rank: Floats, category: Indices) -> float:
    count = np.maximum(np.bincount(category), 1)
    mean = np.bincount(category, weights=rank) / count
    return float(1.0 - ((rank - mean[category]) ** 2).sum() / ((rank - rank.mean()) ** 2).sum())
