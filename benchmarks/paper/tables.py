"""Tables from cells: one line per dataset, method and run, over the queries of both targets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.networks import TARGETS
from benchmarks.paper.plan import REEXPLAINED, ROBUSTNESS, TABLE_1, TITLES
from benchmarks.runner import NOT_TRIED, TIMEOUT
from benchmarks.store import Cell, gather

MEASURES = {
    "valid": ("validity %", "{:.1f}"),
    "n_changed": ("sparsity (features)", "{:.2f}"),
    "undivided": ("proximity, as printed", "{:.2f}"),
    "proximity": ("proximity, weighted", "{:.3f}"),
    "each": ("s per explanation", "{:.4f}"),
    "total": ("s in all, test set", "{:.1f}"),
}
# Rows of the whole test sets, both targets, for the total time.
TEST_ROWS = {"adult": 7327, "german_credit": 150, "lending_club": 1500}
MEANS = ("n_changed", "undivided", "proximity", "gower_l1", "recourse", "recourse_large")


@dataclass(frozen=True)
class Tables:
    """The cells of a run, and tables made from them."""

    cells: Sequence[Cell]

    def of(self, task: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.key.task == task]

    def about(self, task: str, name: str) -> list[tuple[str, int, Any]]:
        """Return (dataset, run, value) of a fact that cells of a task have."""
        return [(cell.key.data, cell.key.seed, cell.about[name]) for cell in self.of(task) if name in cell.about]

    @cached_property
    def lines(self) -> pd.DataFrame:
        """All lines of the comparison, one per query (and feature, for CE2)."""
        return gather(cell for target in TARGETS for cell in self.of(target) if len(cell.lines))

    @cached_property
    def setup(self) -> dict[tuple[str, str, int], float]:
        """Seconds of set-up by dataset, method and run."""
        cells = [cell for target in TARGETS for cell in self.of(target) if cell.about.get("setup") is not None]
        return {(cell.key.data, cell.key.method, cell.key.seed): float(cell.about["setup"]) for cell in cells}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One line per dataset, method and run, over both targets."""
        return self._per_run(self.lines, ["data", "method", "seed"])

    @cached_property
    def runs_by_target(self) -> pd.DataFrame:
        return self._per_run(self.lines, ["data", "task", "method", "seed"])

    def _per_run(self, lines: pd.DataFrame, by: list[str]) -> pd.DataFrame:
        if not len(lines):
            return pd.DataFrame(columns=[*by, *MEASURES, "title", "tried", "setup"])
        tried = lines[lines["status"] != NOT_TRIED]
        # It is unknown whether a query stopped by the time limit has a counterfactual.
        tried = tried.assign(valid=tried["valid"].where(tried["status"] != TIMEOUT))
        groups = tried.groupby(by, sort=False)
        runs = groups[[name for name in MEANS if name in lines]].mean()
        runs["valid"], runs["tried"] = 100 * groups["valid"].mean(), groups["row"].size()
        runs["each"] = groups["seconds"].median()
        runs = runs.reset_index()
        places = zip(runs["data"], runs["method"], runs["seed"], strict=True)
        runs["setup"] = [self.setup.get((data, method, int(seed)), np.nan) for data, method, seed in places]
        runs["total"] = runs["setup"] + runs["each"] * runs["data"].map(TEST_ROWS)
        return runs.assign(title=runs["method"].map(TITLES), seed=runs["seed"].astype(int))

    @cached_property
    def robustness_lines(self) -> pd.DataFrame:
        """Lines of the first reading; those of rivals are in the comparison."""
        ours = gather(cell for cell in self.of(ROBUSTNESS) if len(cell.lines))
        rivals = self.lines[self.lines["recourse"].notna()] if "recourse" in self.lines else self.lines.iloc[:0]
        parts = [part.assign(task=ROBUSTNESS) for part in (ours, rivals) if len(part)]
        return pd.concat(parts, ignore_index=True) if parts else ours

    @cached_property
    def robustness(self) -> pd.DataFrame:
        """The first reading, per method and run, in percent."""
        if not len(self.robustness_lines):
            return pd.DataFrame(columns=["method", "seed", "recourse", "recourse_large", "undivided", "valid"])
        runs = self._per_run(self.robustness_lines, ["data", "method", "seed"])
        return runs.assign(recourse=100 * runs["recourse"], recourse_large=100 * runs["recourse_large"])

    @cached_property
    def reexplained(self) -> pd.DataFrame:
        """The second reading, per method and run, in percent where it is a share."""
        lines = gather(cell for cell in self.of(REEXPLAINED) if len(cell.lines))
        if not len(lines):
            return pd.DataFrame()
        names = [name for name in lines if name not in {"data", "model", "task", "method", "seed", "status", "reason", "row"}]
        runs = lines.groupby(["method", "seed"], sort=False)[names].mean()
        runs["queries"] = lines.groupby(["method", "seed"], sort=False).size()
        shares = ["valid", "already", "still", "transfers", "same_features", "near_change"]
        runs[shares] = 100 * runs[shares]
        return runs.reset_index()

    def networks(self, data: str) -> list[Cell]:
        return [cell for cell in self.of(TABLE_1) if cell.key.data == data]

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(cell.key.data for cell in self.cells))


def plus_minus(values: Iterable[float], form: str) -> str:
    """Return mean ± standard deviation over runs."""
    known = np.array([value for value in values if value is not None and np.isfinite(value)])
    if not len(known):
        return "–"
    deviation = known.std(ddof=1) if len(known) > 1 else 0.0
    return f"{form.format(known.mean())} ± {form.format(deviation)}"
