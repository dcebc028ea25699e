"""Evaluate every counterfactual with the black box again and measure it with `fasterce.metrics`: one line per row."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.setting import Setting, Task
from fasterce import metrics
from fasterce.search.distance import Distance

REFERENCE_ROWS = 4000
# Added to the seed of the noise, so that it differs from the noise that robust counterfactuals were searched with.
SEED_OFFSET = 10_000
MEASURED = (
    *("n_changed", "gower_l1", "euclidean", "l2", "linf", "proximity", "undivided"),
    *("nn_ratio", "inlier", "ynn", "violations", "robust", "recourse"),
)
# `proven`: whether a system with a proof has proven that nothing is nearer by gower_l1.
COSTS = ("seconds", "model_seconds", "calls", "rows", "proven")
NOT_FLIPPED = "does not change the prediction"


@dataclass(frozen=True)
class Scorer:
    """Measures the counterfactuals of one setting.

    Realism is measured against at most `reference_rows` training rows, drawn once; `measured` are the names of the measures.
    """

    setting: Setting
    reference_rows: int = REFERENCE_ROWS
    measured: tuple[str, ...] = MEASURED

    @cached_property
    def scale(self) -> metrics.Scale:
        return metrics.Scale.of(self.setting.X_train, self.setting.schema)

    @cached_property
    def _reference(self) -> pd.DataFrame:
        X = self.setting.X_train
        return X.sample(min(self.reference_rows, len(X)), random_state=0)

    @cached_property
    def peers(self) -> metrics.Peers:
        return metrics.Peers.of(self.setting.model, self.scale, self._reference, self.setting.target)

    @cached_property
    def neighbourhood(self) -> metrics.Neighbourhood:
        return metrics.Neighbourhood.of(self.setting.model, self.scale, self._reference, self.setting.target)

    def score(self, records: list[dict[str, Any]], task: Task) -> pd.DataFrame:
        """Return one line per record.

        `valid` is 1 if the model gives the target class, `success` if moreover no constraint is broken. With several
        counterfactuals the first is measured.
        """
        found = [self.read(record) for record in records]
        lines = pd.DataFrame([self._line(record, why) for record, (_, why) in zip(records, found, strict=True)])
        readable = [k for k, (table, _) in enumerate(found) if table is not None]
        if readable:
            first = pd.concat([found[k][0].iloc[:1] for k in readable], ignore_index=True)
            before = self.setting.rows.iloc[[records[k]["position"] for k in readable]].reset_index(drop=True)
            for name, values in self._measured(before, first, task).items():
                lines.loc[readable, name] = values
            lines.loc[readable, "returned"] = [len(found[k][0]) for k in readable]
            lines.loc[readable, "diversity"] = [metrics.diversity(self.scale, found[k][0]) for k in readable]
        invalid = (lines["valid"] == 0) & (lines["reason"] == "")
        lines.loc[invalid, "reason"] = NOT_FLIPPED
        return lines

    def _line(self, record: dict[str, Any], why: str) -> dict[str, Any]:
        blank = dict.fromkeys(("diversity", *self.measured), np.nan)
        cost = {name: float(record.get(name, np.nan)) for name in COSTS}
        return {
            "row": record["position"],
            "status": record["status"],
            "reason": record["reason"] or why,
            "valid": 0.0,
            "success": 0.0,
            "returned": 0,
            "changed": "",
            **blank,
            **cost,
        }

    def read(self, record: dict[str, Any]) -> tuple[pd.DataFrame | None, str]:
        """Return the counterfactuals as a table with the types of the training data, or None and why they are unreadable."""
        if not record["counterfactuals"]:
            return None, ""
        names = list(self.setting.X_train.columns)
        table = pd.DataFrame(record["counterfactuals"])
        different = sorted(set(map(str, table.columns)) ^ set(names))
        if different:
            return None, f"wrong columns: {', '.join(different[:3])}"
        reading = self.scale.table.read(table[names])
        if reading.first_problem is not None:
            return None, reading.first_problem.without_row().text()
        return self.scale.table.frame(reading.codes), ""

    def _measured(self, before: pd.DataFrame, after: pd.DataFrame, task: Task) -> dict[str, Any]:
        """Return the measures of readable counterfactuals; those of quality only for valid ones."""
        model, scale = self.setting.model, self.scale
        valid = np.asarray(model.predict(after) == self.setting.target)
        broken = metrics.violations(scale, before, after, features_to_vary=self.setting.free(task))
        moved = metrics.changed(scale, before, after)
        names = np.array(self.setting.X_train.columns)
        found: dict[str, Any] = {
            "valid": valid.astype(float),
            "success": (valid & (broken == 0)).astype(float),
            "violations": broken.astype(float),
            "changed": ["|".join(names[row]) for row in moved],
        }
        if valid.any():
            good = {name: np.full(len(after), np.nan) for name in self.measured if name != "violations"}
            for name, values in self._quality(before[valid], after[valid]).items():
                good[name][valid] = values
            found |= good
        return found

    def _quality(self, before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
        model, scale, seed = self.setting.model, self.scale, SEED_OFFSET + self.setting.seed
        target, norms = self.setting.target, metrics.norms(scale, before, after)
        found: dict[str, Callable[[], Any]] = {
            "n_changed": lambda: metrics.features_changed(scale, before, after),
            "gower_l1": lambda: norms["l1"],
            "euclidean": lambda: euclidean(scale, before, after),
            "l2": lambda: norms["l2"],
            "linf": lambda: norms["linf"],
            "proximity": lambda: metrics.proximity(scale, before, after),
            "undivided": lambda: undivided_proximity(scale, before, after),
            "nn_ratio": lambda: metrics.nn_ratios(self.peers, after),
            "inlier": lambda: metrics.inlier(self.peers, after),
            "ynn": lambda: metrics.ynn(self.neighbourhood, after),
            "robust": lambda: metrics.robustness(model, scale, after, target, seed=seed),
            "recourse": lambda: metrics.robustness(model, scale, after, target, rows=before, seed=seed),
        }
        return {name: found[name]() for name in self.measured if name in found}


def euclidean(scale: metrics.Scale, before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """Return the Euclidean norm of |change| / standard deviation, and 1 per changed category."""
    codec = scale.codec
    change = np.abs(scale.codes(after) - scale.codes(before))
    spread = np.where(codec.profile.std > 0, codec.profile.std, 1.0)
    change[:, codec.numeric] /= spread[codec.numeric]
    change[:, codec.categorical] = change[:, codec.categorical] > 0
    return np.asarray(np.sqrt((change**2).sum(axis=1)))


def undivided_proximity(scale: metrics.Scale, before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """Return the proximity as the paper prints it, without weights for the share of numeric and categorical columns.

    The Euclidean norm of the changes of numbers, each divided by its median absolute deviation, plus the share of
    categories that differ. `fasterce.metrics.proximity` weights both parts, as CERTIFAI's formula does.
    """
    codec, count = scale.codec, len(scale.table.schema)
    distance = Distance.mad(codec.profile.mad, codec.numeric, codec.nullable)
    parts = count * distance.parts(scale.codes(after), scale.codes(before))
    numbers, categories = parts[:, codec.numeric], parts[:, codec.categorical]
    norm = np.sqrt((numbers**2).sum(axis=1)) / max(len(codec.numeric), 1)
    return np.asarray(norm + categories.sum(axis=1) / max(len(codec.categorical), 1))
