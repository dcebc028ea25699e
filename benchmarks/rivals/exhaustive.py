"""Exhaustive search, a reference: every change of one feature, and of two on a grid, in the order of gower_l1.

"one" tries all values of every feature on its own (for a number with more than 20,000 values in its range that many, evenly
spaced). The first that changes the prediction is proven to be the nearest counterfactual with one changed feature. "two"
then tries pairs that would be nearer, with 64 evenly spaced values per number and up to 300,000 pairs: the best of that
grid, not of all pairs.
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
        query = self.problem.codes(row)[0]
        best, distance = self.first(query, *self.singles(query))
        if self.pairs:
            nearer, _ = self.first(query, *self.doubles(query, distance))
            best = best if nearer is None else nearer
        return None if best is None else best[None]

    def singles(self, query: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the changed feature, its new code and the distance, one line per change."""
        found = [
            (np.full(len(values), j), values)
            for j in self.problem.free
            if len(values := self.values(j, query[j], MOST_VALUES))
        ]
        feature, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return feature[:, None], value[:, None], self.distance(feature, value, query)

    def doubles(self, query: np.ndarray, below: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs of changes with a distance less than `below`, the nearest if there are too many."""
        values = {j: self.values(j, query[j], GRID) for j in self.problem.free}
        features, codes, distances = [np.empty((0, 2), int)], [np.empty((0, 2))], [np.empty(0)]
        for first, second in combinations(self.problem.free, 2):
            left, right = (part.ravel() for part in np.meshgrid(values[first], values[second], indexing="ij"))
            distance = self.distance(np.full(len(left), first), left, query) + self.distance(
                np.full(len(right), second), right, query
            )
            near = distance < below
            features.append(np.tile([first, second], (near.sum(), 1)))
            codes.append(np.column_stack([left, right])[near])
            distances.append(distance[near])
        feature, code, distance = (np.concatenate(parts) for parts in (features, codes, distances))
        kept = np.argsort(distance, kind="stable")[:MOST_PAIRS]
        self.cut += len(distance) > MOST_PAIRS
        return feature[kept], code[kept], distance[kept]

    def values(self, j: int, query: float, most: int) -> np.ndarray:
        """Return other values of a feature, at most `most`."""
        if j in self.problem.categorical:
            values = np.arange(len(self.problem.categories(j)), dtype=float)
        else:
            low, high, decimals = self.problem.limits(j)
            steps = round((high - low) * 10**decimals) + 1
            values = np.clip(np.unique(np.round(np.linspace(low, high, min(steps, most)), decimals)), low, high)
        return values[values != query]

    def distance(self, feature: np.ndarray, value: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return gower_l1 of a change: for a number its share of the range in the training rows, 1 for a category."""
        is_category = np.isin(feature, self.problem.categorical)
        return np.where(is_category, 1.0, np.abs(value - query[feature]) / self.span[feature])

    def first(
        self, query: np.ndarray, features: np.ndarray, codes: np.ndarray, distances: np.ndarray
    ) -> tuple[np.ndarray | None, float]:
        """Return the nearest change with the target class, and its distance."""
        order = np.argsort(distances, kind="stable")
        for start in range(0, len(order), CHUNK):
            chunk = order[start : start + CHUNK]
            candidates = np.repeat(query[None], len(chunk), axis=0)
            np.put_along_axis(candidates, features[chunk], codes[chunk], axis=1)
            reached = np.flatnonzero(self.problem.predict_proba(candidates).argmax(axis=1) == self.problem.target)
            if len(reached):
                return candidates[reached[0]], float(distances[chunk[reached[0]]])
        return None, np.inf

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return [f"limited to {MOST_PAIRS:,} pairs in {self.cut} searches"] if self.cut else []
