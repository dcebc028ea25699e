"""Native boosters: their structure is read, or they are not compiled and a sentence says why."""

import copy
import sys
from collections.abc import Callable
from typing import Any, cast

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost

from fasterce import FasterCE, Schema
from fasterce.models.adapters import adapt
from fasterce.models.compiled import CompiledModel, build
from fasterce.models.predictor import Predictor
from tests.models.adapters.tables import IDENTITY, applicants, categorical, three, two
from tests.models.compiled.models import coded, shuffled

X = applicants(300)
NUMBERS = X[["age", "pay", "debt"]]
QUIET = {"verbose": -1, "num_threads": 1, "seed": 0}


def trees(objective: str, y: Any, frame: Any = None, **settings: Any) -> xgboost.Booster:
    data = xgboost.DMatrix(categorical(X) if frame is None else frame, label=y, enable_categorical=True)
    return xgboost.train({"objective": objective, "max_depth": 3, "nthread": 1, **settings}, data, 12)


def stopped_early() -> xgboost.Booster:
    model = trees("binary:logistic", two(X))
    model.set_attr(best_iteration="4")
    return model


def leaves(objective: str, y: Any, frame: Any = None, **settings: Any) -> lightgbm.Booster:
    data = lightgbm.Dataset(categorical(X) if frame is None else frame, label=y)
    return lightgbm.train({**QUIET, "objective": objective, **settings}, data, 12)


MODELS: dict[str, tuple[Callable[[], Any], pd.DataFrame]] = {
    "xgboost": (lambda: trees("binary:logistic", two(X)), X),
    "xgboost logits": (lambda: trees("binary:logitraw", two(X)), X),
    "xgboost of three": (lambda: trees("multi:softprob", three(X), num_class=3), X),
    "xgboost of three, labels": (lambda: trees("multi:softmax", three(X), num_class=3), X),
    "xgboost dart": (lambda: trees("binary:logistic", two(X), booster="dart", rate_drop=0.2), X),
    "xgboost linear": (lambda: trees("binary:logistic", two(X), NUMBERS, booster="gblinear"), NUMBERS),
    "xgboost on an array": (lambda: trees("binary:logistic", two(X), NUMBERS.to_numpy()), NUMBERS),
    "xgboost stopped early": (stopped_early, X),
    "xgboost in other types": (
        lambda: trees("binary:logistic", two(X)),
        X.astype({"age": "Int64", "pay": np.float32, "home": object}),
    ),
    "xgboost, columns turned": (lambda: trees("binary:logistic", two(X)), X[X.columns[::-1]]),
    "lightgbm": (lambda: leaves("binary", two(X)), X),
    "lightgbm of three": (lambda: leaves("multiclass", three(X), num_class=3), X),
    "lightgbm, one against all": (lambda: leaves("multiclassova", three(X), num_class=3), X),
    "lightgbm on an array": (lambda: leaves("binary", two(X), NUMBERS.to_numpy()), NUMBERS),
    "lightgbm, columns turned": (lambda: leaves("binary", two(X)), X[X.columns[::-1]]),
    "lightgbm, a job it has never seen": (
        lambda: leaves("binary", two(X)),
        X.assign(job=X["job"].where(X.index > 20, "king")),
    ),
}


def found(model: Any, frame: pd.DataFrame, use_scores: bool) -> tuple[CompiledModel, Predictor]:
    table, codes = coded(frame)
    predictor = Predictor(model, table, tuple(cast(Any, adapt(model)).classes_), use_scores)
    compiled, why = build(model, table, predictor.classes, codes, use_scores)
    assert compiled is not None, why
    return compiled, predictor


@pytest.mark.parametrize("name", MODELS)
def test_the_structure_of_a_booster_is_read(name: str) -> None:
    make, frame = MODELS[name]
    model = make()
    compiled, predictor = found(model, frame, True)
    assert (compiled.kind, compiled.agreement) == ("exact: Booster", 1.0)
    assert compiled.scorer is not None
    assert compiled.scorer.exact
    codes = predictor.table.read(shuffled(frame)).codes
    answers, wanted = compiled.evaluate(codes), predictor.evaluate(codes)
    assert (answers.classes == wanted.classes).all()
    assert answers.scores is not None
    assert wanted.scores is not None
    np.testing.assert_allclose(answers.scores, wanted.scores, atol=1e-5)
    assert len(np.unique(wanted.classes)) > 1
    assert (found(model, frame, False)[0].evaluate(codes).classes == wanted.classes).all()
    for k in range(0, len(codes), 61):
        alone = compiled.evaluate(codes[[k]]).scores
        assert alone is not None
        np.testing.assert_array_equal(alone[0], answers.scores[k])


@pytest.mark.parametrize(
    ("make", "frame", "why"),
    [
        (lambda: trees("binary:logistic", two(X)), X.assign(job=X["job"].where(X.index > 0, "king")), "'king'"),
    ],
    ids=["a job it refuses"],
)
def test_no_compiled_model_and_a_reason(make: Callable[[], Any], frame: pd.DataFrame, why: str) -> None:
    table, codes = coded(frame)
    compiled, problem = build(make(), table, (0, 1), codes, True)
    assert compiled is None
    assert problem is not None
    assert problem.code == "models.not_compiled"
    assert why in problem.text()


def test_it_needs_no_converter_and_may_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fasterce.models.compiled.convert", raising=False)
    for package in ("skl2onnx", "onnxmltools", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    for model in (trees("binary:logistic", two(X)), leaves("binary", two(X))):
        compiled, predictor = found(model, X, True)
        codes = predictor.table.read(X).codes
        np.testing.assert_array_equal(copy.deepcopy(compiled).evaluate(codes).scores, compiled.evaluate(codes).scores)


@pytest.mark.parametrize("make", [lambda: trees("binary:logistic", two(X)), lambda: leaves("binary", two(X))])
def test_counterfactuals_are_as_near_as_without_and_verified_by_the_model(make: Callable[[], Any]) -> None:
    model, rows = make(), applicants(10, seed=1)
    results = []
    for wish in ("auto", "never"):
        made = FasterCE(model, Schema.infer(X), autoencoder=IDENTITY, compile=wish, progress=False).fit(X)
        results.append(made.explain(rows))
    near, plain = results
    assert near.to_frame()["distance"].mean() <= 1.001 * plain.to_frame()["distance"].mean()
    assert (near.status == "found").all()
    assert (near.usage.calls, plain.compiled) == (1, None)
    long = near.to_frame()
    assert (adapt(model).predict(long[list(X.columns)]) == near.target.loc[long["query"]].to_numpy()).all()
