"""Sets of edits expected to reach the target together if their effects add up, found without a model row."""

import numpy as np

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain
from fasterce.search.judge import Candidates, Edits
from fasterce.typing import Floats, Indices

DEFAULTS = SearchConfig()


def pairs(
    edits: Edits, gain: Floats, cost: Floats, need: Floats, ceiling: Floats, config: SearchConfig = DEFAULTS
) -> Candidates:
    """Return the cheapest pairs predicted to reach `need` (rows,) at less than the cost `ceiling` (rows,) already reached.

    Half of them have some gain to spare, since effects rarely add up exactly.
    """
    rows = len(edits.base)
    option = _best_gain_per_cost(gain, cost, config.pair_edits)
    one, two = np.triu_indices(option.shape[1], k=1)
    first, second = option[:, one], option[:, two]
    together = np.take_along_axis(gain, first, 1) + np.take_along_axis(gain, second, 1)
    price = np.take_along_axis(cost, first, 1) + np.take_along_axis(cost, second, 1)
    possible = (edits.feature[first] != edits.feature[second]) & (price < ceiling[:, None])
    codes, opened = [], []
    for factor in config.pair_gain_factors:
        priced = np.where(possible & (together >= factor * need[:, None]), price, np.inf)
        for chosen in np.argsort(priced, axis=1, kind="stable")[:, : config.max_pairs // 2].T:
            pick = chosen[:, None]
            both = np.concatenate([np.take_along_axis(first, pick, 1), np.take_along_axis(second, pick, 1)], axis=1)
            codes.append(_apply(edits, both, np.ones((rows, 2), dtype=bool)))
            opened.append(np.isfinite(np.take_along_axis(priced, pick, 1)[:, 0]))
    if not codes:
        return Candidates(np.zeros((rows, 0, edits.base.shape[1])), np.zeros((rows, 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


def stacks(edits: Edits, gain: Floats, config: SearchConfig = DEFAULTS) -> Candidates:
    """Return the strongest edit of each feature, combined strongest first: two of them, three, …"""
    strongest, power = _strongest_of_each_feature(edits, gain)
    order = np.argsort(-power, axis=1, kind="stable")[:, : config.max_stacked_edits]
    option, power = np.take_along_axis(strongest, order, 1), np.take_along_axis(power, order, 1)
    codes, opened = [], []
    for size in range(2, option.shape[1] + 1):
        codes.append(_apply(edits, option[:, :size], power[:, :size] > 0))
        opened.append(power[:, size - 1] > 0)
    if not codes:
        return Candidates(np.zeros((len(edits.base), 0, edits.base.shape[1])), np.zeros((len(edits.base), 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


def grid(
    domain: Domain, named: tuple[int, ...], levels: tuple[Indices, Floats], config: SearchConfig = DEFAULTS
) -> Candidates:
    """Return all combinations of the levels of a few named features, thinned to at most `max_grid_rows` per row."""
    codes = domain.base[:, None, :]
    if 1 < len(named) <= config.max_grid_features:
        most = int(config.max_grid_rows ** (1 / len(named)))
        for j in named:
            values = levels[1][levels[0] == j]
            thinned = values[np.unique(np.round(np.linspace(0, len(values) - 1, most)).astype(np.intp))]
            codes = np.repeat(codes, len(thinned), axis=1)
            codes[..., j] = np.tile(thinned, codes.shape[1] // len(thinned))
        codes = domain.project(codes)
    return Candidates(codes, np.asarray((codes != domain.base[:, None, :]).any(axis=2)))


def _best_gain_per_cost(gain: Floats, cost: Floats, count: int) -> Indices:
    worth = np.where(gain > 0, gain / np.maximum(cost, 1e-9), -np.inf)
    half = min(count // 2, gain.shape[1])
    by_worth = np.argsort(-worth, axis=1, kind="stable")[:, :half]
    by_gain = np.argsort(-gain, axis=1, kind="stable")[:, :half]
    return np.concatenate([by_worth, by_gain], axis=1)


def _strongest_of_each_feature(edits: Edits, gain: Floats) -> tuple[Indices, Floats]:
    features = np.unique(edits.feature)
    strongest = np.empty((len(gain), len(features)), dtype=np.intp)
    for k, j in enumerate(features):
        columns = np.flatnonzero(edits.feature == j)
        strongest[:, k] = columns[gain[:, columns].argmax(axis=1)]
    return strongest, np.take_along_axis(gain, strongest, 1)


def _apply(edits: Edits, option: Indices, used: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> Floats:
    codes = edits.base.copy()
    every = np.arange(len(codes))
    for chosen, use in zip(option.T, used.T, strict=True):
        feature = edits.feature[chosen]
        codes[every, feature] = np.where(use, edits.value[every, chosen], codes[every, feature])
    return codes
