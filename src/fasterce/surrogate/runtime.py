"""The surrogate at run time, with NumPy only.

Its first layer is a sum of tables, one per feature: the hidden state of a row is the bias plus, for every feature, the entry
of its value (interpolated between two knots of a number). Changing a feature swaps one entry for another, so a thousand
edits of a row cost a thousand small additions and no encoding.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fasterce.typing import Floats, Floats32, Indices, Mask

# The lower end of scores that have none.
NO_LIMIT = -1e300


@dataclass(frozen=True)
class Surrogate:
    """A network with one hidden layer that approximates the model.

    `knots` (E,) and `entries` (E, H) hold the tables of all features one after another, `start` (features + 1,) where each
    begins; `numeric` (features,) marks those interpolated between knots. With two classes there is one output, the lead of
    the second class over the first, else one per class. `error` is the deviation of its margins from those of the model near
    the boundary, `agreement` the share of rows with the same class.
    """

    knots: Floats
    entries: Floats32
    start: NDArray[np.int64]
    numeric: Mask
    bias: Floats32
    weight: Floats32
    offset: Floats32
    error: float
    agreement: float

    @cached_property
    def _padded(self) -> tuple[Floats, Indices]:
        """Return the knots of all numbers as a padded array, and the last interval of each."""
        count = np.diff(self.start)
        most = int(np.where(self.numeric, count, 0).max(initial=2))
        knots = np.full((len(count), most), np.inf)
        for j in np.flatnonzero(self.numeric):
            knots[j, : count[j]] = self.knots[self.start[j] : self.start[j + 1]]
        return knots, np.maximum(count - 2, 0).astype(np.intp)

    @property
    def tables(self) -> list[Floats]:
        """Return the knots of every feature."""
        return np.split(self.knots, self.start[1:-1])

    def read(self, codes: Floats, feature: Indices) -> Floats32:
        """Return the entries (..., H) of values: `codes` (..., K) of the features (K,)."""
        knots, last = self._padded
        numeric = self.numeric[feature]
        below = np.zeros(codes.shape, dtype=np.intp)
        share = np.zeros(codes.shape)
        if numeric.any():
            j = feature[numeric]
            value = codes[..., numeric]
            place = np.clip((value[..., None] >= knots[j]).sum(axis=-1) - 1, 0, last[j])
            low, high = knots[j, place], knots[j, np.minimum(place + 1, knots.shape[1] - 1)]
            between = np.isfinite(high)
            width = np.where(between, high - low, 1.0)
            share[..., numeric] = np.clip((value - low) / width, 0.0, 1.0) * between
            below[..., numeric] = place
        if not numeric.all():
            below[..., ~numeric] = codes[..., ~numeric]
        position = self.start[feature] + below
        above = np.where(numeric & (share > 0), position + 1, position)
        part = share.astype(np.float32)[..., None]
        first = self.entries[position]
        return np.asarray(first + part * (self.entries[above] - first))

    def hidden(self, own: Floats32) -> Floats32:
        """Return hidden states (rows, H), before the ReLU, of rows whose entries are `own` (rows, features, H)."""
        return np.asarray(own.sum(axis=1, dtype=np.float32) + self.bias)

    def outputs(self, hidden: Floats32) -> Floats32:
        """Return outputs (rows, K, C) of hidden states (rows, K, H), which are overwritten."""
        np.maximum(hidden, 0.0, out=hidden)
        return np.asarray(hidden @ self.weight + self.offset)

    def outputs_of(self, codes: Floats) -> Floats32:
        """Return outputs (rows, K, C) of candidates given as codes (rows, K, features)."""
        rows, count, features = codes.shape
        own = self.read(codes.reshape(rows * count, features), np.arange(features))
        return self.outputs(self.hidden(own).reshape(rows, count, own.shape[-1]))

    def labels(self, codes: Floats) -> Indices:
        """Return the class of each row of codes."""
        found = self.outputs_of(codes[:, None])[:, 0]
        return np.asarray(found.argmax(axis=1) if found.shape[1] > 1 else found[:, 0] > 0).astype(np.intp)


def lead_of(outputs: Floats32, target: Indices) -> Floats32:
    """Return the lead (rows, K) of the class `target` of each row, from `outputs` (rows, K, C)."""
    if outputs.shape[2] == 1:
        return np.asarray(outputs[..., 0] * np.where(target == 1, 1.0, -1.0).astype(np.float32)[:, None])
    own = np.take_along_axis(outputs, target[:, None, None], 2)[..., 0]
    others = outputs.copy()
    np.put_along_axis(others, np.broadcast_to(target[:, None, None], (*outputs.shape[:2], 1)), -np.inf, 2)
    return np.asarray(own - others.max(axis=2))
