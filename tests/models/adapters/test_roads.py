"""One trained model, reached by several roads: the same labels, and answers the original confirms."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from fasterce.models.adapters import OnnxModel, adapt
from fasterce.models.files.load import load_model
from tests.models.adapters.tables import applicants, explainer, strength

xgboost = pytest.importorskip("xgboost")
onnxmltools = pytest.importorskip("onnxmltools")

ROADS = ("estimator", "booster", "json", "ubj", "onnx file", "onnx session")


def numbers(rows: int, seed: int = 0) -> pd.DataFrame:
    frame = applicants(rows, seed)
    return frame.assign(job=frame["job"].map({"clerk": 0, "nurse": 1, "smith": 2})).drop(columns="home").astype(np.float32)


X = numbers(300)
FRESH = numbers(500, seed=1)
LABELS = (strength(applicants(300)) > 38).astype(int)


@pytest.fixture(scope="module")
def original() -> Any:
    return xgboost.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1, random_state=0).fit(X, LABELS)


@pytest.fixture(scope="module")
def roads(original: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from onnxmltools.convert.common.data_types import FloatTensorType

    folder: Path = tmp_path_factory.mktemp("roads")
    for suffix in ("json", "ubj"):
        original.save_model(folder / f"model.{suffix}")
    bare = xgboost.XGBClassifier()
    bare.load_model(folder / "model.ubj")
    bare.get_booster().feature_names = None  # the converter wants f0, f1, …
    graph = onnxmltools.convert_xgboost(bare, initial_types=[("X", FloatTensorType([None, X.shape[1]]))], target_opset=15)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    session = OnnxModel(folder / "model.onnx").session
    return {
        "estimator": original,
        "booster": original.get_booster(),
        "json": load_model(folder / "model.json").model,
        "ubj": load_model(folder / "model.ubj").model,
        "onnx file": load_model(folder / "model.onnx").model,
        "onnx session": session,
    }


@pytest.mark.parametrize("road", ROADS)
def test_every_format_gives_the_same_labels_and_verified_counterfactuals(
    road: str, roads: dict[str, Any], original: Any
) -> None:
    model = roads[road]
    assert (adapt(model).predict(FRESH) == original.predict(FRESH)).all()
    np.testing.assert_allclose(cast(Any, adapt(model)).predict_proba(FRESH), original.predict_proba(FRESH), atol=1e-5)
    result = explainer(model, X).explain(X.head(8))
    assert (result.status == "found").all()
    assert (original.predict(result.counterfactuals.astype(np.float32)) == result.target.to_numpy()).all()
