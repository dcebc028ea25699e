"""Drop changes that a candidate does not need, and bring its numbers to the decision boundary."""

import math

from fasterce.kernels.arrays import TREES, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to, fill, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost, score_within
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import complete_row, links_hold
from fasterce.kernels.profile import Workspace, correction_of, profile, row_margin, target_margin
from fasterce.kernels.score import MISSING, add_entry, network_outputs
from fasterce.kernels.state import (
    KNOWN,
    LEAST,
    POOL,
    Memory,
    add_candidate,
    changes_of,
    legal_row,
    row_distance,
    set_key,
    sparsest_of,
    write_parts,
)

# Halvings of an interval: enough for the precision of a double.
HALVINGS = 64


@compiled
def value_margin(scorer: Scorer, queries: Queries, q: int, work: Workspace, j: int, value: float, corrected: float) -> float:
    """Return the margin if feature j of the state the workspace was prepared for had another value (networks only)."""
    hidden = work.edited_hidden
    for h in range(len(hidden)):
        hidden[h] = work.hidden[h] - work.own[j, h]
    add_entry(scorer.network, j, value, 1.0, hidden)
    network_outputs(scorer.network, hidden, work.layer, work.edited)
    return target_margin(scorer, queries, q, work.edited, corrected)


@compiled
def value_holds(queries: Queries, q: int, memory: Memory, j: int, value: float) -> bool:
    """Return whether `memory.other` breaks no constraint between features if feature j, which no other follows, has this
    value."""
    if not queries.links.linked[j]:
        return True
    before, memory.other[j] = memory.other[j], value
    holds = links_hold(queries.links, q, memory.other)
    memory.other[j] = before
    return holds


@compiled
def to_boundary(
    scorer: Scorer,
    space: Space,
    queries: Queries,
    q: int,
    work: Workspace,
    memory: Memory,
    j: int,
    bad: float,
    tolerance: float,
) -> None:
    """Move number j of `memory.other`, which reaches the target, as near as possible to a value that does not, or that breaks
    a constraint between features.

    The workspace is prepared for `memory.other` with another value of j. Values are tried where a line through the last two
    crosses zero, and in the middle, in turn.
    """
    good = memory.other[j]
    corrected = correction_of(queries, q, memory.other)
    above = value_margin(scorer, queries, q, work, j, good, corrected) - tolerance
    below = value_margin(scorer, queries, q, work, j, bad, corrected) - tolerance
    below = min(below, 0.0) if value_holds(queries, q, memory, j, bad) else math.inf
    unit = space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]
    for turn in range(HALVINGS):
        share = 0.5
        if turn % 3 != 2 and below <= 0.0 and above > below:
            share = min(max(above / (above - below), 0.01), 0.99)
        guess = good + share * (bad - good)
        middle = at_precision(space, queries, q, j, guess)
        if middle in (good, bad):
            middle = at_precision(space, queries, q, j, middle + (unit if (middle == good) == (bad > good) else -unit))
        if not min(good, bad) < middle < max(good, bad):
            break
        margin = value_margin(scorer, queries, q, work, j, middle, corrected) - tolerance
        if not value_holds(queries, q, memory, j, middle):
            bad, below = middle, math.inf
        elif margin > 0.0:
            good, above = middle, margin
        else:
            bad, below = middle, margin
    memory.other[j] = good


@compiled
def nearer_row(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, value: float,
    tolerance: float,
) -> bool:  # fmt: skip
    """Give a feature of `memory.other` another value, with all that follows, if the row then costs less, breaks no
    constraint and still reaches the target; return whether it does."""
    copy_to(memory.draft, memory.other)
    memory.draft[j] = value
    complete_row(queries.links, q, memory.draft)
    row = queries.row[q]
    if row_distance(space, memory.draft, row) >= row_distance(space, memory.other, row) - LEAST:
        return False
    if not legal_row(queries, q, memory.draft) or row_margin(scorer, queries, q, work, memory.draft) <= tolerance:
        return False
    copy_to(memory.other, memory.draft)
    return True


@compiled
def tighten_linked(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, tolerance: float
) -> bool:
    """Give a feature of `memory.other` that others may follow the cheapest value that reaches the target; return whether it
    changed."""
    base, edits = queries.base[q, j], work.edits
    if nearer_row(scorer, space, queries, q, work, memory, j, base, tolerance):
        return True
    moved = False
    for e in range(edits.first[j], edits.first[j + 1]):
        moved |= nearer_row(scorer, space, queries, q, work, memory, j, edits.value[e], tolerance)
    bad = base
    for _ in range(HALVINGS if space.numeric[j] and MISSING not in (memory.other[j], base) else 0):
        good = memory.other[j]
        middle = at_precision(space, queries, q, j, 0.5 * (good + bad))
        if middle in (good, bad):
            break
        if nearer_row(scorer, space, queries, q, work, memory, j, middle, tolerance):
            moved = True
        else:
            bad = middle
    return moved


@compiled
def tighten_feature(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, tolerance: float
) -> bool:
    """Give feature j of `memory.other` the cheapest value that reaches the target; return whether it changed."""
    if queries.links.leads[j]:
        return queries.free[q, j] and tighten_linked(scorer, space, queries, q, work, memory, j, tolerance)
    value, base = memory.other[j], queries.base[q, j]
    memory.other[j] = base
    fill(memory.changing, False)
    best, cost = value, change_cost(space, j, value, queries.row[q, j])
    memory.changing[j] = queries.free[q, j] and score_within(space, work, base, j, cost, 0)
    own = profile(scorer, space, queries, q, work, memory.other, memory.changing)
    if own > tolerance and value_holds(queries, q, memory, j, base):
        return True
    edits = work.edits
    if memory.changing[j]:
        for e in range(edits.low[j], edits.high[j]):
            cheaper = work.margin[e] > tolerance and edits.cost[e] < cost - LEAST
            if cheaper and value_holds(queries, q, memory, j, edits.value[e]):
                best, cost = edits.value[e], edits.cost[e]
        cheaper = edits.gap[j] and work.margin[edits.last[j]] > tolerance and edits.cost[edits.last[j]] < cost - LEAST
        if cheaper and value_holds(queries, q, memory, j, MISSING):
            best, cost = MISSING, edits.cost[edits.last[j]]
    memory.other[j] = best
    if scorer.kind != TREES and space.numeric[j] and MISSING not in (best, base):
        bad = base
        for e in range(edits.first[j], edits.last[j]):
            between = min(base, best) < edits.value[e] < max(base, best)
            if between and abs(edits.value[e] - best) < abs(bad - best):
                bad = edits.value[e]
        to_boundary(scorer, space, queries, q, work, memory, j, bad, tolerance)
    return memory.other[j] != value


@compiled
def tighten(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, rounds: int
) -> None:
    """Drop every change of `memory.other` that is not needed, the dearest first, and give the others their cheapest value,
    until no change could be reduced since the last that was."""
    row, base = queries.row[q], queries.base[q]
    still = 0
    for _ in range(rounds):
        write_parts(space, memory, memory.other, row)
        for j in range(len(base)):
            memory.parts[j] = -memory.parts[j]
        sort_order(memory.parts, len(base), memory.order)
        for j in memory.order[: len(base)]:
            if memory.other[j] != base[j]:
                still = 0 if tighten_feature(scorer, space, queries, q, work, memory, j, tolerance) else still + 1
                if still >= changes_of(memory.other, base):
                    return


@compiled
def keep_tightened(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, rounds: int
) -> int:
    """Tighten `memory.other` and keep it; return its position among the candidates, or -1."""
    complete_row(queries.links, q, memory.other)
    if not legal_row(queries, q, memory.other):
        return -1
    tighten(scorer, space, queries, q, work, memory, tolerance, rounds)
    if changes_of(memory.other, queries.row[q]) == 0:
        return -1
    margin = row_margin(scorer, queries, q, work, memory.other)
    if margin <= tolerance:
        return -1
    cost = write_parts(space, memory, memory.other, queries.row[q])
    place = add_candidate(space, memory, queries.row[q], memory.other, cost, margin, cost)
    if place >= 0:
        memory.pool_tight[place] = True
    return place


@compiled
def tighten_candidate(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, place: int,
    rounds: int,
) -> None:  # fmt: skip
    """Tighten a candidate; if it loses a change it goes where its smaller set belongs."""
    if memory.pool_tight[place] or memory.pool_cost[place] == math.inf:
        return
    row = queries.row[q]
    copy_to(memory.other, memory.pool_codes[place])
    tighten(scorer, space, queries, q, work, memory, tolerance, rounds)
    cost = write_parts(space, memory, memory.other, row)
    memory.pool_tight[place] = True
    if set_key(memory, memory.other, row) == memory.pool_key[place] and cost >= memory.pool_cost[place]:
        memory.pool_expected[place] = memory.pool_cost[place]
        return
    memory.pool_cost[place] = memory.pool_expected[place] = math.inf
    margin = row_margin(scorer, queries, q, work, memory.other)
    if changes_of(memory.other, row) > 0 and margin > tolerance:
        memory.counts[KNOWN] = memory.pool_known[place]
        kept = add_candidate(space, memory, row, memory.other, cost, margin, cost)
        memory.counts[KNOWN] = 0
        if kept >= 0:
            memory.pool_tight[kept] = True


@compiled
def tighten_pool(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, count: int,
    rounds: int,
) -> None:  # fmt: skip
    """Tighten the candidates that are expected to be the cheapest, then the cheapest and the first with the fewest changes
    until they are tight."""
    sort_order(memory.pool_expected, memory.counts[POOL], memory.order)
    count = min(memory.counts[POOL], count)
    copy_to(memory.chosen, memory.order[:count])
    for rank in range(count):
        tighten_candidate(scorer, space, queries, q, work, memory, tolerance, memory.chosen[rank], rounds)
    for _ in range(memory.counts[POOL]):
        cheapest, sparsest = lowest(memory.pool_cost, memory.counts[POOL]), sparsest_of(memory)
        if memory.pool_tight[cheapest] and memory.pool_tight[sparsest]:
            return
        tighten_candidate(scorer, space, queries, q, work, memory, tolerance, cheapest, rounds)
        tighten_candidate(scorer, space, queries, q, work, memory, tolerance, sparsest, rounds)
