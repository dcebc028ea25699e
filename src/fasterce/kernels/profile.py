"""The margins of all single edits of a row, in one pass over the trees or the network."""

import math
from typing import NamedTuple

import numpy as np

from fasterce.kernels.arrays import (
    EXPONENTIAL,
    IDENTITY,
    RELU,
    TREES,
    Int32s,
    Int64s,
    Network,
    Queries,
    Scorer,
    Space,
    Trees,
    Words,
)
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
    """Entry of the value in the first layer of a network, its exponential if that is the activation, (H, edits)."""
    middle: Int64s
    """First edit of each number with a value above that of the base (features,)."""
    last: Int64s
    """End of the edits of each feature that are values; that of a number that becomes missing comes after it (features,)."""
    low: Int64s
    high: Int64s
    """The edits of each feature that are scored: low..high, and `gap` (features,)."""
    gap: Mask
    """Whether the edit of a number that becomes missing is scored (features,)."""


class Workspace(NamedTuple):
    """Arrays that are used again for every query of a block."""

    edits: Edits
    margin: Floats
    """Margins of all edits of a state."""
    total: Floats
    """Distances of a state with each edit of a linked feature and all that follows from it, infinite if that is not legal."""
    out: Floats
    """Outputs of a state."""
    edited: Floats
    """Outputs of an edit."""
    cells: Int64s
    delta: Floats
    """Change of the outputs per cell of each feature (cells, outputs)."""
    leaf: Int64s
    """Leaf of a state in each tree (trees,)."""
    touched: Int64s
    """The last tree in whose path a feature was met (features + 1,); the last is the number of paths so far."""
    stack: Int64s
    mask: Words
    path: Int64s
    """Per feature: first and last cell, and whether missing, that take the path of the row so far (features, 3)."""
    cell_range: Int64s
    """The same before the first split (features, 3)."""
    path_mask: Words
    hidden: Floats
    edited_hidden: Floats
    own: Floats
    """Entries of the values of a state (features, H)."""
    settled: Floats
    """The values these entries, and these cells, belong to (features,)."""
    place: Int64s
    """Where the scored edits of each feature begin in `before` (features,)."""
    line: Floats
    """What one hidden unit receives with each scored edit."""
    before: Floats
    after: Floats
    """What the units of two layers receive with each scored edit (widest layer after the first, edits)."""
    layer: Floats
    """Activations of two layers of one state (2, widest layer)."""


def workspace(scorer: Scorer, space: Space) -> Workspace:
    """Return arrays large enough for any query."""
    features, outputs = len(space.numeric), scorer.outputs
    count = int(len(space.level) + space.category_start[-1] + 6 * features)
    hidden = len(scorer.network.bias)
    widest = int(max([hidden, *scorer.network.width.tolist()])) if len(scorer.network.width) else hidden
    later = int(max(scorer.network.width.tolist(), default=hidden))
    room = count if scorer.kind != TREES else 0
    edits = Edits(
        np.zeros(count),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(features + 1, np.int64),
        np.zeros((hidden, room)),
        np.zeros(features, np.int64),
        np.zeros(features, np.int64),
        np.zeros(features, np.int64),
        np.zeros(features, np.int64),
        np.zeros(features, np.bool_),
    )
    return Workspace(
        edits=edits,
        margin=np.zeros(count),
        total=np.zeros(count),
        out=np.zeros(outputs),
        edited=np.zeros(outputs),
        cells=np.zeros(features, np.int64),
        delta=np.zeros((int(space.cell_start[-1]) if scorer.kind == TREES else 0, outputs)),
        leaf=np.zeros(len(scorer.trees.root), np.int64),
        touched=np.zeros(features + 1, np.int64),
        stack=np.zeros((4 * scorer.trees.depth + 16, 4), np.int64),
        mask=np.zeros(4 * scorer.trees.depth + 16, np.uint64),
        path=np.zeros((features, 3), np.int64),
        cell_range=np.zeros((features, 3), np.int64),
        path_mask=np.zeros(features, np.uint64),
        hidden=np.zeros(hidden),
        edited_hidden=np.zeros(hidden),
        own=np.zeros((features, hidden)),
        settled=np.full(features, np.nan),
        place=np.zeros(features, np.int64),
        line=np.zeros(room),
        before=np.zeros((later, room)),
        after=np.zeros((later if len(scorer.network.width) > 1 else 0, room)),
        layer=np.zeros((2, widest)),
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
def number_step(
    trees: Trees, work: Workspace, cells: Int64s, own: int, node: int, f: int, first: int, last: int, left: bool
) -> None:
    """Follow the cells of number f that leave the path of the row at a node, and keep those that stay on it."""
    path, edge, every = work.path, trees.cell[node], np.uint64(0)
    low, high = path[f, 0], path[f, 1]
    away = 1 if path[f, 2] == 1 and trees.missing_left[node] != left else 0
    if left:
        if edge < high or away == 1:
            descend(
                trees, work, first, cells, own, trees.right[node], f, max(low, edge + 1), high, away, every, 0, True, last
            )
            path[f, 1] = min(high, edge)
    elif low <= edge or away == 1:
        descend(trees, work, first, cells, own, trees.left[node], f, low, min(high, edge), away, every, 0, True, last)
        path[f, 0] = max(low, edge + 1)
    if away == 1:
        path[f, 2] = 0


@compiled
def category_step(
    trees: Trees, space: Space, work: Workspace, cells: Int64s, own: int, node: int, f: int, base: int, left: bool,
    fresh: bool,
) -> None:  # fmt: skip
    """Follow the categories of feature f that leave the path of the row at a node, and keep those that stay on it."""
    every = np.uint64(0xFFFFFFFFFFFFFFFF)
    first = space.cell_start[f]
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
    feature, lefts, rights, touched, path = trees.feature, trees.left, trees.right, work.touched, work.path
    categories, edges, numeric, starts = trees.categories, trees.cell, space.numeric, space.cell_start
    own, node = work.leaf[t], trees.root[t]
    touched[len(changing)] += 1
    turn = touched[len(changing)]
    while feature[node] >= 0:
        f = feature[node]
        plain = categories[node] < 0 and cells[f] != NO_CELL
        left = cells[f] <= edges[node] if plain else goes_left(trees, node, cells[f])
        if changing[f]:
            first, end = starts[f], starts[f + 1]
            fresh = touched[f] != turn
            touched[f] = turn
            if not numeric[f]:
                if end - first > base * WORD:
                    category_step(trees, space, work, cells, own, node, f, base, left, fresh)
            elif base == 0:
                if fresh:
                    for k in range(3):
                        path[f, k] = work.cell_range[f, k]
                number_step(trees, work, cells, own, node, f, first, end - first - 1, left)
        node = lefts[node] if left else rights[node]


@compiled
def clear_deltas(space: Space, work: Workspace, cells: Int64s, j: int) -> None:
    """Clear the deltas of the cells of feature j that are scored, and note which these are."""
    edits, delta = work.edits, work.delta
    first, end = space.cell_start[j], space.cell_start[j + 1]
    if not space.numeric[j]:
        for place in range(first, end):
            fill(delta[place], 0.0)
        return
    low, high = cells[j], cells[j]
    if edits.low[j] < edits.high[j]:
        nearest, farthest = edits.cell[edits.low[j]], edits.cell[edits.high[j] - 1]
        low, high = (nearest, farthest) if low == NO_CELL else (min(low, nearest), max(high, farthest))
    elif low == NO_CELL:
        low, high = 0, -1
    work.cell_range[j, 0], work.cell_range[j, 1] = low, high
    work.cell_range[j, 2] = 1 if edits.gap[j] and cells[j] != NO_CELL else 0
    for place in range(first + low, first + high + 2):
        fill(delta[place], 0.0)
    fill(delta[end - 1], 0.0)


@compiled
def tree_profile(trees: Trees, space: Space, work: Workspace, cells: Int64s, changing: Mask) -> None:
    """Write to `work.delta` how the outputs change if one of the `changing` features moves to another cell."""
    features = len(changing)
    count, only = 0, 0
    for j in range(features):
        if changing[j]:
            count, only = count + 1, j
            clear_deltas(space, work, cells, j)
    for base in range(max(1, space.words)):
        if count == 1:
            for k in range(space.tree_start[only], space.tree_start[only + 1]):
                tree_deltas(trees, space, work, cells, changing, space.tree[k], base)
        elif count > 1:
            for t in range(len(trees.root)):
                tree_deltas(trees, space, work, cells, changing, t, base)
    for j in range(features):
        if changing[j] and space.numeric[j]:
            first = space.cell_start[j]
            for k in range(work.delta.shape[1]):
                total = 0.0
                for place in range(first + work.cell_range[j, 0], first + work.cell_range[j, 1] + 1):
                    total += work.delta[place, k]
                    work.delta[place, k] = total


@compiled
def place_edits(work: Workspace, changing: Mask) -> int:
    """Write where the scored edits of each feature begin in `work.before`; return the number of all."""
    edits, count = work.edits, 0
    for j in range(len(changing)):
        if changing[j]:
            work.place[j] = count
            count += edits.high[j] - edits.low[j] + (1 if edits.gap[j] else 0)
    return count


@compiled
def hidden_values(work: Workspace, changing: Mask, h: int, line: Floats) -> None:
    """Write what hidden unit h receives with each scored edit of the `changing` features."""
    edits, entry = work.edits, work.edits.entry
    for j in range(len(changing)):
        if not changing[j]:
            continue
        rest, low, first = work.hidden[h] - work.own[j, h], edits.low[j], work.place[j]
        size = edits.high[j] - low
        for e in range(size):
            line[first + e] = rest + entry[h, low + e]
        if edits.gap[j]:
            line[first + size] = rest + entry[h, edits.last[j]]


@compiled
def activate_line(kind: int, line: Floats, size: int) -> None:
    if kind == RELU:
        for e in range(size):
            line[e] = line[e] if line[e] > 0.0 else 0.0
    else:
        for e in range(size):
            line[e] = activate(kind, line[e])


@compiled
def add_rectified(network: Network, work: Workspace, j: int) -> None:
    """Add what the only output receives from all rectified units with each scored edit of feature j, four units at a time."""
    edits, weights, hidden = work.edits, network.weights, work.hidden
    low, size = edits.low[j], edits.high[j] - edits.low[j]
    out = work.before[0, work.place[j] : work.place[j] + size + (1 if edits.gap[j] else 0)]
    whole = len(hidden) - len(hidden) % 4
    for h in range(0, whole, 4):
        ra, rb = hidden[h] - work.own[j, h], hidden[h + 1] - work.own[j, h + 1]
        rc, rd = hidden[h + 2] - work.own[j, h + 2], hidden[h + 3] - work.own[j, h + 3]
        wa, wb, wc, wd = weights[h], weights[h + 1], weights[h + 2], weights[h + 3]
        a, b = edits.entry[h, low : low + size], edits.entry[h + 1, low : low + size]
        c, d = edits.entry[h + 2, low : low + size], edits.entry[h + 3, low : low + size]
        for e in range(size):
            total = out[e] + wa * rectified(ra + a[e]) + wb * rectified(rb + b[e])
            out[e] = total + wc * rectified(rc + c[e]) + wd * rectified(rd + d[e])
    for h in range(whole, len(hidden)):
        rest, entry = hidden[h] - work.own[j, h], edits.entry[h, low : low + size]
        for e in range(size):
            out[e] += weights[h] * rectified(rest + entry[e])
    if edits.gap[j]:
        for h in range(len(hidden)):
            out[size] += weights[h] * rectified(hidden[h] - work.own[j, h] + edits.entry[h, edits.last[j]])


@compiled
def rectified(value: float) -> float:
    return value if value > 0.0 else 0.0


@compiled
def add_exponentials(network: Network, work: Workspace, j: int, h: int, width: int) -> None:
    """Add what the second layer receives from exponential unit h with each scored edit of feature j.

    The exponential of a sum is the product of exponentials: those of the entries are known.
    """
    edits, entry, before, first = work.edits, work.edits.entry, work.before, work.place[j]
    rest, low = math.exp(work.hidden[h] - work.own[j, h]), edits.low[j]
    size = edits.high[j] - low
    for k in range(width):
        factor = network.weights[h * width + k] * rest
        for e in range(size):
            before[k, first + e] += factor * entry[h, low + e]
        if edits.gap[j]:
            before[k, first + size] += factor * entry[h, edits.last[j]]


@compiled
def first_layer(network: Network, work: Workspace, changing: Mask, count: int) -> None:
    """Write what the units of the second layer receive with each of `count` scored edits to `work.before`.

    The activations of the first layer are not kept: all of them do not fit into the processor's cache.
    """
    before, line, weights, width = work.before, work.line, network.weights, network.width[0]
    for k in range(width):
        fill(before[k, :count], network.offsets[k])
    if width == 1 and network.activation == RELU:
        for j in range(len(changing)):
            if changing[j]:
                add_rectified(network, work, j)
        return
    if network.activation == EXPONENTIAL:
        for j in range(len(changing)):
            for h in range(len(work.hidden) if changing[j] else 0):
                add_exponentials(network, work, j, h, width)
        return
    for h in range(len(work.hidden)):
        hidden_values(work, changing, h, line)
        activate_line(network.activation, line, count)
        for k in range(width):
            factor = weights[h * width + k]
            for e in range(count):
                before[k, e] += factor * line[e]


@compiled
def network_profile(network: Network, work: Workspace, changing: Mask, outputs: int) -> None:
    """Write to `work.before` the outputs (outputs, edits) if one of the `changing` features takes each scored value."""
    before, after, weights = work.before, work.after, network.weights
    count = place_edits(work, changing)
    layers = len(network.width)
    if layers == 0:
        for h in range(outputs):
            hidden_values(work, changing, h, before[h])
        return
    first_layer(network, work, changing, count)
    size, weight, offset = network.width[0], len(work.hidden) * network.width[0], network.width[0]
    for layer in range(1, layers):
        width = network.width[layer]
        for h in range(size):
            activate_line(network.activation, before[h], count)
        for k in range(width):
            bias = network.offsets[offset + k]
            for e in range(count):
                after[k, e] = bias
            for h in range(size):
                factor = weights[weight + h * width + k]
                for e in range(count):
                    after[k, e] += factor * before[h, e]
        weight, offset, size = weight + size * width, offset + width, width
        before, after = after, before
    if layers % 2 == 0:
        for k in range(outputs):
            for e in range(count):
                work.before[k, e] = before[k, e]


@compiled
def settle(scorer: Scorer, work: Workspace, codes: Floats) -> None:
    """Prepare the workspace for a state: its cells, or its entries and hidden state, and write its outputs."""
    settled, moved = work.settled, False
    for j in range(len(codes)):
        if settled[j] != codes[j]:
            settled[j], moved = codes[j], True
            if scorer.kind == TREES:
                work.cells[j] = cell_of(scorer.trees, j, codes[j])
            else:
                fill(work.own[j], 0.0)
                add_entry(scorer.network, j, codes[j], 1.0, work.own[j])
    if not moved:
        return
    if scorer.kind == TREES:
        add_trees(scorer.trees, work.cells, work.out, work.leaf)
        return
    copy_to(work.hidden, scorer.network.bias)
    for j in range(len(codes)):
        for h in range(len(work.hidden)):
            work.hidden[h] += work.own[j, h]
    network_outputs(scorer.network, work.hidden, work.layer, work.out)


@compiled
def target_margin(scorer: Scorer, queries: Queries, q: int, out: Floats, corrected: float) -> float:
    """Return the margin of query q from outputs; `corrected` is the sum of corrections of the changed features."""
    added = queries.shift[q] + corrected
    if queries.kind == WITHIN:
        low, high = queries.low[q] - added, queries.high[q] - added
        return margin_of(scorer, out, queries.kind, queries.label[q], low, high, queries.lowest) - queries.need[q]
    return margin_of(scorer, out, queries.kind, queries.label[q], 0.0, 0.0, queries.lowest) + added - queries.need[q]


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
    """Write the margins of the edits of feature j where the only output is the lead of the second class, or a number."""
    edits, margin = work.edits, work.margin
    low, high, last, gap = edits.low[j], edits.high[j], edits.last[j], edits.gap[j]
    if scorer.kind == TREES:
        own, first, missing = work.out[0], space.cell_start[j], space.cell_start[j + 1] - 1
        cell, delta = edits.cell, work.delta
        for e in range(low, high):
            margin[e] = own + delta[first + cell[e], 0]
        if gap:
            margin[last] = own + delta[missing, 0]
    else:
        before, first = work.before, work.place[j]
        for e in range(low, high):
            margin[e] = before[0, first + e - low]
        if gap:
            margin[last] = before[0, first + high - low]
    sign = -1.0 if queries.label[q] == 0 else 1.0
    added, need = queries.shift[q] + corrected, queries.need[q]
    if queries.kind == WITHIN:
        least, most = queries.low[q] - added, queries.high[q] - added
        for e in range(low, high):
            lead = sign * margin[e]
            margin[e] = min(lead - least, most - lead) - need
        if gap:
            margin[last] = min(sign * margin[last] - least, most - sign * margin[last]) - need
        return
    added -= need
    if queries.kind == OTHER:
        sign = -sign
    for e in range(low, high):
        margin[e] = sign * margin[e] + added
    if gap:
        margin[last] = sign * margin[last] + added


@compiled
def edit_margin(
    scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, j: int, e: int, corrected: float
) -> float:
    """Return the margin of a scored edit of feature j from the profile."""
    out, edits = work.edited, work.edits
    missing = e == edits.last[j]
    if scorer.kind == TREES:
        place = space.cell_start[j + 1] - 1 if missing else space.cell_start[j] + edits.cell[e]
        for k in range(scorer.outputs):
            out[k] = work.out[k] + work.delta[place, k]
    else:
        place = work.place[j] + (edits.high[j] if missing else e) - edits.low[j]
        for k in range(scorer.outputs):
            out[k] = work.before[k, place]
    return target_margin(scorer, queries, q, out, corrected)


@compiled
def profile(scorer: Scorer, space: Space, queries: Queries, q: int, work: Workspace, codes: Floats, changing: Mask) -> float:
    """Write the margins of the scored edits of the `changing` features of a state to `work.margin`; return its own."""
    own = row_margin(scorer, queries, q, work, codes)
    edits, outputs = work.edits, scorer.outputs
    corrected = correction_of(queries, q, codes)
    if scorer.kind == TREES:
        tree_profile(scorer.trees, space, work, work.cells, changing)
    else:
        network_profile(scorer.network, work, changing, outputs)
    for j in range(len(changing)):
        if not changing[j]:
            continue
        with_own = corrected + (0.0 if codes[j] != queries.base[q, j] else queries.correction[q, j])
        if outputs == 1 and scorer.link == IDENTITY:
            plain_margins(scorer, space, queries, q, work, j, with_own)
            continue
        for e in range(edits.low[j], edits.high[j]):
            work.margin[e] = edit_margin(scorer, space, queries, q, work, j, e, with_own)
        if edits.gap[j]:
            work.margin[edits.last[j]] = edit_margin(scorer, space, queries, q, work, j, edits.last[j], with_own)
    return own


__all__ = ["MISSING", "Edits", "Int32s", "Workspace", "profile", "row_margin", "workspace"]
