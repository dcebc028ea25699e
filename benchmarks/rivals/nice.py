"""NICE (NICEx on PyPI): the features of the nearest training row with the target class, one by one."""

import numpy as np
import pandas as pd
from nice import NICE
from sklearn.neural_network import MLPRegressor

from benchmarks.rivals.problem import Problem


class Rival:
    """`variant` is NICE's reward: "sparsity" or "plausibility". It works on codes, on which it is fastest."""

    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        codes = problem.codes(problem.X_train)
        self.nice = NICE(
            predict_fn=problem.predict_proba,
            X_train=codes,
            cat_feat=problem.categorical,
            num_feat=problem.numeric,
            y_train=problem.y_train,
            optimization=variant,
            justified_cf=True,
            auto_encoder=ReconstructionError(problem, codes) if variant == "plausibility" else None,
        )

    def explain(self, row: pd.DataFrame) -> np.ndarray:
        return self.nice.explain(self.problem.codes(row), target_class=[self.problem.target])

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)


class ReconstructionError:
    """The error of a small autoencoder (scikit-learn) on scaled numbers and one-hot columns, which NICE expects."""

    def __init__(self, problem: Problem, codes: np.ndarray) -> None:
        self.problem = problem
        self.low, self.high = codes.min(axis=0), codes.max(axis=0)
        matrix = self.matrix(codes)
        width = max(2, matrix.shape[1] // 4)
        layers = (width * 2, width, width * 2)
        network = MLPRegressor(hidden_layer_sizes=layers, max_iter=30, early_stopping=True, random_state=problem.seed)
        self.network = network.fit(matrix, matrix)

    def matrix(self, codes: np.ndarray) -> np.ndarray:
        numeric = self.problem.numeric
        span = np.maximum(self.high - self.low, 1e-12)
        parts = [(codes[:, numeric] - self.low[numeric]) / span[numeric]]
        parts += [np.eye(len(self.problem.categories(j)))[codes[:, j].astype(np.intp)] for j in self.problem.categorical]
        return np.hstack(parts)

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        matrix = self.matrix(codes)
        return ((self.network.predict(matrix) - matrix) ** 2).mean(axis=1)
