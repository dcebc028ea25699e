"""treecf (PyPI): search in the trees themselves, for a pipeline that ends in XGBoost.

It works on the input of the trees: scaled numbers and one-hot columns. Its normalizers make its distance gower_l1, numbers
keep the schema's range and decimals, and one-hot columns stay one-hot. Encoding and decoding of rows are not timed. It does
not call the model, so there are no calls to count.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from treecf import Counterfactual, Explainer, Freeze, Grid, OneHot, Range, Target

from benchmarks.rivals.problem import Problem

SECONDS_PER_ROW = 2.0
# How far beyond the boundary a score must be: scores are sums of 32-bit floats.
MARGIN = 1e-6
PROVEN = ("optimal", "certified")


class Rival:
    """`variant` is treecf's backend: "genetic" (its default) or "exact"."""

    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.backend = problem, variant
        self.columns, self.trees = problem.model[0], problem.model[-1]
        parts = {name: (part, list(columns)) for name, part, columns in self.columns.transformers_}
        self.scaler, self.numeric = parts.get("standardscaler", (None, []))
        self.encoder, self.categorical = parts.get("onehotencoder", (None, []))
        self.groups = self.one_hot_groups()
        names = [f"f{k}" for k in range(self.trees.n_features_in_)]
        self.explainer = Explainer(
            self.trees,
            normalizers=self.normalizers(len(names)),
            constraints=[
                *self.ranges(names),
                *(OneHot(tuple(names[k] for k in g)) for g in self.groups if len(g) > 1),
                *(Freeze(names[k]) for k in self.frozen()),
            ],
            value_policy={names[k]: Grid(*self.grid(k)) for k in range(len(self.numeric))},
        )
        low = getattr(problem.model, "low", None)
        self.target = (
            Target.probability(range=(0.5 + MARGIN, 1.0)) if low is None else Target.raw(range=(low + MARGIN, np.inf))
        )
        self.encoded = self.columns.transform(problem.rows)
        self.proofs: list[str] = []
        self.proven = False

    def one_hot_groups(self) -> list[range]:
        starts = np.cumsum([len(self.numeric), *(len(values) for values in self.known())])
        return [range(start, stop) for start, stop in pairwise(starts)]

    def known(self) -> list[np.ndarray]:
        """Return the categories of each categorical column."""
        return [] if self.encoder is None else list(self.encoder.categories_)

    def normalizers(self, width: int) -> np.ndarray:
        """Return the divisors of |change|: the range of a number, and 2 for one-hot columns, two of which change."""
        normalizers = np.full(width, 2.0)
        span = self.problem.X_train[self.numeric].max() - self.problem.X_train[self.numeric].min()
        normalizers[: len(self.numeric)] = np.where(span > 0, span, 1.0) / self.scaler.scale_
        return normalizers

    def ranges(self, names: list[str]) -> list[Range]:
        limits = np.array([self.permitted(name) for name in self.numeric])
        scaled = (limits - self.scaler.mean_[:, None]) / self.scaler.scale_[:, None]
        slack = 1e-9
        return [Range(names[k], low - slack, high + slack) for k, (low, high) in enumerate(scaled)]

    def frozen(self) -> list[int]:
        """The columns of the features that must not change."""
        immutable = {self.problem.columns[j] for j in self.problem.immutable}
        numbers = [k for k, name in enumerate(self.numeric) if name in immutable]
        groups = zip(self.categorical, self.groups, strict=True)
        return numbers + [k for name, group in groups if name in immutable for k in group]

    def grid(self, k: int) -> tuple[float, float]:
        low, _, step = self.values(self.numeric[k])
        return step / self.scaler.scale_[k], (low - self.scaler.mean_[k]) / self.scaler.scale_[k]

    def permitted(self, name: str) -> tuple[float, float]:
        low, high, _ = self.values(name)
        least, most = self.problem.ranges.get(self.problem.columns.index(name), (low, high))
        return max(low, least), min(high, most)

    def values(self, name: str) -> tuple[float, float, float]:
        """Return lowest, highest and step; categories that the pipeline treats as numbers count as numbers."""
        if name in self.problem.spec["categories"]:
            known = np.sort(np.array(self.problem.spec["categories"][name], dtype=float))
            return known[0], known[-1], np.diff(known).min(initial=known[-1] - known[0] or 1.0)
        low, high, decimals = self.problem.spec["numeric"][name]
        return np.round(low, decimals), high, 10.0**-decimals

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        encoded = self.encoded[row.index[0]]
        found = self.explainer.explain(
            encoded, self.target, backend=self.backend, time_budget_s=SECONDS_PER_ROW, seed=self.problem.seed
        )
        self.proofs.append(found.proof)
        self.proven = found.proof in PROVEN
        return found.x_cf[None] if isinstance(found, Counterfactual) else None

    def notes(self) -> list[str]:
        """Return the share of counterfactuals proven to be the nearest; its default search proves none."""
        return [f"{self.proofs.count('optimal') / len(self.proofs):.0%} proved optimal"] if self.backend == "exact" else []

    def explain_batch(self, rows: pd.DataFrame) -> Any:
        return self.explainer.explain_batch(
            self.encoded[rows.index],
            self.target,
            backend=self.backend,
            time_budget_s=SECONDS_PER_ROW,
            seed=self.problem.seed,
            allow_exact_batch=self.backend == "exact",
        )

    def table(self, result: np.ndarray) -> pd.DataFrame:
        numbers = self.scaler.inverse_transform(result[:, : len(self.numeric)])
        decimals = {name: numeric[2] for name, numeric in self.problem.spec["numeric"].items()}
        table = {name: np.round(numbers[:, k], decimals.get(name, 0)) for k, name in enumerate(self.numeric)}
        for name, group, values in zip(self.categorical, self.groups, self.known(), strict=True):
            table[name] = values[result[:, list(group)].argmax(axis=1)]
        return self.problem.typed(pd.DataFrame(table))
