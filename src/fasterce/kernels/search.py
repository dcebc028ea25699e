"""The search for the candidates of one query, with a scorer instead of the model.

A state is a row that differs from the query in some features. Expanding a state scores all its single edits at once: those
that reach the target are candidates, the others may become states. States are expanded in the order of an estimate of what
their cheapest candidate costs, until none can be cheaper than what was found. The best candidates are then improved: drop or
replace one change at a time, and bring numbers to the decision boundary.
"""

import math

from fasterce.kernels.additive import LEAST as NO_LESS
from fasterce.kernels.additive import (
    MOST_NODES,
    NEGLIGIBLE,
    bound_of,
    changed_of,
    divide,
    end_of,
    fewest_changes,
    list_items,
    pop_node,
    push_node,
    smallest_change,
    start_of,
    straight_numbers,
    surplus_feature,
    write_places,
)
from fasterce.kernels.approximate import approximate
from fasterce.kernels.arrays import IDENTITY, TREES, Effort, Found, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to, fill, lowest, sort_order
from fasterce.kernels.edits import list_edits
from fasterce.kernels.expand import climb, expand_all, expand_open, expand_query
from fasterce.kernels.improve import add_starts, improve, improve_best
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace, row_margin
from fasterce.kernels.score import WITHIN
from fasterce.kernels.state import (
    EDIT,
    FEATURE,
    LEFT,
    OPEN,
    POOL,
    SCORED,
    Memory,
    add_candidate,
    legal_row,
    note_least,
    write_parts,
)
from fasterce.kernels.tighten import keep_tightened, tighten_pool
from fasterce.typing import Floats

# Share of the estimated cost of the missing margin: features may gain more together than by themselves.
OPTIMISM = 0.5
# Candidates whose costs differ by less count as equal: the one with fewer changes comes first.
TIE = 1e-9
# Margin beyond the boundary by which sums in another order are still beyond it.
ROUNDING = 1e-12


@compiled
def are_sums(scorer: Scorer, space: Space, queries: Queries) -> bool:
    """Return whether margins and costs are sums over features, none of which follows from others."""
    plain = not space.squared.any() and not queries.links.leads.any()
    return plain and scorer.kind != TREES and len(scorer.network.width) == 0


@compiled
def is_knapsack(scorer: Scorer, space: Space, queries: Queries, q: int) -> bool:
    """Return whether branch and bound over the changes of single features finds the cheapest candidate."""
    one_sided = queries.kind != WITHIN or queries.low[q] == -math.inf or queries.high[q] == math.inf
    return one_sided and space.most_changes >= len(space.numeric) and straight_numbers(scorer.network, space, queries, q)


@compiled
def least_cost(memory: Memory, most_changes: int) -> float:
    """Return the cost of the cheapest candidate with at most so many changes."""
    best = math.inf
    for k in range(memory.counts[POOL]):
        if memory.pool_changes[k] <= most_changes:
            best = min(best, memory.pool_cost[k])
    return best


@compiled
def bound_node(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float,
    short: float, enough: float, most_changes: int,
) -> None:  # fmt: skip
    """Bound a node; where something in it may cost less than `enough`, keep it, and the candidate next to its bound."""
    row, kept = queries.row[q], memory.items
    bound, p, need = bound_of(space, queries, q, kept, short, most_changes)
    if bound >= enough:
        return
    changes = changed_of(kept, kept.at)
    if p >= 0 and kept.at[p] == start_of(kept, p):
        changes += 1
    if changes > most_changes:
        surplus = surplus_feature(kept)
        p = surplus if surplus >= 0 else p
        push_node(kept, bound, p, start_of(kept, p), smallest_change(space, queries, q, kept, p))
        return
    below = above = 0.0
    if p >= 0:
        below, above = divide(space, queries, q, kept, p, need)
        kept.at[p] = above
    copy_to(memory.other, queries.base[q])
    write_places(kept, memory.other)
    margin = row_margin(scorer, queries, q, work, memory.other)
    cost = write_parts(space, memory, memory.other, row)
    if margin > tolerance:
        if legal_row(queries, q, memory.other):
            add_candidate(space, memory, row, memory.other, cost, margin, cost)
        else:
            memory.holds[0] = False
    push_node(kept, bound, p, below, above)


@compiled
def cheapest_sum(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float,
    short: float, spent: float, most_changes: int,
) -> bool:  # fmt: skip
    """Find the cheapest candidate with at most so many changes by branch and bound; return whether it is certain."""
    kept = memory.items
    kept.count[2] = 0
    for p in range(kept.count[0]):
        kept.low[p], kept.high[p] = start_of(kept, p), end_of(kept, p)
    bound_node(scorer, space, queries, q, work, memory, tolerance, short, math.inf, most_changes)
    for _ in range(MOST_NODES):
        enough = (least_cost(memory, most_changes) - spent) * (1.0 - NEGLIGIBLE) - NO_LESS
        place = lowest(kept.node_bound, kept.count[2])
        if kept.count[2] == 0 or kept.node_bound[place] >= enough:
            return True
        p, below, above = pop_node(kept, place)
        low, high = kept.low[p], kept.high[p]
        for side in range(2):
            kept.low[p], kept.high[p] = (low, below) if side == 0 else (above, high)
            bound_node(scorer, space, queries, q, work, memory, tolerance, short, enough, most_changes)
    return False


@compiled
def branch_and_bound(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, own: float
) -> bool:
    """Find the cheapest candidate where margins and costs are sums, and the cheapest of those with the fewest changes; return
    whether both are certain. They are not where a combination breaks a constraint between features (`memory.holds`). All
    single edits of the query are scored."""
    kept = memory.items
    short = tolerance - own + ROUNDING * (1.0 + abs(own))
    list_items(space, queries, q, work, kept, own)
    fewest = fewest_changes(kept, short)
    if own > tolerance or fewest > kept.count[0]:
        return False
    spent = write_parts(space, memory, queries.base[q], queries.row[q])
    if not cheapest_sum(scorer, space, queries, q, work, memory, tolerance, short, spent, kept.count[0]):
        return False
    if memory.counts[POOL] == 0 or not memory.holds[0]:
        return False
    changes = memory.pool_changes[lowest(memory.pool_cost, memory.counts[POOL])]
    if fewest == 1 or changes <= fewest:
        return True
    return cheapest_sum(scorer, space, queries, q, work, memory, tolerance, short, spent, fewest) and memory.holds[0]


@compiled
def kept_candidates(memory: Memory) -> int:
    """Return how many candidates there are; each changes other features."""
    count = 0
    for k in range(memory.counts[POOL]):
        if memory.pool_cost[k] < math.inf:
            count += 1
    return count


@compiled
def search_query(
    scorer: Scorer, space: Space, queries: Queries, q: int, starts: Floats, work: Workspace, memory: Memory, effort: Effort
) -> bool:
    """Search for the candidates of one query; return whether all pairs of values were tried, as they are where too few are
    found.

    The cheapest, and the one with the fewest changes, must not depend on how many are returned: more are searched for once
    these two are final.
    """
    tolerance = scorer.error if scorer.exact else 0.0
    fill(memory.counts, 0)
    memory.counts[LEFT] = effort.improvements
    memory.highest[0] = -math.inf
    fill(memory.least, -math.inf)
    sums = are_sums(scorer, space, queries)
    linear = scorer.kind != TREES and len(scorer.network.width) == 0 and scorer.outputs == 1 and scorer.link == IDENTITY
    memory.promise[1] = 1.0 if linear else OPTIMISM
    list_edits(scorer, space, queries, q, work)
    own = expand_query(scorer, space, queries, q, work, memory, tolerance)
    proven = False
    if linear and sums and is_knapsack(scorer, space, queries, q):
        proven = branch_and_bound(scorer, space, queries, q, work, memory, tolerance, own)
    if not proven:
        approximate(scorer, space, queries, q, work, memory, tolerance, effort)
        expand_open(scorer, space, queries, q, work, memory, tolerance, effort.expansions, effort.patience, False)
    ended = False
    if memory.counts[POOL] == 0:
        ended = expand_all(scorer, space, queries, q, work, memory, tolerance, effort.exhaustive)
    # Where every unit of a number counts the same estimates are bounds: if no state is left the cheapest is known.
    straight = len(space.curve_knots) == 0 and len(queries.links.constraint) == 0
    proven = proven or (linear and sums and straight and memory.counts[OPEN] == 0 and memory.counts[POOL] > 0)
    if memory.counts[POOL] == 0 or (scorer.kind != TREES and not proven):
        climb(scorer, space, queries, q, work, memory, tolerance, memory.best[len(memory.best) - 1])
        if memory.promise[0] < math.inf:
            copy_to(memory.other, memory.state)
            memory.other[memory.counts[FEATURE]] = work.edits.value[memory.counts[EDIT]]
            place = keep_tightened(scorer, space, queries, q, work, memory, tolerance, effort.rounds)
            if place >= 0:
                improve(scorer, space, queries, q, work, memory, place, tolerance, effort.rounds)
    if not proven:
        improve_best(scorer, space, queries, q, work, memory, tolerance, effort)
    if memory.counts[POOL] == 0 or memory.pool_changes[lowest(memory.pool_cost, memory.counts[POOL])] > 1:
        add_starts(scorer, space, queries, q, work, memory, tolerance, starts, effort)
    tighten_pool(scorer, space, queries, q, work, memory, tolerance, effort.tightened + 1, effort.rounds)
    if effort.returned > effort.tightened + 1 and memory.counts[POOL] > 0:
        note_least(memory)
        memory.promise[1] = OPTIMISM
        expand_query(scorer, space, queries, q, work, memory, tolerance)
        expand_open(scorer, space, queries, q, work, memory, tolerance, effort.wide_expansions, effort.patience, True)
        tighten_pool(scorer, space, queries, q, work, memory, tolerance, effort.returned, effort.rounds)
        if kept_candidates(memory) < effort.wanted:
            ended = expand_all(scorer, space, queries, q, work, memory, tolerance, effort.exhaustive)
            tighten_pool(scorer, space, queries, q, work, memory, tolerance, effort.returned, effort.rounds)
    return ended


@compiled
def search_block(
    scorer: Scorer, space: Space, queries: Queries, starts: Floats, first: int, end: int, work: Workspace, memory: Memory,
    effort: Effort, found: Found,
) -> None:  # fmt: skip
    """Search queries first..end one after another and write their candidates, the cheapest first."""
    for q in range(first, end):
        found.complete[q] = search_query(scorer, space, queries, q, starts[q], work, memory, effort)
        count = memory.counts[POOL]
        for k in range(count):
            memory.pool_expected[k] = memory.pool_cost[k] + TIE * memory.pool_changes[k]
        sort_order(memory.pool_expected, count, memory.order)
        kept = 0
        for k in memory.order[:count]:
            if memory.pool_cost[k] < math.inf:
                copy_to(found.codes[q, kept], memory.pool_codes[k])
                found.cost[q, kept] = memory.pool_cost[k]
                found.margin[q, kept] = memory.pool_margin[k]
                found.known[q, kept] = memory.pool_known[k]
                kept += 1
        found.count[q] = kept
        found.best_margin[q] = memory.highest[0]
        found.scored[q] = memory.counts[SCORED]


__all__ = ["search_block"]
