"""The distilled copy at run time: NumPy only.

Its first layer is a sum of tables, one a feature: a row's hidden state is the bias plus, for every feature, the entry of
its value (between two knots of a number, straight in between). Changing a feature swaps one entry for another, so a
thousand edits of a row cost a thousand small additions and no encoding.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats

Singles32 = NDArray[np.float32]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Surrogate:
    """`knots` (E,) and `entries` (E, H) hold the tables of all features one after another, `start` (features + 1,) says
    where each begins; `numeric` (features,) marks those read between knots.

    One output (the lead of the second class over the first) where there are two classes, else one a class.
    `error` is how far its margins are from the model's near the boundary, `agreement` how often both name one class.
    """

    knots: Floats
    entries: Singles32
    start: NDArray[np.int64]
    numeric: NDArray[np.bool_]
    bias: Singles32
    weight: Singles32
    offset: Singles32
    error: float
    agreement: float

    @cached_property
    def _padded(self) -> tuple[Floats, Indices]:
        """The inner knots of every number side by side, and the last knot below which a value can lie."""
        count = np.diff(self.start)
        most = int(np.where(self.numeric, count, 0).max(initial=2))
        knots = np.full((len(count), most), np.inf)
        for j in np.flatnonzero(self.numeric):
            knots[j, : count[j]] = self.knots[self.start[j] : self.start[j + 1]]
        return knots, np.maximum(count - 2, 0).astype(np.intp)

    @property
    def tables(self) -> list[Floats]:
        """The knots of every feature."""
        return np.split(self.knots, self.start[1:-1])

    def read(self, codes: Floats, feature: Indices) -> Singles32:
        """The entries (..., H) of values: `codes` (..., K) of the features (K,)."""
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

    def hidden(self, own: Singles32) -> Singles32:
        """Hidden states (rows, H) of rows whose entries are `own` (rows, features, H), before the bend."""
        return np.asarray(own.sum(axis=1, dtype=np.float32) + self.bias)

    def outputs(self, hidden: Singles32) -> Singles32:
        """(rows, K, C) of hidden states (rows, K, H), which are overwritten."""
        np.maximum(hidden, 0.0, out=hidden)
        return np.asarray(hidden @ self.weight + self.offset)

    def outputs_of(self, codes: Floats) -> Singles32:
        """The same for candidates given as codes (rows, K, features)."""
        rows, count, features = codes.shape
        own = self.read(codes.reshape(rows * count, features), np.arange(features))
        return self.outputs(self.hidden(own).reshape(rows, count, own.shape[-1]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        names = ("knots", "entries", "start", "numeric", "bias", "weight", "offset")
        return {name: getattr(self, name) for name in names} | {
            name: np.asarray(getattr(self, name)) for name in ("error", "agreement")
        }


def lead_of(outputs: Singles32, target: Indices) -> Singles32:
    """How far `outputs` (rows, K, C) lead for each row's class `target`."""
    if outputs.shape[2] == 1:
        return np.asarray(outputs[..., 0] * np.where(target == 1, 1.0, -1.0).astype(np.float32)[:, None])
    own = np.take_along_axis(outputs, target[:, None, None], 2)[..., 0]
    others = outputs.copy()
    np.put_along_axis(others, np.broadcast_to(target[:, None, None], (*outputs.shape[:2], 1)), -np.inf, 2)
    return np.asarray(own - others.max(axis=2))
