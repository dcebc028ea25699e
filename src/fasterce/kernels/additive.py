"""The cheapest candidate where margins and costs are sums over features: branch and bound over the changes of one query.

Features are decided in the order of their best rate of gain per cost. The bound of what is undecided is its linear relaxation:
the segments of the features' concave hulls, the best rates first. For linear models this proves the optimum in a few steps.
"""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import Int64s, Network, Queries, Space
from fasterce.kernels.basics import sort_order
from fasterce.kernels.edits import at_precision, change_cost
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace
from fasterce.kernels.score import MISSING
from fasterce.typing import Floats

# A candidate counts as cheaper only by more than rounding.
LEAST = 1e-9
# Steps of branch and bound per query; each adds up the segments of some features.
MOST_STEPS = 4000


class Items(NamedTuple):
    """The features that gain, the best rate first, and the decisions on them so far."""

    count: Int64s
    """Number of features that gain, of segments, and of steps (3,)."""
    feature: Int64s
    rank: Int64s
    """Position of each feature in `feature` (features,)."""
    rate: Floats
    order: Int64s
    top: Floats
    """Most that so many features gain together (features + 1,)."""
    gain: Floats
    """Most that a feature gains, by position; and what numbers gain per unit (2, features)."""
    segment_gain: Floats
    segment_cost: Floats
    segment_rank: Int64s
    segment_rate: Floats
    segment_order: Int64s
    choice: Int64s
    """Next option of each position, -1 for the first (features + 1,)."""
    fill: Int64s
    """Units of a number that reach the target, or all it has."""
    value: Floats
    """Value of each position that is decided."""
    short: Floats
    """Margin that is missing before each position is decided (features + 1,)."""
    cost: Floats
    changes: Int64s


def items(features: int, segments: int) -> Items:
    """Return arrays for one query after another."""
    return Items(
        count=np.zeros(3, np.int64),
        feature=np.zeros(features, np.int64),
        rank=np.zeros(features, np.int64),
        rate=np.zeros(features),
        order=np.zeros(features, np.int64),
        top=np.zeros(features + 1),
        gain=np.zeros((2, features)),
        segment_gain=np.zeros(segments),
        segment_cost=np.zeros(segments),
        segment_rank=np.zeros(segments, np.int64),
        segment_rate=np.zeros(segments),
        segment_order=np.zeros(segments, np.int64),
        choice=np.zeros(features + 1, np.int64),
        fill=np.zeros(features + 1, np.int64),
        value=np.zeros(features + 1),
        short=np.zeros(features + 1),
        cost=np.zeros(features + 1),
        changes=np.zeros(features + 1, np.int64),
    )


@compiled
def unit_of(space: Space, j: int) -> float:
    return space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]


@compiled
def is_graded(space: Space, queries: Queries, q: int, j: int) -> bool:
    """Return whether a feature is a number with a value, which may be changed unit by unit."""
    return space.numeric[j] and queries.base[q, j] != MISSING


@compiled
def straight_numbers(network: Network, space: Space, queries: Queries, q: int) -> bool:
    """Return whether what a number adds is a straight line, for every number that may be changed."""
    for j in range(len(space.numeric)):
        if space.numeric[j] and queries.free[q, j]:
            if queries.may_be_missing[q, j] and queries.base[q, j] != MISSING:
                return False
            knots = network.start[j + 1] - network.start[j] - (1 if network.nullable[j] else 0)
            if knots > 2 or (knots == 2 and not network.extrapolate):
                return False
    return True


@compiled
def hull_of(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, j: int, own: float
) -> float:
    """Append the concave hull of what feature j gains for its cost; return the most it gains."""
    edits, margin, count = work.edits, work.margin, kept.count
    spent = change_cost(space, j, queries.base[q, j], queries.row[q, j])
    gained, straight = 0.0, is_graded(space, queries, q, j)
    while count[1] < len(kept.segment_gain):
        rate, pick, most = 0.0, -1, LEAST
        for e in range(edits.first[j], edits.first[j + 1]):
            more = margin[e] - own - gained
            each = more / max(edits.cost[e] - spent, LEAST)
            # All values of a number on one side of its own have the same rate: the last gains the most.
            if more > LEAST and (more > most if straight else each > rate):
                rate, pick, most = each, e, more
        if pick < 0:
            break
        place = count[1]
        kept.segment_gain[place] = margin[pick] - own - gained
        kept.segment_cost[place] = max(edits.cost[pick] - spent - (space.flat[j] if straight else 0.0), LEAST)
        kept.segment_rank[place] = j
        count[1] += 1
        gained, spent = margin[pick] - own, max(edits.cost[pick], spent)
    return gained


@compiled
def list_items(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float) -> None:
    """Write the features that gain, and the segments of their hulls; all single edits of the query are scored."""
    edits, base, count = work.edits, queries.base[q], kept.count
    count[0] = count[1] = 0
    for j in range(len(base)):
        first = count[1]
        most = hull_of(space, queries, q, work, kept, j, own) if queries.free[q, j] else 0.0
        if most > 0.0:
            place = count[0]
            kept.feature[place] = j
            kept.rate[place] = -kept.segment_gain[first] / kept.segment_cost[first]
            kept.gain[0, j] = most
            count[0] += 1
            if is_graded(space, queries, q, j):
                # The values below the base come first, and the ends of the range are among them.
                last = edits.last[j] - 1
                end = last if work.margin[last] - own > 0.0 else edits.first[j]
                kept.gain[1, j] = (work.margin[end] - own) / (edits.value[end] - base[j]) * unit_of(space, j)
    sort_order(kept.rate, count[0], kept.order)
    for place in range(count[0]):
        kept.rank[kept.feature[kept.order[place]]] = place
    for k in range(count[1]):
        kept.segment_rank[k] = kept.rank[kept.segment_rank[k]]
        kept.segment_rate[k] = -kept.segment_gain[k] / kept.segment_cost[k]
    sort_order(kept.segment_rate, count[1], kept.segment_order)


@compiled
def relaxed_cost(kept: Items, place: int, short: float) -> float:
    """Return the least that the missing margin costs with shares of the changes of undecided features."""
    total = 0.0
    for k in range(kept.count[1] if short > 0.0 else 0):
        segment = kept.segment_order[k]
        if kept.segment_rank[segment] < place:
            continue
        gain = kept.segment_gain[segment]
        if gain >= short:
            return total + short / gain * kept.segment_cost[segment]
        total += kept.segment_cost[segment]
        short -= gain
    return math.inf if short > 0.0 else total


@compiled
def fewest_changes(kept: Items, short: float) -> int:
    """Return how few features together can reach the target, one more than there are if all of them cannot."""
    for k in range(kept.count[0]):
        kept.rate[k] = -kept.gain[0, kept.feature[k]]
    sort_order(kept.rate, kept.count[0], kept.choice)
    fewest = kept.count[0] + 1
    for k in range(kept.count[0]):
        kept.top[k + 1] = kept.top[k] - kept.rate[kept.choice[k]]
        if kept.top[k + 1] >= short and k + 1 < fewest:
            fewest = k + 1
    return fewest


@compiled
def begin_items(kept: Items, short: float, cost: float) -> None:
    """Begin the search with nothing decided."""
    kept.choice[0], kept.short[0], kept.cost[0], kept.changes[0], kept.count[2] = -1, short, cost, 0, 0


@compiled
def next_units(
    space: Space, queries: Queries, q: int, kept: Items, place: int, j: int, turn: int
) -> float:
    """Return the value of a number with one unit less than at the turn before, from that which reaches the target."""
    base, rate = queries.base[q, j], kept.gain[1, j]
    if turn == 0:
        kept.fill[place] = math.ceil(min(kept.short[place], kept.gain[0, j]) / abs(rate) - LEAST)
    change = (kept.fill[place] - turn) * unit_of(space, j)
    return at_precision(space, queries, q, j, base + change if rate > 0.0 else base - change) if change > 0.0 else base


@compiled
def next_complete(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float, place: int, most_changes: int,
    best: float,
) -> int:  # fmt: skip
    """Decide features from position `place` on until the target is reached for less than `best`; return the position after
    the last decision, or -1 if there is nothing left or too many steps were made."""
    edits, base = work.edits, queries.base[q]
    while place >= 0:
        kept.count[2] += 1
        if kept.count[2] > MOST_STEPS:
            return -1
        if kept.choice[place] < 0:
            if kept.short[place] <= 0.0:
                return place
            if place == kept.count[0] or kept.top[max(most_changes - kept.changes[place], 0)] < kept.short[place]:
                place -= 1
                continue
            kept.choice[place] = 0
        j, turn = kept.feature[kept.order[place]], kept.choice[place]
        graded, value, gain, spent = is_graded(space, queries, q, j), base[j], 0.0, 0.0
        kept.choice[place] += 1
        if graded:
            value = next_units(space, queries, q, kept, place, j, turn)
            last = turn >= kept.fill[place]
            gain = (value - base[j]) / unit_of(space, j) * kept.gain[1, j]
        else:
            last = turn == edits.first[j + 1] - edits.first[j]
            if not last:
                e = edits.first[j] + turn
                value, gain = edits.value[e], work.margin[e] - own
        if turn > (kept.fill[place] if graded else edits.first[j + 1] - edits.first[j]):
            place -= 1
            continue
        if last:
            value, gain = base[j], 0.0
        elif value == base[j] or gain <= 0.0:
            continue
        else:
            row = queries.row[q, j]
            spent = change_cost(space, j, value, row) - change_cost(space, j, base[j], row)
        cost, short = kept.cost[place] + spent, kept.short[place] - gain
        if cost + relaxed_cost(kept, place + 1, short) >= best - LEAST:
            if graded and turn > 0 and not last and space.flat[j] == 0.0:
                # With fewer units the others have to gain more at lower rates.
                kept.choice[place] = kept.fill[place] + 1
            continue
        kept.value[place] = value
        place += 1
        kept.choice[place], kept.short[place], kept.cost[place] = -1, short, cost
        kept.changes[place] = kept.changes[place - 1] + (0 if last else 1)
    return -1
