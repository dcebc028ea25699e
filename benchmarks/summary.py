"""Summaries of lines: one line per method and run, with shares, means and medians."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from benchmarks.runner import NOT_TRIED
from benchmarks.store import Cell, gather
from fasterce import metrics

REFERENCE = "ours-closest"
PERCENT = ("valid", "success", "inlier", "ynn", "robust", "recourse")
MEANS = (
    *("valid", "success", "n_changed", "gower_l1", "euclidean", "l2", "linf", "proximity", "nn_ratio", "inlier", "ynn"),
    *("robust", "recourse", "violations", "calls", "rows", "returned", "diversity"),
)
RESAMPLES = 1000


@dataclass
class Results:
    """All lines, the facts of every cell, and titles of methods in the order of the plan."""

    lines: pd.DataFrame
    about: pd.DataFrame
    titles: dict[str, str]

    @classmethod
    def of(cls, cells: Iterable[Cell], titles: dict[str, str]) -> "Results":
        cells = list(cells)
        about = pd.DataFrame([{**vars(cell.key), **cell.about} for cell in cells])
        titles = {**titles, **{cell.key.method: cell.about["title"] for cell in cells if "title" in cell.about}}
        return cls(gather(cell for cell in cells if len(cell.lines)), about, titles)

    def title(self, method: str) -> str:
        return self.titles.get(method, method)

    def part(self, **values: str) -> pd.DataFrame:
        """Return the lines of one task, dataset or model."""
        kept = np.ones(len(self.lines), dtype=bool)
        for name, value in values.items():
            kept &= (self.lines[name] == value).to_numpy()
        return self.lines[kept]

    def settings(self, task: str) -> list[tuple[str, str]]:
        if not len(self.lines):
            return []
        found = self.part(task=task)[["data", "model"]].drop_duplicates()
        return [(str(data), str(model)) for data, model in found.to_numpy()]


def per_run(lines: pd.DataFrame) -> pd.DataFrame:
    """Return one line per method and seed: shares of all queries, other means over valid counterfactuals."""
    grouped = lines.groupby(["method", "seed"], sort=False)
    runs = grouped[[name for name in MEANS if name in lines]].mean()
    for name in PERCENT:
        runs[name] = 100 * runs[name]
    runs["queries"] = grouped.size()
    runs["tried"] = 100 * grouped["status"].agg(lambda status: (status != NOT_TRIED).mean())
    runs["ms"] = 1000 * grouped["seconds"].median()
    runs["in_model"] = 100 * grouped["model_seconds"].sum() / grouped["seconds"].sum()
    runs["total"] = grouped["seconds"].sum()
    return runs.reset_index()


def times_reference(runs: pd.DataFrame) -> pd.Series:
    """Return the median time divided by that of our `closest` in the same run; nan without it."""
    reference = runs[runs["method"] == REFERENCE].set_index("seed")["ms"]
    return runs["ms"] / runs["seed"].map(reference)


def interval(values: Iterable[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean, by bootstrap."""
    known = np.array([value for value in values if np.isfinite(value)])
    if len(known) < 2:
        return (float("nan"), float("nan"))
    drawn = np.random.default_rng(seed).integers(len(known), size=(RESAMPLES, len(known)))
    low, high = np.quantile(known[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def agreement(lines: pd.DataFrame) -> pd.DataFrame:
    """Return how far each pair of methods changes the same features, over queries for which both have a valid one."""
    valid = lines[lines["valid"] == 1]
    names = sorted({name for changed in valid["changed"] for name in changed.split("|") if name})
    methods = list(dict.fromkeys(lines["method"]))
    masks = {
        method: pd.DataFrame(
            [[name in changed.split("|") for name in names] for changed in group["changed"]],
            index=pd.MultiIndex.from_frame(group[["seed", "row"]]),
        )
        for method, group in valid.groupby("method", sort=False)
    }
    found = pd.DataFrame(np.nan, index=methods, columns=methods)
    for (first, one), (second, other) in product(masks.items(), repeat=2):
        both = one.index.intersection(other.index)
        if len(both):
            pair = (mask.loc[both].to_numpy(dtype=bool) for mask in (one, other))
            found.loc[first, second] = metrics.agreement(*pair).mean()
    return found


def exclude_not_run(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines without methods that explained no row: not installed, or failed before the first one."""
    run = lines.groupby("method")["status"].transform(lambda status: (status != NOT_TRIED).any())
    return lines[run.to_numpy(dtype=bool)] if len(lines) else lines


def failures(lines: pd.DataFrame, most: int = 2) -> pd.DataFrame:
    """Return the number of queries without a valid counterfactual, by method, with the most frequent reasons."""
    bad = lines[lines["valid"] != 1]
    counted = bad.groupby(["method", "data", "model", "task"], sort=False)["reason"].agg(
        rows="size", why=lambda reasons: "; ".join(f"{why} ({n})" for why, n in reasons.value_counts().head(most).items())
    )
    return counted.reset_index()
