"""The single edits of a query: values it may take, and what they cost."""

import math

import numpy as np

from fasterce.kernels.arrays import EXPONENTIAL, TREES, Int64s, Network, Queries, Scorer, Space, Trees
from fasterce.kernels.basics import copy_to, fill, tidy
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import complete_row, each_legal, links_hold
from fasterce.kernels.profile import Workspace
from fasterce.kernels.score import MISSING, add_entry, cell_of, knot_below
from fasterce.typing import Floats

# Relative cost of filling a missing number far from its usual value: breaks ties only.
TIE = 1e-6
SLACK = 1e-9


@compiled
def height_at(knots: Floats, heights: Floats, first: int, end: int, slope: float, value: float) -> float:
    """Return the height of the cost curve with these knots, the last of them before `end`."""
    end -= 1
    if value <= knots[first]:
        return heights[first] + slope * (value - knots[first])
    if value >= knots[end]:
        return heights[end] + slope * (value - knots[end])
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
def write_curve_costs(
    codes: Floats, rows: Floats, start: Int64s, knots: Floats, heights: Floats, slope: Floats, costs: Floats
) -> None:
    """Write the costs of the numbers that have a cost curve, for candidates (N, features) of rows (N, features)."""
    for i in range(len(codes)):
        for j in range(len(slope)):
            if start[j] < start[j + 1] and codes[i, j] != rows[i, j]:
                after = height_at(knots, heights, start[j], start[j + 1], slope[j], codes[i, j])
                before = height_at(knots, heights, start[j], start[j + 1], slope[j], rows[i, j])
                costs[i, j] = abs(after - before)


@compiled
def curve_at(space: Space, j: int, value: float) -> float:
    """Return the height of the cost curve of a number."""
    first, end = space.curve_start[j], space.curve_start[j + 1]
    return height_at(space.curve_knots, space.curve_heights, first, end, space.curve_slope[j], value)


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
def describe_edits(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, j: int) -> None:
    """Write the costs of the edits of feature j, and their cells or entries; values increase, the last may be missing."""
    edits, row = work.edits, queries.row[q, j]
    value, cost = edits.value, edits.cost
    first, end = edits.first[j], edits.first[j + 1]
    for e in range(first, end):
        cost[e] = change_cost(space, j, value[e], row)
    if scorer.kind == TREES:
        write_cells(scorer.trees, j, value, first, end, edits.cell)
        return
    write_entries(scorer.network, j, work, first, end)


@compiled
def write_entries(network: Network, j: int, work: Workspace, first: int, end: int) -> None:
    """Write the entries of values in the first layer of a network, unit after unit; the last value may be missing."""
    edits, entry, entries = work.edits, work.edits.entry, network.entries
    value, low, share, bend = edits.value, edits.cell, work.total, work.margin
    numbers = end
    if network.numeric[j] and end > first and value[end - 1] == MISSING:
        numbers -= 1
        fill(work.edited_hidden, 0.0)
        add_entry(network, j, MISSING, 1.0, work.edited_hidden)
        copy_to(entry[:, numbers], work.edited_hidden)
    knots = network.start[j + 1] - network.start[j]
    for e in range(first, numbers if knots > 0 else first):
        low[e], share[e], bend[e] = knot_below(network, j, value[e])
    for h in range(len(network.bias)):
        for e in range(first, numbers):
            if knots == 0:
                entry[h, e] = 0.0
            elif share[e] == 0.0:
                entry[h, e] = entries[low[e], h] + bend[e]
            else:
                here = entries[low[e], h]
                entry[h, e] = here + share[e] * (entries[low[e] + 1, h] - here) + bend[e]
    if network.activation == EXPONENTIAL and len(network.width) > 0:
        for h in range(len(network.bias)):
            for e in range(first, end):
                entry[h, e] = math.exp(entry[h, e])


@compiled
def write_cells(trees: Trees, j: int, value: Floats, first: int, end: int, cell: Int64s) -> None:
    """Write the cells of increasing values, the last of which may be missing."""
    edges, start, stop = trees.edges, trees.edge_start[j], trees.edge_start[j + 1]
    place = start
    for e in range(first, end):
        if start == stop or value[e] == MISSING:
            cell[e] = cell_of(trees, j, value[e])
            continue
        if e == first:
            place = start + cell_of(trees, j, value[e])
        while place < stop and edges[place] < value[e]:
            place += 1
        cell[e] = place - start


@compiled
def numeric_edits(space: Space, queries: Queries, q: int, value: Floats, j: int, e: int, ends: bool) -> int:
    """Append the values number j may take, increasing, with the `ends` of its range; return the number of edits."""
    own, lower, upper = queries.base[q, j], queries.lower[q, j], queries.upper[q, j]
    level, sides, stop = space.level, space.level_side, space.level_start[j + 1]
    scale, step, single = space.scale[j], space.step[j], space.single[j]
    last = -math.inf
    if ends:
        number = at_precision(space, queries, q, j, lower)
        if number != own and lower <= number <= upper:
            last, value[e] = number, number
            e += 1
    # Rounding moves a value by at most one unit.
    unit = max(step, 1.0 / scale)
    for k in range(first_level(level, space.level_start[j], stop, lower - unit), stop):
        number, side = level[k], sides[k]
        if number > upper + unit:
            break
        if own != MISSING and ((side > 0 and number <= own) or (side < 0 and number >= own)):
            continue
        if step > 0.0:
            number = on_grid(space, queries, q, j, number, side)
        elif side == 0:
            number = np.rint(number * scale) / scale
            number = float(np.float32(number)) if single else number
        if lower <= number <= upper and number != own and number > last:
            last, value[e] = number, number
            e += 1
    if ends:
        number = at_precision(space, queries, q, j, upper)
        if number != own and lower <= number <= upper and number > last:
            value[e] = number
            e += 1
    if queries.may_be_missing[q, j] and own != MISSING:
        value[e] = MISSING
        e += 1
    return e


@compiled
def edit_holds(queries: Queries, q: int, j: int, value: float, draft: Floats) -> bool:
    """Return whether a query satisfies the constraints between features once feature j has this value; writes the row with
    all that follows to `draft`."""
    copy_to(draft, queries.base[q])
    draft[j] = value
    complete_row(queries.links, q, draft)
    return each_legal(queries.links, q, draft) and links_hold(queries.links, q, draft)


@compiled
def last_that_holds(space: Space, queries: Queries, q: int, j: int, good: float, bad: float, draft: Floats) -> float:
    """Return the last value of number j between a good one and a bad one that breaks no constraint between features."""
    while True:
        middle = at_precision(space, queries, q, j, 0.5 * (good + bad))
        if not min(good, bad) < middle < max(good, bad):
            return good
        if edit_holds(queries, q, j, middle, draft):
            good = middle
        else:
            bad = middle


@compiled
def add_limit(
    space: Space, queries: Queries, q: int, value: Floats, j: int, first: int, end: int, up: bool, draft: Floats
) -> int:
    """Insert among the increasing values first..end of number j the farthest to one side of the base, before the first that
    breaks a constraint between features; return how many values were inserted."""
    base = queries.base[q, j]
    good = base
    for k in range(end - first):
        e = first + k if up else end - 1 - k
        if value[e] == MISSING or (value[e] < base) == up:
            continue
        if edit_holds(queries, q, j, value[e], draft):
            good = value[e]
            continue
        limit = last_that_holds(space, queries, q, j, good, value[e], draft)
        if limit == good:
            return 0
        place = e if up else e + 1
        for other in range(end, place, -1):
            value[other] = value[other - 1]
        value[place] = limit
        return 1
    return 0


@compiled
def first_level(level: Floats, low: int, high: int, value: float) -> int:
    """Return the position of the first of the candidate values low..high that is not below a value."""
    while low < high:
        middle = (low + high) // 2
        if level[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


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
    edits = work.edits
    value, features, draft = edits.value, len(space.numeric), np.empty(len(space.numeric))
    e = 0
    for j in range(features):
        edits.first[j] = e
        if queries.free[q, j]:
            if space.numeric[j]:
                e = numeric_edits(space, queries, q, value, j, e, scorer.kind != TREES)
                if queries.links.linked[j] and queries.base[q, j] != MISSING:
                    e += add_limit(space, queries, q, value, j, edits.first[j], e, True, draft)
                    e += add_limit(space, queries, q, value, j, edits.first[j], e, False, draft)
            else:
                own, first = queries.base[q, j], space.category_start[j]
                for code in range(space.category_start[j + 1] - first):
                    if queries.open_categories[q, first + code] and code != own:
                        value[e] = float(code)
                        e += 1
        edits.first[j + 1] = e
        describe_edits(scorer, space, queries, q, work, j)
        write_middle(work, queries.base[q, j], j, space.numeric[j])
    score_all(work)


@compiled
def write_middle(work: Workspace, base: float, j: int, numeric: bool) -> None:
    """Note where the edits of feature j above the base begin, and where those that are values end."""
    edits = work.edits
    first, end = edits.first[j], edits.first[j + 1]
    if numeric and end > first and edits.value[end - 1] == MISSING:
        end -= 1
    middle = first
    if numeric and base != MISSING:
        high = end
        while middle < high:
            half = (middle + high) // 2
            if edits.value[half] < base:
                middle = half + 1
            else:
                high = half
    edits.middle[j], edits.last[j] = middle, end


@compiled
def score_all(work: Workspace) -> None:
    """Let all edits be scored."""
    edits = work.edits
    for j in range(len(edits.low)):
        edits.low[j], edits.high[j], edits.gap[j] = edits.first[j], edits.last[j], edits.last[j] < edits.first[j + 1]


@compiled
def score_within(space: Space, work: Workspace, base: float, j: int, most: float, beyond: int) -> bool:
    """Let the edits of feature j be scored that cost at most so much, and `beyond` more values of a number on each side;
    return whether there are any."""
    edits = work.edits
    first, middle, last = edits.first[j], edits.middle[j], edits.last[j]
    edits.gap[j] = last < edits.first[j + 1] and edits.cost[last] <= most
    if not space.numeric[j] or base == MISSING:
        cheap = False
        for e in range(first, last):
            cheap |= edits.cost[e] <= most
        edits.low[j], edits.high[j] = first, last if cheap else first
        return cheap or edits.gap[j]
    low, high = first, middle
    while low < high:
        half = (low + high) // 2
        if edits.cost[half] > most:
            low = half + 1
        else:
            high = half
    edits.low[j] = max(low - beyond, first)
    low, high = middle, last
    while low < high:
        half = (low + high) // 2
        if edits.cost[half] <= most:
            low = half + 1
        else:
            high = half
    edits.high[j] = min(low + beyond, last)
    return edits.low[j] < edits.high[j] or edits.gap[j]


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
