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
RELU, TANH, LOGISTIC, LINEAR, EXPONENTIAL, SQUARE, CUBE = range(7)


class Trees(NamedTuple):
    """A sum of decision trees on codes.

    A number lies in cell k of its feature if exactly k edges of the feature are below it: cell k holds the values in
    (edges[k - 1], edges[k]]. All nodes of all trees are stored one after another; children by position.
    """

    edges: Floats
    """Edges of all features, one feature after another, increasing within a feature (E,)."""
    edge_start: Int64s
    """Where the edges of each feature begin (features + 1,)."""
    numeric: Mask
    """Which features are numbers (features,): one without edges has a single cell."""
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
    curvature: Floats
    """What every hidden unit receives beside the line between two knots of a number: so much times the product of the
    distances from both knots (features,). Squared distances have it."""
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
    numeric=np.zeros(0, dtype=np.bool_),
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
    curvature=np.zeros(0),
    activation=RELU,
    width=np.zeros(0, dtype=np.int64),
    weights=np.zeros(0),
    offsets=np.zeros(0),
)


class Space(NamedTuple):
    """What may be changed and what it costs, for all queries of a call.

    A changed feature has a cost; the distance of a candidate is the sum of the costs of features that are not `squared`,
    plus the root of the sum of squares of those that are.
    """

    numeric: Mask
    scale: Floats
    """Ten to the power of the decimals of a number (features,)."""
    single: Mask
    """Numbers stored in single precision (features,)."""
    step: Floats
    """Distance of the values a number may take, 0 for its precision (features,)."""
    level_start: Int64s
    """Where the candidate values of each number begin (features + 1,)."""
    level: Floats
    """Candidate values, increasing within a feature (L,)."""
    level_side: Int32s
    """1: only for queries below the value, -1: only for queries above, 0: for all (L,)."""
    category_start: Int64s
    """Where the categories of each feature begin in `Queries.open_categories` (features + 1,)."""
    cell_start: Int64s
    """Where the cells of each feature begin in the profile of trees (features + 1,)."""
    tree_start: Int64s
    """Where the trees that split on each feature begin in `tree` (features + 1,)."""
    tree: Int32s
    words: int
    """Words of 64 categories of the feature with the most."""
    weight: Floats
    """Cost of one unit of a number (features,)."""
    flat: Floats
    """Cost of any change (features,)."""
    down: Floats
    """Factor of the cost of a value below the query's own (features,)."""
    up: Floats
    """Factor of the cost of a value above it (features,)."""
    squared: Mask
    curve_start: Int64s
    """Where the knots of each feature's cost curve begin (features + 1,); none for a constant cost per unit."""
    curve_knots: Floats
    curve_heights: Floats
    curve_slope: Floats
    """Slope of the cost curve beyond its knots (features,)."""
    gap: Floats
    """Cost of a number that becomes missing or is filled (features,)."""
    usual: Floats
    """Values near which filling costs least (features,)."""
    counted: Mask
    """Features that count toward `most_changes` (features,)."""
    most_changes: int


class Queries(NamedTuple):
    """The queries of a call, their values in codes, and their targets. All arrays have one line per query."""

    row: Floats
    base: Floats
    """The query with every value outside its permitted range moved in: where the search starts."""
    free: Mask
    lower: Floats
    upper: Floats
    anchor: Floats
    """Start of the grid of each number with a step."""
    open_categories: Mask
    may_be_missing: Mask
    kind: int
    """What the targets are about: a class, any other class, or a number within bounds."""
    label: Int64s
    low: Floats
    high: Floats
    need: Floats
    """Margin required beyond the boundary (queries,)."""
    shift: Floats
    """Added to every margin of an inexact scorer, so that it is right for the query itself (queries,)."""
    correction: Floats
    """Added per changed feature: how far an inexact scorer was off so far (queries, features)."""
    lowest: float
    """Scores below this count as this."""
    links: Any
    """Constraints between features: `Links`."""


class Effort(NamedTuple):
    """Limits of the search of one query."""

    expansions: int
    open_sets: int
    pool: int
    improved: int
    improvements: int
    rounds: int
    tightened: int
    returned: int
    exhaustive: int
    patience: int
    """Expansions in a row without a cheaper candidate after which no more follow."""
    wide_expansions: int
    """States expanded for further candidates."""
    combinations: int
    """Times changes are combined as if their gains added up."""
    wanted: int
    """Candidates with different changes below which all pairs of values are tried."""


class Found(NamedTuple):
    """Candidates per query that reach the target by the scorer, the cheapest first."""

    codes: Floats
    """(queries, pool, features)"""
    cost: Floats
    """Their distance, infinite for none (queries, pool)."""
    margin: Floats
    known: Mask
    """Whether they come from one of the starts (queries, pool)."""
    count: Int64s  # type: ignore[assignment]
    """Number of candidates of each query (queries,)."""
    complete: Mask
    """Whether all pairs of candidate values were scored, as they are where there are too few candidates (queries,)."""
    best_margin: Floats
    """The highest margin of anything scored (queries,)."""
    scored: Int64s
    """Number of edits scored (queries,)."""
