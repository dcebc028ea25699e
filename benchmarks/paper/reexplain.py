"""The second reading of the paper's robustness: perturb the input, explain it again, compare both recourses.

The paper perturbs "the features in the input that changed" and finds "the corresponding counterfactual explanation". In the
first reading, the recourse found first is applied to the perturbed input (`recourse` in `run.py`). Here the perturbed input
gets a counterfactual of its own. That also shows whether proximity and sparsity are robust, which the paper leaves open.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.runner import FOUND
from benchmarks.scoring import Scorer, undivided_proximity
from fasterce import metrics

NOISE = 0.05
Explain = Callable[[pd.DataFrame], tuple[np.ndarray, pd.DataFrame]]


@dataclass(frozen=True)
class Pairs:
    """Queries and their counterfactuals, one per line."""

    queries: pd.DataFrame
    counterfactuals: pd.DataFrame

    def take(self, lines: np.ndarray) -> "Pairs":
        return Pairs(*(table.iloc[lines].reset_index(drop=True) for table in (self.queries, self.counterfactuals)))


def reexplained(scorer: Scorer, first: Pairs, explain: Explain, size: float = NOISE) -> pd.DataFrame:
    """Return one line per pair: both recourses, applied to the input and to the perturbed input.

    `explain` returns the positions of the queries with a counterfactual, and the counterfactuals.
    """
    scale, model, target = scorer.scale, scorer.setting.model, scorer.setting.target
    perturbed = perturb(scale, first, size, scorer.setting.seed)
    needed = np.flatnonzero(model.predict(perturbed) != target)
    lines = pd.DataFrame({"row": np.arange(len(first.queries)), "already": 1.0, "valid": np.nan})
    lines["status"], lines["reason"] = FOUND, ""
    lines.loc[needed, ["already", "valid"]] = 0.0
    lines["still"] = (model.predict(applied(scale, first, perturbed)) == target).astype(float)
    positions, counterfactuals = explain(perturbed.iloc[needed].reset_index(drop=True))
    found = needed[positions]
    before, after = first.take(found), Pairs(perturbed.iloc[found].reset_index(drop=True), counterfactuals)
    if len(found):
        lines.loc[found, "valid"] = (model.predict(counterfactuals) == target).astype(float)
        lines.loc[found, "transfers"] = (model.predict(applied(scale, after, before.queries)) == target).astype(float)
        for name, values in compared(scale, before, after).items():
            lines.loc[found, name] = values
    return lines


def compared(scale: metrics.Scale, before: Pairs, after: Pairs) -> dict[str, np.ndarray]:
    """Return proximity and sparsity of both counterfactuals, and how far they change the same features."""
    both = [(pair.queries, pair.counterfactuals) for pair in (before, after)]
    near, near_again = (undivided_proximity(scale, *tables) for tables in both)
    moved, moved_again = (metrics.changed(scale, *tables) for tables in both)
    return {
        "near": near,
        "near_again": near_again,
        "near_change": np.abs(near_again - near) / np.maximum(near, 1e-9),
        "sparsity": moved.sum(axis=1),
        "sparsity_change": np.abs(moved_again.sum(axis=1) - moved.sum(axis=1)).astype(float),
        "same_features": metrics.agreement(moved, moved_again),
    }


def perturb(scale: metrics.Scale, pairs: Pairs, size: float, seed: int) -> pd.DataFrame:
    """Return the queries with normal noise of `size` standard deviations on the numbers that change, inside their range."""
    codes = scale.codes(pairs.queries)
    moved = metrics.changed(scale, pairs.queries, pairs.counterfactuals)
    noise = np.random.default_rng([seed, 1]).standard_normal(codes.shape) * size * scale.codec.profile.std
    for j in scale.codec.numeric:
        codes[:, j] = _allowed(scale, j, np.where(moved[:, j], codes[:, j] + noise[:, j], codes[:, j]), codes[:, j])
    return scale.table.frame(codes)


def applied(scale: metrics.Scale, recourse: Pairs, queries: pd.DataFrame) -> pd.DataFrame:
    """Return other queries after the same recourse: numbers change by the same amount, categories to the same value."""
    before, after, codes = (scale.codes(table) for table in (recourse.queries, recourse.counterfactuals, queries))
    result = np.where(after != before, after, codes)
    for j in scale.codec.numeric:
        result[:, j] = _allowed(scale, j, codes[:, j] + (after - before)[:, j], codes[:, j])
    return scale.table.frame(result)


def _allowed(scale: metrics.Scale, j: int, values: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return values rounded as the feature is written, inside its range; an unchanged value stays as it is."""
    feature = scale.table.schema.features[j]
    rounded = np.round(values, 0 if feature.integer else feature.decimals)
    inside = np.clip(rounded, np.minimum(feature.lower, own), np.maximum(feature.upper, own))
    return np.where(np.isclose(values, own), own, inside)
