"""Expand states: score all their single edits at once, keep those that reach the target, and note others as states.

States are expanded in the order of an estimate of what their cheapest candidate costs.
"""

import math

import numpy as np

from fasterce.kernels.arrays import TREES, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to, fill, sort_order
from fasterce.kernels.edits import change_cost, score_all, score_within
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import complete_row, each_legal, links_hold
from fasterce.kernels.profile import Workspace, profile, row_margin
from fasterce.kernels.score import MISSING
from fasterce.kernels.state import (
    EDIT,
    FEATURE,
    IDLE,
    LEAST,
    OPEN,
    POOL,
    SCORED,
    SEEN,
    SEGMENTS,
    Memory,
    add_candidate,
    changes_of,
    first_seen,
    pop_state,
    push_state,
    replaced_cost,
    row_distance,
    write_parts,
)
from fasterce.typing import Floats

# A candidate this many times as dear as the best may become cheaper once its numbers are at the boundary.
PROMISING = 1.2
# Factor of this estimate when states are ordered: above 1, states near the target come first.
DEPTH = 1.7


@compiled
def estimate(space: Space, memory: Memory, j: int, part: float, shortfall: float, base: Floats) -> float:
    """Return about what the cheapest candidate beyond `memory.state` with another cost of feature j costs: its own cost, and
    what the missing margin costs at the rates at which features that are unchanged gain by themselves."""
    linear, squares = memory.sums[0], memory.sums[1]
    if space.squared[j]:
        squares += part * part - memory.parts[j] * memory.parts[j]
    else:
        linear += part - memory.parts[j]
    rate = 0.0
    for place in range(memory.counts[SEGMENTS]):
        k = memory.segment_order[place]
        g = memory.segment_feature[k]
        if g == j or memory.state[g] != base[g]:
            continue
        share = min(1.0, shortfall / memory.segment_gain[k])
        more = share * memory.segment_cost[k]
        if space.squared[g]:
            squares += more * more
        else:
            linear += more
        shortfall -= share * memory.segment_gain[k]
        if shortfall <= 0.0:
            return linear + math.sqrt(squares)
        rate = memory.segment_gain[k] / memory.segment_cost[k]
    # Features by themselves do not gain enough: together they may.
    return linear + math.sqrt(squares) + shortfall / rate if rate > 0.0 else math.inf


@compiled
def add_segments(space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, start: float) -> None:
    """Write what each feature gains by itself as segments of its concave hull, sorted by gain per cost."""
    edits = work.edits
    count = 0
    for j in range(len(space.numeric)):
        cost, gain = change_cost(space, j, queries.base[q, j], queries.row[q, j]), 0.0
        while count < len(memory.segment_cost):
            rate, pick = 0.0, -1
            for e in range(edits.first[j], edits.first[j + 1]):
                more = min(work.margin[e], 0.0) - start - gain
                if more > LEAST:
                    each = more / max(edits.cost[e] - cost, LEAST)
                    if each > rate:
                        rate, pick = each, e
            if pick < 0:
                break
            memory.segment_feature[count] = j
            memory.segment_cost[count] = max(edits.cost[pick] - cost, LEAST)
            memory.segment_gain[count] = min(work.margin[pick], 0.0) - start - gain
            cost, gain = max(edits.cost[pick], cost), min(work.margin[pick], 0.0) - start
            count += 1
    memory.counts[SEGMENTS] = count
    for k in range(count):
        memory.segment_rate[k] = -memory.segment_gain[k] / memory.segment_cost[k]
    sort_order(memory.segment_rate, count, memory.segment_order)


@compiled
def take_edit(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int, cost: float, expected: float
) -> bool:  # fmt: skip
    """Keep the state in `memory.state` with an edit as a candidate; if it breaks a constraint between features, as a state
    that another edit may repair. Return whether it is a candidate."""
    write_draft(queries, q, work, memory, j, e)
    holds = links_hold(queries.links, q, memory.draft) if queries.links.linked[j] else memory.holds[0]
    if holds:
        add_candidate(space, memory, queries.row[q], memory.draft, cost, work.margin[e], expected)
        if expected < memory.promise[0] - LEAST:
            memory.promise[0], memory.counts[FEATURE], memory.counts[EDIT] = expected, j, e
    else:
        push_state(memory, memory.draft, cost)
    return bool(holds)


@compiled
def consider_state(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int, cost: float, size: int
) -> None:  # fmt: skip
    """Keep the state with an edit that does not reach the target, if something beyond it may be the cheapest."""
    guess = estimate(space, memory, j, work.edits.cost[e], -work.margin[e], queries.base[q])
    if cost + memory.promise[1] * (guess - cost) < memory.best[min(size + 1, len(memory.best) - 1)]:
        write_draft(queries, q, work, memory, j, e)
        push_state(memory, memory.draft, cost + DEPTH * (guess - cost))


@compiled
def write_draft(queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int) -> None:
    """Write `memory.state` with an edit, and all that follows from it, to `memory.draft`."""
    copy_to(memory.draft, memory.state)
    memory.draft[j] = work.edits.value[e]
    complete_row(queries.links, q, memory.draft)


@compiled
def score_linked(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory) -> None:
    """Write the distances of the edits of `memory.state` that other features may follow, and the margins where they do."""
    edits, links = work.edits, queries.links
    legal = each_legal(links, q, memory.state)
    memory.holds[0] = legal and links_hold(links, q, memory.state)
    for j in range(len(memory.state)):
        if memory.changing[j] and (links.leads[j] or (links.linked[j] and not legal)):
            for e in range(edits.first[j], edits.first[j + 1]):
                work.total[e] = replaced_cost(space, memory, j, edits.cost[e])
                score_draft(scorer, space, queries, q, work, memory, j, e, legal)


@compiled
def score_draft(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int, legal: bool
) -> None:  # fmt: skip
    """Where something follows from an edit, write the margin and the distance of that row, infinite if it is not legal; the
    state may not be `legal` either."""
    write_draft(queries, q, work, memory, j, e)
    alone = legal and memory.draft[j] == work.edits.value[e]
    for g in range(len(memory.state)):
        alone &= g == j or memory.draft[g] == memory.state[g]
    if alone:
        return
    work.margin[e], work.total[e] = -math.inf, math.inf
    if each_legal(queries.links, q, memory.draft):
        work.margin[e] = row_margin(scorer, queries, q, work, memory.draft)
        work.total[e] = row_distance(space, memory.draft, queries.row[q])


@compiled
def scan_linked(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, own: float, tolerance: float, size: int,
    states: bool,
) -> None:  # fmt: skip
    """Keep, of the edits of a feature that others may follow, the cheapest that reaches the target and breaks no constraint;
    others may become states."""
    edits, now = work.edits, memory.sums[0] + math.sqrt(memory.sums[1])
    most = memory.best[min(size + 1, len(memory.best) - 1)]
    pick = -1
    for e in range(edits.first[j], edits.first[j + 1]):
        margin, total = work.margin[e], work.total[e]
        if total == math.inf or (pick >= 0 and total >= work.total[pick]):
            continue
        memory.highest[0] = max(memory.highest[0], margin)
        if margin <= tolerance and (not states or total >= most):
            continue
        write_draft(queries, q, work, memory, j, e)
        holds = links_hold(queries.links, q, memory.draft)
        if margin > tolerance and holds:
            pick = e
        elif states and total < most and (margin > own or not holds):
            guess = total + max(estimate(space, memory, j, memory.parts[j], max(-margin, 0.0), queries.base[q]) - now, 0.0)
            if total + memory.promise[1] * (guess - total) < most:
                push_state(memory, memory.draft, total + DEPTH * (guess - total))
    if pick >= 0:
        take_edit(space, queries, q, work, memory, j, pick, work.total[pick], work.total[pick])


@compiled
def steepest(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, first: int, end: int, own: float,
    size: int,
) -> None:  # fmt: skip
    """Consider as states the edits of a number on the concave hull of margin against cost: between two of them, a combination
    of other changes gains as much for the same cost."""
    edits, margin = work.edits, work.margin
    step = 1 if end >= first else -1
    cost, gained = memory.parts[j], own
    most = memory.best[min(size + 1, len(memory.best) - 1)]
    while first != end:
        rate, pick = 0.0, -1
        for e in range(first, end, step):
            if margin[e] > gained:
                each = (margin[e] - gained) / max(edits.cost[e] - cost, LEAST)
                if each >= rate:
                    rate, pick = each, e
        if pick < 0:
            return
        total = replaced_cost(space, memory, j, edits.cost[pick])
        if total >= most:
            return
        consider_state(space, queries, q, work, memory, j, pick, total, size)
        cost, gained, first = edits.cost[pick], margin[pick], pick + step


@compiled
def scan(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, first: int, end: int, own: float,
    tolerance: float, size: int, states: bool, graded: bool,
) -> None:  # fmt: skip
    """Go through edits of a feature in the order of their cost: keep the cheapest that reaches the target, and, before it,
    each that comes nearer to it than all cheaper ones.

    Between values of a number that is `graded` margins are interpolated, up to one unit of its precision. Where constraints
    limit the feature, the cheapest may break one; a dearer edit may not, or may repair what the state breaks.
    """
    edits, linked = work.edits, queries.links.linked[j]
    step = 1 if end >= first else -1
    highest, before, part, value = min(own, tolerance) if linked else own, own, memory.parts[j], memory.state[j]
    for e in range(first, end, step):
        margin = work.margin[e]
        if margin > highest:
            highest = margin
            cost = replaced_cost(space, memory, j, edits.cost[e])
            if margin > tolerance:
                if graded and before < tolerance:
                    unit = space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]
                    share = (tolerance - before) / (margin - before) + unit / max(abs(edits.value[e] - value), unit)
                    part += (edits.cost[e] - part) * min(share, 1.0)
                else:
                    part = edits.cost[e]
                expected = replaced_cost(space, memory, j, part)
                if take_edit(space, queries, q, work, memory, j, e, cost, expected) or not linked:
                    if states and graded:
                        steepest(space, queries, q, work, memory, j, first, e, own, size)
                    return
                highest = tolerance
            elif states and not graded and cost < memory.best[min(size + 1, len(memory.best) - 1)]:
                consider_state(space, queries, q, work, memory, j, e, cost, size)
        before, part, value = margin, edits.cost[e], edits.value[e]
    memory.highest[0] = max(memory.highest[0], highest)
    if states and graded:
        steepest(space, queries, q, work, memory, j, first, end, own, size)


@compiled
def collect(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, own: float, tolerance: float, states: bool,
    graded: bool,
) -> None:  # fmt: skip
    """Keep candidates and states among the scored edits of the features of `memory.state` that are changing."""
    edits, base = work.edits, queries.base[q]
    size = changes_of(memory.state, queries.row[q])
    memory.promise[0] = math.inf
    for j in range(len(base)):
        if not memory.changing[j]:
            continue
        low, high, last = edits.low[j], edits.high[j], edits.last[j]
        memory.counts[SCORED] += high - low
        with_j = size + (1 if memory.state[j] == queries.row[q, j] else 0)
        if queries.links.leads[j]:
            scan_linked(space, queries, q, work, memory, j, own, tolerance, with_j, states)
            continue
        if edits.gap[j]:
            scan(space, queries, q, work, memory, j, last, last + 1, own, tolerance, with_j, states, False)
        if space.numeric[j] and base[j] != MISSING:
            middle = edits.middle[j]
            scan(space, queries, q, work, memory, j, middle, high, own, tolerance, with_j, states, graded)
            scan(space, queries, q, work, memory, j, middle - 1, low - 1, own, tolerance, with_j, states, graded)
        else:
            for e in range(low, high):
                scan(space, queries, q, work, memory, j, e, e + 1, own, tolerance, with_j, states, False)


@compiled
def score_up_to(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, most: float, graded: bool
) -> None:  # fmt: skip
    """Let only edits of `memory.state` be scored with which its distance is at most so much; of a number that is `graded`
    also the next value, since the boundary may lie before it. From edits of features that lead others less may follow."""
    score_all(work)
    if most == math.inf:
        return
    root = math.sqrt(memory.sums[1])
    for j in range(len(memory.state)):
        if memory.changing[j] and not queries.links.leads[j]:
            part = memory.parts[j]
            if space.squared[j]:
                rest = max(most - memory.sums[0], 0.0)
                limit = math.sqrt(max(rest * rest - memory.sums[1] + part * part, 0.0))
            else:
                limit = most - memory.sums[0] - root + part
            beyond = 1 if graded and limit > part else 0
            memory.changing[j] = score_within(space, work, queries.base[q, j], j, limit, beyond)


@compiled
def expand(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, states: bool,
    most: float,
) -> float:  # fmt: skip
    """Score all single edits of `memory.state` of features that are unchanged, with which it costs at most so much; return
    its own margin."""
    for j in range(len(memory.state)):
        memory.changing[j] = queries.free[q, j] and memory.state[j] == queries.base[q, j]
    write_parts(space, memory, memory.state, queries.row[q])
    score_up_to(space, queries, q, work, memory, most, False)
    own = profile(scorer, space, queries, q, work, memory.state, memory.changing)
    score_linked(scorer, space, queries, q, work, memory)
    if memory.counts[SEGMENTS] == 0 and own <= tolerance:
        add_segments(space, queries, q, work, memory, own)
    memory.highest[0] = max(memory.highest[0], own)
    collect(space, queries, q, work, memory, own, tolerance, states, scorer.kind != TREES)
    return own


@compiled
def expand_all(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, most: int
) -> bool:
    """For a query with too few candidates: expand every single edit, whether it gains anything by itself or not.

    Return whether all pairs of candidate values were scored.
    """
    edits = work.edits
    if edits.first[len(queries.free[q])] > most:
        return False
    for j in range(len(queries.free[q])):
        for e in range(edits.first[j], edits.first[j + 1]):
            copy_to(memory.state, queries.base[q])
            memory.state[j] = edits.value[e]
            complete_row(queries.links, q, memory.state)
            if first_seen(memory, memory.state):
                expand(scorer, space, queries, q, work, memory, tolerance, False, math.inf)
    return True


@compiled
def climb(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, most: float
) -> None:
    """Make the best change by gain per cost, again and again, until the target can be reached or more than `most` is spent.

    If there is a candidate already only numbers are changed: together they may cost less than a category.
    """
    edits, every = work.edits, memory.counts[POOL] == 0
    copy_to(memory.state, queries.base[q])
    for _ in range(len(memory.state)):
        own = expand(scorer, space, queries, q, work, memory, tolerance, False, most)
        if memory.promise[0] < math.inf or own > tolerance:
            return
        largest = 0.0
        for j in range(len(memory.state)):
            memory.changing[j] &= every or space.numeric[j]
            if memory.changing[j]:
                for e in range(edits.low[j], edits.high[j]):
                    largest = max(largest, work.margin[e] - own)
        pick, feature, rate = -1, -1, 0.0
        for j in range(len(memory.state)):
            if memory.changing[j]:
                for e in range(edits.low[j], edits.high[j]):
                    gain = work.margin[e] - own
                    if gain >= 0.5 * largest and gain / max(edits.cost[e], LEAST) > rate:
                        rate, pick, feature = gain / max(edits.cost[e], LEAST), e, j
        if pick < 0 or largest <= LEAST:
            return
        memory.state[feature] = edits.value[pick]
        complete_row(queries.links, q, memory.state)


@compiled
def expand_query(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float
) -> float:
    """Expand the query itself, with no other states; return its margin."""
    row, base = queries.row[q], queries.base[q]
    fill(memory.seen, np.uint64(0))
    fill(memory.best, math.inf)
    memory.counts[OPEN] = memory.counts[SEEN] = 0
    copy_to(memory.state, base)
    first_seen(memory, base)
    own = expand(scorer, space, queries, q, work, memory, tolerance, True, math.inf)
    if own > tolerance and changes_of(base, row) > 0 and links_hold(queries.links, q, base):
        cost = write_parts(space, memory, base, row)
        add_candidate(space, memory, row, base, cost, own, cost)
    return own


@compiled
def expand_open(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, most: int,
    patience: int, wide: bool,
) -> None:  # fmt: skip
    """Expand the states with the lowest estimates; `wide`: keep also candidates that are much dearer than the best."""
    row = queries.row[q]
    memory.counts[IDLE] = 0
    for _ in range(most):
        memory.counts[IDLE] += 1
        if memory.counts[OPEN] == 0 or (memory.counts[IDLE] > patience and not wide):
            return
        guess = pop_state(memory)
        size = changes_of(memory.state, row)
        cost = write_parts(space, memory, memory.state, row)
        best = memory.best[min(size + 1, len(memory.best) - 1)]
        if cost + memory.promise[1] / DEPTH * (guess - cost) < best and first_seen(memory, memory.state):
            expand(scorer, space, queries, q, work, memory, tolerance, True, math.inf if wide else PROMISING * best)
