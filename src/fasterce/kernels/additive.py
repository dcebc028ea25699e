"""The cheapest candidate where margins and costs are sums over features: branch and bound over the changes of one query.

A node limits what each feature may become. Its bound takes the edges of the lower convex hulls of cost over gain, the best
rates first, until the target is reached: at most one feature is then between two points of its hull. Moved to the next value
it may have, this is a candidate; the node is divided at that value. For linear models this mostly proves the optimum in some
five to fifty nodes.
"""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import Int64s, Network, Queries, Space
from fasterce.kernels.basics import copy_to, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace
from fasterce.kernels.score import MISSING
from fasterce.typing import Floats, Mask

# A candidate counts as cheaper only by more than rounding.
LEAST = 1e-9
# Nodes with a bound this little below the best candidate are not divided.
NEGLIGIBLE = 1e-6
# Most nodes that are divided per query; each bound takes a few microseconds.
MOST_NODES = 400


class Items(NamedTuple):
    """The features that gain, by position: the points of their costs, and the nodes that are left.

    A place is the value of a number, and the point of a category.
    """

    count: Int64s  # type: ignore[assignment]
    """Number of features that gain, of points, of nodes, and of values of the feature that is listed (4,)."""
    feature: Int64s
    graded: Mask
    """Which are numbers: these may have any value between two points."""
    slope: Floats
    """Gain per unit of the value of a number."""
    first: Int64s
    """First point of each; the first is the query's own value (features + 1,)."""
    gain: Floats
    cost: Floats
    value: Floats
    top: Int64s
    """Positions, the largest gain first."""
    order: Int64s
    draft: Floats
    """Gains, costs and values of the feature that is listed."""
    draft_cost: Floats
    draft_value: Floats
    lost: Floats
    """Margin of the approximated row with each feature as in the query (all features,)."""
    low: Floats
    """The places each feature may take in the node that is bounded, from the one with the least gain."""
    high: Floats
    at: Floats
    """The places of its bound, and their gains and costs."""
    at_gain: Floats
    at_cost: Floats
    next: Floats
    """The end of the next edge of each hull, with its gain and cost, and the cost per gain of the edge."""
    next_gain: Floats
    next_cost: Floats
    rate: Floats
    node_low: Floats
    node_high: Floats
    node_bound: Floats
    node_feature: Int64s
    """Position of the feature at which a node is divided, and the places below and above."""
    node_below: Floats
    node_above: Floats


def items(features: int, points: int) -> Items:
    """Return arrays for one query after another."""
    places, nodes = np.zeros((9, features)), np.zeros((2, MOST_NODES + 2, features))
    return Items(
        count=np.zeros(4, np.int64),
        feature=np.zeros(features, np.int64),
        graded=np.zeros(features, np.bool_),
        slope=np.zeros(features),
        first=np.zeros(features + 1, np.int64),
        gain=np.zeros(points),
        cost=np.zeros(points),
        value=np.zeros(points),
        top=np.zeros(features, np.int64),
        order=np.zeros(max(features, points), np.int64),
        draft=np.zeros(max(features, points)),
        draft_cost=np.zeros(points),
        draft_value=np.zeros(points),
        lost=np.zeros(features),
        low=places[0].copy(),
        high=places[1].copy(),
        at=places[2].copy(),
        at_gain=places[3].copy(),
        at_cost=places[4].copy(),
        next=places[5].copy(),
        next_gain=places[6].copy(),
        next_cost=places[7].copy(),
        rate=places[8].copy(),
        node_low=nodes[0].copy(),
        node_high=nodes[1].copy(),
        node_bound=np.zeros(MOST_NODES + 2),
        node_feature=np.zeros(MOST_NODES + 2, np.int64),
        node_below=np.zeros(MOST_NODES + 2),
        node_above=np.zeros(MOST_NODES + 2),
    )


@compiled
def is_graded(space: Space, queries: Queries, q: int, j: int) -> bool:
    """Return whether a feature is a number with a value, which may be changed unit by unit."""
    return space.numeric[j] and queries.base[q, j] != MISSING


@compiled
def straight_numbers(network: Network, space: Space, queries: Queries, q: int) -> bool:
    """Return whether what a number adds is a straight line, and its cost grows with the change, for every number that may be
    changed."""
    for j in range(len(space.numeric)):
        if space.numeric[j] and queries.free[q, j]:
            if queries.may_be_missing[q, j] and queries.base[q, j] != MISSING:
                return False
            if space.flat[j] != 0.0 or queries.base[q, j] != queries.row[q, j]:
                return False
            knots = network.start[j + 1] - network.start[j] - (1 if network.nullable[j] else 0)
            if knots > 2 or (knots == 2 and not network.extrapolate):
                return False
    return True


@compiled
def add_point(kept: Items, gain: float, cost: float, value: float) -> None:
    """Append a point of the feature at position `count[0]`, unless it gains no more than the one before."""
    last = kept.count[1] - 1
    if last < kept.first[kept.count[0]] or gain > kept.gain[last] + LEAST:
        kept.gain[last + 1], kept.cost[last + 1], kept.value[last + 1] = gain, cost, value
        kept.count[1] += 1


@compiled
def add_number(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, j: int, own: float) -> None:
    """Add the points of a number: its own value, the knots of its cost curve on the side that gains, and the end of its
    range, which is among its edits."""
    edits, base, row = work.edits, queries.base[q, j], queries.row[q, j]
    first, last = edits.first[j], edits.last[j] - 1
    end = last if work.margin[last] > work.margin[first] else first
    most, to = work.margin[end] - own, edits.value[end]
    if most <= LEAST or to == base:
        return
    place = kept.count[0]
    slope = most / (to - base)
    kept.feature[place], kept.graded[place], kept.slope[place] = j, True, slope
    add_point(kept, 0.0, 0.0, base)
    first, after = space.curve_start[j], space.curve_start[j + 1]
    for k in range(after - first):
        knot = space.curve_knots[first + k if to > base else after - 1 - k]
        if min(base, to) < knot < max(base, to):
            value = at_precision(space, queries, q, j, knot)
            if (value - base) * slope < most - LEAST:
                add_point(kept, (value - base) * slope, change_cost(space, j, value, row), value)
    add_point(kept, most, change_cost(space, j, to, row), to)
    kept.count[0] += 1


@compiled
def note_choice(kept: Items, gain: float, cost: float, value: float) -> None:
    """Keep a value of the feature that is listed, if it gains anything."""
    if gain > LEAST:
        place = kept.count[3]
        kept.draft[place], kept.draft_cost[place], kept.draft_value[place] = gain, max(cost, LEAST), value
        kept.count[3] += 1


@compiled
def add_choices(kept: Items, j: int, base: float) -> None:
    """Add the points of a feature that has one of its kept values or its own: those for which none gains as much for less."""
    count, place, start = kept.count[3], kept.count[0], kept.count[1]
    kept.count[3] = 0
    if count == 0:
        return
    sort_order(kept.draft, count, kept.order)
    kept.feature[place], kept.graded[place] = j, False
    add_point(kept, 0.0, 0.0, base)
    for k in kept.order[:count]:
        while kept.count[1] > start + 1 and kept.cost[kept.count[1] - 1] >= kept.draft_cost[k]:
            kept.count[1] -= 1
        add_point(kept, kept.draft[k], kept.draft_cost[k], kept.draft_value[k])
    kept.count[0] += 1


@compiled
def add_category(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, j: int, own: float) -> None:
    """Add the points of a category, or of a number that is missing: its edits."""
    edits, base = work.edits, queries.base[q, j]
    spent = change_cost(space, j, base, queries.row[q, j])
    for e in range(edits.first[j], edits.first[j + 1]):
        note_choice(kept, work.margin[e] - own, edits.cost[e] - spent, edits.value[e])
    add_choices(kept, j, base)


@compiled
def start_of(kept: Items, p: int) -> float:
    """Return the place at which a feature is not changed."""
    return kept.value[kept.first[p]] if kept.graded[p] else float(kept.first[p])


@compiled
def end_of(kept: Items, p: int) -> float:
    """Return the place at which a feature gains the most."""
    last = kept.first[p + 1] - 1
    return kept.value[last] if kept.graded[p] else float(last)


@compiled
def end_items(kept: Items) -> None:
    """Order the features by what they gain, and open their whole range."""
    kept.first[kept.count[0]] = kept.count[1]
    for p in range(kept.count[0]):
        kept.draft[p] = -kept.gain[kept.first[p + 1] - 1]
        kept.low[p], kept.high[p] = start_of(kept, p), end_of(kept, p)
    sort_order(kept.draft, kept.count[0], kept.top)


@compiled
def list_items(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float) -> None:
    """Write the features that gain, and the points of their costs; all single edits of the query are scored."""
    kept.count[0] = kept.count[1] = kept.count[3] = 0
    for j in range(len(space.numeric)):
        kept.first[kept.count[0]] = kept.count[1]
        if queries.free[q, j] and work.edits.first[j] < work.edits.first[j + 1]:
            if is_graded(space, queries, q, j):
                add_number(space, queries, q, work, kept, j, own)
            else:
                add_category(space, queries, q, work, kept, j, own)
    end_items(kept)


@compiled
def fewest_changes(kept: Items, short: float) -> int:
    """Return how few features together can reach the target, one more than there are if all of them cannot."""
    for k in range(kept.count[0]):
        short -= kept.gain[kept.first[kept.top[k] + 1] - 1]
        if short <= 0.0:
            return k + 1
    return kept.count[0] + 1


@compiled
def gain_at(kept: Items, p: int, place: float) -> float:
    if kept.graded[p]:
        return (place - kept.value[kept.first[p]]) * kept.slope[p]
    return kept.gain[int(place)]


@compiled
def cost_at(space: Space, queries: Queries, q: int, kept: Items, p: int, place: float) -> float:
    if kept.graded[p]:
        return change_cost(space, kept.feature[p], place, queries.row[q, kept.feature[p]])
    return kept.cost[int(place)]


@compiled
def find_edge(space: Space, queries: Queries, q: int, kept: Items, p: int) -> None:
    """Write the edge of the hull of a feature from its place on: of those to later points the one with the best rate."""
    gain, cost, most = kept.at_gain[p], kept.at_cost[p], gain_at(kept, p, kept.high[p])
    rate = kept.rate[p] = math.inf
    if most <= gain + LEAST:
        return
    for k in range(kept.first[p], kept.first[p + 1]):
        more = kept.gain[k] - gain
        if more > LEAST and kept.gain[k] <= most and kept.cost[k] - cost <= rate * more:
            rate = (kept.cost[k] - cost) / more
            kept.next[p] = kept.value[k] if kept.graded[p] else float(k)
            kept.next_gain[p], kept.next_cost[p] = kept.gain[k], kept.cost[k]
    end = cost_at(space, queries, q, kept, p, kept.high[p])
    if kept.graded[p] and end - cost <= rate * (most - gain):
        rate = (end - cost) / (most - gain)
        kept.next[p], kept.next_gain[p], kept.next_cost[p] = kept.high[p], most, end
    kept.rate[p] = rate


@compiled
def changed_of(kept: Items, places: Floats) -> int:
    count = 0
    for p in range(kept.count[0]):
        if places[p] != start_of(kept, p):
            count += 1
    return count


@compiled
def reaches(kept: Items, short: float, changes: int) -> bool:
    """Return whether the features that must change, and so many others, can gain the missing margin."""
    for p in range(kept.count[0]):
        if kept.low[p] != start_of(kept, p):
            short -= gain_at(kept, p, kept.high[p])
    for k in range(kept.count[0]):
        p = kept.top[k]
        if changes > 0 and kept.low[p] == start_of(kept, p):
            short -= gain_at(kept, p, kept.high[p])
            changes -= 1
    return short <= 0.0


@compiled
def bound_of(
    space: Space, queries: Queries, q: int, kept: Items, short: float, most_changes: int
) -> tuple[float, int, float]:
    """Return the least that the missing margin costs in a node if one feature may be between two points of its hull, the
    position of that feature, and the gain it needs; -1 if there is none. `at` has the places of the others."""
    left = most_changes - changed_of(kept, kept.low)
    if left < 0 or not reaches(kept, short, left):
        return math.inf, -1, 0.0
    total = 0.0
    for p in range(kept.count[0]):
        place = kept.at[p] = kept.low[p]
        kept.at_gain[p], kept.at_cost[p] = gain_at(kept, p, place), cost_at(space, queries, q, kept, p, place)
        short -= kept.at_gain[p]
        total += kept.at_cost[p]
        kept.rate[p] = math.inf
        if left > 0 or place != start_of(kept, p):
            find_edge(space, queries, q, kept, p)
    while short > 0.0:
        p = lowest(kept.rate, kept.count[0])
        if kept.rate[p] == math.inf:
            return math.inf, -1, 0.0
        gain = kept.next_gain[p] - kept.at_gain[p]
        if gain >= short:
            return total + short * kept.rate[p], p, kept.at_gain[p] + short
        total += kept.next_cost[p] - kept.at_cost[p]
        short -= gain
        kept.at[p], kept.at_gain[p], kept.at_cost[p] = kept.next[p], kept.next_gain[p], kept.next_cost[p]
        find_edge(space, queries, q, kept, p)
    return total, -1, 0.0


@compiled
def moved(space: Space, queries: Queries, q: int, j: int, value: float, units: float) -> float:
    """Return a value of a number so many of its units farther."""
    unit = space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]
    return at_precision(space, queries, q, j, value + units * unit)


@compiled
def divide(space: Space, queries: Queries, q: int, kept: Items, p: int, need: float) -> tuple[float, float]:
    """Return the places of a feature on both sides of a gain: the last that gains less, and the first that gains enough."""
    if not kept.graded[p]:
        return kept.next[p] - 1.0, kept.next[p]
    j, base, up = kept.feature[p], kept.value[kept.first[p]], math.copysign(1.0, kept.slope[p])
    above = at_precision(space, queries, q, j, base + need / kept.slope[p])
    if gain_at(kept, p, above) < need:
        above = moved(space, queries, q, j, above, up)
    if gain_at(kept, p, above) > gain_at(kept, p, kept.high[p]):
        above = kept.high[p]
    below = moved(space, queries, q, j, above, -up)
    return (below if gain_at(kept, p, below) > gain_at(kept, p, kept.low[p]) else kept.low[p]), above


@compiled
def smallest_change(space: Space, queries: Queries, q: int, kept: Items, p: int) -> float:
    """Return the first place of a feature after its own."""
    if not kept.graded[p]:
        return float(kept.first[p] + 1)
    j, base, up = kept.feature[p], kept.value[kept.first[p]], math.copysign(1.0, kept.slope[p])
    value = moved(space, queries, q, j, base, up)
    return value if gain_at(kept, p, value) > 0.0 else kept.high[p]


@compiled
def surplus_feature(kept: Items) -> int:
    """Return the position of the feature that gains the most of those the bound changes and the node lets unchanged."""
    pick, most = -1, 0.0
    for p in range(kept.count[0]):
        if kept.low[p] == start_of(kept, p) and kept.at_gain[p] > most:
            pick, most = p, kept.at_gain[p]
    return pick


@compiled
def push_node(kept: Items, bound: float, p: int, below: float, above: float) -> None:
    """Keep a node, and how it is divided."""
    place = kept.count[2]
    if p >= 0 and place < len(kept.node_bound):
        copy_to(kept.node_low[place], kept.low)
        copy_to(kept.node_high[place], kept.high)
        kept.node_bound[place], kept.node_feature[place] = bound, p
        kept.node_below[place], kept.node_above[place] = below, above
        kept.count[2] += 1


@compiled
def pop_node(kept: Items, place: int) -> tuple[int, float, float]:
    """Make a node the one that is bounded; return how it is divided."""
    last = kept.count[2] - 1
    copy_to(kept.low, kept.node_low[place])
    copy_to(kept.high, kept.node_high[place])
    p, below, above = kept.node_feature[place], kept.node_below[place], kept.node_above[place]
    copy_to(kept.node_low[place], kept.node_low[last])
    copy_to(kept.node_high[place], kept.node_high[last])
    kept.node_bound[place], kept.node_feature[place] = kept.node_bound[last], kept.node_feature[last]
    kept.node_below[place], kept.node_above[place] = kept.node_below[last], kept.node_above[last]
    kept.count[2] = last
    return p, below, above


@compiled
def write_places(kept: Items, codes: Floats) -> None:
    """Write the values at the places of a bound into a row."""
    for p in range(kept.count[0]):
        codes[kept.feature[p]] = kept.at[p] if kept.graded[p] else kept.value[int(kept.at[p])]
