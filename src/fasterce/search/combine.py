"""Sets of single changes that should flip together, if their effects added up: a guess that costs no question."""

import numpy as np

from fasterce.profile import Floats
from fasterce.search.goal import Indices
from fasterce.search.judge import Candidates, Edits
from fasterce.search.project import Domain

OPTIONS = 24
PAIRS = 6
SAFER = (1.0, 1.3)
LARGEST = 8
GRID = 256
MOST_NAMED = 4


def pairs(asked: Edits, gain: Floats, cost: Floats, need: Floats, ceiling: Floats) -> Candidates:
    """The cheapest pairs predicted to reach `need` (rows,), below the price `ceiling` (rows,) already paid for.

    Half of them with some gain to spare, since effects rarely add up exactly.
    """
    rows = len(asked.base)
    option = _best_value_for_money(gain, cost)
    one, two = np.triu_indices(option.shape[1], k=1)
    first, second = option[:, one], option[:, two]
    together = np.take_along_axis(gain, first, 1) + np.take_along_axis(gain, second, 1)
    price = np.take_along_axis(cost, first, 1) + np.take_along_axis(cost, second, 1)
    possible = (asked.feature[first] != asked.feature[second]) & (price < ceiling[:, None])
    codes, opened = [], []
    for factor in SAFER:
        priced = np.where(possible & (together >= factor * need[:, None]), price, np.inf)
        for chosen in np.argsort(priced, axis=1, kind="stable")[:, : PAIRS // 2].T:
            pick = chosen[:, None]
            both = np.concatenate([np.take_along_axis(first, pick, 1), np.take_along_axis(second, pick, 1)], axis=1)
            codes.append(_apply(asked, both, np.ones((rows, 2), dtype=bool)))
            opened.append(np.isfinite(np.take_along_axis(priced, pick, 1)[:, 0]))
    if not codes:
        return Candidates(np.zeros((rows, 0, asked.base.shape[1])), np.zeros((rows, 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


def stacks(asked: Edits, gain: Floats) -> Candidates:
    """Each feature's strongest change, stacked strongest first: two of them, three, …"""
    strongest, power = _strongest_of_each_feature(asked, gain)
    order = np.argsort(-power, axis=1, kind="stable")[:, :LARGEST]
    option, power = np.take_along_axis(strongest, order, 1), np.take_along_axis(power, order, 1)
    codes, opened = [], []
    for size in range(2, option.shape[1] + 1):
        codes.append(_apply(asked, option[:, :size], power[:, :size] > 0))
        opened.append(power[:, size - 1] > 0)
    if not codes:
        return Candidates(np.zeros((len(asked.base), 0, asked.base.shape[1])), np.zeros((len(asked.base), 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


def grid(domain: Domain, named: tuple[int, ...], levels: tuple[Indices, Floats]) -> Candidates:
    """All combinations of a few named features' levels, thinned so that no row has more than `GRID` of them."""
    codes = domain.base[:, None, :]
    if 1 < len(named) <= MOST_NAMED:
        most = int(GRID ** (1 / len(named)))
        for j in named:
            values = levels[1][levels[0] == j]
            thinned = values[np.unique(np.round(np.linspace(0, len(values) - 1, most)).astype(np.intp))]
            codes = np.repeat(codes, len(thinned), axis=1)
            codes[..., j] = np.tile(thinned, codes.shape[1] // len(thinned))
        codes = domain.project(codes)
    return Candidates(codes, np.asarray((codes != domain.base[:, None, :]).any(axis=2)))


def _best_value_for_money(gain: Floats, cost: Floats) -> Indices:
    worth = np.where(gain > 0, gain / np.maximum(cost, 1e-9), -np.inf)
    half = min(OPTIONS // 2, gain.shape[1])
    by_worth = np.argsort(-worth, axis=1, kind="stable")[:, :half]
    by_gain = np.argsort(-gain, axis=1, kind="stable")[:, :half]
    return np.concatenate([by_worth, by_gain], axis=1)


def _strongest_of_each_feature(asked: Edits, gain: Floats) -> tuple[Indices, Floats]:
    features = np.unique(asked.feature)
    strongest = np.empty((len(gain), len(features)), dtype=np.intp)
    for k, j in enumerate(features):
        columns = np.flatnonzero(asked.feature == j)
        strongest[:, k] = columns[gain[:, columns].argmax(axis=1)]
    return strongest, np.take_along_axis(gain, strongest, 1)


def _apply(asked: Edits, option: Indices, used: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> Floats:
    codes = asked.base.copy()
    every = np.arange(len(codes))
    for chosen, use in zip(option.T, used.T, strict=True):
        feature = asked.feature[chosen]
        codes[every, feature] = np.where(use, asked.value[every, chosen], codes[every, feature])
    return codes
