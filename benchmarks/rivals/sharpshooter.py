"""SharpShooter (Barr, Harrington, Sharpe, Bruss 2021), written for this benchmark: it is not on PyPI.

As its authors describe it: the row is first projected to a version of itself that has the wanted answer; candidates lie in
latent space on the line between the row and its projection; the one nearest to the row that has the wanted answer is
taken. Our reading of how to project: a second autoencoder knows only rows with the wanted answer, and what it makes of
the row is the projection; where the model does not give that the wanted answer, the centroid of those rows in latent
space stands in for it.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals.autoencoder import Autoencoder
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

POINTS = 50


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.encoding = problem, Encoding(problem)
        codes = problem.codes(problem.X_train)
        matrix = self.encoding.matrix(codes)
        accepted = matrix[self.wanted(codes)]
        self.autoencoder = Autoencoder(self.encoding, matrix, problem.seed)
        self.projector = Autoencoder(self.encoding, accepted, problem.seed)
        self.centroid = self.autoencoder.encode(accepted).mean(axis=0)

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        own = self.encoding.matrix(self.problem.codes(row))
        start = self.autoencoder.encode(own)[0]
        line = self.encoding.codes(self.autoencoder.decode(between(start, self.end(own))))
        fine = np.flatnonzero(self.wanted(line))
        return line[fine[:1]] if len(fine) else None

    def end(self, own: np.ndarray) -> np.ndarray:
        """The latent point of the row's projection."""
        projected = self.projector.decode(self.projector.encode(own))
        if not self.wanted(self.encoding.codes(projected))[0]:
            return self.centroid
        return self.autoencoder.encode(projected)[0]

    def wanted(self, codes: np.ndarray) -> np.ndarray:
        return self.problem.ask(codes).argmax(axis=1) == self.problem.wanted

    def table(self, answer: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(answer)


def between(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Points from just beyond the start to the end, evenly."""
    share = np.linspace(0, 1, POINTS + 1)[1:, None]
    return start + share * (end - start)
