"""A native model is taken wherever a model is: fit, load, update, recheck, refitted models; nothing heavy is imported."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from fasterce import FasterCE, load
from fasterce.errors import InputError, ModelError
from fasterce.models.adapters import adapt
from tests.models.adapters.tables import HOMES, JOBS, applicants, categorical, explainer, two

xgboost = pytest.importorskip("xgboost")

X = applicants(250)


def trained(rows: pd.DataFrame, y: Any, rounds: int = 10) -> Any:
    data = xgboost.DMatrix(categorical(rows), label=y, enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, data, rounds)


def own(model: Any, frame: pd.DataFrame) -> np.ndarray:
    cast = frame.assign(job=pd.Categorical(frame["job"], JOBS), home=pd.Categorical(frame["home"], HOMES))
    return (model.inplace_predict(cast) > 0.5).astype(int)


@pytest.fixture(scope="module")
def booster() -> Any:
    return trained(X, two(X))


@pytest.fixture(scope="module")
def fitted(booster: Any) -> FasterCE:
    return explainer(booster, X)


def test_scores_and_classes_are_used(fitted: FasterCE) -> None:
    assert fitted.state_.use_scores
    assert fitted.classes_ == (0, 1)
    surer = fitted.explain(X.head(5), target=1, target_score=(0.8, 1))
    found = surer.counterfactuals[surer.status == "found"]
    assert len(found) >= 2
    assert (own(fitted.model, found) == 1).all()


def test_saved_and_loaded_beside_the_booster(fitted: FasterCE, booster: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "saved")
    again = load(tmp_path / "saved", booster, autoencoder=fitted.autoencoder)
    pd.testing.assert_frame_equal(again.explain(X.head(8)).to_frame(), fitted.explain(X.head(8)).to_frame())


def test_updated_and_rechecked_with_a_new_booster(booster: Any) -> None:
    held = explainer(booster, X)
    issued = held.explain(X.head(12))
    more = applicants(120, seed=3)
    newer = trained(pd.concat([X, more]), np.concatenate([two(X), 1 - two(more)]), 20)
    checked = held.recheck(issued, model=newer)
    counterfactuals = issued.counterfactuals[issued.status == "found"]
    assert (
        checked.holds.to_numpy()[: len(counterfactuals)]
        == (own(newer, counterfactuals) == issued.target[issued.status == "found"])
    ).all()
    held.update(more, model=newer)
    result = held.explain(X.head(8))
    found = (result.status == "found").to_numpy()
    assert found.any()
    assert (own(newer, result.counterfactuals[found]) == result.target[found]).all()
    held.update(applicants(60, seed=4))


def test_refitted_boosters(booster: Any) -> None:
    held = explainer(booster, X).fit_ensemble(trained, X, two(X), count=2)
    result = held.explain(X.head(4), ensemble_agreement=0.5)
    assert (result.to_frame()["ensemble_agreement"] >= 0.5).all()


def test_a_clone_has_the_same_counterfactuals(fitted: FasterCE) -> None:
    other = clone(fitted)
    assert other.model is fitted.model
    assert (own(other.model, X) == own(fitted.model, X)).all()


def test_a_failure_is_one_sentence_without_our_own_error_names(booster: Any) -> None:
    with pytest.raises(ModelError, match=r"^The XGBoost model needs column 'debt'"):
        explainer(booster, X.rename(columns={"debt": "owed"}))


def test_a_path_is_sent_to_load_model() -> None:
    with pytest.raises(InputError, match=r"got a path \(fasterce\.models\.load_model loads a file\)"):
        explainer("model.onnx", X)


def test_a_polars_frame_is_taken_for_what_it_is(booster: Any) -> None:
    polars = pytest.importorskip("polars")
    assert (adapt(booster).predict(polars.from_pandas(X)) == own(booster, X)).all()
    with pytest.raises(InputError, match="needs column"):
        adapt(booster).predict(X.to_numpy())


def test_nothing_heavy_is_imported() -> None:
    heavy = [
        "xgboost",
        "lightgbm",
        "catboost",
        "torch",
        "onnx",
        "onnxruntime",
        "skops",
        "httpx",
        "mlflow",
        "polars",
        "joblib.test",
    ]
    code = (
        "import sys, fasterce, fasterce.models.adapters, fasterce.models.files.load, fasterce.testing;"
        "fasterce.models.adapters.adapt(lambda frame: frame);"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
