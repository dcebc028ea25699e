"""CERTIFAI (Sharma, Henderson, Ghosh 2020), written for this benchmark: it is not on PyPI.

As in the paper: a population drawn from the whole feature space; fitness is one over the distance, for members with the
wanted prediction; selection, crossover and mutation, generation by generation. Distance: L1 over median absolute
deviation for numbers and simple matching for categories, each weighted by its share of features. Features that turn out
not to be needed stay changed: the paper mentions no reset.
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
        own = self.problem.codes(row)[0]
        population, distance = self.sample(generator, own, POPULATION), np.full(POPULATION, np.inf)
        for generation in range(GENERATIONS):
            fresh = population if generation == 0 else self.offspring(generator, own, population)
            priced = np.where(self.wanted(fresh), self.cost(fresh, own).sum(axis=1), np.inf)
            everyone = fresh if generation == 0 else np.concatenate([population, fresh])
            everyone_priced = priced if generation == 0 else np.concatenate([distance, priced])
            fittest = np.argsort(everyone_priced, kind="stable")[:POPULATION]
            population, distance = everyone[fittest], everyone_priced[fittest]
        return population[:1] if np.isfinite(distance[0]) else None

    def table(self, answer: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(answer)

    def wanted(self, codes: np.ndarray) -> np.ndarray:
        return self.problem.ask(codes).argmax(axis=1) == self.problem.wanted

    def cost(self, codes: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Each feature's part of the distance; the two kinds weighted by their share, averaged within: one over all."""
        change = np.abs(codes - own)
        return np.where(self.is_category, change > 0, change * self.price) / len(own)

    def sample(self, generator: np.random.Generator, own: np.ndarray, size: int) -> np.ndarray:
        """Anywhere in the feature space; what must not change stays the row's own."""
        drawn = np.stack([self.values(generator, j, size) for j in range(len(self.price))], axis=1)
        drawn[:, self.problem.immutable] = own[self.problem.immutable]
        return drawn

    def values(self, generator: np.random.Generator, j: int, size: int) -> np.ndarray:
        if self.is_category[j]:
            return generator.integers(len(self.problem.categories(j)), size=size).astype(float)
        low, high, decimals = self.problem.limits(j)
        return np.clip(np.round(generator.uniform(low, high, size), decimals), low, high)

    def offspring(self, generator: np.random.Generator, own: np.ndarray, parents: np.ndarray) -> np.ndarray:
        """Features interchanged between pairs of the fitter half, then some replaced by fresh values."""
        fitter, size = parents[: len(parents) // 2], len(parents)
        first, second = (fitter[generator.integers(len(fitter), size=size)] for _ in range(2))
        crossed = np.where(generator.random((size, 1)) < CROSSOVER, generator.random(first.shape) < 0.5, False)
        children = np.where(crossed, second, first)
        mutated = generator.random(children.shape) < MUTATION
        return np.where(mutated, self.sample(generator, own, size), children)
