"""With constraints between columns: what is found against all rows of a small world, one after another."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.constraints import If, Require, Together

COLUMNS = list("abcde")
HIGHEST = 8
MODELS = {
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=200, random_state=0)),
    "trees": lambda: XGBClassifier(n_estimators=40, max_depth=3, n_jobs=1),
}
# Constraints, and the same as a condition on columns of rows; `q` is the query.
RULES: dict[str, tuple[list[Any], Any]] = {
    "order": ([Require("a <= b")], lambda r, q: r["a"] <= r["b"]),
    "sums": (
        [Require("a + b + c <= 14"), Require("d >= c - 3")],
        lambda r, q: (r["a"] + r["b"] + r["c"] <= 14) & (r["d"] >= r["c"] - 3),
    ),
    "if": ([If({"a": (5, None)}, then={"b": (4, None)})], lambda r, q: (r["a"] < 5) | (r["b"] >= 4)),
    "together": (
        [Together("a", "b", slope=1), Require("b <= d + 2")],
        lambda r, q: (r["b"] - q["b"] == r["a"] - q["a"]) & (r["b"] <= r["d"] + 2),
    ),
}


@cache
def world(kind: str) -> tuple[FasterCE, pd.DataFrame, pd.DataFrame]:
    """An explainer, the rows to explain, and all rows that reach the target."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, HIGHEST + 1, (1000, len(COLUMNS))), columns=COLUMNS)
    score = (X - HIGHEST / 2) @ rng.normal(size=len(COLUMNS)) + 0.8 * np.sin(X["a"] * X["c"])
    model = MODELS[kind]().fit(X, score > score.quantile(0.65))
    every = pd.DataFrame(list(product(range(HIGHEST + 1), repeat=len(COLUMNS))), columns=COLUMNS)
    explainer = FasterCE(model, progress=False, config=Config.fast()).fit(X)
    return explainer, X[~model.predict(X).astype(bool)], every[model.predict(every).astype(bool)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rule", RULES)
def test_nearly_as_near_as_the_nearest_of_all_rows(kind: str, rule: str) -> None:
    explainer, refused, reached = world(kind)
    constraints, holds = RULES[rule]
    refused = refused[holds(refused, refused)].head(20)
    result = explainer.explain(refused, constraints=constraints, distance="gower", diagnose=False)
    found = result.to_frame().set_index("query")
    mine, best = [], []
    for name, query in refused.iterrows():
        legal = reached[holds(reached, query)]
        # The range of every column is that of the data.
        nearest = (legal - query).abs().sum(axis=1).min() / HIGHEST
        if name in found.index:
            assert holds(found.loc[name], query)
            assert found.loc[name, "distance"] >= nearest - 1e-9
            mine.append(found.loc[name, "distance"])
            best.append(nearest)
    assert len(mine) >= 18
    assert np.mean(mine) <= 1.03 * np.mean(best)
