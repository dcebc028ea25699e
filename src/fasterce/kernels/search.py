"""The search for the candidates of one query, with a scorer instead of the model.

A state is a row that differs from the query in some features. Expanding a state scores all its single edits at once: those
that reach the target are candidates, the others may become states. States are expanded in the order of an estimate of what
their cheapest candidate costs, until none can be cheaper than what was found. The best candidates are then improved: drop or
replace one change at a time, and bring numbers to the decision boundary.
"""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.additive import (
    MOST_STEPS,
    Items,
    begin_items,
    fewest_changes,
    items,
    list_items,
    next_complete,
    straight_numbers,
)
from fasterce.kernels.arrays import IDENTITY, TREES, Effort, Found, Int64s, Queries, Scorer, Space, Words
from fasterce.kernels.basics import copy_to, fill, highest, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost, list_edits, score_all, score_within
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import complete_row, each_legal, links_hold
from fasterce.kernels.profile import Workspace, correction_of, profile, row_margin, target_margin, workspace
from fasterce.kernels.score import MISSING, WITHIN, add_entry, network_outputs
from fasterce.typing import Floats, Mask

# A candidate counts as cheaper only by more than rounding.
LEAST = 1e-9
# Positions in `Memory.counts`.
POOL, OPEN, SEEN, SEGMENTS, SCORED, LEFT, WORST, FEATURE, EDIT, KNOWN, IDLE = range(11)
# Shares of a change that are kept when it is traded for another change.
SHARES = (0.5, 0.75, 0.9)
# A change is not reduced by one unit if that saves less than this share of the cost.
LEAST_UNIT = 0.005
# A candidate this many times as dear as the best may become cheaper once its numbers are at the boundary.
PROMISING = 1.2
# One this many times as dear once they are there may become cheaper if another change is reduced.
NEARLY = 1.05
# Share of the estimated cost of the missing margin: features may gain more together than by themselves.
OPTIMISM = 0.5
# Factor of this estimate when states are ordered: above 1, states near the target come first.
DEPTH = 1.7
# Margin beyond the boundary by which sums in another order are still beyond it.
ROUNDING = 1e-12
# Halvings of an interval: enough for the precision of a double.
HALVINGS = 64


class Memory(NamedTuple):
    """What the search of one query keeps."""

    counts: Int64s
    pool_codes: Floats
    pool_cost: Floats
    pool_margin: Floats
    pool_expected: Floats
    pool_changes: Int64s
    pool_tight: Mask
    """Whether a candidate needs each of its changes, as far as they go."""
    pool_known: Mask
    """Whether a candidate comes from one of the starts; for the next one to be added: `counts[KNOWN]`."""
    pool_key: Words
    """Candidates that reach the target, the cheapest for each set of changed features."""
    best: Floats
    """The cost of the cheapest candidate with at most so many changes (features + 2,)."""
    open_codes: Floats
    open_estimate: Floats
    """States to expand."""
    seen: Words
    """Keys of expanded states, each at or after the place its upper bits name; 0 for none. The length is a power of two."""
    segment_feature: Int64s
    segment_cost: Floats
    segment_gain: Floats
    segment_rate: Floats
    segment_order: Int64s
    """What each feature gains per cost by itself, in segments, the best rate first."""
    weight: Words
    """Random words, one per feature, for keys of sets."""
    order: Int64s
    chosen: Int64s
    parts: Floats
    """Cost of every feature of a state."""
    sums: Floats
    """Sum of the costs of features that are not squared, and of the squares of the others (2,)."""
    start: Floats
    state: Floats
    draft: Floats
    other: Floats
    changing: Mask
    highest: Floats
    """The highest margin of anything scored (1,)."""
    holds: Mask
    """Whether the state satisfies the constraints between features (1,)."""
    least: Floats
    """The cost of the cheapest candidate, and changes and cost of the first with the fewest changes, once these are final: of
    those that are found later only others are kept (3,)."""
    promise: Floats
    """The lowest expected cost of an edit of the last scored state that reaches the target, and the share of the estimated
    cost of the missing margin that is certain (2,)."""
    items: Items


def memory(features: int, effort: Effort, segments: int) -> Memory:
    """Return arrays for one query after another."""
    rng = np.random.default_rng(1)
    return Memory(
        counts=np.zeros(11, np.int64),
        pool_codes=np.zeros((effort.pool, features)),
        pool_cost=np.zeros(effort.pool),
        pool_margin=np.zeros(effort.pool),
        pool_expected=np.zeros(effort.pool),
        pool_changes=np.zeros(effort.pool, np.int64),
        pool_tight=np.zeros(effort.pool, np.bool_),
        pool_known=np.zeros(effort.pool, np.bool_),
        pool_key=np.zeros(effort.pool, np.uint64),
        best=np.zeros(features + 2),
        open_codes=np.zeros((effort.open_sets, features)),
        open_estimate=np.zeros(effort.open_sets),
        seen=np.zeros(
            1 << (2 * (effort.expansions + effort.wide_expansions + 8 * effort.improvements + effort.exhaustive + 64)).bit_length(), np.uint64
        ),
        segment_feature=np.zeros(segments, np.int64),
        segment_cost=np.zeros(segments),
        segment_gain=np.zeros(segments),
        segment_rate=np.zeros(segments),
        segment_order=np.zeros(segments, np.int64),
        order=np.zeros(max(features, effort.pool), np.int64),
        chosen=np.zeros(max(effort.improved, effort.pool), np.int64),
        start=np.zeros(features),
        weight=rng.integers(1, 2**63, size=features, dtype=np.uint64),
        parts=np.zeros(features),
        sums=np.zeros(2),
        state=np.zeros(features),
        draft=np.zeros(features),
        other=np.zeros(features),
        changing=np.zeros(features, np.bool_),
        highest=np.zeros(1),
        holds=np.ones(1, np.bool_),
        least=np.zeros(3),
        promise=np.zeros(2),
        items=items(features, segments),
    )


@compiled
def set_key(memory: Memory, codes: Floats, row: Floats) -> np.uint64:
    """Return the key of the set of changed features."""
    key = np.uint64(0)
    for j in range(len(codes)):
        if codes[j] != row[j]:
            key ^= memory.weight[j]
    return key


@compiled
def state_key(memory: Memory, codes: Floats) -> np.uint64:
    """Return a key of the values of a state."""
    key = np.uint64(1469598103934665603)
    bits = codes.view(np.uint64)
    for j in range(len(codes)):
        key = (key ^ (bits[j] ^ (bits[j] >> np.uint64(29))) * memory.weight[j]) * np.uint64(1099511628211)
    return key


@compiled
def write_parts(space: Space, memory: Memory, codes: Floats, row: Floats) -> float:
    """Write the costs of the features of a state; return the distance."""
    linear, squares = 0.0, 0.0
    for j in range(len(codes)):
        part = 0.0 if codes[j] == row[j] else change_cost(space, j, codes[j], row[j])
        memory.parts[j] = part
        if space.squared[j]:
            squares += part * part
        else:
            linear += part
    memory.sums[0], memory.sums[1] = linear, squares
    return linear + math.sqrt(squares)


@compiled
def changes_of(codes: Floats, row: Floats) -> int:
    count = 0
    for j in range(len(codes)):
        if codes[j] != row[j]:
            count += 1
    return count


@compiled
def allowed_count(space: Space, codes: Floats, row: Floats) -> bool:
    """Return whether a candidate changes at most as many of the counted features as allowed."""
    count = 0
    for j in range(len(codes)):
        if codes[j] != row[j] and space.counted[j]:
            count += 1
    return count <= space.most_changes


@compiled
def dispensable(memory: Memory, count: int, changes: int, cost: float) -> int:
    """Return the dearest candidate that has more than the fewest changes, or else the dearest of those, if a new one with
    these changes and this cost is worth more; -1 if it is not."""
    fewest = changes
    for k in range(count):
        fewest = min(fewest, memory.pool_changes[k])
    place, many = -1, False
    for k in range(count):
        more = memory.pool_changes[k] > fewest
        if place < 0 or (more and not many) or (more == many and memory.pool_cost[k] > memory.pool_cost[place]):
            place, many = k, more
    if changes > fewest and (not many or memory.pool_cost[place] <= cost):
        return -1
    return place if many or memory.pool_cost[place] > cost else -1


@compiled
def is_final(memory: Memory, place: int) -> bool:
    """Return whether a candidate is the cheapest, or the first with the fewest changes, and these are final."""
    return memory.pool_cost[place] == memory.least[0] or memory.pool_cost[place] == memory.least[2]


@compiled
def add_candidate(
    space: Space, memory: Memory, row: Floats, codes: Floats, cost: float, margin: float, expected: float
) -> int:
    """Keep a candidate if it is the cheapest with its changes; return its position, or -1.

    `expected` is about what it costs once its numbers are at the boundary.
    """
    if not allowed_count(space, codes, row):
        return -1
    key, count = set_key(memory, codes, row), memory.counts[POOL]
    changes = changes_of(codes, row)
    if cost < memory.least[0] or (changes, cost) < (memory.least[1], memory.least[2]):
        return -1
    place = -1
    for k in range(count):
        if memory.pool_key[k] == key:
            place = k
            break
    cheaper = place >= 0 and memory.pool_cost[place] <= cost + LEAST
    if cheaper and (memory.pool_expected[place] <= expected + LEAST or is_final(memory, place)):
        return -1
    if place < 0:
        if count < len(memory.pool_cost):
            place = count
            memory.counts[POOL] += 1
        else:
            place = dispensable(memory, count, changes, cost)
            if place < 0:
                return -1
    copy_to(memory.pool_codes[place], codes)
    memory.pool_changes[place], memory.pool_expected[place], memory.pool_tight[place] = changes, expected, False
    memory.pool_cost[place], memory.pool_margin[place], memory.pool_key[place] = cost, margin, key
    memory.pool_known[place] = memory.counts[KNOWN] == 1
    # Where margins are additive, interpolation is exact.
    sure = expected if memory.promise[1] == 1.0 else cost
    if sure < memory.best[changes] - LEAST:
        memory.counts[IDLE] = 0
    for size in range(changes, len(memory.best)):
        memory.best[size] = min(memory.best[size], sure)
    return place


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
def push_state(memory: Memory, codes: Floats, guess: float) -> None:
    """Keep a state to expand; a full list forgets the one with the highest estimate."""
    count = memory.counts[OPEN]
    if count < len(memory.open_estimate):
        place = count
        memory.counts[OPEN] += 1
    else:
        place = memory.counts[WORST]
        if place < 0:
            place = highest(memory.open_estimate, count)
        memory.counts[WORST] = place
        if memory.open_estimate[place] <= guess:
            return
    copy_to(memory.open_codes[place], codes)
    memory.open_estimate[place] = guess
    memory.counts[WORST] = -1


@compiled
def pop_state(memory: Memory) -> float:
    """Move the state with the lowest estimate to `memory.state`; return the estimate."""
    count = memory.counts[OPEN]
    place = lowest(memory.open_estimate, count)
    guess = memory.open_estimate[place]
    copy_to(memory.state, memory.open_codes[place])
    copy_to(memory.open_codes[place], memory.open_codes[count - 1])
    memory.open_estimate[place] = memory.open_estimate[count - 1]
    memory.counts[OPEN] -= 1
    memory.counts[WORST] = -1
    return guess


@compiled
def first_seen(memory: Memory, codes: Floats) -> bool:
    """Note a state as expanded; return whether it was not yet."""
    seen = memory.seen
    most = len(seen) - 1
    key = state_key(memory, codes) | np.uint64(1)
    place = np.int64(key >> np.uint64(32)) & most
    while seen[place] != np.uint64(0):
        if seen[place] == key:
            return False
        place = (place + 1) & most
    if memory.counts[SEEN] < most // 2:
        seen[place] = key
        memory.counts[SEEN] += 1
    return True


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
def replaced_cost(space: Space, memory: Memory, j: int, part: float) -> float:
    """Return the distance of a state if feature j had another cost."""
    if space.squared[j]:
        return memory.sums[0] + math.sqrt(memory.sums[1] + part * part - memory.parts[j] * memory.parts[j])
    return memory.sums[0] + part - memory.parts[j] + math.sqrt(memory.sums[1])


@compiled
def take_edit(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int, cost: float, expected: float
) -> None:  # fmt: skip
    """Keep the state in `memory.state` with an edit as a candidate; if it breaks a constraint between other features, as a
    state that another edit may repair."""
    write_draft(queries, q, work, memory, j, e)
    if memory.holds[0] or queries.links.linked[j]:
        add_candidate(space, memory, queries.row[q], memory.draft, cost, work.margin[e], expected)
    else:
        push_state(memory, memory.draft, cost)


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
def legal_row(queries: Queries, q: int, codes: Floats) -> bool:
    """Return whether a row satisfies the constraints between features, and those on each that follows from others."""
    return each_legal(queries.links, q, codes) and links_hold(queries.links, q, codes)


@compiled
def row_distance(space: Space, codes: Floats, row: Floats) -> float:
    linear, squares = 0.0, 0.0
    for j in range(len(codes)):
        if codes[j] != row[j]:
            part = change_cost(space, j, codes[j], row[j])
            if space.squared[j]:
                squares += part * part
            else:
                linear += part
    return linear + math.sqrt(squares)


@compiled
def score_linked(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory) -> None:
    """Score the edits of `memory.state` that other features follow from, or that constraints limit, row by row."""
    edits, links = work.edits, queries.links
    memory.holds[0] = links_hold(links, q, memory.state)
    for j in range(len(memory.state)):
        if not memory.changing[j] or not links.linked[j]:
            continue
        edits.low[j], edits.high[j], edits.gap[j] = edits.first[j], edits.first[j + 1], False
        for e in range(edits.first[j], edits.first[j + 1]):
            write_draft(queries, q, work, memory, j, e)
            work.margin[e], work.total[e] = -math.inf, math.inf
            if each_legal(links, q, memory.draft):
                work.margin[e] = row_margin(scorer, queries, q, work, memory.draft)
                work.total[e] = row_distance(space, memory.draft, queries.row[q])


@compiled
def scan_linked(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, own: float, tolerance: float, size: int,
    states: bool,
) -> None:  # fmt: skip
    """Keep, of the edits of a linked feature, the cheapest that reaches the target and breaks no constraint; others may
    become states."""
    edits, now = work.edits, memory.sums[0] + math.sqrt(memory.sums[1])
    most = memory.best[min(size + 1, len(memory.best) - 1)]
    pick = -1
    for e in range(edits.first[j], edits.first[j + 1]):
        margin, total = work.margin[e], work.total[e]
        if total == math.inf or (pick >= 0 and total >= work.total[pick]):
            continue
        memory.highest[0] = max(memory.highest[0], margin)
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
        if work.total[pick] < memory.promise[0] - LEAST:
            memory.promise[0], memory.counts[FEATURE], memory.counts[EDIT] = work.total[pick], j, pick


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

    Between values of a number that is `graded` margins are interpolated, up to one unit of its precision.
    """
    edits = work.edits
    step = 1 if end >= first else -1
    highest, before, part, value = own, own, memory.parts[j], memory.state[j]
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
                take_edit(space, queries, q, work, memory, j, e, cost, expected)
                if expected < memory.promise[0] - LEAST:
                    memory.promise[0], memory.counts[FEATURE], memory.counts[EDIT] = expected, j, e
                if states and graded:
                    steepest(space, queries, q, work, memory, j, first, e, own, size)
                return
            if states and not graded and cost < memory.best[min(size + 1, len(memory.best) - 1)]:
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
        if queries.links.linked[j]:
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
    also the next value, since the boundary may lie before it."""
    if most == math.inf:
        score_all(work)
        return
    root = math.sqrt(memory.sums[1])
    for j in range(len(memory.state)):
        if memory.changing[j]:
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
    """For a query without a candidate: expand every single edit, whether it gains anything by itself or not.

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
def value_margin(scorer: Scorer, queries: Queries, q: int, work: Workspace, j: int, value: float, corrected: float) -> float:
    """Return the margin if feature j of the state the workspace was prepared for had another value (networks only)."""
    hidden = work.edited_hidden
    for h in range(len(hidden)):
        hidden[h] = work.hidden[h] - work.own[j, h]
    add_entry(scorer.network, j, value, 1.0, hidden)
    network_outputs(scorer.network, hidden, work.layer, work.edited)
    return target_margin(scorer, queries, q, work.edited, corrected)


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
    """Move number j of `memory.other`, which reaches the target, as near as possible to a value that does not.

    The workspace is prepared for `memory.other` with another value of j. Values are tried where a line through the last two
    crosses zero, and in the middle, in turn.
    """
    good = memory.other[j]
    corrected = correction_of(queries, q, memory.other)
    above = value_margin(scorer, queries, q, work, j, good, corrected) - tolerance
    below = min(value_margin(scorer, queries, q, work, j, bad, corrected) - tolerance, 0.0)
    unit = space.step[j] if space.step[j] > 0.0 else 1.0 / space.scale[j]
    for turn in range(HALVINGS):
        share = 0.5
        if turn % 3 != 2 and above > below:
            share = min(max(above / (above - below), 0.01), 0.99)
        guess = good + share * (bad - good)
        middle = at_precision(space, queries, q, j, guess)
        if middle in (good, bad):
            middle = at_precision(space, queries, q, j, middle + (unit if (middle == good) == (bad > good) else -unit))
        if not min(good, bad) < middle < max(good, bad):
            break
        margin = value_margin(scorer, queries, q, work, j, middle, corrected) - tolerance
        if margin > 0.0:
            good, above = middle, margin
        else:
            bad, below = middle, margin
    memory.other[j] = good


@compiled
def nearer_row(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, value: float,
    tolerance: float,
) -> bool:  # fmt: skip
    """Give a linked feature of `memory.other` another value, with all that follows, if the row then costs less, breaks no
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
    """Give a linked feature of `memory.other` the cheapest value that reaches the target; return whether it changed."""
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
    if queries.links.linked[j]:
        return queries.free[q, j] and tighten_linked(scorer, space, queries, q, work, memory, j, tolerance)
    value, base = memory.other[j], queries.base[q, j]
    memory.other[j] = base
    fill(memory.changing, False)
    best, cost = value, change_cost(space, j, value, queries.row[q, j])
    memory.changing[j] = queries.free[q, j] and score_within(space, work, base, j, cost, 0)
    if profile(scorer, space, queries, q, work, memory.other, memory.changing) > tolerance:
        return True
    edits = work.edits
    if memory.changing[j]:
        for e in range(edits.low[j], edits.high[j]):
            if work.margin[e] > tolerance and edits.cost[e] < cost - LEAST:
                best, cost = edits.value[e], edits.cost[e]
        if edits.gap[j] and work.margin[edits.last[j]] > tolerance and edits.cost[edits.last[j]] < cost - LEAST:
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
                if queries.links.linked[j] and not queries.free[q, j]:
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


@compiled
def sparsest_of(memory: Memory) -> int:
    """Return the cheapest candidate of those with the fewest changes."""
    best = lowest(memory.pool_cost, memory.counts[POOL])
    for k in range(memory.counts[POOL]):
        fewer = memory.pool_changes[k] < memory.pool_changes[best]
        cheaper = memory.pool_changes[k] == memory.pool_changes[best] and memory.pool_cost[k] < memory.pool_cost[best]
        if memory.pool_cost[k] < math.inf and (fewer or cheaper):
            best = k
    return best


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


@compiled
def note_least(memory: Memory) -> None:
    """Note the candidates that are final."""
    sparsest = sparsest_of(memory)
    memory.least[0] = memory.pool_cost[lowest(memory.pool_cost, memory.counts[POOL])]
    memory.least[1], memory.least[2] = memory.pool_changes[sparsest], memory.pool_cost[sparsest]


@compiled
def is_additive(scorer: Scorer, space: Space, queries: Queries) -> bool:
    """Return whether margins and costs are sums over features, in which every unit of a number counts the same."""
    plain = len(space.curve_knots) == 0 and not space.squared.any() and len(queries.links.constraint) == 0
    return plain and scorer.kind != TREES and len(scorer.network.width) == 0


@compiled
def is_knapsack(scorer: Scorer, space: Space, queries: Queries, q: int) -> bool:
    """Return whether branch and bound over the changes of single features finds the cheapest candidate."""
    one_sided = queries.kind != WITHIN or queries.low[q] == -math.inf or queries.high[q] == math.inf
    return one_sided and space.most_changes >= len(space.numeric) and straight_numbers(scorer.network, space, queries, q)


@compiled
def branch_and_bound(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, own: float
) -> bool:
    """Find the cheapest candidate where margins and costs are sums, and the cheapest of those with the fewest changes; return
    whether both are certain. All single edits of the query are scored."""
    row, base, kept = queries.row[q], queries.base[q], memory.items
    short = tolerance - own + ROUNDING * (1.0 + abs(own))
    list_items(space, queries, q, work, kept, own, short)
    fewest = fewest_changes(kept, short)
    if own > tolerance or fewest > kept.count[0]:
        return False
    spent = write_parts(space, memory, base, row)
    most_changes = kept.count[0]
    for _ in range(2):
        best = math.inf
        for k in range(memory.counts[POOL]):
            if memory.pool_changes[k] <= most_changes:
                best = min(best, memory.pool_cost[k])
        begin_items(kept, short, spent)
        place = 0
        while place >= 0:
            place = next_complete(space, queries, q, work, kept, own, place, most_changes, best)
            if place < 0:
                break
            copy_to(memory.other, base)
            for k in range(place):
                memory.other[kept.feature[kept.order[k]]] = kept.value[k]
            margin = row_margin(scorer, queries, q, work, memory.other)
            cost = write_parts(space, memory, memory.other, row)
            if margin > tolerance:
                best = min(best, cost)
                add_candidate(space, memory, row, memory.other, cost, margin, cost)
            place -= 1
        if kept.count[2] > MOST_STEPS or memory.counts[POOL] == 0:
            return False
        changes = memory.pool_changes[lowest(memory.pool_cost, memory.counts[POOL])]
        if changes <= fewest or fewest == 1:
            return True
        most_changes = fewest
    return True


@compiled
def search_query(
    scorer: Scorer, space: Space, queries: Queries, q: int, starts: Floats, work: Workspace, memory: Memory, effort: Effort
) -> bool:
    """Search for the candidates of one query; return whether there are none with one or two changes.

    The cheapest, and the one with the fewest changes, must not depend on how many are returned: more are searched for once
    these two are final.
    """
    tolerance = scorer.error if scorer.exact else 0.0
    fill(memory.counts, 0)
    memory.counts[LEFT] = effort.improvements
    memory.highest[0] = -math.inf
    fill(memory.least, -math.inf)
    additive = is_additive(scorer, space, queries)
    linear = scorer.kind != TREES and len(scorer.network.width) == 0 and scorer.outputs == 1 and scorer.link == IDENTITY
    memory.promise[1] = 1.0 if linear else OPTIMISM
    list_edits(scorer, space, queries, q, work)
    own = expand_query(scorer, space, queries, q, work, memory, tolerance)
    proven = False
    if linear and additive and is_knapsack(scorer, space, queries, q):
        proven = branch_and_bound(scorer, space, queries, q, work, memory, tolerance, own)
    if not proven:
        expand_open(scorer, space, queries, q, work, memory, tolerance, effort.expansions, effort.patience, False)
    ended = False
    if memory.counts[POOL] == 0:
        ended = expand_all(scorer, space, queries, q, work, memory, tolerance, effort.exhaustive)
    # Where margins are additive estimates are bounds: if no state is left the cheapest is known.
    proven = proven or (linear and additive and memory.counts[OPEN] == 0 and memory.counts[POOL] > 0)
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
    return ended


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


@compiled
def search_block(
    scorer: Scorer, space: Space, queries: Queries, starts: Floats, first: int, end: int, work: Workspace, memory: Memory,
    effort: Effort, found: Found,
) -> None:  # fmt: skip
    """Search queries first..end one after another and write their candidates, the cheapest first."""
    for q in range(first, end):
        found.complete[q] = search_query(scorer, space, queries, q, starts[q], work, memory, effort)
        count = memory.counts[POOL]
        sort_order(memory.pool_cost, count, memory.order)
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


__all__ = ["memory", "search_block", "workspace"]
