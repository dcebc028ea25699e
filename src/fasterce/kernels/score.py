"""Scores of rows of codes: one row, and every single edit of a row at once."""

import math

import numpy as np

from fasterce.kernels.arrays import (
    CUBE,
    EXPONENTIAL,
    IDENTITY,
    LOG,
    RELU,
    SQUARE,
    TANH,
    TREES,
    Network,
    Scorer,
    Trees,
)
from fasterce.kernels.arrays import LINEAR as NO_ACTIVATION
from fasterce.kernels.basics import copy_to
from fasterce.kernels.jit import compiled
from fasterce.kernels.structs import kept_struct
from fasterce.typing import Floats

# Codes of missing numbers, as in `data.schema`.
MISSING = -(2.0**100)
# The cell of a missing number.
NO_CELL = -1
# Probabilities are raised to this before their logarithm is taken, as in `models.predictor`.
SMALLEST_PROBABILITY = 1e-12
# What a target is about: a class, any class but one, or a number within bounds.
NAMED, OTHER, WITHIN = 0, 1, 2
WORD = 64


@compiled
def cell_of(trees: Trees, j: int, value: float) -> int:
    """Return the cell of a value of feature j: for a category its code."""
    first, end = trees.edge_start[j], trees.edge_start[j + 1]
    if value == MISSING:
        return NO_CELL
    if not trees.numeric[j]:
        return int(value)
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if trees.edges[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low - first


@compiled
def goes_left(trees: Trees, node: int, cell: int) -> bool:
    words = trees.categories[node]
    if words >= 0:
        return (trees.left_categories[words + cell // WORD] >> np.uint64(cell % WORD)) & np.uint64(1) == np.uint64(1)
    if cell == NO_CELL:
        return trees.missing_left[node]
    return cell <= trees.cell[node]


@compiled
def leaf_of(trees: Trees, root: int, cells: np.ndarray) -> int:
    feature, edges, categories, lefts, rights = trees.feature, trees.cell, trees.categories, trees.left, trees.right
    node = root
    while feature[node] >= 0:
        cell = cells[feature[node]]
        left = cell <= edges[node] if categories[node] < 0 and cell != NO_CELL else goes_left(trees, node, cell)
        node = lefts[node] if left else rights[node]
    return node


@compiled
def add_trees(trees: Trees, cells: np.ndarray, out: Floats, leaves: np.ndarray) -> None:
    """Write the outputs of one row, given by its cells, and its leaf in each tree."""
    copy_to(out, trees.base)
    for t in range(len(trees.root)):
        leaf = leaf_of(trees, trees.root[t], cells)
        leaves[t] = leaf
        for k in range(len(out)):
            out[k] += trees.value[leaf, k]


@compiled
def knot_below(network: Network, j: int, value: float) -> tuple[int, float, float]:
    """Return the knot at or below a value of feature j that is not missing, the share of the next knot in its entry, and what
    every hidden unit receives besides."""
    first, end = network.start[j], network.start[j + 1]
    if not network.numeric[j]:
        return first + int(value), 0.0, 0.0
    if network.nullable[j]:
        first += 1
    if end - first == 1:
        return first, 0.0, 0.0
    low, high = first, end - 1
    while high - low > 1:
        middle = (low + high) // 2
        if network.knots[middle] <= value:
            low = middle
        else:
            high = middle
    share = (value - network.knots[low]) / (network.knots[low + 1] - network.knots[low])
    if not network.extrapolate:
        share = min(max(share, 0.0), 1.0)
    return low, share, network.curvature[j] * (value - network.knots[low]) * (value - network.knots[low + 1])


@compiled
def add_entry(network: Network, j: int, value: float, factor: float, hidden: Floats) -> None:
    """Add `factor` times the entry of a value of feature j to a hidden state."""
    if network.start[j + 1] == network.start[j]:
        return
    low, share, bend = network.start[j], 0.0, 0.0
    if value != MISSING or not network.nullable[j]:
        low, share, bend = knot_below(network, j, value)
    if share == 0.0:
        for h in range(len(hidden)):
            hidden[h] += factor * (network.entries[low, h] + bend)
        return
    for h in range(len(hidden)):
        entry = network.entries[low, h]
        hidden[h] += factor * (entry + share * (network.entries[low + 1, h] - entry) + bend)


@compiled
def activate(kind: int, value: float) -> float:
    if kind == RELU:
        return value if value > 0.0 else 0.0
    if kind == TANH:
        return math.tanh(value)
    if kind == EXPONENTIAL:
        return math.exp(value)
    if kind in (NO_ACTIVATION, SQUARE, CUBE):
        factor = 1.0 if kind == NO_ACTIVATION else value
        return value * factor * (value if kind == CUBE else 1.0)
    return 1.0 / (1.0 + math.exp(-value))


@compiled
def add_scaled(total: Floats, factor: float, weights: Floats) -> None:
    for k in range(len(total)):
        total[k] += factor * weights[k]


@compiled
def network_outputs(network: Network, hidden: Floats, layer: Floats, out: Floats) -> None:
    """Write the outputs of one hidden state; `layer` (2, widest layer) is overwritten."""
    layers = len(network.width)
    if layers == 0:
        for k in range(len(out)):
            out[k] = hidden[k]
        return
    size, weight, offset, here = len(hidden), 0, 0, 0
    for h in range(size):
        layer[0, h] = activate(network.activation, hidden[h])
    for place in range(layers):
        width, there = network.width[place], 1 - here
        received = layer[there, :width]
        copy_to(received, network.offsets[offset : offset + width])
        for h in range(size):
            value = layer[here, h]
            if value != 0.0:
                add_scaled(received, value, network.weights[weight + h * width : weight + (h + 1) * width])
        weight, offset, size, here = weight + size * width, offset + width, width, there
        if place + 1 < layers:
            for k in range(width):
                layer[here, k] = activate(network.activation, layer[here, k])
    for k in range(len(out)):
        out[k] = layer[here, k]


@compiled
def row_outputs(scorer: Scorer, codes: Floats, cells: np.ndarray, leaves: np.ndarray, layer: Floats, out: Floats) -> None:
    """Write the outputs of one row of codes; the other arrays are overwritten."""
    if scorer.kind == TREES:
        for j in range(len(codes)):
            cells[j] = cell_of(scorer.trees, j, codes[j])
        add_trees(scorer.trees, cells, out, leaves)
    else:
        hidden = np.empty(len(scorer.network.bias))
        copy_to(hidden, scorer.network.bias)
        for j in range(len(codes)):
            add_entry(scorer.network, j, codes[j], 1.0, hidden)
        network_outputs(scorer.network, hidden, layer, out)


@compiled
def write_outputs(scorer: Scorer, codes: Floats, found: Floats) -> None:
    cells, leaves = np.empty(codes.shape[1], np.int64), np.empty(len(scorer.trees.root), np.int64)
    widest = len(scorer.network.bias)
    for width in scorer.network.width:
        widest = max(widest, width)
    layer = np.empty((2, widest))
    for row in range(len(codes)):
        row_outputs(scorer, codes[row], cells, leaves, layer, found[row])


def outputs(scorer: Scorer, codes: Floats) -> Floats:
    """Return the outputs of rows of codes: (rows, outputs)."""
    found = np.empty((len(codes), scorer.outputs))
    write_outputs(kept_struct(scorer), np.require(codes, np.float64, ["C", "W"]), found)
    return found


@compiled
def score_of(link: int, output: float) -> float:
    """Return the score of a class from its output, where there is one output per class."""
    if link == IDENTITY:
        return output
    if link == LOG:
        return math.log(max(output, SMALLEST_PROBABILITY))
    return -math.log1p(math.exp(-output)) if output > -30.0 else output


@compiled
def margin_of(scorer: Scorer, out: Floats, kind: int, label: int, low: float, high: float, lowest: float) -> float:
    """Return how far outputs are beyond the boundary of a target, negative if it is not reached.

    `label` is the wanted class, the unwanted one of OTHER, or the class whose log-odds WITHIN is about. Scores below
    `lowest` count as this.
    """
    if scorer.outputs == 1:
        if scorer.link == LOG:
            second = max(math.log(max(out[0], SMALLEST_PROBABILITY)), lowest)
            first = max(math.log(max(1.0 - out[0], SMALLEST_PROBABILITY)), lowest)
            lead = second - first
        else:
            lead = out[0]
        if label == 0:
            lead = -lead
        if kind == WITHIN:
            return min(lead - low, high - lead)
        return -lead if kind == OTHER else lead
    own = max(score_of(scorer.link, out[label]), lowest)
    best = -math.inf
    for k in range(scorer.outputs):
        if k != label:
            best = max(best, score_of(scorer.link, out[k]), lowest)
    if kind == WITHIN:
        total = 0.0
        for k in range(scorer.outputs):
            if k != label:
                total += math.exp(max(score_of(scorer.link, out[k]), lowest) - best)
        lead = own - best - math.log(total)
        return min(lead - low, high - lead)
    return best - own if kind == OTHER else own - best


@compiled
def write_margins(
    scorer: Scorer, found: Floats, kind: int, label: np.ndarray, low: Floats, high: Floats, lowest: float, margin: Floats
) -> None:
    """Write the margins of the outputs of many rows."""
    for row in range(len(found)):
        margin[row] = margin_of(scorer, found[row], kind, label[row], low[row], high[row], lowest)


def margin_table(
    scorer: Scorer, found: Floats, kind: int, label: np.ndarray, low: Floats, high: Floats, lowest: float
) -> Floats:
    """Return the margins of outputs (N, outputs), one target each."""
    margin = np.empty(len(found))
    write_margins(kept_struct(scorer), found, kind, label, low, high, lowest, margin)
    return margin
