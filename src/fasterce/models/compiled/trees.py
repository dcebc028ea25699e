"""Trees that split the last step's columns, as trees that split features by their codes."""

from dataclasses import replace

import numpy as np

from fasterce.kernels.arrays import Trees, Words
from fasterce.models.compiled.columns import CONSTANT, Columns
from fasterce.models.compiled.form import OutputMap
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.read_trees import LEAF, NO_SET, ZERO, ModelTrees
from fasterce.typing import Floats, Indices, Mask, Objects

WORD = 64


def trees_on_codes(model: ModelTrees, columns: Columns, outputs: OutputMap) -> Trees:
    """Return the same trees on codes; raises `NotCompiledError`."""
    return _Translation(_with_zero_bands(model, columns), columns).trees(outputs)


def _with_zero_bands(model: ModelTrees, columns: Columns) -> ModelTrees:
    """Return trees with two more splits per number split where zero counts as missing and goes the other way.

    The child on zero's side of the threshold is reached from both: values up to the band of zeros, and beyond it.
    """
    numeric = np.array([feature.numeric for feature in columns.table.schema.features])
    owner = columns.owner[model.column]
    number = (model.column != LEAF) & (owner != CONSTANT) & numeric[owner]
    inner_left = model.threshold >= 0
    sparse = columns.preprocessor.zero_is_missing
    nodes = np.flatnonzero(number & (model.zero_missing | sparse) & (inner_left != model.missing_left))
    if len(nodes) == 0:
        return model
    count, total, left_side = len(nodes), len(model.column), inner_left[nodes]
    inner = np.where(left_side, model.left[nodes], model.right[nodes])
    other = np.where(left_side, model.right[nodes], model.left[nodes])
    upper, lower = np.arange(total, total + count), np.arange(total + count, total + 2 * count)
    left, right = model.left.copy(), model.right.copy()
    left[nodes[left_side]], right[nodes[~left_side]] = upper[left_side], upper[~left_side]
    band = np.where(model.zero_missing[nodes], ZERO, 0.0)
    twice = np.concatenate([np.arange(total), nodes, nodes])
    tree = np.searchsorted(model.root, twice, side="right")
    # The nodes of a tree stay together.
    order = np.argsort(tree, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    sizes = np.bincount(tree - 1, minlength=len(model.root))
    return replace(
        model,
        root=np.cumsum(sizes) - sizes,
        column=model.column[twice][order],
        threshold=np.concatenate([model.threshold, band, np.nextafter(-band, -np.inf)])[order],
        left=place[np.concatenate([left, lower, inner])[order]],
        right=place[np.concatenate([right, inner, other])[order]],
        missing_left=model.missing_left[twice][order],
        value=model.value[twice][order],
        set_of=model.set_of[twice][order],
        zero_missing=np.concatenate([model.zero_missing, np.zeros(2 * count, dtype=bool)])[order],
    )


class _Translation:
    def __init__(self, model: ModelTrees, columns: Columns) -> None:
        self.model = model
        self.columns = columns
        features = columns.table.schema.features
        split = np.flatnonzero(model.column != LEAF)
        owner = columns.owner[model.column[split]]
        self.numeric = numeric = np.array([feature.numeric for feature in features])
        self.feature = np.full(len(model.column), -1, dtype=np.intp)
        self.feature[split] = owner
        self.constant = split[owner == CONSTANT]
        self.numbers = split[(owner != CONSTANT) & numeric[owner]]
        self.by_category = split[(owner != CONSTANT) & ~numeric[owner]]
        nodes = len(model.column)
        self.left, self.right = model.left.copy(), model.right.copy()
        self.missing_left = model.missing_left.copy()
        self.cell = np.zeros(nodes, dtype=np.int32)
        self.categories = np.full(nodes, -1, dtype=np.int32)
        # Where a split has one outcome only: the node it leads to, else the node itself.
        self.forward = np.arange(nodes)

    def trees(self, outputs: OutputMap) -> Trees:
        self._translate_constants()
        edges, edge_start = self._translate_numbers()
        words = self._translate_categories()
        root, kept, depth = self._reachable()
        place = np.cumsum(kept) - 1
        leaf = self.feature[kept] < 0
        model = self.model
        return Trees(
            edges=edges,
            edge_start=edge_start,
            numeric=self.numeric,
            root=place[root].astype(np.int32),
            feature=self.feature[kept].astype(np.int32),
            cell=self.cell[kept],
            categories=self.categories[kept],
            left_categories=words,
            missing_left=self.missing_left[kept],
            left=np.where(leaf, 0, place[self.left[kept]]).astype(np.int32),
            right=np.where(leaf, 0, place[self.right[kept]]).astype(np.int32),
            value=np.ascontiguousarray(model.value[kept] @ outputs.matrix),
            base=model.base @ outputs.matrix + outputs.shift,
            depth=depth,
        )

    def _goes_left(self, nodes: Indices, values: Floats) -> Mask:
        """Return whether column values go left at nodes, one value per node or one row of values per node."""
        model = self.model
        extra = (slice(None),) + (None,) * (values.ndim - 1)
        missing = model.missing_left[nodes][extra]
        absent = np.isnan(values) | (model.zero_missing[nodes][extra] & (np.abs(values) <= ZERO))
        found = np.asarray(values <= model.threshold[nodes][extra])
        sets = model.set_of[nodes]
        if (sets != NO_SET).any():
            places = np.clip(np.nan_to_num(values), 0, model.sets.shape[1] - 1).astype(np.intp)
            in_set = model.sets[np.maximum(sets, 0)[extra], places]
            found = np.where((sets != NO_SET)[extra], in_set, found)
            absent |= (sets != NO_SET)[extra] & (values < 0)
        return np.where(absent, missing, found)

    def _translate_constants(self) -> None:
        nodes = self.constant
        goes_left = self._goes_left(nodes, self.columns.by_code[0, self.model.column[nodes]])
        self.forward[nodes] = np.where(goes_left, self.left[nodes], self.right[nodes])

    def _translate_numbers(self) -> tuple[Floats, Indices]:
        nodes, model, columns = self.numbers, self.model, self.columns
        features = columns.table.schema.features
        if (model.set_of[nodes] != NO_SET).any():
            raise NotCompiledError("models.compile_number_sets")
        first, which = _distinct(model.column[nodes], model.threshold[nodes])
        edge = columns.edges(model.column[nodes[first]], model.threshold[nodes[first]])[which]
        # What a missing number becomes may be a number again.
        self.missing_left[nodes] = self._goes_left(nodes, columns.missing[model.column[nodes]])
        falling = nodes[columns.falling[model.column[nodes]]]
        self.left[falling], self.right[falling] = self.right[falling], self.left[falling]
        self.missing_left[falling] = ~self.missing_left[falling]
        found: list[Floats] = []
        owner = self.feature[nodes]
        for j in range(len(features)):
            mine = owner == j
            own = np.unique(edge[mine])
            own = own[np.isfinite(own)]
            if mine.any() and len(own) == 0:
                # Every value of the feature needs a cell.
                own = columns.row[j : j + 1]
            self.cell[nodes[mine]] = np.where(edge[mine] == -np.inf, -1, np.searchsorted(own, edge[mine]))
            found.append(own)
        nullable = np.array([feature.nullable for feature in features])[owner] if len(nodes) else np.zeros(0, dtype=bool)
        for sign, child in ((np.inf, self.left), (-np.inf, self.right)):
            same = ~nullable | (self.missing_left[nodes] == (sign > 0))
            one_way = nodes[(edge == sign) & same]
            self.forward[one_way] = child[one_way]
        return np.concatenate(found), np.cumsum([0, *(len(own) for own in found)], dtype=np.int64)

    def _translate_categories(self) -> Words:
        model, nodes = self.model, self.by_category
        columns = model.column[nodes]
        words: list[Words] = [np.zeros(0, dtype=np.uint64)]
        count = 0
        for column in np.unique(columns):
            own = nodes[columns == column]
            feature = self.columns.table.schema.features[self.columns.owner[column]]
            values = self.columns.by_code[: feature.n_codes, column]
            goes_left = self._goes_left(own, np.broadcast_to(values, (len(own), len(values))))
            every, none = goes_left.all(axis=1), ~goes_left.any(axis=1)
            self.forward[own[every]] = self.left[own[every]]
            self.forward[own[none]] = self.right[own[none]]
            packed = _packed(goes_left)
            first, which = _distinct(*packed.T)
            self.categories[own] = count + which * packed.shape[1]
            words.append(packed[first].reshape(-1))
            count += len(first) * packed.shape[1]
        return np.concatenate(words)

    def _reachable(self) -> tuple[Indices, Mask, int]:
        """Skip splits with one outcome; return the roots, the nodes still in use and the longest path."""
        forward = self.forward
        while not (forward[forward] == forward).all():
            forward = forward[forward]
        self.left, self.right = forward[self.left], forward[self.right]
        root = forward[self.model.root]
        kept = np.zeros(len(forward), dtype=bool)
        kept[root] = True
        level, depth = root, 0
        while True:
            splits = level[self.feature[level] >= 0]
            if len(splits) == 0:
                return root, kept, depth
            level = np.concatenate([self.left[splits], self.right[splits]])
            kept[level] = True
            depth += 1


def _distinct(*keys: Objects) -> tuple[Indices, Indices]:
    """Return the first position of each distinct row of keys, and for every row which of these it equals."""
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    which = np.empty(len(order), dtype=np.intp)
    which[order] = np.cumsum(new) - 1
    return order[new], which


def _packed(sets: Mask) -> Words:
    """Return rows of booleans as bits of 64-bit words."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // WORD) * WORD), dtype=bool)
    padded[:, : sets.shape[1]] = sets
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)
