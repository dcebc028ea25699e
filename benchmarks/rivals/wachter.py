"""Wachter, Mittelstadt, Russell (2017), written for this benchmark: gradient descent on the row itself.

As in the paper: minimise lambda (f(x') - 1)^2 + sum |x'_j - x_j| / MAD_j with Adam, and raise lambda until the answer
flips. Our reading, where the paper has none: a category is a block of columns that are shares of one, half a unit of
distance each, decoded by the largest; numbers keep to the schema's range; what Adam moved by less than it circles around
zero is set back, since the L1 distance wants it exactly there. Gradients: see slopes.py.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals import slopes
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

FIRST_WEIGHT = 1.0
GROWTH = 2.0
ROUNDS = 16
STEPS, NUMERICAL_STEPS = 400, 100
PACE = 0.05
CIRCLE = PACE


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.encoding = problem, Encoding(problem)
        self.slopes = slopes.of(problem, self.encoding)
        self.steps = STEPS if isinstance(self.slopes, slopes.Exact) else NUMERICAL_STEPS
        self.price = prices(problem, self.encoding)
        self.low, self.high = self.encoding.limits()
        self.frozen = self.encoding.frozen()
        self.shares = [self.encoding.blocks[j] for j in problem.categorical if j not in problem.immutable]

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        own = self.encoding.matrix(self.problem.codes(row))[0]
        moved, weight = own, FIRST_WEIGHT
        for _ in range(ROUNDS):
            moved = self.descend(own, moved, weight)
            answer = self.encoding.codes(self.settled(own, moved)[None])
            if self.problem.ask(answer).argmax(axis=1)[0] == self.problem.wanted:
                return answer
            weight *= GROWTH
        return None

    def descend(self, own: np.ndarray, moved: np.ndarray, weight: float) -> np.ndarray:
        adam = Adam(len(own), PACE)
        low, high = np.minimum(self.low, own), np.maximum(self.high, own)
        for done in range(self.steps):
            shrinking = 1 - done / self.steps
            moved = np.clip(moved - shrinking * adam.step(self.slope(own, moved, weight)), low, high)
            for block in self.shares:
                moved[block] = on_simplex(moved[block])
        return moved

    def slope(self, own: np.ndarray, moved: np.ndarray, weight: float) -> np.ndarray:
        chance, slope = self.slopes.value_and_slope(moved)
        whole = weight * 2 * (chance - 1) * slope + self.price * np.sign(moved - own)
        return np.where(self.frozen, 0.0, whole)

    def settled(self, own: np.ndarray, moved: np.ndarray) -> np.ndarray:
        return np.where(np.abs(moved - own) <= CIRCLE, own, moved)

    def table(self, answer: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(answer)

    def notes(self) -> list[str]:
        return ["exact gradients" if isinstance(self.slopes, slopes.Exact) else "numerical gradients"]


def prices(problem: Problem, encoding: Encoding) -> np.ndarray:
    """One over the median absolute deviation of a number, in the encoding's units; half a unit for a category's column."""
    codes = problem.codes(problem.X_train)
    deviation = np.median(np.abs(codes - np.median(codes, axis=0)), axis=0)
    spread = np.where(deviation > 0, deviation, codes.std(axis=0))
    prices = np.full(encoding.width, 0.5)
    for j in problem.numeric:
        prices[encoding.blocks[j]] = encoding.scale[j] / (spread[j] or 1.0)
    return prices


def on_simplex(values: np.ndarray) -> np.ndarray:
    """The nearest shares that are not negative and add up to one."""
    sorted_down = np.sort(values)[::-1]
    surplus = (np.cumsum(sorted_down) - 1) / np.arange(1, len(values) + 1)
    return np.maximum(values - surplus[np.flatnonzero(sorted_down > surplus)[-1]], 0.0)


class Adam:
    def __init__(self, width: int, pace: float) -> None:
        self.pace, self.time = pace, 0
        self.mean, self.square = np.zeros(width), np.zeros(width)

    def step(self, slope: np.ndarray) -> np.ndarray:
        """How far to go against the slope."""
        self.time += 1
        self.mean = 0.9 * self.mean + 0.1 * slope
        self.square = 0.999 * self.square + 0.001 * slope**2
        mean, square = self.mean / (1 - 0.9**self.time), self.square / (1 - 0.999**self.time)
        return self.pace * mean / (np.sqrt(square) + 1e-8)
