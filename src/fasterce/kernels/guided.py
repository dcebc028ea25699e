"""The search with the surrogate: candidates for the model to evaluate, query by query.

Its estimates are not worth much effort. What the model says about a few candidates of each round corrects them for the next.
"""

import math

import numpy as np

from fasterce.kernels.arrays import Effort, Queries, Scorer, Space
from fasterce.kernels.basics import copy_to, fill, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost, list_edits
from fasterce.kernels.expand import climb, expand_open, expand_query, score_linked
from fasterce.kernels.improve import improve_best
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Edits, Workspace, profile
from fasterce.kernels.score import MISSING
from fasterce.kernels.state import EDIT, FEATURE, LEFT, POOL, Memory, sparsest_of
from fasterce.kernels.tighten import keep_tightened, tighten_pool
from fasterce.typing import Floats, Indices, Mask

# Share of the estimated cost of the missing margin: features may gain more together than by themselves.
OPTIMISM = 0.5
# Candidates of each search that are brought to the boundary: the cheapest, and the one with the fewest changes.
TIGHT = 2
# Cost of a change where candidates cost the same.
TIE = 1e-9
# Numbers of a candidate that are tried with a smaller change.
NUMBERS = 2
# Factors of the way to the query at which margins interpolate to zero, since they rarely are linear.
AROUND = (0.9, 1.02)
# Further shares of the way at which a number is tried.
SHARES = (0.1, 0.3, 0.6)
# Rows with less of one number, per candidate.
LESS = NUMBERS * (len(AROUND) + len(SHARES))


@compiled
def search_once(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, effort: Effort
) -> None:
    """Search for candidates of one query whose edits are listed, by expanding a few states."""
    fill(memory.counts, 0)
    fill(memory.least, -math.inf)
    memory.highest[0], memory.promise[1] = -math.inf, OPTIMISM
    expand_query(scorer, space, queries, q, work, memory, 0.0)
    expand_open(scorer, space, queries, q, work, memory, 0.0, effort.expansions, effort.patience, False)
    if memory.counts[POOL] == 0:
        climb(scorer, space, queries, q, work, memory, 0.0, math.inf)
        if memory.promise[0] < math.inf:
            copy_to(memory.other, memory.state)
            memory.other[memory.counts[FEATURE]] = work.edits.value[memory.counts[EDIT]]
            keep_tightened(scorer, space, queries, q, work, memory, 0.0, effort.rounds)


@compiled
def propose_from_pool(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, memory: Memory, effort: Effort, out: Floats
) -> None:
    """Write the candidates expected to be the cheapest, as they are: what they have to spare allows for errors of the
    surrogate. The last two are the cheapest and the one with the fewest changes, improved and brought to the boundary."""
    count, order, most = memory.counts[POOL], memory.order, len(out) - TIGHT
    if count == 0:
        return
    for k in range(count):
        memory.pool_expected[k] += TIE * memory.pool_changes[k]
    sort_order(memory.pool_expected, count, order)
    for rank in range(min(count, most)):
        if memory.pool_cost[order[rank]] < math.inf:
            copy_to(out[rank], memory.pool_codes[order[rank]])
    memory.counts[LEFT] = effort.improvements
    improve_best(scorer, space, queries, q, work, memory, 0.0, effort)
    tighten_pool(scorer, space, queries, q, work, memory, 0.0, 0, effort.rounds)
    copy_to(out[most], memory.pool_codes[lowest(memory.pool_cost, memory.counts[POOL])])
    copy_to(out[most + 1], memory.pool_codes[sparsest_of(memory)])


@compiled
def propose_block(
    scorer: Scorer, space: Space, queries: Queries, first: int, end: int, work: Workspace, memory: Memory, effort: Effort,
    need: Floats, most: Indices, out: Floats,
) -> None:  # fmt: skip
    """Propose candidates of queries first..end for several margins: so `most` at each margin `need` (queries, margins)."""
    for q in range(first, end):
        list_edits(scorer, space, queries, q, work)
        place = 0
        for level in range(len(most)):
            queries.need[q] = need[q, level]
            search_once(scorer, space, queries, q, work, memory, effort)
            last = place + most[level]
            propose_from_pool(scorer, space, queries, q, work, memory, effort, out[q, place:last])
            place = last


@compiled
def write_single_changes(edits: Edits, margin: Floats, most_cost: float, each: int, base: Floats, out: Floats) -> None:
    """Write the edits with the highest margins that cost less than `most_cost`, at most `each` per feature; `margin` is
    overwritten."""
    taken = np.zeros(len(base), np.int64)
    for rank in range(len(out)):
        best, feature = -1, -1
        for j in range(len(base)):
            for e in range(edits.first[j], edits.first[j + 1] if taken[j] < each else edits.first[j]):
                if edits.cost[e] < most_cost and margin[e] > -math.inf and (best < 0 or margin[e] > margin[best]):
                    best, feature = e, j
        if best < 0:
            return
        out[rank, feature] = edits.value[best]
        margin[best] = -math.inf
        taken[feature] += 1


@compiled
def propose_single_changes(
    scorer: Scorer, space: Space, queries: Queries, first: int, end: int, work: Workspace, memory: Memory,
    effort: Effort, most_cost: Floats, each: int, out: Floats,
) -> None:  # fmt: skip
    """Propose the most promising single changes that cost less than `most_cost` (queries,)."""
    for q in range(first, end):
        if most_cost[q] > 0.0:
            list_edits(scorer, space, queries, q, work)
            copy_to(memory.changing, queries.free[q])
            copy_to(memory.state, queries.base[q])
            profile(scorer, space, queries, q, work, memory.state, memory.changing)
            score_linked(scorer, space, queries, q, work, memory)
            write_single_changes(work.edits, work.margin, most_cost[q], each, queries.base[q], out[q])


@compiled
def cheapest_of_other_set(codes: Floats, cost: Floats, base: Floats, chosen: Indices, count: int) -> int:
    """Return the cheapest row that changes other features than all chosen ones; -1 for none."""
    best, least = -1, math.inf
    for m in range(len(codes)):
        if cost[m] >= least:
            continue
        fresh = True
        for c in range(count):
            same = True
            for j in range(len(base)):
                if (codes[m, j] != base[j]) != (codes[chosen[c], j] != base[j]):
                    same = False
                    break
            fresh &= not same
        if fresh:
            best, least = m, cost[m]
    return best


@compiled
def smaller_feature(tried: Floats, found: Floats, base: Floats) -> int:
    """Return the only feature that a tried row changes less than a found one; -1 if there is none or there are several.

    The other changes may be larger.
    """
    only = -1
    for j in range(len(base)):
        larger = found[j] != base[j] and (found[j] - base[j]) * (tried[j] - found[j]) > 0.0
        if tried[j] != found[j] and not larger:
            if only >= 0:
                return -1
            only = j
    return only


@compiled
def write_floors(
    codes: Floats, margin: Floats, base: Floats, start: float, found: Floats, floor: Floats, below: Floats
) -> None:
    """Write for each feature the nearest value toward the query that is known to fail, and the margin with it.

    A row that fails although its other changes are as large or larger counts, too. Where none is known it is the value of
    the query.
    """
    copy_to(floor, base)
    fill(below, min(start, 0.0))
    for m in range(len(codes)):
        if margin[m] > 0.0 or margin[m] == -math.inf:
            continue
        j = smaller_feature(codes[m], found, base)
        if j < 0:
            continue
        value, own = codes[m, j], found[j]
        if (value - base[j]) * (own - value) >= 0.0 and abs(value - own) <= abs(floor[j] - own):
            floor[j], below[j] = value, margin[m]


@compiled
def saved_by(space: Space, queries: Queries, q: int, found: Floats, floor: Floats, saving: Floats) -> None:
    """Write what each number of a row saves if its change is reduced to its floor."""
    for j in range(len(found)):
        saving[j] = 0.0
        known = found[j] != MISSING and queries.row[q, j] != MISSING and floor[j] != MISSING
        if space.numeric[j] and known and found[j] != floor[j] and queries.free[q, j]:
            own = queries.row[q, j]
            saving[j] = change_cost(space, j, found[j], own) - change_cost(space, j, floor[j], own)


@compiled
def write_less_of(
    space: Space, queries: Queries, q: int, found: Floats, margin: float, j: int, floor: float, below: float, out: Floats,
    place: int,
) -> None:  # fmt: skip
    """Write rows with a smaller change of number j: where margins interpolate to zero, and at fixed shares."""
    crossing = min(margin / max(margin - below, 1e-12), 1.0)
    for k in range(len(AROUND) + len(SHARES)):
        share = crossing * AROUND[min(k, len(AROUND) - 1)] if k < len(AROUND) else SHARES[k - len(AROUND)]
        value = at_precision(space, queries, q, j, found[j] + share * (floor - found[j]))
        if min(found[j], floor) < value < max(found[j], floor):
            copy_to(out[place + k], found)
            out[place + k, j] = value


@compiled
def write_nearer(
    space: Space, queries: Queries, start: Floats, codes: Floats, margin: Floats, cost: Floats, chosen: Indices,
    scratch: Floats, out: Floats,
) -> None:  # fmt: skip
    """Write rows between the best evaluated ones and their queries: without one change, and with less of one number.

    `chosen` (candidates,) and `scratch` (3, features) are overwritten; `out` holds the base of each query where there are
    fewer rows.
    """
    features = codes.shape[2]
    floor, below, saving = scratch[0], scratch[1], scratch[2]
    for q in range(len(codes)):
        base = queries.base[q]
        for rank in range(len(chosen)):
            best = cheapest_of_other_set(codes[q], cost[q], base, chosen, rank)
            if best < 0:
                break
            chosen[rank] = best
            found, place = codes[q, best], rank * (features + LESS)
            for j in range(features):
                if found[j] != base[j]:
                    copy_to(out[q, place + j], found)
                    out[q, place + j, j] = base[j]
            write_floors(codes[q], margin[q], base, start[q], found, floor, below)
            saved_by(space, queries, q, found, floor, saving)
            for number in range(NUMBERS):
                j = 0
                for k in range(features):
                    j = k if saving[k] > saving[j] else j
                if saving[j] <= 0.0:
                    break
                first = place + features + number * (LESS // NUMBERS)
                write_less_of(space, queries, q, found, margin[q, best], j, floor[j], below[j], out[q], first)
                saving[j] = 0.0


@compiled
def is_among(rows: Floats, count: int, row: Floats) -> bool:
    """Return whether a row equals one of the first `count` rows."""
    for m in range(count):
        j = 0
        while j < len(row) and rows[m, j] == row[j]:
            j += 1
        if j == len(row):
            return True
    return False


@compiled
def keep_new(row: Floats, codes: Floats, evaluated: Mask, candidates: Floats, count: Indices) -> None:
    """Move to the front the candidates (queries, K, features) of each query that differ from it, from each other and from the
    rows (queries, M, features) that are `evaluated`; write how many these are."""
    for q in range(len(row)):
        count[q] = 0
        for k in range(candidates.shape[1]):
            one = candidates[q, k]
            if is_among(row[q : q + 1], 1, one) or is_among(candidates[q], count[q], one):
                continue
            known = False
            for m in range(codes.shape[1]):
                if evaluated[q, m] and is_among(codes[q, m : m + 1], 1, one):
                    known = True
                    break
            if not known:
                copy_to(candidates[q, count[q]], one)
                count[q] += 1
