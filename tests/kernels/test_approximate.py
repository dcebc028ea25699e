"""Combinations of changes whose gains are taken as if they added up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.options import Method


@pytest.fixture(scope="module")
def model() -> tuple[GradientBoostingClassifier, pd.DataFrame]:
    """Ten numbers that count alike: many small changes together are cheaper than a few large ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 10)).round(2), columns=[f"x{j}" for j in range(10)])
    return GradientBoostingClassifier(n_estimators=60, random_state=0).fit(X, X.sum(axis=1) > 2), X


@pytest.mark.parametrize("method", ["closest", "sparse"])
def test_many_small_changes_are_found(model: tuple[GradientBoostingClassifier, pd.DataFrame], method: Method) -> None:
    boosting, X = model
    rows = X[~boosting.predict(X)].head(60)
    distance, changes = {}, {}
    for combinations in (0, 4):
        fast = Config.fast()
        config = replace(fast, search=replace(fast.search, combinations=combinations))
        result = FasterCE(boosting, progress=False, config=config).fit(X).explain(rows, method)
        assert (result.status == "found").all()
        distance[combinations] = result.to_frame()["distance"].to_numpy()
        changes[combinations] = (result.counterfactuals.to_numpy() != rows.to_numpy()).sum(axis=1)
    if method == "closest":
        assert (distance[4] < 0.99 * distance[0]).sum() >= 5
        assert (distance[4] <= 1.01 * distance[0]).all()
    else:
        assert (changes[4] <= changes[0]).all()


def test_a_euclidean_distance_is_near_that_of_the_plane() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 8)).round(4), columns=[f"x{j}" for j in range(8)])
    model = LogisticRegression().fit(X, X.sum(axis=1) + X["x0"] > 2)
    margin = model.decision_function(X)
    near = np.flatnonzero((margin < -0.5) & (margin > -4))[:40]
    result = FasterCE(model, progress=False, config=Config.fast()).fit(X).explain(X.iloc[near], distance="euclidean")
    # Each number is divided by its standard deviation.
    optimum = -margin[near] / np.linalg.norm(model.coef_[0] * X.std(ddof=0).to_numpy())
    ratio = result.to_frame()["distance"].to_numpy() / optimum
    assert ratio.mean() < 1.02
    assert ratio.max() < 1.06
