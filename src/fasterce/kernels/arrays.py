"""Arrays that the compiled loops take: how a model is scored, on codes.

Each class is a named tuple of NumPy arrays and numbers, which is what Numba can pass to compiled code.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fasterce.typing import Floats, Mask

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

# Kinds of scorers.
TREES, NETWORK = 0, 1
# How outputs become scores. With two classes there is one output: the lead of the second class over the first, or, for
# LOG, the probability of the second class. Otherwise there is one output per class.
IDENTITY, LOG, LOG_SIGMOID = 0, 1, 2
# Activations of hidden layers.
RELU, TANH, LOGISTIC, LINEAR = 0, 1, 2, 3


class Trees(NamedTuple):
    """A sum of decision trees on codes.

    A number lies in cell k of its feature if exactly k edges of the feature are below it: cell k holds the values in
    (edges[k - 1], edges[k]]. All nodes of all trees are stored one after another; children by position.
    """

    edges: Floats
    """Edges of all features, one feature after another, increasing within a feature (E,)."""
    edge_start: Int64s
    """Where the edges of each feature begin (features + 1,)."""
    root: Int32s
    """First node of each tree (trees,)."""
    feature: Int32s
    """Feature a node splits on, -1 for a leaf (nodes,)."""
    cell: Int32s
    """For a split on a number: the last cell that goes left (nodes,)."""
    categories: Int32s
    """For a split on a category: its first word in `left_categories`, else -1 (nodes,)."""
    left_categories: Words
    """Bit c of word w: category 64 w + c goes left. A missing category is a category of its own, the last code."""
    missing_left: Mask
    """Whether a missing number goes left (nodes,)."""
    left: Int32s
    right: Int32s
    value: Floats
    """Contribution of a leaf to each output (nodes, outputs)."""
    base: Floats
    """Outputs before any tree (outputs,)."""
    depth: int
    """Longest path from a root to a leaf, in splits."""


class Network(NamedTuple):
    """A network whose first layer is a sum of tables, one per feature.

    The hidden state of a row is `bias` plus the entry of every feature's value: that of its category, or, for a number,
    interpolated between knots and, with `extrapolate`, beyond them. A linear model has no hidden layer: its entries are
    the outputs themselves, `width` is empty.
    """

    knots: Floats
    """Knots of all features, one feature after another (E,). Categories are knots 0, 1, 2, ..."""
    entries: Floats
    """Entry of each knot (E, H)."""
    start: Int64s
    """Where the knots of each feature begin (features + 1,)."""
    numeric: Mask
    """Which features are interpolated (features,)."""
    nullable: Mask
    """Numbers whose first knot is the entry of a missing value (features,)."""
    extrapolate: bool
    bias: Floats
    """Hidden state before any entry (H,)."""
    activation: int
    width: Int64s
    """Sizes of the layers after the first hidden one, the last is the number of outputs; empty for a linear model."""
    weights: Floats
    """Weights of these layers, one layer after another, each (inputs, outputs) in row-major order."""
    offsets: Floats
    """Biases of these layers, one layer after another."""


class Scorer(NamedTuple):
    """The score of a row of codes: trees or a network, and how outputs become scores."""

    kind: int
    trees: Trees
    network: Network
    outputs: int
    link: int
    exact: bool
    """Whether it is the model itself, apart from rounding."""
    error: float
    """Deviation of margins from those of the model: of rounding where exact, else near the decision boundary."""


def _integers(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


NO_TREES = Trees(
    edges=np.zeros(0),
    edge_start=np.zeros(1, dtype=np.int64),
    root=_integers(),
    feature=_integers(),
    cell=_integers(),
    categories=_integers(),
    left_categories=np.zeros(0, dtype=np.uint64),
    missing_left=np.zeros(0, dtype=np.bool_),
    left=_integers(),
    right=_integers(),
    value=np.zeros((0, 1)),
    base=np.zeros(1),
    depth=0,
)
NO_NETWORK = Network(
    knots=np.zeros(0),
    entries=np.zeros((0, 1)),
    start=np.zeros(1, dtype=np.int64),
    numeric=np.zeros(0, dtype=np.bool_),
    nullable=np.zeros(0, dtype=np.bool_),
    extrapolate=False,
    bias=np.zeros(1),
    activation=RELU,
    width=np.zeros(0, dtype=np.int64),
    weights=np.zeros(0),
    offsets=np.zeros(0),
)
