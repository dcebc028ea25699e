"""Exact scorers of ONNX graphs: trees, linear models and layers behind any preprocessing that keeps columns apart."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession
from skl2onnx import convert_sklearn
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fasterce.models.adapters import OnnxModel
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.scorer import read_scorer
from fasterce.models.predictor import Predictor
from tests.models.compiled.models import coded, columns, numbers, outcome, people
from tests.models.compiled.test_scorer import CONFIG, THREE, TWO, at_edges, check_equal, drawn

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FRAME = people().drop(columns="owner").astype({"age": np.float32, "debt": np.float32})
SINGLE = 1e-4
# Where ONNX Runtime computes 1 - p in single precision, smaller probabilities are noise.
LOWEST = -6.0

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": LogisticRegression,
    "network": lambda: MLPClassifier((12, 6), max_iter=40, random_state=0),
    "network with tanh": lambda: MLPClassifier((9,), activation="tanh", max_iter=40, random_state=0),
    "forest": lambda: RandomForestClassifier(9, max_depth=6, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
}


def graph(model: Any, frame: Any = FRAME) -> bytes:
    kinds = [FloatTensorType([None, 1]) if dtype == np.float32 else StringTensorType([None, 1]) for dtype in frame.dtypes]
    inputs = list(zip(frame.columns, kinds, strict=True))
    return bytes(convert_sklearn(model, initial_types=inputs).SerializeToString())


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", MODELS)
def test_graphs_of_pipelines(name: str, classes: tuple[str, ...]) -> None:
    fitted = make_pipeline(columns(sparse_threshold=0), MODELS[name]()).fit(FRAME, outcome(people(), classes))
    model = OnnxModel(graph(fitted))
    table, codes = coded(FRAME)
    predictor = Predictor(model, table, tuple(model.classes_), use_scores=True)
    found = read_scorer(model, predictor, codes, CONFIG)
    assert found.scorer.exact
    rows = drawn(FRAME, predictor)
    check_equal(found, predictor, rows, SINGLE, LOWEST)
    if len(found.scorer.trees.edges):
        check_equal(found, predictor, at_edges(found, predictor, rows), SINGLE, LOWEST)


@pytest.mark.parametrize(
    "last",
    [LinearRegression(), GradientBoostingRegressor(n_estimators=10), MLPRegressor(hidden_layer_sizes=(6,), random_state=0)],
    ids=["linear", "boosting", "network"],
)
def test_graphs_that_predict_numbers(last: Any) -> None:
    worth = FRAME["age"] * 2 - FRAME["debt"]
    model = OnnxModel(graph(make_pipeline(columns(sparse_threshold=0), last).fit(FRAME, worth)))
    table, codes = coded(FRAME)
    predictor = Predictor(model, table)
    predictor.learn_numbers(codes)
    check_equal(read_scorer(model, predictor, codes, CONFIG), predictor, drawn(FRAME, predictor), SINGLE)


def test_other_graphs_are_refused() -> None:
    frame = numbers().astype(np.float32)
    machine = graph(make_pipeline(StandardScaler(), SVC()).fit(frame, outcome(numbers())), frame)
    lines = graph(make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, outcome(numbers())), frame)
    own = InferenceSession(lines, providers=["CPUExecutionProvider"])
    table, codes = coded(frame)
    for model, reason in ((OnnxModel(machine), "no trees, no layers"), (OnnxModel(own), "a session")):
        with pytest.raises(NotCompiledError, match=reason):
            read_scorer(model, Predictor(model, table, (0, 1), use_scores=False), codes, CONFIG)
