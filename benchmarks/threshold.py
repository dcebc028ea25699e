"""A regression as a question with two answers, for systems that explain classes: is the prediction at least a number?

Only NumPy is imported: the model file is read in the environments of the rivals.
"""

from typing import Any

import numpy as np

MORE_THAN_EVEN = 0.5 + 1e-9


class AtLeast:
    """Class 1 where a regressor predicts `low` or more.

    Parameters
    ----------
    regressor : Pipeline
    low : float
        The least prediction of class 1.
    spread : float
        The prediction minus `low`, divided by this, is the log-odds of class 1.
    """

    def __init__(self, regressor: Any, low: float, spread: float) -> None:
        self.regressor, self.low, self.spread = regressor, low, spread
        self.classes_ = np.array([0, 1])

    def __getitem__(self, step: int) -> Any:
        return self.regressor[step]

    def predict(self, rows: Any) -> np.ndarray:
        return np.asarray(self.regressor.predict(rows) >= self.low, dtype=int)

    def predict_proba(self, rows: Any) -> np.ndarray:
        excess = np.asarray(self.regressor.predict(rows), dtype=float) - self.low
        chance = 0.5 + 0.5 * np.tanh(0.5 * excess / self.spread)
        # A prediction of exactly `low` is of class 1, which an even chance would not tell.
        chance = np.where(excess >= 0, np.maximum(chance, MORE_THAN_EVEN), chance)
        return np.column_stack([1 - chance, chance])
