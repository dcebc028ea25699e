"""What holds for every engine: verified, within the constraints, the same alone and in a batch, with a known origin."""

from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from fasterce import FasterCE, PaperOptions, Schema
from fasterce.config import Config
from fasterce.constraints import OnlyUp, Require
from fasterce.latent.runtime import Callables

ENGINES = ("hybrid", "latent", "paper")
METHODS = ("closest", "sparse", "realistic")
FEATURES = ["age", "income", "debt", "rate", "area"]


@cache
def world() -> tuple[FasterCE, pd.DataFrame]:
    rng = np.random.default_rng(5)
    income = rng.gamma(4, 10, 400).round(1)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 400),
            "income": income,
            "debt": (income * rng.uniform(0.1, 1.5, 400)).round(1),
            "rate": rng.uniform(1, 9, 400).round(2),
            "area": rng.choice(["north", "south", "west"], 400),
        }
    )
    good = 2 * frame["income"] - frame["debt"] - 4 * frame["rate"] + 10 * (frame["area"] == "north") > 30
    numbers = frame.assign(area=frame["area"].map({"north": 0, "south": 1, "west": 2}))
    inner = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(numbers, good)

    def model(rows: pd.DataFrame) -> Any:
        return inner.predict(rows[FEATURES].assign(area=rows["area"].map({"north": 0, "south": 1, "west": 2})))

    schema = Schema.infer(frame, increasing=["age"], ranges={"rate": (0, 10)})
    explainer = FasterCE(model, schema, progress=False, config=Config.fast()).fit(frame)
    refused = frame[~np.asarray(model(frame), dtype=bool)].head(12)
    return explainer, refused


@pytest.mark.parametrize("method", [*METHODS, "all"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_returns_verified_rows_within_the_constraints(engine: Any, method: Any) -> None:
    explainer, refused = world()
    constraints = [OnlyUp("income"), Require("debt <= 2 * income")]
    result = explainer.explain(refused, method, n=2, engine=engine, constraints=constraints, features_to_vary=FEATURES[1:])
    found = result.to_frame()
    assert np.asarray(explainer.model(found[FEATURES]), dtype=bool).all()
    before = refused.loc[found["query"]].reset_index(drop=True)
    assert (found["age"] == before["age"]).all()
    assert (found["income"] >= before["income"]).all()
    assert (found["debt"] <= 2 * found["income"] + 1e-9).all()
    if engine != "hybrid":
        assert set(found["origin"]) <= {"latent"}
    if engine != "paper":
        assert (result.status == "found").all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_alone_is_as_in_a_batch(engine: Any, method: Any) -> None:
    explainer, refused = world()
    together = explainer.explain(refused, method, n=2, engine=engine, diagnose=False).to_frame()
    for label in refused.index[:4]:
        alone = explainer.explain(refused.loc[[label]], method, n=2, engine=engine, diagnose=False).to_frame()
        pd.testing.assert_frame_equal(alone, together[together["query"] == label].reset_index(drop=True))


def test_the_paper_counts_the_rows_it_withholds() -> None:
    """Reconstruction makes nearly everybody a little younger or older, and the schema forbids the former."""
    explainer, refused = world()
    result = explainer.explain(refused, "closest", engine="paper", diagnose=False)
    withheld = result.reason.str.contains("break a constraint, and were withheld: ")
    assert withheld.any()
    assert withheld[result.status == "none_found"].any()
    codes = [problem.code for problems in result.problems for problem in problems]
    assert "search.withheld" in codes


def test_ranges_of_a_call_change_what_the_paper_does() -> None:
    explainer, refused = world()
    free = explainer.explain(refused, "sparse", engine="paper", paper=PaperOptions(perturbation="sweep"), diagnose=False)
    bound = explainer.explain(refused, "sparse", engine="paper", permitted_range={"income": (0, 60)}, diagnose=False)
    assert (bound.to_frame()["income"] <= 60).all()
    assert len(free.to_frame()) > 0


@pytest.mark.parametrize("method", METHODS)
def test_an_autoencoder_of_noise_changes_what_latent_finds(method: Any) -> None:
    explainer, refused = world()
    learned = explainer.explain(refused, method, engine="latent", diagnose=False)
    width, rng = explainer.state_.search.codec.width, np.random.default_rng(0)
    weights = rng.normal(size=(width, explainer.state_.search.hyperplanes.normals.shape[1]))
    noise = (lambda matrix: np.tanh(matrix @ weights), lambda points: np.sin(9 * points @ weights.T))
    scrambled, state = copy(explainer), explainer.state_
    scrambled.state_ = replace(state, search=replace(state.search, autoencoder=Callables(*noise)))
    random = scrambled.explain(refused, method, engine="latent", diagnose=False)
    assert not learned.to_frame().equals(random.to_frame())
