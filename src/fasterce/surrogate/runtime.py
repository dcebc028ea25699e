"""The surrogate at run time, with NumPy only.

Its first layer is a sum of tables, one per feature: the hidden state of a row is the bias plus, for every feature, the entry
of its value (interpolated between two knots of a number). Changing a feature swaps one entry for another, so a thousand
edits of a row cost a thousand small additions and no encoding.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fasterce.kernels.arrays import IDENTITY, NETWORK, NO_TREES, RELU, Network, Scorer
from fasterce.kernels.score import outputs
from fasterce.kernels.structs import arrays_of
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
    def scorer(self) -> Scorer:
        """Return the same network for the compiled search."""
        network = Network(
            knots=self.knots,
            entries=self.entries.astype(np.float64),
            start=self.start.astype(np.int64),
            numeric=self.numeric,
            nullable=np.zeros(len(self.numeric), dtype=np.bool_),
            extrapolate=False,
            bias=self.bias.astype(np.float64),
            curvature=np.zeros(len(self.numeric)),
            activation=RELU,
            width=np.array([len(self.offset)], dtype=np.int64),
            weights=np.ascontiguousarray(self.weight, dtype=np.float64).ravel(),
            offsets=self.offset.astype(np.float64),
        )
        return arrays_of(Scorer(NETWORK, NO_TREES, network, len(self.offset), IDENTITY, exact=False, error=self.error))

    @property
    def tables(self) -> list[Floats]:
        """Return the knots of every feature."""
        return np.split(self.knots, self.start[1:-1])

    def outputs_of(self, codes: Floats) -> Floats:
        """Return outputs (rows, K, C) of candidates given as codes (rows, K, features)."""
        rows, count, features = codes.shape
        return outputs(self.scorer, codes.reshape(rows * count, features)).reshape(rows, count, len(self.offset))

    def labels(self, codes: Floats) -> Indices:
        """Return the class of each row of codes."""
        found = self.outputs_of(codes[:, None])[:, 0]
        return np.asarray(found.argmax(axis=1) if found.shape[1] > 1 else found[:, 0] > 0).astype(np.intp)


def lead_of(outputs: Floats | Floats32, target: Indices) -> Floats | Floats32:
    """Return the lead (rows, K) of the class `target` of each row, from `outputs` (rows, K, C)."""
    if outputs.shape[2] == 1:
        return np.asarray(outputs[..., 0] * np.where(target == 1, 1.0, -1.0).astype(np.float32)[:, None])
    own = np.take_along_axis(outputs, target[:, None, None], 2)[..., 0]
    others = outputs.copy()
    np.put_along_axis(others, np.broadcast_to(target[:, None, None], (*outputs.shape[:2], 1)), -np.inf, 2)
    return np.asarray(own - others.max(axis=2))
