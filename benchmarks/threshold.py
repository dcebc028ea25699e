"""A regressor as a classifier with two classes, for systems that explain classes: is the prediction at least a number?

Only NumPy is imported: the environments of the rivals read the model file.
"""

from typing import Any

import numpy as np

ABOVE_EVEN = 0.5 + 1e-9


class ThresholdClassifier:
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
        probability = 0.5 + 0.5 * np.tanh(0.5 * excess / self.spread)
        # A prediction of exactly `low` is of class 1, so its probability has to be above one half.
        probability = np.where(excess >= 0, np.maximum(probability, ABOVE_EVEN), probability)
        return np.column_stack([1 - probability, probability])
