"""What must be found because it is there: rare classes, rare categories, narrow windows, nearer single changes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fasterce import FasterCE
from fasterce.search import task as task_module

SAME = (lambda matrix: matrix, lambda latent: latent)


def fitted(model: Any, X: pd.DataFrame, **options: Any) -> FasterCE:
    return FasterCE(model, autoencoder=SAME, progress=False, **options).fit(X)


@pytest.fixture(scope="module")
def shops() -> pd.DataFrame:
    """Eighty shops: more than have a column of their own in the codec."""
    rng = np.random.default_rng(0)
    names = rng.choice([f"s{i:02d}" for i in range(80)], 2000)
    return pd.DataFrame({"shop": names, "x": rng.normal(size=2000), "y": rng.normal(size=2000)})


@pytest.mark.parametrize("method", ["closest", "sparse", "realistic"])
def test_a_class_that_only_the_rarest_categories_have(shops: pd.DataFrame, method: Any) -> None:
    rare = shops["shop"].value_counts().index[-5:]

    def model(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["shop"].isin(rare), "rare", np.where(frame["x"] > 0, "high", "low"))

    rows = shops[model(shops) != "rare"].head(30)
    result = fitted(model, shops).explain(rows, method, target="rare")
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


def test_closest_is_hardly_ever_dearer_than_one_feature_alone() -> None:
    X, y = load_breast_cancer(as_frame=True, return_X_y=True)
    explainer = fitted(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X)
    close, alone = (
        explainer.explain(X, method).to_frame().set_index("query")["distance"] for method in ("closest", "sparse")
    )
    both = close.index.intersection(alone.index)
    assert len(both) > 300
    assert (close[both] > 1.02 * alone[both]).mean() < 0.03
    assert close[both].mean() <= alone[both].mean()


@pytest.mark.parametrize("keep_rows", [True, False])
def test_training_rows_are_kept_only_if_they_may_be(shops: pd.DataFrame, keep_rows: bool) -> None:
    explainer = fitted(lambda frame: (frame["x"] + frame["y"] > 0).to_numpy(), shops, keep_rows=keep_rows)
    own = explainer.table_.read(shops).codes
    kept = (explainer.knowledge_.examples[:, None, :] == own[None, :, :]).all(axis=2)
    assert kept.any() == keep_rows
    assert (explainer.explain(shops.head(20)).status == "found").all()


def test_a_batch_in_blocks_is_answered_as_one(shops: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = fitted(lambda frame: (frame["x"] + frame["y"] > 0).to_numpy(), shops)
    whole = explainer.explain(shops.head(40), "all")
    monkeypatch.setattr(task_module, "MOST_CELLS", 20_000)
    blocks = explainer.explain(shops.head(40), "all")
    assert blocks.asked.calls > 2 * whole.asked.calls
    pd.testing.assert_frame_equal(whole.to_frame(), blocks.to_frame())


def test_realistic_moves_a_category_and_its_copy_together() -> None:
    rng = np.random.default_rng(0)
    kind = pd.Series(rng.choice(list("xyz"), 2000))
    X = pd.DataFrame({"kind": kind, "copy": kind.str.upper(), "noise": rng.normal(size=2000).round(2)})
    explainer = fitted(lambda frame: (frame["kind"] == "z").to_numpy(), X)
    result = explainer.explain(X[kind != "z"].head(60), "realistic")
    assert (result.status == "found").all()
    assert (result.counterfactuals["copy"].str.lower() == result.counterfactuals["kind"]).all()
