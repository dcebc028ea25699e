"""Twins of real models: they say what the model says, or there is none and a sentence says why."""

import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRFClassifier

from fasterce import Schema, datasets
from fasterce.data.review import SchemaWarning
from fasterce.errors import Problem
from fasterce.models.compiled import CompiledModel, build
from fasterce.models.compiled.build import DEFAULTS
from fasterce.models.predictor import ModelUsage, Predictor
from tests.models.compiled.models import LAND, coded, columns, numbers, outcome, people, prepared, shuffled, without_scorer

THREE = ("bad", "fair", "good")


def boosted(trees: int = 20, **options: Any) -> Any:
    return XGBClassifier(n_estimators=trees, max_depth=4, n_jobs=1, random_state=0, **options)


def light(**options: Any) -> Any:
    return LGBMClassifier(n_estimators=20, n_jobs=1, random_state=0, verbose=-1, **options)


def vote() -> Any:
    forest = RandomForestClassifier(10, random_state=0)
    return VotingClassifier([("line", LogisticRegression()), ("forest", forest)], voting="soft")


def network() -> Any:
    return MLPClassifier((16, 8), max_iter=60, random_state=0)


CASES: dict[str, tuple[Callable[[], Any], Callable[[], pd.DataFrame], tuple[Any, ...]]] = {
    "network": (lambda: make_pipeline(columns(), network()), people, (False, True)),
    "network of three": (lambda: make_pipeline(columns(), network()), people, THREE),
    "logistic": (lambda: make_pipeline(columns(), LogisticRegression()), people, ("refused", "granted")),
    "min and max": (lambda: make_pipeline(columns(MinMaxScaler()), LogisticRegression()), people, (-1, 1)),
    "forest that ties": (lambda: make_pipeline(columns(), RandomForestClassifier(20, random_state=0)), people, ("n", "y")),
    "forest of three": (lambda: make_pipeline(columns(), RandomForestClassifier(15, random_state=0)), people, THREE),
    "vote": (lambda: make_pipeline(columns(), vote()), people, (0, 1)),
    "extra trees": (lambda: make_pipeline(columns(), ExtraTreesClassifier(20, random_state=0)), people, (0, 1)),
    "tree": (lambda: make_pipeline(columns(), DecisionTreeClassifier(max_depth=5, random_state=0)), people, (2, 1)),
    "boosting": (lambda: make_pipeline(columns(), GradientBoostingClassifier(n_estimators=15)), people, THREE),
    "histogram boosting": (
        lambda: make_pipeline(columns(sparse_threshold=0), HistGradientBoostingClassifier(max_iter=15)),
        people,
        ("n", "y"),
    ),
    "histogram boosting on numbers": (lambda: HistGradientBoostingClassifier(max_iter=15), numbers, (0, 1)),
    "vector machine": (lambda: make_pipeline(columns(), SVC(C=3.0)), people, ("n", "y")),
    "vector machine of three": (lambda: make_pipeline(columns(), SVC()), people, THREE),
    "linear vector machine": (lambda: make_pipeline(columns(), LinearSVC()), people, ("n", "y")),
    "ridge": (lambda: make_pipeline(columns(), RidgeClassifier()), people, (0, 1)),
    "xgboost on a sparse matrix": (
        lambda: make_pipeline(columns("passthrough", sparse_threshold=1.0), boosted()),
        people,
        (0, 1),
    ),
    "xgboost of three": (lambda: make_pipeline(columns(sparse_threshold=0), boosted()), people, (0, 1, 2)),
    "xgboost alone": (boosted, numbers, (0, 1)),
    "xgboost on categories": (
        lambda: boosted(enable_categorical=True, max_cat_to_onehot=2),
        lambda: people(words="category"),
        (0, 1),
    ),
    "xgboost forest": (lambda: XGBRFClassifier(n_estimators=10, n_jobs=1), numbers, (0, 1)),
    "lightgbm": (lambda: make_pipeline(columns(), light()), people, ("n", "y")),
    "lightgbm of three": (lambda: make_pipeline(columns(), light()), people, THREE),
    "lightgbm on categories": (
        lambda: light(min_child_samples=5, min_data_per_group=5),
        lambda: people(words="category"),
        (False, True),
    ),
    "ordinal": (lambda: make_pipeline(columns(SimpleImputer(), OrdinalEncoder()), network()), people, (0, 1)),
    "scaled after one-hot": (
        lambda: make_pipeline(columns(sparse_threshold=0), StandardScaler(), LogisticRegression()),
        people,
        (0, 1),
    ),
    "bins": (lambda: make_pipeline(columns(KBinsDiscretizer(4)), LogisticRegression()), people, (0, 1)),
    "logarithm": (
        lambda: make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()),
        lambda: numbers().clip(lower=0),
        (0, 1),
    ),
    "principal components": (
        lambda: make_pipeline(columns(sparse_threshold=0), PCA(3), LogisticRegression()),
        people,
        (0, 1),
    ),
    "products": (lambda: make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression()), numbers, (0, 1)),
    "pipeline in a pipeline": (
        lambda: make_pipeline(columns(), make_pipeline(StandardScaler(with_mean=False), LogisticRegression())),
        people,
        (0, 1),
    ),
    "calibrated inside": (lambda: make_pipeline(columns(), CalibratedClassifierCV(LinearSVC(), cv=2)), people, (0, 1)),
    "grid search": (
        lambda: GridSearchCV(make_pipeline(columns(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2),
        people,
        ("n", "y"),
    ),
}
WHOLE = {"principal components", "products"}
UNREAD = {"products", "vector machine of three", "vote"}


SCORED = ("exact", "converted")


@pytest.fixture(params=SCORED)
def scored(request: pytest.FixtureRequest) -> Iterator[str]:
    """With the structure of the model read where it can be, and with none read."""
    with without_scorer() if request.param == "converted" else nullcontext():
        yield request.param


@pytest.fixture(scope="module", params=list(CASES))
def fitted(request: pytest.FixtureRequest) -> tuple[str, Any, pd.DataFrame]:
    make, table, names = CASES[request.param]
    frame = table()
    return request.param, make().fit(frame, outcome(frame, names)), frame


def found(model: Any, frame: pd.DataFrame, use_scores: bool) -> tuple[CompiledModel, Predictor]:
    predictor, table, codes = prepared(model, frame, use_scores)
    compiled, why = build(model, table, predictor.classes, codes, use_scores)
    assert compiled is not None, why
    assert why is None
    return compiled, predictor


def test_a_compiled_model_gives_the_scores_and_labels_of_the_model(
    fitted: tuple[str, Any, pd.DataFrame], scored: str
) -> None:
    name, model, frame = fitted
    compiled, predictor = found(model, frame, True)
    assert (compiled.scorer is not None) == (scored == "exact" and name not in UNREAD)
    codes = predictor.table.read(shuffled(frame)).codes
    predictions, wanted = compiled.evaluate(codes), predictor.evaluate(codes)
    assert (predictions.classes == wanted.classes).mean() > 0.99
    assert predictions.scores is not None
    assert predictions.scores.dtype == np.float64
    assert wanted.scores is not None
    error = np.abs(np.maximum(predictions.scores, -10) - np.maximum(wanted.scores, -10))
    assert np.quantile(error, 0.98) < 1e-3 * max(1.0, wanted.scores.std())
    assert compiled.agreement >= DEFAULTS.min_agreement
    assert ("all of" in compiled.kind) == (name in WHOLE and compiled.scorer is None)


@pytest.mark.usefixtures("scored")
def test_a_compiled_model_gives_labels_alone_where_these_are_wanted(fitted: tuple[str, Any, pd.DataFrame]) -> None:
    _, model, frame = fitted
    compiled, predictor = found(model, frame, False)
    codes = predictor.table.read(frame).codes
    predictions = compiled.evaluate(codes)
    assert predictions.scores is None
    assert (predictions.classes == predictor.evaluate(codes).classes).mean() >= DEFAULTS.min_agreement


def test_classes_are_in_the_given_order() -> None:
    frame = people()
    model = make_pipeline(columns(), LogisticRegression()).fit(frame, outcome(frame, THREE))
    table, codes = coded(frame)
    for classes in (THREE, THREE[::-1]):
        compiled, why = build(model, table, classes, codes, False)
        assert compiled is not None, why
        assert (np.array(classes)[compiled.evaluate(codes).classes] == model.predict(frame)).all()


def test_german_credit_with_every_feature(scored: str) -> None:
    kind = "exact: " if scored == "exact" else "onnx: table + "
    data = datasets.load("german_credit")
    model = make_pipeline(columns(), network()).fit(data.X, data.y)
    table, codes = coded(data.X, data.schema)
    compiled, why = build(model, table, tuple(model.classes_), codes, True)
    assert compiled is not None, why
    assert compiled.kind == f"{kind}MLPClassifier"
    assert compiled.agreement == 1.0
    scores = compiled.evaluate(codes).scores
    assert scores is not None
    assert np.allclose(np.exp(scores), model.predict_proba(data.X), atol=1e-9)


def test_categories_the_encoder_has_never_seen() -> None:
    frame = people(words="category")
    frame["land"] = frame["land"].cat.add_categories(["nowhere", "elsewhere"])
    model = make_pipeline(columns(), network()).fit(frame, outcome(frame))
    compiled, predictor = found(model, frame, True)
    strange = predictor.table.read(frame.head(20)).codes
    strange[:, 1] = np.arange(20) % 2 + len(LAND)
    scores, wanted = compiled.evaluate(strange).scores, predictor.evaluate(strange).scores
    assert scores is not None
    assert wanted is not None
    assert np.allclose(scores, wanted, atol=1e-9)


def test_the_model_evaluates_few_rows() -> None:
    frame = people(6000)
    model = make_pipeline(columns(), LogisticRegression()).fit(frame, outcome(frame))
    rows: list[int] = []

    class Counted(Pipeline):
        def predict(self, X: pd.DataFrame) -> np.ndarray:
            rows.append(len(X))
            return super().predict(X)

        def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
            rows.append(len(X))
            return super().predict_proba(X)

    table, codes = coded(frame)
    for use_scores in (True, False):
        rows.clear()
        compiled, _ = build(Counted(model.steps), table, (0, 1), codes, use_scores)
        assert compiled is not None
        assert 0 < sum(rows) <= DEFAULTS.reference_rows


class Stubborn(Pipeline):
    """Says the first class to one row in ten, whatever its steps say."""

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return np.where(X["age"] % 10 == 0, self.classes_[0], super().predict(X))


class Shy(Pipeline):
    """Gives flatter chances than its last step does."""

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return 0.25 + 0.5 * super().predict_proba(X)


@pytest.mark.parametrize(
    ("make", "use_scores", "sentence"),
    [
        (
            lambda fitted: fitted.predict,
            True,
            r"XGBoost or LightGBM model or an ONNX model; got method",
        ),
        (lambda fitted: Stubborn(fitted.steps), False, r"predicts the same label for only 9\d\.\d% of known rows"),
        (lambda fitted: Stubborn(fitted.steps), True, r"predicts the same label for only 9\d\.\d% of known rows"),
        (lambda fitted: Shy(fitted.steps), True, r"its scores differ by"),
        (lambda fitted: LogisticRegression(), True, r"cannot be compiled"),
    ],
    ids=["a function", "stubborn labels", "stubborn labels with scores", "other chances", "not fitted"],
)
def test_no_compiled_model_and_a_reason(make: Callable[[Any], Any], use_scores: bool, sentence: str) -> None:
    frame = people()
    fitted = make_pipeline(columns(), LogisticRegression()).fit(frame, outcome(frame))
    table, codes = coded(frame)
    compiled, why = build(make(fitted), table, (0, 1), codes, use_scores)
    assert compiled is None
    assert re.search(sentence, str(why)), why
    assert "\n" not in str(why)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (FixedThresholdClassifier(make_pipeline(columns(), LogisticRegression()), threshold=0.8), "str"),
        (make_pipeline(columns(FunctionTransformer(lambda x: x - x.mean())), LogisticRegression()), "str"),
    ],
    ids=["threshold", "rows that depend on each other"],
)
def test_what_cannot_be_compiled_is_refused(model: Any, words: str) -> None:
    frame = people(words=words)
    model.fit(frame, outcome(frame))
    table, codes = coded(frame)
    compiled, why = build(model, table, (0, 1), codes, False)
    assert compiled is None
    assert why is not None
    assert why.code == "models.not_compiled"


def test_a_model_that_fails_is_not_compiled() -> None:
    frame = people()
    model = make_pipeline(columns(word=OneHotEncoder(handle_unknown="error")), LogisticRegression())
    model.fit(frame, outcome(frame))
    table, codes = coded(frame.assign(land="nowhere"))
    compiled, why = build(model, table, (0, 1), codes, True)
    assert compiled is None
    assert why is not None
    assert why.details["cause"].code == "models.compile_reference"
    assert build(model, table, (0, 1), codes[:0], True) == (
        None,
        Problem("models.not_compiled", details={"cause": Problem("models.compile_no_rows")}),
    )
    assert "its classes are 0, 1; expected 0, 2" in str(build(model, table, (0, 2), codes, True)[1])


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """As if a package were not installed, for whoever imports it from now on."""
    for name in list(sys.modules):
        if name.split(".")[0] in (package, "onnxmltools") or name == "fasterce.models.compiled.convert":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("no_scorer")
@pytest.mark.parametrize("package", ["skl2onnx", "onnxmltools", "onnxruntime"])
def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    frame = numbers(100)
    model = boosted().fit(frame, outcome(frame))
    table, codes = coded(frame)
    hide(monkeypatch, package)
    compiled, why = build(model, table, (0, 1), codes, True)
    assert compiled is None
    assert why is not None
    assert why.code == "models.compile_packages"
    assert package in why.details["cause"].text()
    assert why.text().endswith("; expected: pip install 'fasterce[onnx]'.")


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_a_model_of_one_library_does_not_need_the_others(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    frame = people(100)
    model = make_pipeline(columns(), LogisticRegression()).fit(frame, outcome(frame))
    hide(monkeypatch, package)
    found(model, frame, True)


def test_building_is_silent_and_the_same_every_time(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    frame = people()
    _, codes = coded(frame)
    models = [make_pipeline(columns(), last).fit(frame, outcome(frame)) for last in (boosted(), network(), SVC())]
    recwarn.clear()
    capfd.readouterr()
    for model in models:
        twins = [found(model, frame, True)[0] for _ in range(2)]
        scores: Any = twins[0].evaluate(codes).scores
        assert (scores == twins[1].evaluate(codes).scores).all()
    assert capfd.readouterr() == ("", "")
    assert [one for one in recwarn if one.category is not SchemaWarning] == []


def test_the_model_is_left_as_it_was() -> None:
    frame = numbers()
    model = boosted().fit(frame, outcome(frame))
    before = model.predict_proba(frame)
    found(model, frame, True)
    assert model.get_booster().feature_names == list(frame.columns)
    assert (model.predict_proba(frame) == before).all()


def test_a_compiled_model_may_be_pickled() -> None:
    frame = numbers()
    for model in (make_pipeline(StandardScaler(), LogisticRegression()), boosted()):
        compiled, predictor = found(model.fit(frame, outcome(frame)), frame, True)
        again = pickle.loads(pickle.dumps(compiled))
        codes = predictor.table.read(frame).codes
        assert (again.evaluate(codes).scores == compiled.evaluate(codes).scores).all()
        assert again.usage == ModelUsage(1, len(codes))


def test_text_numbers_and_odd_column_names() -> None:
    frame = people().rename(columns={"age": "age in years (full)", "land": "Land/Region"}).assign(grade=lambda f: f.index % 3)
    schema = Schema.infer(frame, categorical=["grade"])
    prepared = make_column_transformer(
        (StandardScaler(), ["age in years (full)", "debt", "years"]),
        (OneHotEncoder(), make_column_selector(pattern="Land|owner|grade")),
    )
    y = (frame["grade"] + frame["debt"] / 20 > 2).astype(int)
    for steps in ((prepared, LogisticRegression()), (prepared, boosted())):
        model = make_pipeline(*steps).fit(frame, y)
        table, codes = coded(frame, schema)
        compiled, why = build(model, table, (0, 1), codes, True)
        assert compiled is not None, why
        assert compiled.agreement == 1.0
