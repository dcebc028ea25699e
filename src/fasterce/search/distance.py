"""How far a counterfactual is from the row: the sum over features of |change| / range, and 1 for a changed category."""

from dataclasses import dataclass

import numpy as np

from fasterce.profile import Floats

DIGITS = 9


@dataclass(frozen=True)
class Distance:
    """`weight` (features,): price of one unit of a numeric feature; categorical features cost `flat` when they change."""

    weight: Floats
    flat: Floats

    @classmethod
    def gower(cls, span: Floats, numeric: np.ndarray[tuple[int], np.dtype[np.intp]]) -> "Distance":
        weight, flat = np.zeros(len(span)), np.ones(len(span))
        weight[numeric] = 1.0 / span[numeric]
        flat[numeric] = 0.0
        return cls(weight, flat)

    def parts(self, codes: Floats, row: Floats) -> Floats:
        """The price of each feature's change; `row` broadcasts against `codes`."""
        change = np.abs(codes - row)
        return np.asarray(change * self.weight + (change > 0) * self.flat)

    def total(self, codes: Floats, row: Floats) -> Floats:
        """Rounded, so that candidates at the same distance tie the same way in every batch."""
        return np.asarray(np.round(self.parts(codes, row).sum(axis=-1), DIGITS))

    def single(self, feature: np.ndarray[tuple[int], np.dtype[np.intp]], value: Floats, row: Floats) -> Floats:
        """The price of single changes: `feature` (S,), `value` (rows, S)."""
        change = np.abs(value - row[:, feature])
        return np.asarray(np.round(change * self.weight[feature] + (change > 0) * self.flat[feature], DIGITS))
