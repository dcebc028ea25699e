"""Latent-CF (Balasubramanian, Sharpe, Barr, Wittenbach, Bruss 2020), written for this benchmark: it is not on PyPI.

As in the paper: an autoencoder; the row's latent point is moved by gradient descent on the squared gap between the wanted
chance, 0.5, and the model's for the decoded point; the decoded row is the answer. Our reading, where rows are typed: the
search ends when the row as decoded, rounded and with whole categories has the wanted answer; where 0.5 is reached and it
has not, the chance aimed at is raised by a twentieth. Gradients with respect to the decoded row: see slopes.py;
the variant "differences" has none and evaluates the model on both sides.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals import slopes
from benchmarks.rivals.autoencoder import Autoencoder
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem
from benchmarks.rivals.wachter import Adam

CHANCES = np.arange(0.5, 1.0, 0.05)
NEAR = 0.01
STEPS = 200
PACE = 0.05


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.encoding = problem, Encoding(problem)
        known = variant != "differences"
        self.slopes = slopes.of(problem, self.encoding) if known else slopes.Differences(problem, self.encoding)
        matrix = self.encoding.matrix(problem.codes(problem.X_train))
        self.autoencoder = Autoencoder(self.encoding, matrix, problem.seed)

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        latent = self.autoencoder.encode(self.encoding.matrix(self.problem.codes(row)))[0]
        for chance in CHANCES:
            latent = self.descend(latent, chance)
            answer = self.encoding.codes(self.autoencoder.decode(latent[None]))
            if self.problem.ask(answer).argmax(axis=1)[0] == self.problem.wanted:
                return answer
        return None

    def descend(self, latent: np.ndarray, wanted: float) -> np.ndarray:
        """Towards a decoded row with the wanted chance, until it is as good as there."""
        adam = Adam(len(latent), PACE)
        for _ in range(STEPS):
            chance, slope = self.slopes.value_and_slope(self.autoencoder.decode(latent[None])[0])
            if chance >= wanted - NEAR:
                break
            latent = latent - adam.step(2 * (chance - wanted) * self.autoencoder.pulled_back(latent, slope))
        return latent

    def table(self, answer: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(answer)

    def notes(self) -> list[str]:
        return ["exact gradients" if isinstance(self.slopes, slopes.Exact) else "numerical gradients"]
