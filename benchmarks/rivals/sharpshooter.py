"""SharpShooter (Barr, Harrington, Sharpe, Bruss 2021), written for this benchmark: it is not on PyPI.

As its authors describe it: the row is projected to a version of itself with the target class; candidates lie in latent
space on the line between the row and its projection; the first of them with the target class is taken. Our reading of the
projection: a second autoencoder is trained only on rows with the target class, and its reconstruction of the row is the
projection; if the model does not give that the target class, the centroid of those rows in latent space is used.
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
        accepted = matrix[self.reaches_target(codes)]
        self.autoencoder = Autoencoder(self.encoding, matrix, problem.seed)
        self.projector = Autoencoder(self.encoding, accepted, problem.seed)
        self.centroid = self.autoencoder.encode(accepted).mean(axis=0)

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        query = self.encoding.matrix(self.problem.codes(row))
        start = self.autoencoder.encode(query)[0]
        line = self.encoding.codes(self.autoencoder.decode(between(start, self.end(query))))
        reached = np.flatnonzero(self.reaches_target(line))
        return line[reached[:1]] if len(reached) else None

    def end(self, query: np.ndarray) -> np.ndarray:
        """Return the latent point of the projected row."""
        projected = self.projector.decode(self.projector.encode(query))
        if not self.reaches_target(self.encoding.codes(projected))[0]:
            return self.centroid
        return self.autoencoder.encode(projected)[0]

    def reaches_target(self, codes: np.ndarray) -> np.ndarray:
        return self.problem.predict_proba(codes).argmax(axis=1) == self.problem.target

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)


def between(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return points evenly spaced from just beyond the start to the end."""
    share = np.linspace(0, 1, POINTS + 1)[1:, None]
    return start + share * (end - start)
