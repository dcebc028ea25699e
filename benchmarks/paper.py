"""The paper's own experiments with its plain reading: CE1, CE2 over every feature, CE3 with columns frozen, the robustness
of CE1 over δε, and examples. Each is a cell like any other, scored by the same judge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import measuring
from benchmarks.asking import ANSWERED, NOTHING
from benchmarks.plan import PAPERS_BOX, STEPS, Plan
from benchmarks.scoring import Judge
from benchmarks.setting import FREE, FROZEN, Question, Setting
from benchmarks.store import Cell, Key
from fasterce import FasterCE

PAPER = "paper"
CE1, CE2, CE3, EXAMPLES = "ce1", "ce2", "ce3", "examples"
ROBUSTNESS_DATA = "lending_club"
STEP = 0.1
SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
TIMED_ROWS = 3
EXAMPLE_ROWS = 20
EXAMPLE_FEATURES = {
    "adult": ("education", "capital_gain", "hours_per_week"),
    "german_credit": ("checking_status", "credit_history", "duration"),
    "lending_club": ("interest_rate", "debt_to_income", "annual_income"),
}
EXAMPLE_TOGETHER = {
    "adult": ("education", "occupation"),
    "german_credit": ("checking_status", "duration"),
    "lending_club": ("interest_rate", "debt_to_income"),
}


def keys(plan: Plan, seed: int, data: str, box: str) -> Iterator[Key]:
    """CE1, CE2 and CE3 on all data; on Lending Club also CE1 at every δε, one δε beyond, and `robust` at several shares."""
    if not plan.paper or box != PAPERS_BOX:
        return
    names = [CE1, CE2, CE3]
    if data == ROBUSTNESS_DATA:
        names += [at_step(step) for step in STEPS] + [beyond(step) for step in STEPS] + [at_share(share) for share in SHARES]
    if seed == plan.seeds[0]:
        names.append(EXAMPLES)
    for name in names:
        yield Key(data, box, PAPER, name, seed)


def at_step(step: float) -> str:
    return f"{CE1}-step-{step:g}"


def beyond(step: float) -> str:
    """One δε farther than the first point that flips."""
    return f"{CE1}-beyond-{step:g}"


def at_share(share: float) -> str:
    return f"robust-{share:g}"


@dataclass(frozen=True)
class Experiments:
    setting: Setting
    judge: Judge
    model_rows: int

    @cached_property
    def fitted(self) -> tuple[FasterCE, float]:
        """The explainer and how long it took to learn; without a twin, so that every question goes to the black box."""
        started = perf_counter()
        setting = self.setting
        explainer = FasterCE(setting.model, setting.schema, random_state=setting.seed, compile="never", progress=False)
        return explainer.fit(setting.X_train), perf_counter() - started

    @property
    def rows(self) -> pd.DataFrame:
        return self.setting.rows.iloc[: self.model_rows]

    def cell(self, key: Key, made_by: str) -> Cell:
        explainer, seconds = self.fitted
        about: dict[str, Any] = {"setup": seconds, "load": measuring.load()}
        if key.method == EXAMPLES:
            about["examples"] = examples(explainer, self.setting)
            return Cell(key, made_by, about, pd.DataFrame())
        return Cell(key, made_by, about, self._lines(key.method))

    def _lines(self, name: str) -> pd.DataFrame:
        if name == CE2:
            return self._every_feature()
        if name == CE3:
            return self._one_by_one(FROZEN, method="realistic", **plain(STEP), features_to_vary=self.setting.free(FROZEN))
        kind, _, value = name.rpartition("-")
        if kind == "robust":
            return self._one_by_one(FREE, method="closest", robust=float(value), distance="mad", diagnose=False)
        margin = float(value) if kind == f"{CE1}-beyond" else 0.0
        return self._one_by_one(FREE, method="closest", **plain(float(value) if kind else STEP), margin=margin)

    def _one_by_one(self, question: Question, **options: Any) -> pd.DataFrame:
        """As a person is explained: one row a call, after one that does not count."""
        explainer, _ = self.fitted
        explainer.explain(self.rows.iloc[:1], **options)
        records = [self._record(explainer.explain(self.rows.iloc[[k]], **options), 0, k) for k in range(len(self.rows))]
        return self.judge.lines(records, question)

    def _every_feature(self) -> pd.DataFrame:
        """Sparse by each feature in turn: all rows in one call, and a few one by one for the time."""
        explainer, _ = self.fitted
        lines = []
        for feature in self.setting.X_train.columns:
            options: dict[str, Any] = {"method": "sparse", **plain(STEP), "features_to_vary": [feature]}
            together = explainer.explain(self.rows, **options)
            records = [self._record(together, k, k) for k in range(len(self.rows))]
            for k in range(len(records)):
                alone = explainer.explain(self.rows.iloc[[k]], **options) if k < TIMED_ROWS else None
                records[k]["seconds"] = alone.seconds if alone is not None else np.nan
            lines.append(self.judge.lines(records, FREE).assign(feature=feature))
        return pd.concat(lines, ignore_index=True)

    def _record(self, result: Any, k: int, position: int) -> dict[str, Any]:
        found = result.status.iloc[k] == "found"
        return {
            "position": position,
            "status": ANSWERED if found else NOTHING,
            "reason": "" if found else str(result.reason.iloc[k]),
            "answers": result.counterfactuals.iloc[[k]].to_dict("records") if found else None,
            "seconds": result.seconds,
            "calls": result.usage.calls,
            "rows": result.usage.rows,
        }


def plain(step: float) -> dict[str, Any]:
    """The paper's plain reading, and no search for reasons."""
    return {"reading": "paper", "step": step, "diagnose": False}


def examples(explainer: FasterCE, setting: Setting) -> dict[str, Any]:
    """The row among the first that has most answers, with CE1, CE2 for three features and CE3 for two together."""
    rows = setting.rows.iloc[:EXAMPLE_ROWS]
    together = list(EXAMPLE_TOGETHER[setting.data])
    asked = [("FASTER-CE1", explainer.explain(rows, diagnose=False))]
    asked += [
        ("FASTER-CE2", explainer.explain(rows, "sparse", features_to_vary=[feature], diagnose=False))
        for feature in EXAMPLE_FEATURES[setting.data]
    ]
    asked += [("FASTER-CE3", explainer.explain(rows, "realistic", features_to_vary=together, diagnose=False))]
    found = np.stack([(result.status == "found").to_numpy() for _, result in asked])
    best = int(found.sum(axis=0).argmax())
    lines = [
        (title, result.counterfactuals.iloc[best])
        for (title, result), there in zip(asked, found[:, best], strict=True)
        if there
    ]
    return shown(rows.iloc[best], lines)


def shown(row: pd.Series, lines: Sequence[tuple[str, pd.Series]]) -> dict[str, Any]:
    """Only the features that some answer changes, as text, and which of them each answer changes."""
    changed = [name for name in row.index if any(after[name] != row[name] for _, after in lines)]
    return {
        "features": changed,
        "input": [str(row[name]) for name in changed],
        "answers": [
            {
                "title": title,
                "values": [str(after[name]) for name in changed],
                "changed": [bool(after[name] != row[name]) for name in changed],
            }
            for title, after in lines
        ],
    }
