"""The yardstick: every change of one feature, and of two on a grid, asked of the model, nearest in gower_l1 first.

"one" tries all values of every feature on its own (a number with more than 20,000 in its range: that many, evenly). The
first that flips is proved to be the nearest answer with one changed feature. "two" then tries pairs that would be nearer
still, numbers on 64 values evenly over their range, up to 300,000 pairs: the best of that grid, not of all pairs.
"""

from itertools import combinations

import numpy as np
import pandas as pd

from benchmarks.rivals.problem import Problem

MOST_VALUES = 20_000
GRID = 64
MOST_PAIRS = 300_000
CHUNK = 4096


class Rival:
    """`variant` is "one" or "two"."""

    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.pairs = problem, variant == "two"
        codes = problem.codes(problem.X_train)
        span = codes.max(axis=0) - codes.min(axis=0)
        self.span = np.where(span > 0, span, 1.0)
        self.cut = 0

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        own = self.problem.codes(row)[0]
        best, price = self.first(own, *self.singles(own))
        if self.pairs:
            nearer, _ = self.first(own, *self.doubles(own, price))
            best = best if nearer is None else nearer
        return None if best is None else best[None]

    def singles(self, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features changed, their new codes and the price of it, one line a change."""
        found = [
            (np.full(len(values), j), values) for j in self.problem.free if len(values := self.values(j, own[j], MOST_VALUES))
        ]
        feature, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return feature[:, None], value[:, None], self.price(feature, value, own)

    def doubles(self, own: np.ndarray, below: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of changes cheaper than `below`, the cheapest if there are too many."""
        values = {j: self.values(j, own[j], GRID) for j in self.problem.free}
        features, codes, prices = [np.empty((0, 2), int)], [np.empty((0, 2))], [np.empty(0)]
        for first, second in combinations(self.problem.free, 2):
            left, right = (part.ravel() for part in np.meshgrid(values[first], values[second], indexing="ij"))
            price = self.price(np.full(len(left), first), left, own) + self.price(np.full(len(right), second), right, own)
            cheap = price < below
            features.append(np.tile([first, second], (cheap.sum(), 1)))
            codes.append(np.column_stack([left, right])[cheap])
            prices.append(price[cheap])
        feature, code, price = (np.concatenate(parts) for parts in (features, codes, prices))
        kept = np.argsort(price, kind="stable")[:MOST_PAIRS]
        self.cut += len(price) > MOST_PAIRS
        return feature[kept], code[kept], price[kept]

    def values(self, j: int, own: float, most: int) -> np.ndarray:
        """What a feature could be instead, at most so many values."""
        if j in self.problem.categorical:
            values = np.arange(len(self.problem.categories(j)), dtype=float)
        else:
            low, high, decimals = self.problem.limits(j)
            steps = round((high - low) * 10**decimals) + 1
            values = np.clip(np.unique(np.round(np.linspace(low, high, min(steps, most)), decimals)), low, high)
        return values[values != own]

    def price(self, feature: np.ndarray, value: np.ndarray, own: np.ndarray) -> np.ndarray:
        """gower_l1 of a change: a number's share of its range in the training rows, one for a category."""
        is_category = np.isin(feature, self.problem.categorical)
        return np.where(is_category, 1.0, np.abs(value - own[feature]) / self.span[feature])

    def first(
        self, own: np.ndarray, features: np.ndarray, codes: np.ndarray, prices: np.ndarray
    ) -> tuple[np.ndarray | None, float]:
        """The cheapest change with the wanted answer, and its price."""
        order = np.argsort(prices, kind="stable")
        for start in range(0, len(order), CHUNK):
            chunk = order[start : start + CHUNK]
            trials = np.repeat(own[None], len(chunk), axis=0)
            np.put_along_axis(trials, features[chunk], codes[chunk], axis=1)
            fine = np.flatnonzero(self.problem.ask(trials).argmax(axis=1) == self.problem.wanted)
            if len(fine):
                return trials[fine[0]], float(prices[chunk[fine[0]]])
        return None, np.inf

    def table(self, answer: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(answer)

    def notes(self) -> list[str]:
        return [f"pairs cut at {MOST_PAIRS:,} in {self.cut} searches"] if self.cut else []
