"""The margins of all single edits of a row, in one pass over the trees or the network."""

from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import IDENTITY, TREES, Int32s, Int64s, Network, Queries, Scorer, Space, Trees, Words
from fasterce.kernels.basics import copy_to, fill
from fasterce.kernels.jit import compiled
from fasterce.kernels.score import (
    MISSING,
    NO_CELL,
    OTHER,
    WITHIN,
    WORD,
    activate,
    add_entry,
    add_trees,
    cell_of,
    goes_left,
    leaf_of,
    margin_of,
    network_outputs,
)
from fasterce.typing import Floats, Mask


class Edits(NamedTuple):
    """The single edits of a query, grouped by feature; arrays have room for the most a query can have."""

    value: Floats
    cell: Int64s
    """Cell of the value, for trees."""
    cost: Floats
    """Cost of the feature if it has this value."""
    first: Int64s
    """First edit of each feature (features + 1,)."""
    entry: Floats
    """Entry of the value in the first layer of a network, (H, edits)."""


class Workspace(NamedTuple):
    """Arrays that are used again for every query of a block."""

    edits: Edits
    margin: Floats
    """Margins of all edits of a state."""
    out: Floats
    """Outputs of a state."""
    edited: Floats
    """Outputs of an edit."""
    cells: Int64s
    delta: Floats
    """Change of the outputs per cell of each feature (cells, outputs)."""
    touched: Mask
    stack: Int64s
    mask: Words
    path: Int64s
    """Per feature: first and last cell, and whether missing, that take the path of the row so far (features, 3)."""
    path_mask: Words
    hidden: Floats
    edited_hidden: Floats
    own: Floats
    """Entries of the values of a state (features, H)."""
    before: Floats
    after: Floats
    """Activations of two layers for all edits (widest layer, edits)."""


def workspace(scorer: Scorer, space: Space) -> Workspace:
    """Return arrays large enough for any query."""
    features, outputs = len(space.numeric), scorer.outputs
    count = int(len(space.level) + space.category_start[-1] + 4 * features)
    hidden = len(scorer.network.bias)
    widest = int(max([hidden, *scorer.network.width.tolist()])) if len(scorer.network.width) else hidden
    room = count if scorer.kind != TREES else 0
    edits = Edits(
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(features + 1, np.int64),
        np.zeros((hidden, room)),
    )
    return Workspace(
        edits=edits,
        margin=np.zeros(count),
        out=np.zeros(outputs),
        edited=np.zeros(outputs),
        cells=np.zeros(features, np.int64),
        delta=np.zeros((int(space.cell_start[-1]) if scorer.kind == TREES else 0, outputs)),
        touched=np.zeros(features, np.bool_),
        stack=np.zeros((4 * scorer.trees.depth + 16, 4), np.int64),
        mask=np.zeros(4 * scorer.trees.depth + 16, np.uint64),
        path=np.zeros((features, 4), np.int64),
        path_mask=np.zeros(features, np.uint64),
        hidden=np.zeros(hidden),
        edited_hidden=np.zeros(hidden),
        own=np.zeros((features, hidden)),
        before=np.zeros((widest, room)),
        after=np.zeros((widest, room)),
    )


@compiled
def add_leaf(trees: Trees, leaf: int, own: int, first: int, low: int, high: int, last: int, delta: Floats) -> None:
    """Add the change of a tree's outputs to the cells low..high of a number, as differences, and to missing."""
    for k in range(delta.shape[1]):
        change = trees.value[leaf, k] - trees.value[own, k]
        if low <= high:
            delta[first + low, k] += change
            delta[first + high + 1, k] -= change
        if last >= 0:
            delta[first + last, k] += change


@compiled
def descend(
    trees: Trees, work: Workspace, first: int, cells: Int64s, own: int, node: int, f: int, low: int, high: int, missing: int,
    mask: np.uint64, base: int, numeric: bool, last: int,
) -> None:  # fmt: skip
    """Follow all values of feature f in a set (cells low..high and missing, or the categories of a mask) from a node."""
    stack, masks = work.stack, work.mask
    feature, edges, lefts, rights, miss = trees.feature, trees.cell, trees.left, trees.right, trees.missing_left
    top = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = node, low, high, missing
    masks[0] = mask
    while top >= 0:
        node, low, high, missing = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        mask = masks[top]
        top -= 1
        while feature[node] >= 0:
            g = feature[node]
            if g != f:
                node = lefts[node] if goes_left(trees, node, cells[g]) else rights[node]
                continue
            if numeric:
                edge = edges[node]
                miss_left = missing == 1 and miss[node]
                miss_right = missing == 1 and not miss[node]
                some_left, some_right = low <= min(high, edge) or miss_left, max(low, edge + 1) <= high or miss_right
                if some_left and some_right:
                    top += 1
                    stack[top, 0], stack[top, 1], stack[top, 2] = rights[node], max(low, edge + 1), high
                    stack[top, 3] = 1 if miss_right else 0
                    high, missing, node = min(high, edge), 1 if miss_left else 0, lefts[node]
                elif some_left:
                    high, missing, node = min(high, edge), 1 if miss_left else 0, lefts[node]
                else:
                    low, missing, node = max(low, edge + 1), 1 if miss_right else 0, rights[node]
            else:
                left = mask & trees.left_categories[trees.categories[node] + base]
                right = mask & ~trees.left_categories[trees.categories[node] + base]
                if left != 0 and right != 0:
                    top += 1
                    stack[top, 0] = rights[node]
                    masks[top] = right
                    mask, node = left, lefts[node]
                elif left != 0:
                    node = lefts[node]
                else:
                    node = rights[node]
        if numeric:
            add_leaf(trees, node, own, first, low, high, last if missing == 1 else -1, work.delta)
        else:
            position = first + base * WORD
            while mask != 0:
                if mask & np.uint64(1):
                    for k in range(work.delta.shape[1]):
                        work.delta[position, k] += trees.value[node, k] - trees.value[own, k]
                mask >>= np.uint64(1)
                position += 1


@compiled
def path_step(
    trees: Trees,
    space: Space,
    work: Workspace,
    cells: Int64s,
    own: int,
    node: int,
    f: int,
    base: int,
    left: bool,
    fresh: bool,
) -> None:
    """Follow the values of feature f that leave the path of the row at a node, and keep those that stay on it."""
    path, every = work.path, np.uint64(0xFFFFFFFFFFFFFFFF)
    first = space.cell_start[f]
    if space.numeric[f]:
        last = space.cell_start[f + 1] - first - 1
        if fresh:
            path[f, 0], path[f, 1], path[f, 2] = 0, last - 2, 0 if cells[f] == NO_CELL else 1
        edge = trees.cell[node]
        low, high = path[f, 0], path[f, 1]
        if left:
            away = 1 if path[f, 2] == 1 and not trees.missing_left[node] else 0
            if max(low, edge + 1) <= high or away == 1:
                descend(
                    trees,
                    work,
                    first,
                    cells,
                    own,
                    trees.right[node],
                    f,
                    max(low, edge + 1),
                    high,
                    away,
                    every,
                    base,
                    True,
                    last,
                )
            path[f, 1] = min(high, edge)
        else:
            away = 1 if path[f, 2] == 1 and trees.missing_left[node] else 0
            if low <= min(high, edge) or away == 1:
                descend(
                    trees, work, first, cells, own, trees.left[node], f, low, min(high, edge), away, every, base, True, last
                )
            path[f, 0] = max(low, edge + 1)
        if away == 1:
            path[f, 2] = 0
        return
    count = space.cell_start[f + 1] - first - base * WORD
    if fresh:
        work.path_mask[f] = every if count >= WORD else (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    lefts = trees.left_categories[trees.categories[node] + base]
    away_mask = work.path_mask[f] & (~lefts if left else lefts)
    if away_mask != 0:
        child = trees.right[node] if left else trees.left[node]
        descend(trees, work, first, cells, own, child, f, 0, -1, 0, away_mask, base, False, -1)
    work.path_mask[f] &= lefts if left else ~lefts


@compiled
def tree_deltas(trees: Trees, space: Space, work: Workspace, cells: Int64s, changing: Mask, t: int, base: int) -> None:
    """Add how the outputs of one tree change if one of the `changing` features moves to another cell."""
    feature, lefts, rights = trees.feature, trees.left, trees.right
    own, node = leaf_of(trees, trees.root[t], cells), trees.root[t]
    fill(work.touched, False)
    while feature[node] >= 0:
        f = feature[node]
        left = goes_left(trees, node, cells[f])
        if changing[f]:
            follows = base == 0 if space.numeric[f] else space.cell_start[f + 1] - space.cell_start[f] > base * WORD
            if follows:
                path_step(trees, space, work, cells, own, node, f, base, left, not work.touched[f])
                work.touched[f] = True
        node = lefts[node] if left else rights[node]


@compiled
def tree_profile(trees: Trees, space: Space, work: Workspace, cells: Int64s, changing: Mask) -> None:
    """Write to `work.delta` how the outputs change if one of the `changing` features moves to another cell."""
    features = len(changing)
    count, only = 0, 0
    for j in range(features):
        if changing[j]:
            count, only = count + 1, j
            for place in range(space.cell_start[j], space.cell_start[j + 1]):
                fill(work.delta[place], 0.0)
    for base in range(max(1, space.words)):
        if count == 1:
            for k in range(space.tree_start[only], space.tree_start[only + 1]):
                tree_deltas(trees, space, work, cells, changing, space.tree[k], base)
        else:
            for t in range(len(trees.root)):
                tree_deltas(trees, space, work, cells, changing, t, base)
    for j in range(features):
        if changing[j] and space.numeric[j]:
            for k in range(work.delta.shape[1]):
                total = 0.0
                for place in range(space.cell_start[j], space.cell_start[j + 1] - 2):
                    total += work.delta[place, k]
                    work.delta[place, k] = total


@compiled
def network_profile(network: Network, work: Workspace, changing: Mask, outputs: int) -> None:
    """Write to `work.before` the outputs (outputs, edits) if one of the `changing` features takes each of its values."""
    edits, before, after = work.edits, work.before, work.after
    first, entry, hidden, own = edits.first, edits.entry, work.hidden, work.own
    layers = len(network.width)
    for h in range(len(hidden)):
        for j in range(len(changing)):
            if changing[j]:
                rest = hidden[h] - own[j, h]
                for e in range(first[j], first[j + 1]):
                    before[h, e] = rest + entry[h, e]
    if layers == 0:
        return
    low, high = edits.first[len(changing)], 0
    for j in range(len(changing)):
        if changing[j]:
            low, high = min(low, edits.first[j]), edits.first[j + 1]
    weights = network.weights
    size, weight, offset = len(work.hidden), 0, 0
    for layer in range(layers):
        width = network.width[layer]
        for h in range(size):
            if network.activation == 0:
                for e in range(low, high):
                    before[h, e] = max(before[h, e], 0.0)
            else:
                for e in range(low, high):
                    before[h, e] = activate(network.activation, before[h, e])
        for k in range(width):
            for e in range(low, high):
                after[k, e] = network.offsets[offset + k]
            for h in range(size):
                factor = weights[weight + h * width + k]
                for e in range(low, high):
                    after[k, e] += factor * before[h, e]
        weight, offset, size = weight + size * width, offset + width, width
        for k in range(width):
            for e in range(low, high):
                before[k, e] = after[k, e]


@compiled
def settle(scorer: Scorer, work: Workspace, codes: Floats) -> None:
    """Prepare the workspace for a state: its cells, or its entries and hidden state, and write its outputs."""
    if scorer.kind == TREES:
        for j in range(len(codes)):
            work.cells[j] = cell_of(scorer.trees, j, codes[j])
        add_trees(scorer.trees, work.cells, work.out)
        return
    copy_to(work.hidden, scorer.network.bias)
    for j in range(len(codes)):
        fill(work.own[j], 0.0)
        add_entry(scorer.network, j, codes[j], 1.0, work.own[j])
        for h in range(len(work.hidden)):
            work.hidden[h] += work.own[j, h]
    network_outputs(scorer.network, work.hidden, work.out)


@compiled
def target_margin(scorer: Scorer, queries: Queries, q: int, out: Floats, corrected: float) -> float:
    """Return the margin of query q from outputs; `corrected` is the sum of corrections of the changed features."""
    found = margin_of(scorer, out, queries.kind, queries.label[q], queries.low[q], queries.high[q], queries.lowest)
    return found + queries.shift[q] + corrected - queries.need[q]


@compiled
def correction_of(queries: Queries, q: int, codes: Floats) -> float:
    total = 0.0
    for j in range(len(codes)):
        if codes[j] != queries.base[q, j]:
            total += queries.correction[q, j]
    return total


@compiled
def row_margin(scorer: Scorer, queries: Queries, q: int, work: Workspace, codes: Floats) -> float:
    """Return the margin of a state; the workspace is prepared for it."""
    settle(scorer, work, codes)
    return target_margin(scorer, queries, q, work.out, correction_of(queries, q, codes))


@compiled
def plain_margins(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, j: int, corrected: float) -> None:
    """Write the margins of the edits of feature j where the only output is the lead of the second class."""
    edits, margin = work.edits, work.margin
    sign = 1.0 if (queries.label[q] == 1) != (queries.kind == OTHER) else -1.0
    added = queries.shift[q] + corrected - queries.need[q]
    if scorer.kind == TREES:
        own, first, missing = work.out[0], space.cell_start[j], space.cell_start[j + 1] - 1
        cell, delta = edits.cell, work.delta
        for e in range(edits.first[j], edits.first[j + 1]):
            place = first + cell[e] if cell[e] != NO_CELL else missing
            margin[e] = sign * (own + delta[place, 0]) + added
    else:
        before = work.before
        for e in range(edits.first[j], edits.first[j + 1]):
            margin[e] = sign * before[0, e] + added


@compiled
def profile(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, codes: Floats, changing: Mask) -> float:
    """Write the margin of every edit of the `changing` features of a state to `work.margin`; return that of the state."""
    own = row_margin(scorer, queries, q, work, codes)
    edits, outputs = work.edits, scorer.outputs
    corrected = correction_of(queries, q, codes)
    out = work.edited
    if scorer.kind == TREES:
        tree_profile(scorer.trees, space, work, work.cells, changing)
    else:
        network_profile(scorer.network, work, changing, outputs)
    for j in range(len(changing)):
        if not changing[j]:
            continue
        with_own = corrected + (0.0 if codes[j] != queries.base[q, j] else queries.correction[q, j])
        if outputs == 1 and scorer.link == IDENTITY and queries.kind != WITHIN:
            plain_margins(scorer, space, queries, q, work, j, with_own)
            continue
        for e in range(edits.first[j], edits.first[j + 1]):
            if scorer.kind == TREES:
                cell = edits.cell[e]
                place = space.cell_start[j] + cell if cell != NO_CELL else space.cell_start[j + 1] - 1
                for k in range(outputs):
                    out[k] = work.out[k] + work.delta[place, k]
            else:
                for k in range(outputs):
                    out[k] = work.before[k, e]
            work.margin[e] = target_margin(scorer, queries, q, out, with_own)
    return own


__all__ = ["MISSING", "Edits", "Int32s", "Workspace", "profile", "row_margin", "workspace"]
