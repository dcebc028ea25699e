"""The cheapest candidate where margins and costs are sums over features: branch and bound over the changes of one query.

Features are decided in the order of their best rate of gain per cost, but numbers with small units last. The bound of what
is undecided is its linear relaxation: the segments of the features' concave hulls, the best rates first. For linear models
this mostly proves the optimum in some ten to hundred steps.
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
# Numbers whose units cost less than this share of the bound are decided last, the finest at the end.
FINE = 0.01


class Items(NamedTuple):
    """The features that gain, in the order in which they are decided, and the decisions on them so far."""

    count: Int64s  # type: ignore[assignment]
    """Number of features that gain, of segments, and of steps (3,)."""
    feature: Int64s
    first: Int64s
    """First segment of each, as they were listed."""
    rank: Int64s
    """Position of each feature in `feature` (features,)."""
    rate: Floats
    """What features are ordered by."""
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
    """Options of each position tried so far, -1 if it has not begun (features + 1,)."""
    low: Int64s
    high: Int64s
    """Next units of a number to be tried, below and above what the relaxation takes."""
    most: Int64s
    """All units of a number."""
    rest: Floats
    """Bound if a feature is left as it is."""
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
        first=np.zeros(features, np.int64),
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
        low=np.zeros(features + 1, np.int64),
        high=np.zeros(features + 1, np.int64),
        most=np.zeros(features + 1, np.int64),
        rest=np.zeros(features + 1),
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
    """Return whether what a number adds, and what it costs, are straight lines, for every number that may be changed."""
    for j in range(len(space.numeric)):
        if space.numeric[j] and queries.free[q, j]:
            if queries.may_be_missing[q, j] and queries.base[q, j] != MISSING:
                return False
            if space.flat[j] != 0.0:
                return False
            knots = network.start[j + 1] - network.start[j] - (1 if network.nullable[j] else 0)
            if knots > 2 or (knots == 2 and not network.extrapolate):
                return False
    return True


@compiled
def hull_of(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, j: int, own: float) -> float:
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
        kept.segment_cost[place] = max(edits.cost[pick] - spent, LEAST)
        kept.segment_rank[place] = j
        count[1] += 1
        gained, spent = margin[pick] - own, max(edits.cost[pick], spent)
    return gained


@compiled
def list_items(space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float, short: float) -> None:
    """Write the features that gain, and the segments of their hulls; all single edits of the query are scored.

    What can be divided finely is decided last, when the relaxation of the rest is nearly exact.
    """
    edits, base, count = work.edits, queries.base[q], kept.count
    count[0] = count[1] = 0
    for j in range(len(base)):
        first = count[1]
        most = hull_of(space, queries, q, work, kept, j, own) if queries.free[q, j] else 0.0
        if most > 0.0:
            place = count[0]
            kept.feature[place], kept.first[place], kept.gain[0, j] = j, first, most
            count[0] += 1
            if is_graded(space, queries, q, j):
                # The ends of the range are among the values: one of them gains the most.
                last = edits.last[j] - 1
                end = last if work.margin[last] - own > 0.0 else edits.first[j]
                kept.gain[1, j] = (work.margin[end] - own) / (edits.value[end] - base[j]) * unit_of(space, j)
    for k in range(count[1]):
        kept.segment_rate[k] = -kept.segment_gain[k] / kept.segment_cost[k]
    sort_order(kept.segment_rate, count[1], kept.segment_order)
    fine = FINE * relaxed_cost(kept, 0, short)
    for place in range(count[0]):
        j, first = kept.feature[place], kept.first[place]
        least = kept.segment_cost[first]
        if is_graded(space, queries, q, j):
            least *= abs(kept.gain[1, j]) / kept.gain[0, j]
        kept.rate[place] = kept.segment_rate[first] if least > fine else 1.0 / least
    sort_order(kept.rate, count[0], kept.order)
    for place in range(count[0]):
        kept.rank[kept.feature[kept.order[place]]] = place
    for k in range(count[1]):
        kept.segment_rank[k] = kept.rank[kept.segment_rank[k]]


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
def relaxed_units(kept: Items, place: int, short: float, j: int) -> int:
    """Return how many whole units of number j the relaxation takes."""
    for k in range(kept.count[1]):
        segment = kept.segment_order[k]
        if kept.segment_rank[segment] == place:
            return math.floor(min(kept.segment_gain[segment], max(short, 0.0)) / abs(kept.gain[1, j]))
        if kept.segment_rank[segment] > place:
            short -= kept.segment_gain[segment]
    return 0


@compiled
def begin_place(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float, place: int, j: int
) -> None:  # fmt: skip
    """Prepare the options of a feature: units of a number, below and above what the relaxation takes, or bounds of edits."""
    edits, cost, short = work.edits, kept.cost[place], kept.short[place]
    kept.choice[place] = 0
    kept.rest[place] = cost + relaxed_cost(kept, place + 1, short)
    if is_graded(space, queries, q, j):
        kept.most[place] = math.floor(kept.gain[0, j] / abs(kept.gain[1, j]) + LEAST)
        kept.low[place] = min(relaxed_units(kept, place, short, j), kept.most[place])
        kept.high[place] = kept.low[place] + 1
        return
    spent = change_cost(space, j, queries.base[q, j], queries.row[q, j])
    for e in range(edits.first[j], edits.first[j + 1]):
        gain = work.margin[e] - own
        work.total[e] = math.inf
        if gain > 0.0:
            work.total[e] = cost + edits.cost[e] - spent + relaxed_cost(kept, place + 1, short - gain)


@compiled
def decide_number(
    space: Space, queries: Queries, q: int, kept: Items, place: int, j: int, best: float
) -> bool:  # fmt: skip
    """Decide a number; return whether there was something left that may cost less than `best`.

    The bound is convex in the number of units, so that nothing beyond a number of units that costs too much is tried.
    """
    base, row, unit = queries.base[q, j], queries.row[q, j], math.copysign(unit_of(space, j), kept.gain[1, j])
    while kept.low[place] >= 0 or kept.high[place] <= kept.most[place]:
        kept.choice[place] += 1
        down = kept.low[place] >= 0 and (kept.choice[place] % 2 == 1 or kept.high[place] > kept.most[place])
        units = kept.low[place] if down else kept.high[place]
        value = at_precision(space, queries, q, j, base + units * unit) if units > 0 else base
        cost = kept.cost[place] + change_cost(space, j, value, row) - change_cost(space, j, base, row)
        short = kept.short[place] - (value - base) / unit * abs(kept.gain[1, j])
        fits = cost + relaxed_cost(kept, place + 1, short) < best - LEAST
        if down:
            kept.low[place] = kept.low[place] - 1 if fits else -1
        else:
            kept.high[place] = kept.high[place] + 1 if fits else kept.most[place] + 1
        if fits:
            take_value(kept, place, value, short, cost, value != base)
            return True
    return False


@compiled
def decide_edit(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float, place: int, j: int, best: float
) -> bool:  # fmt: skip
    """Decide the edit of a feature, or none, with the lowest bound; return whether there was one below `best`."""
    edits, base = work.edits, queries.base[q, j]
    pick, bound = -1, kept.rest[place]
    for e in range(edits.first[j], edits.first[j + 1]):
        if work.total[e] < bound:
            pick, bound = e, work.total[e]
    if bound >= best - LEAST:
        return False
    if pick < 0:
        kept.rest[place] = math.inf
        take_value(kept, place, base, kept.short[place], kept.cost[place], False)
        return True
    work.total[pick] = math.inf
    cost = kept.cost[place] + edits.cost[pick] - change_cost(space, j, base, queries.row[q, j])
    take_value(kept, place, edits.value[pick], kept.short[place] - (work.margin[pick] - own), cost, True)
    return True


@compiled
def take_value(kept: Items, place: int, value: float, short: float, cost: float, changed: bool) -> None:
    """Note a decision, and begin the next."""
    kept.value[place], kept.choice[place + 1], kept.short[place + 1], kept.cost[place + 1] = value, -1, short, cost
    kept.changes[place + 1] = kept.changes[place] + (1 if changed else 0)


@compiled
def next_complete(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, own: float, place: int, most_changes: int,
    best: float,
) -> int:  # fmt: skip
    """Decide features from position `place` on until the target is reached for less than `best`; return the position after
    the last decision, or -1 if there is nothing left or too many steps were made."""
    while place >= 0:
        kept.count[2] += 1
        if kept.count[2] > MOST_STEPS:
            return -1
        if kept.choice[place] < 0 and kept.short[place] <= 0.0:
            return place
        decided = False
        if place < kept.count[0] and kept.top[max(most_changes - kept.changes[place], 0)] >= kept.short[place]:
            j = kept.feature[kept.order[place]]
            if kept.choice[place] < 0:
                begin_place(space, queries, q, work, kept, own, place, j)
            if is_graded(space, queries, q, j):
                decided = decide_number(space, queries, q, kept, place, j, best)
            else:
                decided = decide_edit(space, queries, q, work, kept, own, place, j, best)
        place += 1 if decided else -1
    return -1
