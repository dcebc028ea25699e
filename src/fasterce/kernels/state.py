"""What the search of one query keeps: its candidates, the states to expand, and those that were."""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.additive import Items, items
from fasterce.kernels.arrays import Effort, Int64s, Queries, Space, Words
from fasterce.kernels.basics import copy_to, highest, lowest
from fasterce.kernels.edits import change_cost
from fasterce.kernels.jit import compiled
from fasterce.kernels.links import each_legal, links_hold
from fasterce.typing import Floats, Mask

# A candidate counts as cheaper only by more than rounding.
LEAST = 1e-9
# Positions in `Memory.counts`.
POOL, OPEN, SEEN, SEGMENTS, SCORED, LEFT, WORST, FEATURE, EDIT, KNOWN, IDLE = range(11)


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


def memory(features: int, effort: Effort, segments: int, points: int) -> Memory:
    """Return arrays for one query after another."""
    rng = np.random.default_rng(1)
    states = effort.expansions + effort.wide_expansions + 8 * effort.improvements + effort.exhaustive + 64
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
        seen=np.zeros(1 << (2 * states).bit_length(), np.uint64),
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
        items=items(features, points),
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
    these changes and this cost is worth more; -1 if it is not. The cheapest stays."""
    cheapest, fewest = lowest(memory.pool_cost, count), changes
    for k in range(count):
        fewest = min(fewest, memory.pool_changes[k])
    place, many = -1, False
    for k in range(count):
        more = memory.pool_changes[k] > fewest
        worse = place < 0 or (more and not many) or (more == many and memory.pool_cost[k] > memory.pool_cost[place])
        if worse and k != cheapest:
            place, many = k, more
    if changes > fewest and (not many or memory.pool_cost[place] <= cost):
        return -1
    return place if many or (place >= 0 and memory.pool_cost[place] > cost) else -1


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
def replaced_cost(space: Space, memory: Memory, j: int, part: float) -> float:
    """Return the distance of a state if feature j had another cost."""
    if space.squared[j]:
        return memory.sums[0] + math.sqrt(memory.sums[1] + part * part - memory.parts[j] * memory.parts[j])
    return memory.sums[0] + part - memory.parts[j] + math.sqrt(memory.sums[1])


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
def note_least(memory: Memory) -> None:
    """Note the candidates that are final."""
    sparsest = sparsest_of(memory)
    memory.least[0] = memory.pool_cost[lowest(memory.pool_cost, memory.counts[POOL])]
    memory.least[1], memory.least[2] = memory.pool_changes[sparsest], memory.pool_cost[sparsest]
