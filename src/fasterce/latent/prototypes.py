"""What people are like: how near they usually are to each other, what always goes together, who stands for a class."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from fasterce.codec import Codec
from fasterce.profile import Floats
from fasterce.schema import MISSING
from fasterce.search.distance import Distance

MEASURED = 300
PROTOTYPES, ROWS_A_PROTOTYPE, MOST_CLUSTERED = 8, 20, 3_000
LINKED, GUESSABLE = 0.97, 0.9
FEWEST_COMPARED, MOST_COMPARED, MOST_FEATURES = 10, 4_000, 150

Indices = NDArray[np.intp]


def typical_distances(distance: Distance, codes: Floats, classes: Indices, count: int) -> Floats:
    """For every class the median distance from one of its rows to the next one of the class that is not the same."""
    typical = np.zeros(count)
    for label in range(count):
        mine = codes[classes == label]
        step = max(1, len(mine) // MEASURED)
        gaps = [distance.total(mine, row) for row in mine[::step][:MEASURED]]
        nearest = [_second(gap) for gap in gaps if len(gap) > 1]
        typical[label] = float(np.median(nearest)) if nearest else 0.0
    return typical


def _second(gaps: Floats) -> float:
    """The distance to the nearest other row: one zero is the row itself."""
    return float(np.partition(gaps, 1)[1])


def prototypes(latent: Floats, classes: Indices, seed: int) -> tuple[Floats, Indices]:
    """A few centres of every class in latent space."""
    centres, labels = [], []
    with threadpool_limits(1):
        for label in np.unique(classes):
            mine = latent[classes == label][:MOST_CLUSTERED]
            count = int(np.clip(len(mine) // ROWS_A_PROTOTYPE, 1, PROTOTYPES))
            found = KMeans(count, n_init=1, max_iter=50, random_state=seed).fit(mine).cluster_centers_
            centres.append(np.asarray(found, dtype=np.float64))
            labels += [label] * count
    return np.concatenate(centres), np.array(labels, dtype=np.intp)


def linked_groups(codes: Floats, codec: Codec) -> Indices:
    """A number for every feature; features have the same where one as good as tells the other.

    Two numbers go together by their ranks. A number or category tells a category if guessing it from the first is
    nearly always right, and much more often than guessing blindly; a category tells a number by how little of its ranks'
    spread is left inside a category. Numbers count where they are there.
    """
    features = codes.shape[1]
    group = np.arange(features)
    if features > MOST_FEATURES:
        return group
    some = codes[:MOST_COMPARED]
    there = some != MISSING
    rank = np.stack([rankdata(column) for column in some.T], axis=1)
    numeric = np.isin(np.arange(features), codec.numeric)
    for a in range(features):
        for b in range(a):
            both = there[:, a] & there[:, b]
            if group[a] != group[b] and _linked(some[both][:, [a, b]], rank[both][:, [a, b]], numeric[[a, b]]):
                group[group == group[a]] = group[b]
    return np.unique(group, return_inverse=True)[1].astype(np.intp)


def _linked(values: Floats, rank: Floats, numeric: NDArray[np.bool_]) -> bool:
    if len(rank) < FEWEST_COMPARED or (rank.std(axis=0) == 0).any():
        return False
    if numeric.all():
        return bool(abs(np.asarray(np.corrcoef(rank.T))[0, 1]) >= LINKED)
    if numeric.any():
        number, category = (0, 1) if numeric[0] else (1, 0)
        told = _spread_told(rank[:, number], values[:, category].astype(np.intp))
        return told >= LINKED
    left, right = values.T.astype(np.intp)
    return _tells(left, right) and _tells(right, left)


def _tells(left: Indices, right: Indices) -> bool:
    table = np.zeros((left.max() + 1, right.max() + 1))
    np.add.at(table, (left, right), 1.0)
    blind = table.sum(axis=0).max() / len(left)
    return bool(table.max(axis=1).sum() / len(left) >= LINKED and blind <= GUESSABLE)


def _spread_told(rank: Floats, category: Indices) -> float:
    count = np.maximum(np.bincount(category), 1)
    mean = np.bincount(category, weights=rank) / count
    return float(1.0 - ((rank - mean[category]) ** 2).sum() / ((rank - rank.mean()) ** 2).sum())
