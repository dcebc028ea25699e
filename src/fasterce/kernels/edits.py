"""The single edits of a query: values it may take, and what they cost."""

import math

import numpy as np

from fasterce.kernels.arrays import TREES, Queries, Scorer, Space
from fasterce.kernels.basics import fill
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace
from fasterce.kernels.score import MISSING, add_entry, cell_of
from fasterce.typing import Floats

# Relative cost of filling a missing number far from its usual value: breaks ties only.
TIE = 1e-6
SLACK = 1e-9


@compiled
def curve_at(space: Space, j: int, value: float) -> float:
    """Return the height of the cost curve of a number."""
    first, end = space.curve_start[j], space.curve_start[j + 1] - 1
    knots, heights = space.curve_knots, space.curve_heights
    if value <= knots[first]:
        return heights[first] + space.curve_slope[j] * (value - knots[first])
    if value >= knots[end]:
        return heights[end] + space.curve_slope[j] * (value - knots[end])
    low, high = first, end
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    share = (value - knots[low]) / (knots[high] - knots[low])
    return heights[low] + share * (heights[high] - heights[low])


@compiled
def number_cost(space: Space, j: int, value: float, own: float) -> float:
    if space.curve_start[j] < space.curve_start[j + 1]:
        return abs(curve_at(space, j, value) - curve_at(space, j, own))
    return abs(value - own) * space.weight[j] + space.flat[j]


@compiled
def change_cost(space: Space, j: int, value: float, own: float) -> float:
    """Return the cost of a feature that has `value` instead of `own`."""
    if value == own:
        return 0.0
    factor = space.up[j] if value > own else space.down[j]
    if not space.numeric[j]:
        return space.flat[j] * factor
    if value == MISSING:
        return space.gap[j]
    if own == MISSING:
        return space.gap[j] + TIE * number_cost(space, j, value, space.usual[j])
    return number_cost(space, j, value, own) * factor


@compiled
def tidy(value: float) -> float:
    """Remove rounding noise: 0.30000000000000004 becomes 0.3."""
    short = np.rint(value * 1e9) / 1e9
    return short if abs(short - value) <= 1e-12 * max(1.0, abs(value)) else value


@compiled
def as_stored(space: Space, j: int, value: float, lower: float, upper: float) -> float:
    """Return a value inside its bounds as its column holds it."""
    if space.step[j] > 0.0:
        value = tidy(value)
    value = min(max(value, lower), upper)
    if space.single[j]:
        value = float(np.float32(value))
        if value > upper:
            value = float(np.nextafter(np.float32(value), np.float32(-np.inf)))
        elif value < lower:
            value = float(np.nextafter(np.float32(value), np.float32(np.inf)))
    return value


@compiled
def at_precision(space: Space, queries: Queries, q: int, j: int, value: float) -> float:
    """Return the nearest value a number may take, by its step or precision and inside its bounds."""
    lower, upper = queries.lower[q, j], queries.upper[q, j]
    if space.step[j] > 0.0:
        step, anchor = space.step[j], queries.anchor[q, j]
        low, high = math.ceil((lower - anchor) / step - SLACK), math.floor((upper - anchor) / step + SLACK)
        return as_stored(space, j, anchor + min(max(np.rint((value - anchor) / step), low), high) * step, lower, upper)
    scale = space.scale[j]
    rounded = np.rint(value * scale) / scale
    low, high = math.ceil(lower * scale - SLACK) / scale, math.floor(upper * scale + SLACK) / scale
    if low <= high:
        rounded = min(max(rounded, low), high)
    return as_stored(space, j, rounded, lower, upper)


@compiled
def add_edit(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, j: int, value: float, e: int) -> int:
    """Append an edit and return the number of edits."""
    edits = work.edits
    edits.value[e] = value
    edits.cost[e] = change_cost(space, j, value, queries.row[q, j])
    if scorer.kind == TREES:
        edits.cell[e] = cell_of(scorer.trees, j, value)
    else:
        fill(work.own[0], 0.0)
        add_entry(scorer.network, j, value, 1.0, work.own[0])
        for h in range(len(work.hidden)):
            edits.entry[h, e] = work.own[0, h]
    return e + 1


@compiled
def numeric_edits(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, j: int, e: int) -> int:
    own, lower, upper = queries.base[q, j], queries.lower[q, j], queries.upper[q, j]
    trees = scorer.kind == TREES
    last = -math.inf
    if not trees:
        end = at_precision(space, queries, q, j, lower)
        if end != own and lower <= end <= upper:
            last, e = end, add_edit(scorer, space, queries, q, work, j, end, e)
    for k in range(space.level_start[j], space.level_start[j + 1]):
        value, side = space.level[k], space.level_side[k]
        if own != MISSING and ((side > 0 and value <= own) or (side < 0 and value >= own)):
            continue
        if space.step[j] > 0.0:
            value = on_grid(space, queries, q, j, value, side)
        elif side == 0:
            value = at_precision(space, queries, q, j, value)
        if value < lower or value > upper or value == own or value <= last:
            continue
        last, e = value, add_edit(scorer, space, queries, q, work, j, value, e)
    if not trees:
        end = at_precision(space, queries, q, j, upper)
        if end != own and lower <= end <= upper and end > last:
            e = add_edit(scorer, space, queries, q, work, j, end, e)
    if queries.may_be_missing[q, j] and own != MISSING:
        e = add_edit(scorer, space, queries, q, work, j, MISSING, e)
    return e


@compiled
def on_grid(space: Space, queries: Queries, q: int, j: int, value: float, side: int) -> float:
    """Return the value on the grid of a query nearest to a candidate value, on the far side of it if it has a side."""
    step, anchor = space.step[j], queries.anchor[q, j]
    count = np.rint((value - anchor) / step)
    if side > 0:
        count = math.ceil((value - anchor) / step - SLACK)
    elif side < 0:
        count = math.floor((value - anchor) / step + SLACK)
    return as_stored(space, j, anchor + count * step, -math.inf, math.inf)


@compiled
def list_edits(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace) -> None:
    """Write all single edits of a query to the workspace."""
    e = 0
    features = len(space.numeric)
    for j in range(features):
        work.edits.first[j] = e
        if not queries.free[q, j]:
            continue
        if space.numeric[j]:
            e = numeric_edits(scorer, space, queries, q, work, j, e)
        else:
            own = queries.base[q, j]
            first = space.category_start[j]
            for code in range(space.category_start[j + 1] - first):
                if queries.open_categories[q, first + code] and code != own:
                    e = add_edit(scorer, space, queries, q, work, j, float(code), e)
    work.edits.first[features] = e


@compiled
def total_cost(space: Space, parts: Floats) -> float:
    """Return the distance of a candidate from the costs of its features."""
    total, squares = 0.0, 0.0
    for j in range(len(parts)):
        if space.squared[j]:
            squares += parts[j] * parts[j]
        else:
            total += parts[j]
    return total + math.sqrt(squares)
