"""The pages about tables of other libraries, models behind HTTP and coming from DiCE run as they stand."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, Schema, datasets
from fasterce.config import Config
from tests.docs.pages import run_page

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def data() -> Any:
    return datasets.load("german_credit")


@pytest.fixture(scope="module")
def model(data: Any) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.X, data.y)


def test_coming_from_dice(data: Any, model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rows = data.X[model.predict(data.X) == "bad"].head(5)
    names = run_page(
        "migration.md",
        {"Schema": Schema, "FasterCE": partial(FasterCE, config=Config.fast()), "X": data.X, "model": model, "rows": rows},
    )
    found = names["e"].to_frame()
    assert found["duration"].between(6, 48).all()
    fixed = [name for name in data.X.columns if name not in ("duration", "credit_amount")]
    assert (found[fixed].to_numpy() == rows.loc[found["query"], fixed].to_numpy()).all()
    assert found.groupby("query").size().max() > 1
    assert "found" in capsys.readouterr().out


def test_models_behind_http(data: Any, model: Any) -> None:
    pytest.importorskip("httpx")
    from tests.models.http.server import serving, table

    refused = data.X[model.predict(data.X) == "bad"].head(5)
    with serving(lambda request: {"predictions": model.predict_proba(table(request)).tolist()}) as far:
        names = run_page("http.md", {"url": far.url, "token": "abc", "data": data, "refused": refused})
        assert far.usage[0].headers["authorization"] == "Bearer abc"
        names["model"].close()
    result = names["result"]
    assert (result.status == "found").all()
    assert (model.predict(result.counterfactuals) == "good").all()


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow")
def test_other_tables_scikit_learn_and_mlflow(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pl, mlflow = pytest.importorskip("polars"), pytest.importorskip("mlflow")
    monkeypatch.setitem(os.environ, "MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_experiment("docs")
    amounts = data.X[["duration", "credit_amount", "age"]]
    small = LogisticRegression(max_iter=1000).fit(amounts, data.y)

    PythonModel: Any = mlflow.pyfunc.PythonModel

    class Chances(PythonModel):
        def predict(self, context, model_input, params=None):
            return small.predict_proba(model_input)

    mlflow.pyfunc.save_model(str(tmp_path / "credit"), python_model=Chances(), pip_requirements=[])
    try:
        names = run_page(
            "frames.md",
            {"credit_uri": str(tmp_path / "credit"), "folder": str(tmp_path / "folder")},
        )
    finally:
        mlflow.set_tracking_uri(None)
    assert isinstance(names["result"].counterfactuals, pl.DataFrame)
    assert set(names["result"].status) == {"found"}
    assert isinstance(names["what_if"], pd.DataFrame)
    assert len(names["what_if"]) == 5
    same = names["again"].explain(names["refused"]).to_frame()
    assert same.equals(names["result"].to_frame())
    lines = names["lines"]
    assert (lines["target"] == "good").all()
    assert np.isin(lines["status"], ["found", "already_target"]).all()
    assert "shape: (5, 2)" in capsys.readouterr().out
