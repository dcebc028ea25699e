"""What a model returns for rows: class positions, scores and values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fasterce.typing import Floats, Indices, Mask

FAILED = -1
"""The class position of a row for which the model returned no usable prediction."""


@dataclass(frozen=True)
class Predictions:
    """What a model returns for N rows.

    Parameters
    ----------
    classes : ndarray of shape (N,)
        Class positions; `FAILED` where the model failed.
    scores : ndarray of shape (N, C), optional
        One score per class; the largest is the predicted class. Log-probabilities or decision values.
    values : ndarray of shape (N, C) or (N, 1), optional
        Probabilities per class, or the predictions of a regression model, as the model returned them.
    """

    classes: Indices
    scores: Floats | None = None
    values: Floats | None = None

    def take(self, rows: slice | Indices | Mask) -> "Predictions":
        """Return the predictions for some of the rows."""
        scores, values = (None if part is None else part[rows] for part in (self.scores, self.values))
        return Predictions(self.classes[rows], scores, values)

    @classmethod
    def concatenate(cls, parts: Sequence["Predictions"]) -> "Predictions":
        """Join predictions; scores and values are kept only if every part has them."""
        return cls(
            np.concatenate([part.classes for part in parts]),
            _joined([part.scores for part in parts]),
            _joined([part.values for part in parts]),
        )


Evaluate = Callable[[Floats], Predictions]
"""A function from rows of codes (N, features) to predictions."""


def _joined(parts: Sequence[Floats | None]) -> Floats | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if len(present) == len(parts) else None
