"""DiCE (dice-ml on PyPI): `random` samples one feature, then two, and so on; `genetic` breeds; `kdtree` looks up training
rows. All three sparsify at the end."""

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import dice_ml
import numpy as np
import pandas as pd

from benchmarks.rivals.problem import Problem

OUTCOME = "outcome_"


class ModelUsage:
    """The black box as DiCE wants it: an object with `predict_proba` and `predict`."""

    def __init__(self, problem: Problem) -> None:
        self.predict_proba = problem.ask

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.predict_proba(frame).argmax(axis=1)


class Rival:
    """`variant` is DiCE's method; everything else is left at its default."""

    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        names = [problem.columns[j] for j in problem.numeric]
        data = dice_ml.Data(
            dataframe=plain(problem, problem.X_train).assign(**{OUTCOME: problem.y_train}),
            continuous_features=names,
            outcome_name=OUTCOME,
        )
        self.explainer = dice_ml.Dice(data, dice_ml.Model(model=ModelUsage(problem), backend="sklearn"), method=variant)
        self.options = constraints(problem) | ({"random_seed": problem.seed} if variant == "random" else {})

    def explain(self, row: pd.DataFrame) -> pd.DataFrame | None:
        np.random.seed(self.problem.seed)  # noqa: NPY002 - DiCE draws from NumPy's global generator, and takes a seed for
        random.seed(self.problem.seed)  # `random` alone
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            found = self.explainer.generate_counterfactuals(
                plain(self.problem, row),
                total_CFs=self.problem.count,
                desired_class=self.problem.wanted,
                **self.options,
            )
        answer = found.cf_examples_list[0]
        return answer.final_cfs_df_sparse if answer.final_cfs_df_sparse is not None else answer.final_cfs_df

    def table(self, answer: pd.DataFrame) -> pd.DataFrame:
        return self.problem.typed(answer)


def constraints(problem: Problem) -> dict[str, Any]:
    """Given only where asked for: DiCE's own default is everything free, within the training data's ranges."""
    asked: dict[str, Any] = {}
    if problem.immutable:
        asked["features_to_vary"] = [problem.columns[j] for j in problem.free]
    if problem.ranges:
        asked["permitted_range"] = {problem.columns[j]: list(problem.limits(j)[:2]) for j in problem.ranges}
    return asked


def plain(problem: Problem, frame: pd.DataFrame) -> pd.DataFrame:
    """DiCE 0.12 knows text columns as objects, not as pandas 3's `str`."""
    return frame.astype({problem.columns[j]: object for j in problem.categorical})
