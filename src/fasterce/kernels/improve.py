"""Improve candidates: drop, replace or reduce one change at a time and complete the rest by the cheapest edit."""

import math

from fasterce.kernels.arrays import TREES, Effort, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to, sort_order
from fasterce.kernels.edits import at_precision, change_cost
from fasterce.kernels.expand import PROMISING, collect, score_linked, score_up_to
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import complete_row
from fasterce.kernels.profile import Workspace, profile
from fasterce.kernels.score import MISSING
from fasterce.kernels.state import (
    EDIT,
    FEATURE,
    KNOWN,
    LEAST,
    LEFT,
    POOL,
    Memory,
    changes_of,
    first_seen,
    write_parts,
)
from fasterce.kernels.tighten import keep_tightened, tighten_pool
from fasterce.typing import Floats

# Shares of a change that are kept when it is traded for another change.
SHARES = (0.5, 0.75, 0.9)
# A change is not reduced by one unit if that saves less than this share of the cost.
LEAST_UNIT = 0.005
# One this many times as dear once they are there may become cheaper if another change is reduced.
NEARLY = 1.05


@compiled
def cheapest_from(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, skipped: int,
    most: float,
) -> float:  # fmt: skip
    """Make `memory.other` the candidate one edit away from `memory.state`, in any feature but one and for at most so much,
    that is the cheapest once it is at the boundary; return that cost, infinite for none. Others are kept, too."""
    for j in range(len(memory.state)):
        memory.changing[j] = queries.free[q, j] and j != skipped
    write_parts(space, memory, memory.state, queries.row[q])
    score_up_to(space, queries, q, work, memory, most, scorer.kind != TREES)
    own = profile(scorer, space, queries, q, work, memory.state, memory.changing)
    score_linked(scorer, space, queries, q, work, memory)
    collect(space, queries, q, work, memory, own, tolerance, False, scorer.kind != TREES)
    if memory.promise[0] < math.inf:
        copy_to(memory.other, memory.state)
        memory.other[memory.counts[FEATURE]] = work.edits.value[memory.counts[EDIT]]
    return memory.promise[0]


@compiled
def try_from_state(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, skipped: int,
    best: float, rounds: int,
) -> int:  # fmt: skip
    """Complete `memory.state` by its cheapest edit, if that may be cheaper than the best; return its position, or -1."""
    memory.counts[LEFT] -= 1
    if cheapest_from(scorer, space, queries, q, work, memory, tolerance, skipped, PROMISING * best) > NEARLY * best:
        return -1
    kept = keep_tightened(scorer, space, queries, q, work, memory, tolerance, rounds)
    return kept if kept >= 0 and memory.pool_cost[kept] < best - LEAST else -1


@compiled
def traded_value(space: Space, queries: Queries, q: int, j: int, value: float, turn: int) -> float:
    """Return a smaller change of number j, to be completed by another: a share of it, or at last one unit of its precision
    less."""
    base = queries.base[q, j]
    if turn < len(SHARES):
        return at_precision(space, queries, q, j, base + SHARES[turn] * (value - base))
    unit = space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]
    return at_precision(space, queries, q, j, value - unit if value > base else value + unit)


@compiled
def trade(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, j: int,
    turn: int, best: float, rounds: int,
) -> int:  # fmt: skip
    """Reduce number j of `memory.start` and complete it by the cheapest change of another feature; return where the result
    is, -1 if it is not cheaper than the best."""
    start, base = memory.start[j], queries.base[q, j]
    copy_to(memory.state, memory.start)
    memory.state[j] = traded_value(space, queries, q, j, start, turn)
    inside = min(start, base) < memory.state[j] < max(start, base)
    own = queries.row[q, j]
    saved = change_cost(space, j, start, own) - change_cost(space, j, memory.state[j], own)
    complete_row(queries.links, q, memory.state)
    worth = turn < len(SHARES) or saved > LEAST_UNIT * best
    if not inside or not worth or memory.counts[LEFT] <= 0 or not first_seen(memory, memory.state):
        return -1
    return try_from_state(scorer, space, queries, q, work, memory, tolerance, j, best, rounds)


@compiled
def improve(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, place: int, tolerance: float,
    rounds: int,
) -> int:  # fmt: skip
    """Replace one change of a candidate after another by the cheapest change of any feature, or reduce a number and complete
    it by the cheapest change; return where the result is.

    Units of numbers are traded last, since such steps are small, and only with an exact scorer.
    """
    row, base, start = queries.row[q], queries.base[q], memory.start
    better = place
    memory.counts[KNOWN] = memory.pool_known[place]
    while better >= 0:
        place, better = better, -1
        best = memory.pool_cost[place]
        copy_to(start, memory.pool_codes[place])
        several = changes_of(start, row) > 1
        for units in range(0 if several else 1, 2 if scorer.exact else 1):
            for j in range(len(base)):
                if start[j] == base[j] or better >= 0 or memory.counts[LEFT] <= 0:
                    continue
                if queries.links.leads[j] and not queries.free[q, j]:
                    continue
                copy_to(memory.state, start)
                memory.state[j] = base[j]
                complete_row(queries.links, q, memory.state)
                if units == 0 and first_seen(memory, memory.state):
                    better = try_from_state(scorer, space, queries, q, work, memory, tolerance, -1, best, rounds)
                if scorer.kind == TREES or not space.numeric[j] or start[j] == MISSING or base[j] == MISSING:
                    continue
                for turn in range(units * len(SHARES), len(SHARES) + units):
                    if better < 0:
                        better = trade(scorer, space, queries, q, work, memory, tolerance, j, turn, best, rounds)
    memory.counts[KNOWN] = 0
    return place


@compiled
def improve_best(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, effort: Effort
) -> None:
    """Improve the cheapest candidates, and the cheapest of those with the fewest changes; with an exact scorer once they are
    tight."""
    if scorer.exact and memory.counts[POOL] > 0:
        tighten_pool(scorer, space, queries, q, work, memory, tolerance, effort.improved, effort.rounds)
    count, order = memory.counts[POOL], memory.order
    sort_order(memory.pool_expected, count, order)
    fewest, sparsest = len(memory.state) + 1, -1
    for k in order[:count]:
        if memory.pool_changes[k] < fewest and memory.pool_expected[k] < math.inf:
            fewest, sparsest = memory.pool_changes[k], k
    best = min(count, effort.improved)
    chosen = memory.chosen
    copy_to(chosen, order[:best])
    for rank in range(best):
        if memory.pool_cost[chosen[rank]] < math.inf:
            improve(scorer, space, queries, q, work, memory, chosen[rank], tolerance, effort.rounds)
    if sparsest >= 0:
        improve(scorer, space, queries, q, work, memory, sparsest, tolerance, effort.rounds)


@compiled
def add_starts(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, starts: Floats,
    effort: Effort,
) -> None:  # fmt: skip
    """Tighten rows that reach the target, and improve those that are then about as cheap as the best candidate."""
    memory.counts[LEFT] = effort.improvements
    for k in range(len(starts)):
        copy_to(memory.other, starts[k])
        memory.counts[KNOWN] = 1
        place = keep_tightened(scorer, space, queries, q, work, memory, tolerance, effort.rounds)
        memory.counts[KNOWN] = 0
        if place >= 0 and memory.pool_cost[place] < PROMISING * memory.best[len(memory.best) - 1]:
            improve(scorer, space, queries, q, work, memory, place, tolerance, effort.rounds)
