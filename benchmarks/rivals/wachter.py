"""Wachter, Mittelstadt, Russell (2017), written for this benchmark: gradient descent on the row itself.

As in the paper: minimise lambda (f(x') - 1)^2 + sum |x'_j - x_j| / MAD_j with Adam, and raise lambda until the prediction
changes. Our reading, where the paper leaves it open: a category is a block of columns with shares that sum to one, half a
unit of distance each, decoded by the largest; numbers stay in the schema's range; changes smaller than the oscillation of
Adam are reverted, since the L1 distance wants them to be exactly zero. Gradients: see gradients.py.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals import gradients
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

FIRST_WEIGHT = 1.0
GROWTH = 2.0
ROUNDS = 16
STEPS, NUMERICAL_STEPS = 400, 100
LEARNING_RATE = 0.05
OSCILLATION = LEARNING_RATE


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.encoding = problem, Encoding(problem)
        self.model_gradient = gradients.of(problem, self.encoding)
        self.steps = STEPS if isinstance(self.model_gradient, gradients.Exact) else NUMERICAL_STEPS
        self.price = prices(problem, self.encoding)
        self.low, self.high = self.encoding.limits()
        self.frozen = self.encoding.frozen()
        self.shares = [self.encoding.blocks[j] for j in problem.categorical if j not in problem.immutable]

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        query = self.encoding.matrix(self.problem.codes(row))[0]
        moved, weight = query, FIRST_WEIGHT
        for _ in range(ROUNDS):
            moved = self.descend(query, moved, weight)
            candidate = self.encoding.codes(self.without_oscillation(query, moved)[None])
            if self.problem.predict_proba(candidate).argmax(axis=1)[0] == self.problem.target:
                return candidate
            weight *= GROWTH
        return None

    def descend(self, query: np.ndarray, moved: np.ndarray, weight: float) -> np.ndarray:
        adam = Adam(len(query), LEARNING_RATE)
        low, high = np.minimum(self.low, query), np.maximum(self.high, query)
        for done in range(self.steps):
            shrinking = 1 - done / self.steps
            moved = np.clip(moved - shrinking * adam.step(self.gradient(query, moved, weight)), low, high)
            for block in self.shares:
                moved[block] = on_simplex(moved[block])
        return moved

    def gradient(self, query: np.ndarray, moved: np.ndarray, weight: float) -> np.ndarray:
        probability, gradient = self.model_gradient.value_and_gradient(moved)
        whole = weight * 2 * (probability - 1) * gradient + self.price * np.sign(moved - query)
        return np.where(self.frozen, 0.0, whole)

    def without_oscillation(self, query: np.ndarray, moved: np.ndarray) -> np.ndarray:
        return np.where(np.abs(moved - query) <= OSCILLATION, query, moved)

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return ["exact gradients" if isinstance(self.model_gradient, gradients.Exact) else "numerical gradients"]


def prices(problem: Problem, encoding: Encoding) -> np.ndarray:
    """Return the cost per unit of each column: 1 / median absolute deviation for a number, 1/2 for a column of a category."""
    codes = problem.codes(problem.X_train)
    deviation = np.median(np.abs(codes - np.median(codes, axis=0)), axis=0)
    spread = np.where(deviation > 0, deviation, codes.std(axis=0))
    prices = np.full(encoding.width, 0.5)
    for j in problem.numeric:
        prices[encoding.blocks[j]] = encoding.scale[j] / (spread[j] or 1.0)
    return prices


def on_simplex(values: np.ndarray) -> np.ndarray:
    """Return the nearest values that are not negative and sum to one."""
    sorted_down = np.sort(values)[::-1]
    surplus = (np.cumsum(sorted_down) - 1) / np.arange(1, len(values) + 1)
    return np.maximum(values - surplus[np.flatnonzero(sorted_down > surplus)[-1]], 0.0)


class Adam:
    def __init__(self, width: int, learning_rate: float) -> None:
        self.learning_rate, self.time = learning_rate, 0
        self.mean, self.square = np.zeros(width), np.zeros(width)

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """Return the step to subtract."""
        self.time += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.time), self.square / (1 - 0.999**self.time)
        return self.learning_rate * mean / (np.sqrt(square) + 1e-8)
