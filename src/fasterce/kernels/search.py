"""The search for the candidates of one query, with a scorer instead of the model.

A state is a row that differs from the query in some features. Expanding a state scores all its single edits at once: those
that reach the target are candidates, the others may become states. States are expanded in the order of an estimate of what
their cheapest candidate costs, until none can be cheaper than what was found. The best candidates are then improved: drop or
replace one change at a time, and bring numbers to the decision boundary.
"""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import TREES, Effort, Found, Int64s, Queries, Scorer, Space, Words
from fasterce.kernels.basics import copy_to, fill, highest, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost, list_edits
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace, correction_of, profile, row_margin, target_margin, workspace
from fasterce.kernels.score import MISSING, add_entry, network_outputs
from fasterce.typing import Floats, Mask

# A candidate counts as cheaper only by more than rounding.
LEAST = 1e-9
# Positions in `Memory.counts`.
POOL, OPEN, SEEN, SEGMENTS, SCORED, LEFT = 0, 1, 2, 3, 4, 5
# Shares of a change that are kept when it is traded for another change.
SHARES = (0.5, 0.75, 0.9)
# A candidate this many times as dear as the best may become cheaper once its numbers are at the boundary.
PROMISING = 1.2
# Share of the estimated cost of the missing margin: features may gain more together than by themselves.
OPTIMISM = 0.5
# Factor of this estimate when states are ordered: above 1, states near the target come first.
DEPTH = 1.7
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
    pool_key: Words
    """Candidates that reach the target, the cheapest for each set of changed features."""
    best: Floats
    """The cost of the cheapest candidate with at most so many changes (features + 2,)."""
    open_codes: Floats
    open_estimate: Floats
    """States to expand."""
    seen: Words
    """Keys of expanded states."""
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


def memory(features: int, effort: Effort, segments: int) -> Memory:
    """Return arrays for one query after another."""
    rng = np.random.default_rng(1)
    return Memory(
        counts=np.zeros(6, np.int64),
        pool_codes=np.zeros((effort.pool, features)),
        pool_cost=np.zeros(effort.pool),
        pool_margin=np.zeros(effort.pool),
        pool_expected=np.zeros(effort.pool),
        pool_changes=np.zeros(effort.pool, np.int64),
        pool_key=np.zeros(effort.pool, np.uint64),
        best=np.zeros(features + 2),
        open_codes=np.zeros((effort.open_sets, features)),
        open_estimate=np.zeros(effort.open_sets),
        seen=np.zeros(4 * effort.expansions + 16 * effort.pool + effort.exhaustive + 64, np.uint64),
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
def add_candidate(
    space: Space, memory: Memory, row: Floats, codes: Floats, cost: float, margin: float, expected: float
) -> int:
    """Keep a candidate if it is the cheapest with its changes; return its position, or -1.

    `expected` is about what it costs once its numbers are at the boundary.
    """
    if not allowed_count(space, codes, row):
        return -1
    key, count = set_key(memory, codes, row), memory.counts[POOL]
    place = -1
    for k in range(count):
        if memory.pool_key[k] == key:
            place = k
            break
    if place >= 0 and memory.pool_cost[place] <= cost + LEAST and memory.pool_expected[place] <= expected + LEAST:
        return -1
    changes = changes_of(codes, row)
    if place < 0:
        if count < len(memory.pool_cost):
            place = count
            memory.counts[POOL] += 1
        else:
            place = dispensable(memory, count, changes, cost)
            if place < 0:
                return -1
    copy_to(memory.pool_codes[place], codes)
    memory.pool_changes[place], memory.pool_expected[place] = changes, expected
    memory.pool_cost[place], memory.pool_margin[place], memory.pool_key[place] = cost, margin, key
    for size in range(changes, len(memory.best)):
        memory.best[size] = min(memory.best[size], cost)
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
        place = highest(memory.open_estimate, count)
        if memory.open_estimate[place] <= guess:
            return
    copy_to(memory.open_codes[place], codes)
    memory.open_estimate[place] = guess


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
    return guess


@compiled
def first_seen(memory: Memory, codes: Floats) -> bool:
    """Note a state as expanded; return whether it was not yet."""
    key, count = state_key(memory, codes), memory.counts[SEEN]
    for k in range(count):
        if memory.seen[k] == key:
            return False
    if count < len(memory.seen):
        memory.seen[count] = key
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
    """Keep the state in `memory.state` with an edit as a candidate."""
    copy_to(memory.draft, memory.state)
    memory.draft[j] = work.edits.value[e]
    add_candidate(space, memory, queries.row[q], memory.draft, cost, work.margin[e], expected)


@compiled
def consider_state(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, e: int, cost: float, size: int
) -> None:  # fmt: skip
    """Keep the state with an edit that does not reach the target, if something beyond it may be the cheapest."""
    guess = estimate(space, memory, j, work.edits.cost[e], -work.margin[e], queries.base[q])
    if cost + OPTIMISM * (guess - cost) < memory.best[min(size + 1, len(memory.best) - 1)]:
        copy_to(memory.draft, memory.state)
        memory.draft[j] = work.edits.value[e]
        push_state(memory, memory.draft, cost + DEPTH * (guess - cost))


@compiled
def scan(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, first: int, end: int, own: float,
    tolerance: float, size: int, states: bool, graded: bool,
) -> None:  # fmt: skip
    """Go through edits of a feature in the order of their cost: keep the cheapest that reaches the target, and, before it,
    each that comes nearer to it than all cheaper ones.

    Between values of a number that is `graded` margins are interpolated.
    """
    edits = work.edits
    step = 1 if end >= first else -1
    highest, before, part = own, own, memory.parts[j]
    for e in range(first, end, step):
        margin = work.margin[e]
        if margin > highest:
            highest = margin
            cost = replaced_cost(space, memory, j, edits.cost[e])
            if margin > tolerance:
                if graded and before < tolerance:
                    part += (edits.cost[e] - part) * (tolerance - before) / (margin - before)
                else:
                    part = edits.cost[e]
                take_edit(space, queries, q, work, memory, j, e, cost, replaced_cost(space, memory, j, part))
                return
            if states and cost < memory.best[min(size + 1, len(memory.best) - 1)]:
                consider_state(space, queries, q, work, memory, j, e, cost, size)
        before, part = margin, edits.cost[e]
    memory.highest[0] = max(memory.highest[0], highest)


@compiled
def collect(
    space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, own: float, tolerance: float, states: bool,
    graded: bool,
) -> None:  # fmt: skip
    """Keep candidates and states among the scored edits of the features of `memory.state` that are changing."""
    edits, base = work.edits, queries.base[q]
    size = changes_of(memory.state, queries.row[q])
    for j in range(len(base)):
        if not memory.changing[j]:
            continue
        first, end = edits.first[j], edits.first[j + 1]
        memory.counts[SCORED] += end - first
        with_j = size + (1 if memory.state[j] == queries.row[q, j] else 0)
        if space.numeric[j] and base[j] != MISSING:
            last = end
            if end > first and edits.value[end - 1] == MISSING:
                last = end - 1
                scan(space, queries, q, work, memory, j, last, end, own, tolerance, with_j, states, False)
            middle = first
            while middle < last and edits.value[middle] < base[j]:
                middle += 1
            scan(space, queries, q, work, memory, j, middle, last, own, tolerance, with_j, states, graded)
            scan(space, queries, q, work, memory, j, middle - 1, first - 1, own, tolerance, with_j, states, graded)
        else:
            for e in range(first, end):
                scan(space, queries, q, work, memory, j, e, e + 1, own, tolerance, with_j, states, False)


@compiled
def expand(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, states: bool
) -> float:
    """Score all single edits of `memory.state` of features that are unchanged; return its own margin."""
    for j in range(len(memory.state)):
        memory.changing[j] = queries.free[q, j] and memory.state[j] == queries.base[q, j]
    write_parts(space, memory, memory.state, queries.row[q])
    own = profile(scorer, space, queries, q, work, memory.state, memory.changing)
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
            if first_seen(memory, memory.state):
                expand(scorer, space, queries, q, work, memory, tolerance, False)
    return True


@compiled
def climb(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float) -> None:
    """For a query without a candidate: make the best change by gain per cost, again and again."""
    edits = work.edits
    copy_to(memory.state, queries.base[q])
    for _ in range(len(memory.state)):
        own = expand(scorer, space, queries, q, work, memory, tolerance, False)
        if memory.counts[POOL] > 0 or own > tolerance:
            return
        most = 0.0
        for j in range(len(memory.state)):
            if memory.changing[j]:
                for e in range(edits.first[j], edits.first[j + 1]):
                    most = max(most, work.margin[e] - own)
        pick, feature, rate = -1, -1, 0.0
        for j in range(len(memory.state)):
            if memory.changing[j]:
                for e in range(edits.first[j], edits.first[j + 1]):
                    gain = work.margin[e] - own
                    if gain >= 0.5 * most and gain / max(edits.cost[e], LEAST) > rate:
                        rate, pick, feature = gain / max(edits.cost[e], LEAST), e, j
        if pick < 0 or most <= LEAST:
            return
        memory.state[feature] = edits.value[pick]


@compiled
def value_margin(scorer: Scorer, queries: Queries, q: int, work: Workspace, j: int, value: float, corrected: float) -> float:
    """Return the margin if feature j of the state the workspace was prepared for had another value (networks only)."""
    hidden = work.edited_hidden
    for h in range(len(hidden)):
        hidden[h] = work.hidden[h] - work.own[j, h]
    add_entry(scorer.network, j, value, 1.0, hidden)
    network_outputs(scorer.network, hidden, work.edited)
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
def tighten_feature(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, j: int, tolerance: float
) -> bool:
    """Give feature j of `memory.other` the cheapest value that reaches the target; return whether it changed."""
    value, base = memory.other[j], queries.base[q, j]
    memory.other[j] = base
    fill(memory.changing, False)
    memory.changing[j] = queries.free[q, j]
    if profile(scorer, space, queries, q, work, memory.other, memory.changing) > tolerance:
        return True
    edits = work.edits
    best, cost = value, change_cost(space, j, value, queries.row[q, j])
    for e in range(edits.first[j], edits.first[j + 1]):
        if work.margin[e] > tolerance and edits.cost[e] < cost - LEAST:
            best, cost = edits.value[e], edits.cost[e]
    memory.other[j] = best
    if scorer.kind != TREES and space.numeric[j] and MISSING not in (best, base):
        bad = base
        for e in range(edits.first[j], edits.first[j + 1]):
            between = min(base, best) < edits.value[e] < max(base, best)
            if between and abs(edits.value[e] - best) < abs(bad - best):
                bad = edits.value[e]
        to_boundary(scorer, space, queries, q, work, memory, j, bad, tolerance)
    return memory.other[j] != value


@compiled
def tighten(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, rounds: int
) -> None:
    """Drop every change of `memory.other` that is not needed, the dearest first, and give the others their cheapest value."""
    row, base = queries.row[q], queries.base[q]
    for _ in range(rounds):
        moved = False
        write_parts(space, memory, memory.other, row)
        for j in range(len(base)):
            memory.parts[j] = -memory.parts[j]
        sort_order(memory.parts, len(base), memory.order)
        for j in memory.order[: len(base)]:
            if memory.other[j] != base[j]:
                moved |= tighten_feature(scorer, space, queries, q, work, memory, j, tolerance)
        if not moved:
            return


@compiled
def keep_tightened(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, rounds: int
) -> int:
    """Tighten `memory.other` and keep it; return its position among the candidates, or -1."""
    tighten(scorer, space, queries, q, work, memory, tolerance, rounds)
    if changes_of(memory.other, queries.row[q]) == 0:
        return -1
    margin = row_margin(scorer, queries, q, work, memory.other)
    if margin <= tolerance:
        return -1
    cost = write_parts(space, memory, memory.other, queries.row[q])
    return add_candidate(space, memory, queries.row[q], memory.other, cost, margin, cost)


@compiled
def cheapest_from(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, skipped: int
) -> float:
    """Make `memory.other` the cheapest candidate one edit away from `memory.state`, in any feature but one; return its
    cost, infinite for none. Candidates of other features are kept, too."""
    for j in range(len(memory.state)):
        memory.changing[j] = queries.free[q, j] and j != skipped
    write_parts(space, memory, memory.state, queries.row[q])
    own = profile(scorer, space, queries, q, work, memory.state, memory.changing)
    edits = work.edits
    lowest, pick, feature = math.inf, -1, -1
    for j in range(len(memory.state)):
        if memory.changing[j]:
            memory.counts[SCORED] += edits.first[j + 1] - edits.first[j]
            for e in range(edits.first[j], edits.first[j + 1]):
                if work.margin[e] > tolerance:
                    cost = replaced_cost(space, memory, j, edits.cost[e])
                    if cost < lowest - LEAST:
                        lowest, pick, feature = cost, e, j
    collect(space, queries, q, work, memory, own, tolerance, False, scorer.kind != TREES)
    if pick >= 0:
        copy_to(memory.other, memory.state)
        memory.other[feature] = edits.value[pick]
    return lowest


@compiled
def try_from_state(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, skipped: int,
    best: float, rounds: int,
) -> int:  # fmt: skip
    """Complete `memory.state` by its cheapest edit, if that may be cheaper than the best; return its position, or -1."""
    memory.counts[LEFT] -= 1
    if cheapest_from(scorer, space, queries, q, work, memory, tolerance, skipped) > PROMISING * best:
        return -1
    kept = keep_tightened(scorer, space, queries, q, work, memory, tolerance, rounds)
    return kept if kept >= 0 and memory.pool_cost[kept] < best - LEAST else -1


@compiled
def improve(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, place: int, tolerance: float,
    rounds: int,
) -> int:  # fmt: skip
    """Replace one change of a candidate after another by the cheapest change of any feature; return where the result is."""
    row, base = queries.row[q], queries.base[q]
    better = place
    while better >= 0:
        place, better = better, -1
        start, best = memory.start, memory.pool_cost[place]
        copy_to(start, memory.pool_codes[place])
        if changes_of(start, row) < 2:
            return place
        for j in range(len(base)):
            if start[j] == base[j] or better >= 0 or memory.counts[LEFT] <= 0:
                continue
            copy_to(memory.state, start)
            memory.state[j] = base[j]
            if first_seen(memory, memory.state):
                better = try_from_state(scorer, space, queries, q, work, memory, tolerance, -1, best, rounds)
            if scorer.kind == TREES or not space.numeric[j] or start[j] == MISSING or base[j] == MISSING:
                continue
            for share in SHARES:
                copy_to(memory.state, start)
                memory.state[j] = at_precision(space, queries, q, j, base[j] + share * (start[j] - base[j]))
                inside = memory.state[j] != start[j] and memory.state[j] != base[j]
                if better < 0 and inside and memory.counts[LEFT] > 0 and first_seen(memory, memory.state):
                    better = try_from_state(scorer, space, queries, q, work, memory, tolerance, j, best, rounds)
    return place


@compiled
def sparsest_first(memory: Memory, place: int) -> None:
    """Move the cheapest candidate with the fewest changes to a place in the order, if it comes later."""
    count, best = memory.counts[POOL], 0
    for rank in range(1, count):
        if memory.pool_changes[memory.order[rank]] < memory.pool_changes[memory.order[best]]:
            best = rank
    if best < place:
        return
    moved = memory.order[best]
    for rank in range(best, place, -1):
        memory.order[rank] = memory.order[rank - 1]
    memory.order[place] = moved


@compiled
def tighten_pool(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, effort: Effort
) -> None:
    """Tighten the cheapest candidates; those that lose a change go where their smaller set belongs.

    Only the first `effort.tightened` can become the best: more are tightened where more are returned, and the best must not
    depend on how many that are.
    """
    row = queries.row[q]
    sort_order(memory.pool_expected, memory.counts[POOL], memory.order)
    count = min(memory.counts[POOL], effort.returned)
    sparsest_first(memory, effort.tightened)
    copy_to(memory.chosen, memory.order[:count])
    least = 0.0
    for rank in range(count):
        if rank == effort.tightened + 1:
            least = memory.pool_cost[lowest(memory.pool_cost, memory.counts[POOL])]
        place = memory.chosen[rank]
        if memory.pool_cost[place] == math.inf:
            continue
        copy_to(memory.other, memory.pool_codes[place])
        tighten(scorer, space, queries, q, work, memory, tolerance, effort.rounds)
        cost = write_parts(space, memory, memory.other, row)
        margin = row_margin(scorer, queries, q, work, memory.other)
        if set_key(memory, memory.other, row) == memory.pool_key[place]:
            if cost < memory.pool_cost[place]:
                copy_to(memory.pool_codes[place], memory.other)
                memory.pool_margin[place], memory.pool_cost[place] = margin, cost if cost >= least else math.inf
            memory.pool_expected[place] = memory.pool_cost[place]
        else:
            memory.pool_cost[place] = memory.pool_expected[place] = math.inf
            if changes_of(memory.other, row) > 0 and margin > tolerance and cost >= least:
                add_candidate(space, memory, row, memory.other, cost, margin, cost)


@compiled
def search_query(
    scorer: Scorer, space: Space, queries: Queries, q: int, starts: Floats, work: Workspace, memory: Memory, effort: Effort
) -> bool:
    """Search for the candidates of one query; return whether there are none with one or two changes."""
    tolerance = scorer.error if scorer.exact else 0.0
    fill(memory.counts, 0)
    memory.counts[LEFT] = effort.improvements
    fill(memory.best, math.inf)
    memory.highest[0] = -math.inf
    list_edits(scorer, space, queries, q, work)
    row, base = queries.row[q], queries.base[q]
    copy_to(memory.state, base)
    first_seen(memory, base)
    own = expand(scorer, space, queries, q, work, memory, tolerance, True)
    if own > tolerance and changes_of(base, row) > 0:
        cost = write_parts(space, memory, base, row)
        add_candidate(space, memory, row, base, cost, own, cost)
    ended = False
    for _ in range(effort.expansions):
        if memory.counts[OPEN] == 0:
            break
        guess = pop_state(memory)
        size = changes_of(memory.state, row)
        cost = write_parts(space, memory, memory.state, row)
        useful = cost + OPTIMISM / DEPTH * (guess - cost) < memory.best[min(size + 1, len(memory.best) - 1)]
        if useful and first_seen(memory, memory.state):
            expand(scorer, space, queries, q, work, memory, tolerance, True)
    if memory.counts[POOL] == 0:
        ended = expand_all(scorer, space, queries, q, work, memory, tolerance, effort.exhaustive)
    if memory.counts[POOL] == 0:
        climb(scorer, space, queries, q, work, memory, tolerance)
    for k in range(len(starts)):
        copy_to(memory.other, starts[k])
        keep_tightened(scorer, space, queries, q, work, memory, tolerance, effort.rounds)
    improve_best(scorer, space, queries, q, work, memory, tolerance, effort)
    tighten_pool(scorer, space, queries, q, work, memory, tolerance, effort)
    return ended


@compiled
def improve_best(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, tolerance: float, effort: Effort
) -> None:
    """Improve the cheapest candidates, and the cheapest of those with the fewest changes."""
    count = memory.counts[POOL]
    order = memory.order
    sort_order(memory.pool_expected, count, order)
    fewest, sparsest = len(memory.state) + 1, -1
    for k in order[:count]:
        if memory.pool_changes[k] < fewest:
            fewest, sparsest = memory.pool_changes[k], k
    best = min(count, effort.improved)
    chosen = memory.chosen
    copy_to(chosen, order[:best])
    for rank in range(best):
        improve(scorer, space, queries, q, work, memory, chosen[rank], tolerance, effort.rounds)
    if sparsest >= 0:
        improve(scorer, space, queries, q, work, memory, sparsest, tolerance, effort.rounds)


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
                kept += 1
        found.count[q] = kept
        found.best_margin[q] = memory.highest[0]
        found.scored[q] = memory.counts[SCORED]


__all__ = ["memory", "search_block", "workspace"]
