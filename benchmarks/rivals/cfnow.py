"""CFNOW (PyPI): a greedy or random search for any counterfactual, then a tabu search for a nearer one.

It is given numbers as they are and one-hot columns named by feature, as its manual shows. Ten seconds per row, as in the
manual's example, otherwise its defaults. Of the counterfactuals it returns, nearest first, the first ones are taken. It
supports neither immutable features nor ranges.
"""

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):  # it looks for dictionaries that only text needs
    from cfnow import find_tabular

SECONDS_PER_ROW = 10


class Rival:
    """`variant` is CFNOW's strategy: "greedy" or "random" (its default)."""

    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem, self.strategy = problem, variant
        self.encoding = Encoding(problem, numbers="raw")
        self.kinds: dict[str, str] = {}
        for j, block in enumerate(self.encoding.blocks):
            if j in problem.numeric:
                self.kinds[f"f{j}"] = "num"
            else:
                self.kinds |= {f"f{j}_{k}": "cat" for k in range(block.stop - block.start)}

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        np.random.seed(self.problem.seed)  # noqa: NPY002 - it uses the global generators
        random.seed(self.problem.seed)
        query = pd.Series(self.encoding.matrix(self.problem.codes(row))[0], index=list(self.kinds))
        found = find_tabular(
            factual=query,
            model_predict_proba=self.predict_proba,
            count_cf=self.problem.count,
            feat_types=self.kinds,
            has_ohe=True,
            cf_strategy=self.strategy,
            limit_seconds=SECONDS_PER_ROW,
        )
        return self.encoding.codes(np.array(found.cfs[: self.problem.count])) if len(found.cfs) else None

    def predict_proba(self, rows: Any) -> np.ndarray:
        return self.problem.predict_proba(self.encoding.codes(np.asarray(rows, dtype=float)))

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)
