"""Exhaustive search over changes of one feature, and of two on a coarse grid: what a search should not have missed."""

from itertools import combinations

import numpy as np

from benchmarks.yardstick.cases import Case

CHUNK = 20_000


def values(case: Case, j: int, own: float, most: int, within: float | None = None) -> np.ndarray:
    """Return what a feature could be instead of its own value: all allowed values, or at most about `most` of them.

    Half of them are spread evenly over the range, half over the training rows. `within` limits a number to a share of its
    own value on either side.
    """
    if not case.numeric[j]:
        found = np.arange(len(case.schema.features[j].categories), dtype=float)
        return found[found != own]
    (low, high), scale = (end[j] for end in case.grid), case.scale[j]
    if within is not None:
        reach = within * abs(own) * (1 - 1e-12)
        low, high = max(low, np.ceil((own - reach) * scale)), min(high, np.floor((own + reach) * scale))
    if high < low:
        return np.zeros(0)
    if high - low < most:
        multiples = np.arange(low, high + 1)
    else:
        training = np.quantile(case.training[:, j], np.linspace(0, 1, most // 2)) * scale
        multiples = np.unique(np.round(np.concatenate([np.linspace(low, high, most // 2), training])))
        multiples = multiples[(multiples >= low) & (multiples <= high)]
    found = multiples / scale
    return found[found != own]


def singles(
    case: Case, queries: np.ndarray, budget: int, within: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every single change that reaches the target, of at most about `budget` tried: query, feature and new value."""
    own = case.queries
    most = max(8, budget // max(1, len(queries) * int(case.numeric.sum())))
    query, feature, value = [], [], []
    for i in queries:
        for j in range(own.shape[1]):
            options = values(case, j, own[i, j], most, within)
            query.append(np.full(len(options), i))
            feature.append(np.full(len(options), j))
            value.append(options)
    flat = [np.concatenate([np.zeros(0, dtype=int), *parts]) for parts in (query, feature, value)]
    hits = _reaching(case, flat[0], flat[1][:, None], flat[2][:, None])
    return flat[0][hits], flat[1][hits], flat[2][hits]


def pairs(case: Case, query: int, budget: int) -> set[frozenset[int]]:
    """Return the pairs of features with a change of both that reaches the target while neither change alone does."""
    own, width = case.queries[query], case.queries.shape[1]
    couples = list(combinations(range(width), 2))
    most = max(3, int(np.sqrt(budget / max(1, len(couples)))))
    options = [values(case, j, own[j], most) for j in range(width)]
    alone = [_reaching_alone(case, query, j, options[j]) for j in range(width)]
    options = [some[~hits] for some, hits in zip(options, alone, strict=True)]
    features, new = [np.zeros((0, 2), dtype=int)], [np.zeros((0, 2))]
    for first, second in couples:
        left, right = (part.ravel() for part in np.meshgrid(options[first], options[second], indexing="ij"))
        features.append(np.tile([first, second], (len(left), 1)))
        new.append(np.column_stack([left, right]))
    feature, value = np.concatenate(features), np.concatenate(new)
    hits = _reaching(case, np.full(len(feature), query), feature, value)
    return {frozenset(map(int, pair)) for pair in np.unique(feature[hits], axis=0)}


def _reaching_alone(case: Case, query: int, j: int, options: np.ndarray) -> np.ndarray:
    return _reaching(case, np.full(len(options), query), np.full((len(options), 1), j), options[:, None])


def _reaching(case: Case, query: np.ndarray, feature: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return which changes (changes, features changed) reach the target of their query."""
    hits = np.zeros(len(query), dtype=bool)
    for start in range(0, len(query), CHUNK):
        some = slice(start, start + CHUNK)
        codes = case.queries[query[some]]
        np.put_along_axis(codes, feature[some], value[some], axis=1)
        hits[some] = case.reached(codes, query[some])
    return hits
