"""DiCE (dice-ml on PyPI): `random` samples one feature, then two, and so on; `genetic` is a genetic algorithm; `kdtree`
looks up training rows. All three sparsify at the end."""

import io
import random
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import dice_ml
import numpy as np
import pandas as pd

from benchmarks.rivals.problem import Problem

OUTCOME = "outcome_"


class DiceModel:
    """The black box with the interface DiCE expects: `predict_proba` and `predict`."""

    def __init__(self, problem: Problem) -> None:
        self.predict_proba = problem.predict_proba

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
        self.explainer = dice_ml.Dice(data, dice_ml.Model(model=DiceModel(problem), backend="sklearn"), method=variant)
        self.options = constraints(problem) | ({"random_seed": problem.seed} if variant == "random" else {})

    def explain(self, row: pd.DataFrame) -> pd.DataFrame | None:
        np.random.seed(self.problem.seed)  # noqa: NPY002 - DiCE uses NumPy's global generator, and takes a seed for
        random.seed(self.problem.seed)  # `random` alone
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            found = self.explainer.generate_counterfactuals(
                plain(self.problem, row),
                total_CFs=self.problem.count,
                desired_class=self.problem.target,
                **self.options,
            )
        example = found.cf_examples_list[0]
        return example.final_cfs_df_sparse if example.final_cfs_df_sparse is not None else example.final_cfs_df

    def table(self, result: pd.DataFrame) -> pd.DataFrame:
        return self.problem.typed(result)


def constraints(problem: Problem) -> dict[str, Any]:
    """Return DiCE's options; by default every feature may change, within the ranges of the training data."""
    options: dict[str, Any] = {}
    if problem.immutable:
        options["features_to_vary"] = [problem.columns[j] for j in problem.free]
    if problem.ranges:
        options["permitted_range"] = {problem.columns[j]: list(problem.limits(j)[:2]) for j in problem.ranges}
    return options


def plain(problem: Problem, frame: pd.DataFrame) -> pd.DataFrame:
    """DiCE 0.12 needs text columns as objects, not as pandas 3's `str`."""
    return frame.astype({problem.columns[j]: object for j in problem.categorical})
