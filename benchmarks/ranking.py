"""Ranks of methods by query: Friedman's test, Nemenyi's distance, and Wilcoxon's test with Holm's correction.

A query of a model is a block: every method explains the same queries. A query without a valid counterfactual has the last
place, shared by all methods that fail there. Queries of one model are not independent, so p-values are too small.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from benchmarks.summary import interval

LOWER_IS_BETTER = {"gower_l1": True, "n_changed": True, "nn_ratio": True, "robust": False, "seconds": True}
BLOCK = ["data", "model", "seed", "row"]
FEWEST_BLOCKS = 5
LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Methods by mean rank (1 is best). `apart`: mean ranks farther from each other than this differ (Nemenyi, 5 %)."""

    score: str
    blocks: int
    table: pd.DataFrame
    friedman: float
    apart: float

    @property
    def best(self) -> str:
        return str(self.table.index[0])

    @property
    def tied(self) -> list[str]:
        """The methods that Wilcoxon's test does not separate from the best."""
        return [str(name) for name in self.table.index if self.table.loc[name, "p"] > LEVEL]


def rank(lines: pd.DataFrame, score: str) -> Ranking | None:
    """Rank over the queries all methods explained; None with fewer than two methods or too few queries."""
    blocks = filled(lines, score)
    methods = blocks.shape[1]
    if methods < 2 or len(blocks) < FEWEST_BLOCKS:
        return None
    ranks = pd.DataFrame(rankdata(blocks.to_numpy(), axis=1), index=blocks.index, columns=blocks.columns)
    mean = ranks.mean().sort_values(kind="stable")
    table = pd.DataFrame({"rank": mean})
    table[["low", "high"]] = [interval(ranks[method]) for method in mean.index]
    table["p"] = holm([paired(blocks[mean.index[0]], blocks[method]) for method in mean.index[1:]])
    return Ranking(score, len(blocks), table, friedman(blocks), nemenyi(methods, len(blocks)))


def filled(lines: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return blocks by methods; lower is better, and a missing value is worse than the worst."""
    sign = 1.0 if LOWER_IS_BETTER[score] else -1.0
    values = (sign * lines[score]).where(lines["valid"] == 1)
    worst = values.max() + 1.0 + values.abs().max()
    wide = lines.assign(value=values.fillna(worst)).pivot_table(index=BLOCK, columns="method", values="value", sort=False)
    return wide.dropna()


def friedman(blocks: pd.DataFrame) -> float:
    """Return the p-value of Friedman's test, of Wilcoxon's for two methods."""
    columns = [blocks[name].to_numpy() for name in blocks]
    if len(columns) == 2:
        return paired(blocks.iloc[:, 0], blocks.iloc[:, 1])
    if all((column == columns[0]).all() for column in columns):
        return 1.0
    return float(friedmanchisquare(*columns).pvalue)


def nemenyi(methods: int, blocks: int, level: float = LEVEL) -> float:
    quantile = studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def paired(first: pd.Series, second: pd.Series) -> float:
    difference = (first - second).to_numpy()
    return 1.0 if not difference.any() else float(wilcoxon(difference).pvalue)


def holm(p_values: list[float]) -> list[float]:
    """Return p-values of the best method against each other one with Holm's correction; nan for the best itself."""
    order = np.argsort(p_values)
    corrected, highest = np.empty(len(p_values)), 0.0
    for place, k in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[k]))
        corrected[k] = highest
    return [float("nan"), *corrected.tolist()]
