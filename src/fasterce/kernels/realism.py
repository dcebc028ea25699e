"""Improve candidates of one query toward what is both near to the query and near to known rows of the target.

The objective of a candidate is its distance to the query plus a weight times its mean distance to the nearest known rows.
Features change one after another, those that are tied together at once: to the values of the query, to those of a known
row, or as far toward these as the target is reached.
"""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import TREES, Int64s, Queries, Scorer, Space, Trees
from fasterce.kernels.basics import copy_to, fill, lowest, sort_order
from fasterce.kernels.edits import at_precision, change_cost
from fasterce.kernels.jit import compiled
from fasterce.kernels.profile import Workspace, correction_of, row_margin, settle, target_margin
from fasterce.kernels.score import MISSING, add_entry, cell_of, leaf_of, network_outputs
from fasterce.kernels.state import allowed_count
from fasterce.typing import Floats, Mask

# A candidate counts as better only by more than rounding.
LEAST = 1e-9


class Known(NamedTuple):
    """Known rows of the target near each query, and how realism is measured by them."""

    rows: Floats
    """(queries, M, features)"""
    legal: Floats
    """The same rows with values a query may not have replaced by its own (queries, M, features)."""
    weight: Floats
    """Weight of the mean distance to the nearest known rows (queries,)."""
    change: float
    """Added per changed feature, in units of the distance to known rows."""
    neighbours: int
    """How many of the nearest are averaged."""
    numeric: Mask
    unit: Floats
    """Distance of one unit of a number, 0 for a category (features,)."""
    block: Int64s
    """Features, those that change together one after another (features,)."""
    block_start: Int64s
    """Where each set of features that change together begins in `block` (blocks + 1,)."""


class Improvement(NamedTuple):
    """Limits of the improvement of one candidate."""

    rounds: int
    """Most times all features are gone through."""
    values: int
    """Most values of a feature whose margin is computed."""
    halvings: int
    """Steps toward a value that does not reach the target."""


class Improved(NamedTuple):
    """Improved candidates per query, one for each kind of start."""

    codes: Floats
    """(queries, kinds, features)"""
    margin: Floats
    """Their margin, -inf for none (queries, kinds)."""


class Scratch(NamedTuple):
    """Arrays that are used again for every candidate."""

    state: Floats
    draft: Floats
    away: Floats
    """Distances of the state to the known rows."""
    attempt: Floats
    """Distances of the draft to the known rows."""
    nearest: Floats
    value: Floats
    """Objective for each value of a block; the last is the query's own."""
    sums: Floats
    """Sum of the costs of features that are not squared, of the squares of the others, and the objective (3,)."""
    best: Floats
    part: Floats
    """Cost of each block, negative."""
    order: Int64s


def scratch(features: int, known: int, neighbours: int) -> Scratch:
    """Return arrays for one candidate after another."""
    return Scratch(
        np.zeros(features),
        np.zeros(features),
        np.zeros(known),
        np.zeros(known),
        np.zeros(neighbours),
        np.zeros(known + 1),
        np.zeros(3),
        np.zeros(features),
        np.zeros(features),
        np.zeros(features, np.int64),
    )


@compiled
def gap_between(known: Known, j: int, one: float, other: float) -> float:
    """Return the distance of two values of a feature: the share of the range, or 1."""
    if one == other:
        return 0.0
    if not known.numeric[j] or MISSING in (one, other):
        return 1.0
    return abs(one - other) * known.unit[j]


@compiled
def mean_of_nearest(away: Floats, nearest: Floats) -> float:
    """Return the mean of the smallest distances, as many as `nearest` has room for."""
    count = len(nearest)
    fill(nearest, math.inf)
    for m in range(len(away)):
        if away[m] < nearest[count - 1]:
            place = count - 1
            while place > 0 and nearest[place - 1] > away[m]:
                nearest[place] = nearest[place - 1]
                place -= 1
            nearest[place] = away[m]
    total, there = 0.0, 0
    for k in range(count):
        if nearest[k] < math.inf:
            total += nearest[k]
            there += 1
    return total / max(there, 1)


@compiled
def begin(space: Space, queries: Queries, known: Known, q: int, kept: Scratch) -> None:
    """Write the distances and the objective of the state."""
    linear, squares = 0.0, 0.0
    each = known.change * known.weight[q]
    for j in range(len(kept.state)):
        part = change_cost(space, j, kept.state[j], queries.row[q, j])
        linear += each if kept.state[j] != queries.row[q, j] else 0.0
        if space.squared[j]:
            squares += part * part
        else:
            linear += part
    for m in range(len(kept.away)):
        kept.away[m] = 0.0
        for j in range(len(kept.state)):
            kept.away[m] += gap_between(known, j, kept.state[j], known.rows[q, m, j])
    kept.sums[0], kept.sums[1] = linear, squares
    kept.sums[2] = linear + math.sqrt(squares) + known.weight[q] * mean_of_nearest(kept.away, kept.nearest)


@compiled
def draft_objective(space: Space, queries: Queries, known: Known, q: int, kept: Scratch, first: int, end: int) -> float:
    """Return the objective of the draft, which differs from the state in one block."""
    linear, squares = kept.sums[0], kept.sums[1]
    each = known.change * known.weight[q]
    copy_to(kept.attempt, kept.away)
    for place in range(first, end):
        j = known.block[place]
        before, after = kept.state[j], kept.draft[j]
        if before == after:
            continue
        own = queries.row[q, j]
        linear += (each if after != own else 0.0) - (each if before != own else 0.0)
        old, new = change_cost(space, j, before, own), change_cost(space, j, after, own)
        if space.squared[j]:
            squares += new * new - old * old
        else:
            linear += new - old
        for m in range(len(kept.attempt)):
            there = known.rows[q, m, j]
            kept.attempt[m] += gap_between(known, j, after, there) - gap_between(known, j, before, there)
    return linear + math.sqrt(max(squares, 0.0)) + known.weight[q] * mean_of_nearest(kept.attempt, kept.nearest)


@compiled
def write_draft_trees(trees: Trees, space: Space, known: Known, work: Workspace, kept: Scratch, first: int, end: int) -> None:
    """Write the outputs of the draft to `work.edited`; of a single feature only the trees that split on it are followed."""
    for place in range(first, end):
        j = known.block[place]
        work.cells[j] = cell_of(trees, j, kept.draft[j])
    j = known.block[first]
    single = end - first == 1
    copy_to(work.edited, work.out)
    for k in range(space.tree_start[j] if single else 0, space.tree_start[j + 1] if single else len(trees.root)):
        t = space.tree[k] if single else k
        leaf, own = leaf_of(trees, trees.root[t], work.cells), work.leaf[t]
        if leaf != own:
            for output in range(len(work.edited)):
                work.edited[output] += trees.value[leaf, output] - trees.value[own, output]
    for place in range(first, end):
        j = known.block[place]
        work.cells[j] = cell_of(trees, j, kept.state[j])


@compiled
def draft_margin(
    scorer: Scorer, space: Space, queries: Queries, known: Known, q: int, work: Workspace, kept: Scratch, first: int, end: int
) -> float:  # fmt: skip
    """Return the margin of the draft; the workspace is prepared for the state."""
    if scorer.kind == TREES:
        write_draft_trees(scorer.trees, space, known, work, kept, first, end)
    else:
        copy_to(work.edited_hidden, work.hidden)
        for place in range(first, end):
            j = known.block[place]
            if kept.draft[j] != kept.state[j]:
                for h in range(len(work.hidden)):
                    work.edited_hidden[h] -= work.own[j, h]
                add_entry(scorer.network, j, kept.draft[j], 1.0, work.edited_hidden)
        network_outputs(scorer.network, work.edited_hidden, work.layer, work.edited)
    return target_margin(scorer, queries, q, work.edited, correction_of(queries, q, kept.draft))


@compiled
def write_block(queries: Queries, known: Known, q: int, kept: Scratch, first: int, end: int, value: int) -> bool:
    """Give a block of the draft the values of a known row, or of the query; return whether it differs from the state."""
    differs = False
    for place in range(first, end):
        j = known.block[place]
        own = queries.base[q, j]
        kept.draft[j] = own if value == len(kept.away) or not queries.free[q, j] else known.legal[q, value, j]
        differs |= kept.draft[j] != kept.state[j]
    return differs


@compiled
def accept(scorer: Scorer, space: Space, queries: Queries, known: Known, q: int, work: Workspace, kept: Scratch) -> None:
    """Make the draft the state."""
    copy_to(kept.state, kept.draft)
    begin(space, queries, known, q, kept)
    settle(scorer, work, kept.state)


@compiled
def toward(
    scorer: Scorer, space: Space, queries: Queries, known: Known, q: int, work: Workspace, kept: Scratch, first: int,
    end: int, value: int, tolerance: float, halvings: int,
) -> bool:  # fmt: skip
    """Move the numbers of a block as far toward a value that does not reach the target as possible, if that is better."""
    low, high = 0.0, 1.0
    for _ in range(halvings):
        share = (low + high) / 2
        write_block(queries, known, q, kept, first, end, value)
        for place in range(first, end):
            j = known.block[place]
            here, there = kept.state[j], kept.draft[j]
            if not space.numeric[j] or MISSING in (here, there):
                kept.draft[j] = here
            elif here != there:
                kept.draft[j] = at_precision(space, queries, q, j, here + share * (there - here))
        if draft_margin(scorer, space, queries, known, q, work, kept, first, end) > tolerance:
            low = share
            better = draft_objective(space, queries, known, q, kept, first, end) < kept.sums[2] - LEAST
            if better and allowed_count(space, kept.draft, queries.row[q]):
                copy_to(kept.best, kept.draft)
        else:
            high = share
    if low == 0.0:
        copy_to(kept.draft, kept.state)
        return False
    copy_to(kept.draft, kept.best)
    return draft_objective(space, queries, known, q, kept, first, end) < kept.sums[2] - LEAST


@compiled
def improve_block(
    scorer: Scorer, space: Space, queries: Queries, known: Known, q: int, work: Workspace, kept: Scratch, b: int,
    tolerance: float, limits: Improvement,
) -> bool:  # fmt: skip
    """Give a block of the state the values with the lowest objective that reach the target; return whether it changed."""
    first, end = known.block_start[b], known.block_start[b + 1]
    count = len(kept.away) + 1
    copy_to(kept.draft, kept.state)
    for value in range(count):
        kept.value[value] = math.inf
        if write_block(queries, known, q, kept, first, end, value):
            kept.value[value] = draft_objective(space, queries, known, q, kept, first, end)
    for turn in range(limits.values):
        value = lowest(kept.value, count)
        if kept.value[value] >= kept.sums[2] - LEAST:
            break
        write_block(queries, known, q, kept, first, end, value)
        if allowed_count(space, kept.draft, queries.row[q]):
            if draft_margin(scorer, space, queries, known, q, work, kept, first, end) > tolerance:
                accept(scorer, space, queries, known, q, work, kept)
                return True
            copy_to(kept.best, kept.state)
            if turn == 0 and toward(
                scorer, space, queries, known, q, work, kept, first, end, value, tolerance, limits.halvings
            ):
                accept(scorer, space, queries, known, q, work, kept)
                return True
        kept.value[value] = math.inf
    copy_to(kept.draft, kept.state)
    return False


@compiled
def improve_state(
    scorer: Scorer, space: Space, queries: Queries, known: Known, q: int, work: Workspace, kept: Scratch, tolerance: float,
    limits: Improvement,
) -> None:  # fmt: skip
    """Improve all blocks of the state in turn, those with the dearest changes first, while anything changes."""
    blocks = len(known.block_start) - 1
    for _ in range(limits.rounds):
        for b in range(blocks):
            kept.part[b] = 0.0
            for place in range(known.block_start[b], known.block_start[b + 1]):
                j = known.block[place]
                kept.part[b] -= change_cost(space, j, kept.state[j], queries.row[q, j])
        sort_order(kept.part, blocks, kept.order)
        moved = False
        for place in range(blocks):
            moved |= improve_block(scorer, space, queries, known, q, work, kept, kept.order[place], tolerance, limits)
        if not moved:
            return


@compiled
def improve_starts(
    scorer: Scorer, space: Space, queries: Queries, known: Known, starts: Floats, kind: Int64s, open_starts: Mask, first: int,
    end: int, work: Workspace, kept: Scratch, limits: Improvement, improved: Improved,
) -> None:  # fmt: skip
    """Improve, for queries first..end, the first start of each kind that reaches the target."""
    tolerance = scorer.error if scorer.exact else 0.0
    for q in range(first, end):
        for s in range(starts.shape[1]):
            if not open_starts[q, s] or improved.margin[q, kind[s]] > -math.inf:
                continue
            copy_to(kept.state, starts[q, s])
            if row_margin(scorer, queries, q, work, kept.state) <= tolerance:
                continue
            begin(space, queries, known, q, kept)
            improve_state(scorer, space, queries, known, q, work, kept, tolerance, limits)
            margin = row_margin(scorer, queries, q, work, kept.state)
            if margin > tolerance:
                copy_to(improved.codes[q, kind[s]], kept.state)
                improved.margin[q, kind[s]] = margin


@compiled
def write_away(known: Known, codes: Floats, first: int, end: int, kept: Scratch, away: Floats) -> None:
    """Write, for queries first..end, the mean distance of candidates (queries, R, features) to their nearest known rows."""
    for q in range(first, end):
        for r in range(codes.shape[1]):
            for m in range(len(kept.away)):
                kept.away[m] = 0.0
                for j in range(codes.shape[2]):
                    kept.away[m] += gap_between(known, j, codes[q, r, j], known.rows[q, m, j])
            away[q, r] = mean_of_nearest(kept.away, kept.nearest)


@compiled
def count_sharing(known: Known, query: Floats, codes: Floats, first: int, end: int, count: Int64s) -> None:
    """Write, for queries first..end, how many known rows have all values that candidates (queries, R, features) changed."""
    for q in range(first, end):
        for r in range(codes.shape[1]):
            count[q, r] = 0
            for m in range(known.rows.shape[1]):
                same = True
                for j in range(codes.shape[2]):
                    if codes[q, r, j] != query[q, j] and codes[q, r, j] != known.rows[q, m, j]:
                        same = False
                        break
                if same:
                    count[q, r] += 1
