"""CERTIFAI (Sharma, Henderson, Ghosh 2020), written for this benchmark: it is not on PyPI.

As in the paper: a population drawn from the whole feature space; fitness is one over the distance, for members with the
target class; selection, crossover and mutation, generation by generation. Distance: L1 over median absolute
deviation for numbers and simple matching for categories, each weighted by its share of features. Changes that
are not needed stay: the paper mentions no reset.
"""

import numpy as np
import pandas as pd

from benchmarks.rivals.problem import Problem

POPULATION = 1000
GENERATIONS = 50
MUTATION = 0.2
CROSSOVER = 0.5


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        codes = problem.codes(problem.X_train)
        deviation = np.median(np.abs(codes - np.median(codes, axis=0)), axis=0)
        spread = np.where(deviation > 0, deviation, codes.std(axis=0))
        self.price = 1 / np.where(spread > 0, spread, 1.0)
        self.is_category = np.isin(np.arange(codes.shape[1]), problem.categorical)

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        generator = np.random.default_rng(self.problem.seed)
        query = self.problem.codes(row)[0]
        population, distance = self.sample(generator, query, POPULATION), np.full(POPULATION, np.inf)
        for generation in range(GENERATIONS):
            added = population if generation == 0 else self.offspring(generator, query, population)
            added_distance = np.where(self.reaches_target(added), self.cost(added, query).sum(axis=1), np.inf)
            members = added if generation == 0 else np.concatenate([population, added])
            all_distances = added_distance if generation == 0 else np.concatenate([distance, added_distance])
            fittest = np.argsort(all_distances, kind="stable")[:POPULATION]
            population, distance = members[fittest], all_distances[fittest]
        return population[:1] if np.isfinite(distance[0]) else None

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def reaches_target(self, codes: np.ndarray) -> np.ndarray:
        return self.problem.predict_proba(codes).argmax(axis=1) == self.problem.target

    def cost(self, codes: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Return the contribution of each feature to the distance: the mean within each kind times its share of features."""
        change = np.abs(codes - query)
        return np.where(self.is_category, change > 0, change * self.price) / len(query)

    def sample(self, generator: np.random.Generator, query: np.ndarray, size: int) -> np.ndarray:
        """Draw from the whole feature space; immutable features keep the value of the query."""
        drawn = np.stack([self.values(generator, j, size) for j in range(len(self.price))], axis=1)
        drawn[:, self.problem.immutable] = query[self.problem.immutable]
        return drawn

    def values(self, generator: np.random.Generator, j: int, size: int) -> np.ndarray:
        if self.is_category[j]:
            return generator.integers(len(self.problem.categories(j)), size=size).astype(float)
        low, high, decimals = self.problem.limits(j)
        return np.clip(np.round(generator.uniform(low, high, size), decimals), low, high)

    def offspring(self, generator: np.random.Generator, query: np.ndarray, parents: np.ndarray) -> np.ndarray:
        """Return crossovers of pairs from the fitter half, with some values drawn again."""
        fitter, size = parents[: len(parents) // 2], len(parents)
        first, second = (fitter[generator.integers(len(fitter), size=size)] for _ in range(2))
        crossed = np.where(generator.random((size, 1)) < CROSSOVER, generator.random(first.shape) < 0.5, False)
        children = np.where(crossed, second, first)
        mutated = generator.random(children.shape) < MUTATION
        return np.where(mutated, self.sample(generator, query, size), children)
