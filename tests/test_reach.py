"""What must be found because it is there: rare classes, rare categories, narrow windows, nearer single changes."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fasterce import FasterCE
from fasterce.config import Config, SearchConfig

SAME = (lambda matrix: matrix, lambda latent: latent)


def fitted(model: Any, X: pd.DataFrame, **options: Any) -> FasterCE:
    return FasterCE(model, autoencoder=SAME, progress=False, **options).fit(X)


@pytest.fixture(scope="module")
def shops() -> pd.DataFrame:
    """Eighty shops: more than have a column of their own in the codec."""
    rng = np.random.default_rng(0)
    names = rng.choice([f"s{i:02d}" for i in range(80)], 2000)
    return pd.DataFrame({"shop": names, "x": rng.normal(size=2000), "y": rng.normal(size=2000)})


@pytest.fixture(scope="module")
def rare_shops(shops: pd.DataFrame) -> FasterCE:
    """Only the rarest shops have the class "rare"."""
    rare = shops["shop"].value_counts().index[-5:]

    def model(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["shop"].isin(rare), "rare", np.where(frame["x"] > 0, "high", "low"))

    return fitted(model, shops)


@pytest.fixture(scope="module")
def sums(shops: pd.DataFrame) -> FasterCE:
    return fitted(lambda frame: (frame["x"] + frame["y"] > 0).to_numpy(), shops)


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic"])
def test_a_class_that_only_the_rarest_categories_have(shops: pd.DataFrame, rare_shops: FasterCE, method: Any) -> None:
    model = rare_shops.model
    rows = shops[model(shops) != "rare"].head(30)
    result = rare_shops.explain(rows, method, target="rare")
    assert (result.status == "found").all()
    assert (model(result.counterfactuals) == "rare").all()


def test_a_class_seen_in_few_training_rows_is_enough_to_fit(shops: pd.DataFrame) -> None:
    rare = shops["shop"].value_counts().index[-1]
    explainer = fitted(lambda frame: (frame["shop"] == rare).to_numpy(), shops)
    assert (explainer.explain(shops[shops["shop"] != rare].head(10)).status == "found").all()


def test_a_narrow_window_is_found_by_one_feature() -> None:
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(2000, 3)).round(3), columns=list("abc"))

    def model(frame: pd.DataFrame) -> np.ndarray:
        return ((frame["a"] > 0.5) & (frame["a"] < 0.55)).to_numpy()

    result = fitted(model, X).explain(X[~model(X)].head(40), "sparse")
    assert (result.status == "found").all()
    assert set(result.to_frame()["changed"].map(tuple)) == {("a",)}


@dataclass(frozen=True, eq=False)
class Tumours:
    """Thirty numbers and a linear model; the best gower distance one feature alone can do (inf: none can), and any can."""

    explainer: FasterCE
    X: pd.DataFrame
    alone: np.ndarray
    best: np.ndarray

    @cache  # noqa: B019 - kept as long as the fixture
    def explained(self, method: Any, distance: Any) -> pd.DataFrame:
        return self.explainer.explain(self.X, method, distance=distance).to_frame().set_index("query")


@pytest.fixture(scope="module", params=["auto", "never"])
def tumours(request: pytest.FixtureRequest) -> Tumours:
    """By scores and by labels."""
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    slope, lead, codes = model[-1].coef_[0] / model[0].scale_, model.decision_function(X), X.to_numpy()
    low, span = codes.min(axis=0), np.ptp(codes, axis=0)
    upward = (slope > 0) == (lead < 0)[:, None]
    room = np.where(upward, low + span - codes, codes - low) / span
    needed = np.abs(lead)[:, None] / (np.abs(slope) * span)
    alone = np.where(needed < room, needed, np.inf).min(axis=1)
    best = [cheapest_mix(mine, np.abs(slope) * span, abs(need)) for mine, need in zip(room, lead, strict=True)]
    return Tumours(fitted(model, X, scores=request.param, compile="never"), X, alone, np.array(best))


def cheapest_mix(room: np.ndarray, rate: np.ndarray, need: float) -> float:
    """Of every feature, the most effective first, as much as there is room for."""
    cost = 0.0
    for j in np.argsort(-rate):
        part = min(room[j], need / rate[j])
        cost, need = cost + part, need - part * rate[j]
    return cost


@pytest.mark.parametrize("distance", ["gower", "percentile"])
def test_sparse_changes_one_feature_wherever_one_is_enough(tumours: Tumours, distance: Any) -> None:
    found, one = tumours.explained("sparse", distance)["n_changed"], np.isfinite(tumours.alone)
    assert one.sum() > 300
    assert (found[one] == 1).mean() > 0.995
    assert (found[~one] > 1).all()


@pytest.mark.parametrize("distance", ["gower", "percentile"])
def test_closest_is_hardly_ever_dearer_than_one_feature_alone(tumours: Tumours, distance: Any) -> None:
    alone = tumours.explained("sparse", distance)
    alone = alone[alone["n_changed"] == 1]["distance"]
    close = tumours.explained("closest", distance)["distance"].reindex(alone.index)
    assert len(alone) > 300
    if tumours.explainer.state_.use_scores and distance == "gower":
        assert (close > 1.05 * alone).mean() < 0.03
    assert (close > 1.25 * alone).mean() < (0.1 if tumours.explainer.state_.use_scores else 0.2)
    assert close.mean() <= (1.0 if tumours.explainer.state_.use_scores else 1.05) * alone.mean()


def test_closest_is_within_a_quarter_of_the_best_there_is(tumours: Tumours) -> None:
    close = tumours.explained("closest", "gower")["distance"].to_numpy()
    assert (close >= tumours.best - 1e-6).all()
    assert close.mean() <= 1.25 * tumours.best.mean()


@pytest.mark.parametrize("keep_rows", [True, False])
def test_training_rows_are_kept_only_if_they_may_be(shops: pd.DataFrame, sums: FasterCE, keep_rows: bool) -> None:
    explainer = sums if keep_rows else fitted(sums.model, shops, keep_rows=False)
    own = explainer.state_.table.read(shops).codes
    kept = (explainer.state_.search.examples[:, None, :] == own[None, :, :]).all(axis=2)
    assert kept.any() == keep_rows
    assert (explainer.explain(shops.head(20)).status == "found").all()


def test_a_batch_in_blocks_is_explained_as_one(shops: pd.DataFrame, sums: FasterCE) -> None:
    whole = sums.explain(shops.head(40), "all")
    small = Config(search=SearchConfig(max_cells=8_000))
    blocks = fitted(sums.model, shops, config=small).explain(shops.head(40), "all")
    assert blocks.usage.calls > 2 * whole.usage.calls
    pd.testing.assert_frame_equal(whole.to_frame(), blocks.to_frame())


def test_realistic_moves_a_category_and_its_copy_together() -> None:
    rng = np.random.default_rng(0)
    kind = pd.Series(rng.choice(list("xyz"), 2000))
    X = pd.DataFrame({"kind": kind, "copy": kind.str.upper(), "noise": rng.normal(size=2000).round(2)})
    explainer = fitted(lambda frame: (frame["kind"] == "z").to_numpy(), X)
    result = explainer.explain(X[kind != "z"].head(60), "realistic")
    assert (result.status == "found").all()
    assert (result.counterfactuals["copy"].str.lower() == result.counterfactuals["kind"]).all()
