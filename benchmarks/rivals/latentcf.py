"""Latent-CF (Balasubramanian, Sharpe, Barr, Wittenbach, Bruss 2020), written for this benchmark: it is not on PyPI.

As in the paper: an autoencoder; gradient descent moves the latent point of the row, on the squared difference between the
model's probability for the decoded point and 0.5; the decoded row is the counterfactual. Our reading, where rows are typed:
the search ends when the decoded row, rounded and with whole categories, has the target class; if 0.5 is reached and it has
not, the probability aimed at is raised by 0.05. Gradients with respect to the decoded row: see gradients.py; the variant
"differences" uses finite differences of the model's predictions.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals import gradients
from benchmarks.rivals.autoencoder import Autoencoder
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem
from benchmarks.rivals.wachter import Adam

PROBABILITIES = np.arange(0.5, 1.0, 0.05)
NEAR = 0.01
STEPS = 200
LEARNING_RATE = 0.05


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.encoding = problem, Encoding(problem)
        known = variant != "differences"
        self.model_gradient = gradients.of(problem, self.encoding) if known else gradients.Differences(problem, self.encoding)
        matrix = self.encoding.matrix(problem.codes(problem.X_train))
        self.autoencoder = Autoencoder(self.encoding, matrix, problem.seed)

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        latent = self.autoencoder.encode(self.encoding.matrix(self.problem.codes(row)))[0]
        for level in PROBABILITIES:
            latent = self.descend(latent, level)
            candidate = self.encoding.codes(self.autoencoder.decode(latent[None]))
            if self.problem.predict_proba(candidate).argmax(axis=1)[0] == self.problem.target:
                return candidate
        return None

    def descend(self, latent: np.ndarray, level: float) -> np.ndarray:
        """Move a latent point until the decoded row has about the probability `level`."""
        adam = Adam(len(latent), LEARNING_RATE)
        for _ in range(STEPS):
            probability, gradient = self.model_gradient.value_and_gradient(self.autoencoder.decode(latent[None])[0])
            if probability >= level - NEAR:
                break
            latent = latent - adam.step(2 * (probability - level) * self.autoencoder.latent_gradient(latent, gradient))
        return latent

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return ["exact gradients" if isinstance(self.model_gradient, gradients.Exact) else "numerical gradients"]
