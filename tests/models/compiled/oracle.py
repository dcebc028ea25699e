"""Outputs of a scorer in plain Python and NumPy, written from the description of its arrays alone."""

from collections.abc import Callable

import numpy as np

from fasterce.data.schema import MISSING
from fasterce.kernels.arrays import CUBE, EXPONENTIAL, LINEAR, LOGISTIC, RELU, SQUARE, TANH, TREES, Network, Scorer, Trees

ACTIVATIONS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    RELU: lambda z: np.maximum(z, 0.0),
    TANH: np.tanh,
    LOGISTIC: lambda z: 1.0 / (1.0 + np.exp(-z)),
    LINEAR: lambda z: z,
    EXPONENTIAL: np.exp,
    SQUARE: lambda z: z**2,
    CUBE: lambda z: z**3,
}


def oracle(scorer: Scorer, codes: np.ndarray) -> np.ndarray:
    """The outputs of rows of codes (rows, outputs)."""
    return trees_of(scorer.trees, codes) if scorer.kind == TREES else network_of(scorer.network, codes)


def trees_of(trees: Trees, codes: np.ndarray) -> np.ndarray:
    cells = np.zeros(codes.shape, dtype=int)
    for j in range(codes.shape[1]):
        edges = trees.edges[trees.edge_start[j] : trees.edge_start[j + 1]]
        assert (np.diff(edges) > 0).all()
        assert np.isfinite(edges).all()
        cells[:, j] = (edges[None, :] < codes[:, j : j + 1]).sum(axis=1)
    found = np.repeat(trees.base[None], len(codes), axis=0)
    every = np.arange(len(codes))
    for root in trees.root:
        node = np.full(len(codes), root)
        for _ in range(trees.depth):
            feature = trees.feature[node]
            value, cell = codes[every, feature], cells[every, feature]
            by_number = np.where(value == MISSING, trees.missing_left[node], cell <= trees.cell[node])
            words = trees.categories[node]
            code = np.where(words >= 0, value, 0).astype(int)
            bits = (
                trees.left_categories[np.where(words >= 0, words + code // 64, 0)] if len(trees.left_categories) else 0 * code
            )
            by_category = (bits.astype(object) >> (code % 64)) % 2 == 1
            left = np.where(words >= 0, by_category, by_number)
            node = np.where(feature < 0, node, np.where(left, trees.left[node], trees.right[node]))
        assert (trees.feature[node] < 0).all(), "deeper than `depth`"
        found += trees.value[node]
    return found


def network_of(network: Network, codes: np.ndarray) -> np.ndarray:
    state = np.repeat(network.bias[None], len(codes), axis=0)
    for j in range(codes.shape[1]):
        part = slice(network.start[j], network.start[j + 1])
        knots, entries = network.knots[part], network.entries[part]
        for row, value in enumerate(codes[:, j]):
            state[row] += entry(network, j, knots, entries, value)
    if len(network.width) == 0:
        return state
    activate = ACTIVATIONS[network.activation]
    weights, offsets = network.weights, network.offsets
    for layer, width in enumerate(network.width):
        inputs = state.shape[1]
        state = activate(state) if layer == 0 else state
        state = state @ weights[: inputs * width].reshape(inputs, width) + offsets[:width]
        weights, offsets = weights[inputs * width :], offsets[width:]
        state = activate(state) if layer + 1 < len(network.width) else state
    return state


def entry(network: Network, j: int, knots: np.ndarray, entries: np.ndarray, value: float) -> np.ndarray:
    if not network.numeric[j]:
        return entries[int(value)]
    if network.nullable[j]:
        if value == MISSING:
            return entries[0]
        knots, entries = knots[1:], entries[1:]
    low = int(np.clip(np.searchsorted(knots, value, side="right") - 1, 0, len(knots) - 2))
    share = (value - knots[low]) / (knots[low + 1] - knots[low])
    share = share if network.extrapolate else np.clip(share, 0, 1)
    bend = network.curvature[j] * (value - knots[low]) * (value - knots[low + 1])
    return entries[low] + share * (entries[low + 1] - entries[low]) + bend
