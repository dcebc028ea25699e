"""Distances relative to the nearest counterfactual known of each query, over all datasets and models.

The reference of a query is the smallest distance of a valid counterfactual of any system. Where a system has proven that
nothing is nearer, the reference is the optimum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.runner import NOT_TRIED

QUERY = ["data", "model", "seed", "row"]
CELL = ["data", "model", "method"]
RESAMPLES = 1000
NEAR = 1.01
# Quantiles of the cells of a system that are given as its spread.
SPREAD = (0.1, 0.9)
LEVELS = (0.025, 0.975)


def with_reference(lines: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return the lines that were tried, with columns `distance`, `reference` and `optimal`.

    `optimal` says that the reference is proven. Proofs are of gower_l1 alone.
    """
    lines = lines[lines["status"] != NOT_TRIED]
    lines = lines.assign(distance=lines[score].where(lines["valid"] == 1))
    by_query = lines.groupby(QUERY)
    lines = lines.assign(reference=by_query["distance"].transform("min"))
    known = score == "gower_l1" and "proven" in lines
    proven = lines["proven"].where(lines["valid"] == 1).fillna(0.0) if known else pd.Series(0.0, lines.index)
    return lines.assign(optimal=proven.groupby([lines[name] for name in QUERY]).transform("max"))


@dataclass(frozen=True)
class Cell:
    """One system on one model: distances and references of the queries for which it has a valid counterfactual.

    `queries` is the number of queries tried, `milliseconds` the median of their processor time.
    """

    data: str
    model: str
    method: str
    distance: np.ndarray
    reference: np.ndarray
    optimal: np.ndarray
    queries: int
    milliseconds: float

    @property
    def ratio(self) -> float:
        """The mean distance divided by the mean reference."""
        return float(self.distance.mean() / self.reference.mean()) if len(self.distance) else float("nan")

    @property
    def ratio_to_optimum(self) -> float:
        """The same over the queries whose reference is proven; nan if there is none."""
        proven = self.optimal == 1
        return float(self.distance[proven].mean() / self.reference[proven].mean()) if proven.any() else float("nan")

    def resampled(self, generator: np.random.Generator) -> np.ndarray:
        """Return the ratio for queries drawn again with replacement, `RESAMPLES` times."""
        drawn = generator.integers(len(self.distance), size=(RESAMPLES, len(self.distance)))
        return np.asarray(self.distance[drawn].mean(axis=1) / self.reference[drawn].mean(axis=1))


def cells(lines: pd.DataFrame, score: str = "gower_l1") -> list[Cell]:
    """Return a cell for each dataset, model and system with at least one valid counterfactual."""
    found = []
    for (data, model, method), group in with_reference(lines, score).groupby(CELL, sort=False):
        valid = group["distance"].notna().to_numpy()
        if valid.any():
            arrays = (group[name].to_numpy(dtype=float)[valid] for name in ("distance", "reference", "optimal"))
            milliseconds = 1000 * float(group["seconds"].median())
            found.append(Cell(str(data), str(model), str(method), *arrays, len(group), milliseconds))
    return found


def table(found: Sequence[Cell], seed: int = 0) -> pd.DataFrame:
    """Return one line per system: geometric means over its cells, with 95 % intervals from resampled queries.

    Columns are `cells`, `queries`, `valid` (%), `ratio` with `low` and `high` (of the mean) and `least` and `most`
    (quantiles of the cells), `to_optimum` (the ratio over queries with a proven optimum), `near` (% of the counterfactuals
    within 1.01 of the reference), `ms` with `ms_least` and `ms_most`.
    """
    lines = {}
    for method in dict.fromkeys(cell.method for cell in found):
        part = [cell for cell in found if cell.method == method]
        lines[method] = _line(part, np.random.default_rng(seed))
    return pd.DataFrame.from_dict(lines, orient="index")


def _line(part: Sequence[Cell], generator: np.random.Generator) -> dict[str, float]:
    ratios = np.array([cell.ratio for cell in part])
    milliseconds = np.array([cell.milliseconds for cell in part])
    means = np.exp(np.mean([np.log(cell.resampled(generator)) for cell in part], axis=0))
    distance, reference = (np.concatenate([getattr(cell, name) for cell in part]) for name in ("distance", "reference"))
    (low, high), (least, most) = np.quantile(means, LEVELS), np.quantile(ratios, SPREAD)
    to_optimum = np.array([known for cell in part if np.isfinite(known := cell.ratio_to_optimum)])
    ms_least, ms_most = np.quantile(milliseconds, SPREAD)
    queries = sum(cell.queries for cell in part)
    return {
        "cells": len(part),
        "queries": queries,
        "valid": 100 * len(distance) / queries,
        "ratio": float(np.exp(np.log(ratios).mean())),
        "low": float(low),
        "high": float(high),
        "least": float(least),
        "most": float(most),
        "to_optimum": float(np.exp(np.log(to_optimum).mean())) if len(to_optimum) else float("nan"),
        "near": 100 * float((distance <= NEAR * reference).mean()),
        "ms": float(np.exp(np.log(milliseconds).mean())),
        "ms_least": float(ms_least),
        "ms_most": float(ms_most),
    }


def proven(lines: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """Return by model for how many queries the nearest counterfactual by gower_l1 is proven, of how many tried."""
    tried = lines[lines["proven"].notna()] if "proven" in lines else lines.iloc[:0]
    tried = tried.assign(proven=tried["proven"].where(tried["valid"] == 1, 0.0))
    queries = tried.groupby(QUERY, sort=False)["proven"].max().groupby(level="model", sort=False)
    return {str(model): (int(values.sum()), len(values)) for model, values in queries}
