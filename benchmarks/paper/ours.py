"""FASTER-CE1, CE2 and CE3 with the paper's engine, and our default methods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.plan import CE1, CE2, CE3, DEFAULTS, STEP
from benchmarks.runner import FOUND, NONE_FOUND
from benchmarks.setting import Setting
from fasterce import Explanation, FasterCE
from fasterce.constraints import Frozen
from fasterce.options import Engine, PaperOptions

METHODS = {CE1: "closest", CE2: "sparse", CE3: "realistic"}


def with_engine(name: Engine, step: float = STEP, **paper: Any) -> dict[str, Any]:
    """Return the options that select an engine; `step` and further options are those of the paper's."""
    return {"engine": name} | ({"paper": PaperOptions(step=step, **paper)} if name == "paper" else {})


@dataclass(frozen=True)
class Explained:
    """The result for the queries of a setting; `records` is what a scorer reads."""

    setting: Setting
    result: Explanation

    @property
    def found(self) -> np.ndarray:
        return (self.result.status == "found").to_numpy()

    @property
    def counterfactuals(self) -> pd.DataFrame:
        """The first counterfactual of each query; a query without one has missing values."""
        return self.result.counterfactuals

    def records(self, seconds: Mapping[int, float]) -> list[dict[str, Any]]:
        """Return one record per query; `seconds` by position for those that were explained one at a time."""
        rows, usage = self.counterfactuals, self.result.usage
        return [
            {
                "position": k,
                "status": FOUND if found else NONE_FOUND,
                "reason": "" if found else "no counterfactual",
                "counterfactuals": [rows.iloc[k].to_dict()] if found else None,
                "seconds": seconds.get(k, np.nan),
                "calls": usage.calls / len(rows),
                "rows": usage.rows / len(rows),
            }
            for k, found in enumerate(self.found)
        ]


@dataclass(frozen=True)
class Ours:
    """An explainer fitted once per dataset and run; the paper's engine evaluates the black box itself."""

    explainer: FasterCE
    uncompiled: FasterCE
    setup: float

    @classmethod
    def fit(cls, setting: Setting) -> "Ours":
        started = process_time()
        explainer = FasterCE(setting.model, setting.schema, random_state=setting.seed, progress=False).fit(setting.X_train)
        seconds = process_time() - started
        uncompiled = FasterCE(setting.model, setting.schema, random_state=setting.seed, progress=False)
        uncompiled.state_ = replace(explainer.state_, compiled=None)
        return cls(explainer, uncompiled, seconds)

    def options(self, method: str, setting: Setting) -> dict[str, Any]:
        """Return the options of a method of the comparison; CE3 freezes the immutable columns."""
        common = {"target": setting.target, "diagnose": False}
        if method in DEFAULTS:
            return common | {"method": method}
        frozen = {"constraints": [Frozen(*setting.immutable)]} if method == CE3 else {}
        return common | {"method": METHODS[method]} | with_engine("paper") | frozen

    def of(self, method: str) -> FasterCE:
        return self.explainer if method in DEFAULTS else self.uncompiled

    def explain(self, setting: Setting, method: str, **more: Any) -> Explained:
        return Explained(setting, self.of(method).explain(setting.rows, **(self.options(method, setting) | more)))

    def seconds(self, setting: Setting, method: str, most: int, **more: Any) -> dict[int, float]:
        """Return the processor time of each of the first queries, one at a time, after one that is not counted."""
        explainer, options = self.of(method), self.options(method, setting) | more
        explainer.explain(setting.rows.iloc[:1], **options)
        found = {}
        for k in range(min(most, len(setting.rows))):
            started = process_time()
            explainer.explain(setting.rows.iloc[[k]], **options)
            found[k] = process_time() - started
        return found

    def one_feature_each(self, setting: Setting, timed_rows: int) -> Iterator[tuple[str, Explained, dict[int, float]]]:
        """Yield for every feature the counterfactuals of CE2, and the seconds of a few queries one at a time."""
        timed = max(1, timed_rows // 10)
        for feature in setting.X_train.columns:
            one = {"features_to_vary": [feature]}
            yield str(feature), self.explain(setting, CE2, **one), self.seconds(setting, CE2, timed, **one)
