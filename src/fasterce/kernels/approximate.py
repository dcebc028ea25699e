"""A first candidate by approximation: combine changes as if their gains added up, and again from the result.

From a row all single edits are scored. As if each gained the same beside any others, the relaxation over the hulls of their
costs combines them at the least cost. The result is brought to the decision boundary, and is the row of the next turn. Where
many small changes together are cheapest, a search that adds one change after another comes near them only slowly.

Under a distance with a root over squares the costs do not add up. In the first turn they are added all the same. After that
the squares are, divided by twice the root of the last result. Up to a constant, this sum equals the distance there and is
nowhere below it.
"""

import math

from fasterce.kernels.additive import Items, add_choices, bound_of, end_items, note_choice, write_places
from fasterce.kernels.arrays import TREES, Effort, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to
from fasterce.kernels.edits import at_precision, change_cost, score_all
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace, profile, row_margin
from fasterce.kernels.score import MISSING
from fasterce.kernels.state import LEAST, Memory, changes_of, legal_row, write_parts
from fasterce.kernels.tighten import keep_tightened

# Shares of the way between two values of a number that are tried where its costs are squared: small changes cost the least.
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)


@compiled
def summed_cost(space: Space, j: int, cost: float, root: float) -> float:
    """Return what a feature adds to the sum: its cost, or its square over twice `root`, if that is known (above 0)."""
    return cost * cost / (2.0 * root) if root > 0.0 and space.squared[j] else cost


@compiled
def note_gain(
    space: Space, queries: Queries, q: int, kept: Items, j: int, gain: float, cost: float, value: float, root: float
) -> None:
    """Keep a value with its gain and what it costs more than the value of the base."""
    spent = change_cost(space, j, queries.base[q, j], queries.row[q, j])
    note_choice(kept, gain, summed_cost(space, j, cost, root) - summed_cost(space, j, spent, root), value)


@compiled
def note_between(
    space: Space, queries: Queries, q: int, kept: Items, j: int, start: float, margin: float, end: float, gain: float,
    root: float,
) -> None:  # fmt: skip
    """Keep the values at the knots of the cost curve between two values of a number, or at shares of the way if its costs are
    squared, with margins from a line between theirs: `margin` at the start, `gain` more at the end."""
    if root > 0.0 and space.squared[j]:
        for share in SHARES:
            value = at_precision(space, queries, q, j, start + share * (end - start))
            if min(start, end) < value < max(start, end):
                cost = change_cost(space, j, value, queries.row[q, j])
                note_gain(space, queries, q, kept, j, margin + share * gain - kept.lost[j], cost, value, root)
        return
    first, after = space.curve_start[j], space.curve_start[j + 1]
    low, high = min(start, end), max(start, end)
    left, right = first, after
    while left < right:
        middle = (left + right) // 2
        if space.curve_knots[middle] <= low:
            left = middle + 1
        else:
            right = middle
    for k in range(left, after):
        if space.curve_knots[k] >= high:
            break
        value = at_precision(space, queries, q, j, space.curve_knots[k])
        if low < value < high:
            gained = margin + gain * (value - start) / (end - start) - kept.lost[j]
            note_gain(space, queries, q, kept, j, gained, change_cost(space, j, value, queries.row[q, j]), value, root)


@compiled
def note_numbers(
    space: Space, queries: Queries, q: int, work: Workspace, kept: Items, j: int, side: int, smooth: bool, root: float
) -> None:
    """Keep the edits of a number on one side of its own value; for a smooth model also the knots between them."""
    edits = work.edits
    value, margin = queries.base[q, j], kept.lost[j]
    first = edits.middle[j] if side > 0 else edits.middle[j] - 1
    end = edits.last[j] if side > 0 else edits.first[j] - 1
    for e in range(first, end, side):
        if smooth:
            note_between(space, queries, q, kept, j, value, margin, edits.value[e], work.margin[e] - margin, root)
        value, margin = edits.value[e], work.margin[e]
        note_gain(space, queries, q, kept, j, margin - kept.lost[j], edits.cost[e], value, root)


@compiled
def list_gains(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, linked: bool,
    root: float,
) -> float:  # fmt: skip
    """List what every value of every feature gains beside the other changes of `memory.state`, with or without those that
    constraints link; return the margin that is missing without any."""
    kept, base, edits = memory.items, queries.base[q], work.edits
    missing = 0.0
    for j in range(len(base)):
        memory.changing[j] = queries.free[q, j] and (linked or not queries.links.linked[j])
        if memory.state[j] != base[j]:
            copy_to(memory.draft, memory.state)
            memory.draft[j] = base[j]
            kept.lost[j] = row_margin(scorer, queries, q, work, memory.draft)
    score_all(work)
    own = profile(scorer, space, queries, q, work, memory.state, memory.changing)
    kept.count[0] = kept.count[1] = kept.count[3] = 0
    for j in range(len(base)):
        if memory.state[j] == base[j]:
            kept.lost[j] = own
        missing += own - kept.lost[j]
        kept.first[kept.count[0]] = kept.count[1]
        if not memory.changing[j]:
            continue
        if space.numeric[j] and base[j] != MISSING:
            smooth = scorer.kind != TREES
            note_numbers(space, queries, q, work, kept, j, 1, smooth, root)
            note_numbers(space, queries, q, work, kept, j, -1, smooth, root)
        else:
            for e in range(edits.first[j], edits.last[j]):
                note_gain(space, queries, q, kept, j, work.margin[e] - kept.lost[j], edits.cost[e], edits.value[e], root)
        if edits.gap[j]:
            e = edits.last[j]
            note_gain(space, queries, q, kept, j, work.margin[e] - kept.lost[j], edits.cost[e], edits.value[e], root)
        add_choices(kept, j, base[j])
    end_items(kept)
    return tolerance - own + missing


@compiled
def approximate(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, effort: Effort
) -> None:
    """Keep the candidates that combinations of approximated changes lead to.

    A combination may break a constraint between features. Then those that no constraint links are combined alone.
    """
    if not combine(scorer, space, queries, q, work, memory, tolerance, effort, True):
        combine(scorer, space, queries, q, work, memory, tolerance, effort, False)


@compiled
def combine(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, effort: Effort,
    linked: bool,
) -> bool:  # fmt: skip
    """Combine changes, with or without those of features that constraints link; return whether no combination that reaches
    the target breaks a constraint."""
    kept, row, holds = memory.items, queries.row[q], True
    copy_to(memory.state, queries.base[q])
    cost, root = math.inf, 0.0
    for _ in range(effort.combinations):
        short = list_gains(scorer, space, queries, q, work, memory, tolerance, linked, root)
        bound, p, _ = bound_of(space, queries, q, kept, short, kept.count[0])
        if bound == math.inf:
            return holds
        if p >= 0:
            kept.at[p] = kept.next[p]
        copy_to(memory.other, queries.base[q])
        write_places(kept, memory.other)
        if row_margin(scorer, queries, q, work, memory.other) > tolerance:
            keep_tightened(scorer, space, queries, q, work, memory, tolerance, effort.rounds)
            holds = holds and legal_row(queries, q, memory.other)
            before, cost = cost, write_parts(space, memory, memory.other, row)
            root = math.sqrt(memory.sums[1])
            if cost >= before - LEAST:
                return holds
        elif changes_of(memory.other, memory.state) == 0:
            return holds
        copy_to(memory.state, memory.other)
    return holds
