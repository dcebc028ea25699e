"""scikit-learn estimators and pipelines: any encoder inside, any sort of label, fitted on frames or arrays."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from fasterce.data.review import SchemaWarning
from fasterce.models.adapters import PreparedModel, adapt
from fasterce.testing import check_adapter
from tests.models.adapters.tables import applicants, check_explained, explainer, strength, three, two

X = applicants(300)
WORDS = ["job", "home"]
NUMBERS = ["age", "pay", "debt"]


def encoded(encoder: Any) -> Any:
    return make_column_transformer((encoder, WORDS), (StandardScaler(), NUMBERS), remainder="passthrough")


def without_text(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(job=frame["job"].str.len(), home=(frame["home"] == "own"))


def logistic(encoder: Any) -> Any:
    return make_pipeline(encoded(encoder), LogisticRegression(max_iter=500))


MODELS = {
    "one-hot": (lambda: logistic(OneHotEncoder(sparse_output=True)), (0, 1)),
    "ordinal": (lambda: logistic(OrdinalEncoder()), ("no", "yes")),
    "target": (lambda: logistic(TargetEncoder()), (False, True)),
    "pandas inside": (lambda: logistic(OneHotEncoder(sparse_output=False)).set_output(transform="pandas"), ("no", "yes")),
    "polars inside": (lambda: logistic(OneHotEncoder(sparse_output=False)).set_output(transform="polars"), (1, 2)),
    "function": (lambda: make_pipeline(FunctionTransformer(without_text), DecisionTreeClassifier(max_depth=4)), (0, 1)),
    "calibrated": (lambda: CalibratedClassifierCV(logistic(OneHotEncoder()), cv=2), ("no", "yes")),
    "vote": (
        lambda: VotingClassifier([("a", logistic(OneHotEncoder())), ("b", logistic(OrdinalEncoder()))]),
        ("no", "yes"),
    ),
    "decision function": (lambda: make_pipeline(encoded(OneHotEncoder()), LinearSVC()), ("no", "yes")),
    "search": (
        lambda: GridSearchCV(logistic(OneHotEncoder()), {"logisticregression__C": [0.1, 1.0]}, cv=2),
        (0, 1),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_with_names_is_used_as_it_is(name: str) -> None:
    make, names = MODELS[name]
    model = make().fit(X, two(X, names))
    assert adapt(model) is model
    check_adapter(model, X.head(60))


@pytest.mark.parametrize("name", ["target", "polars inside", "decision function"])
def test_counterfactuals_are_verified_by_the_model(name: str) -> None:
    make, names = MODELS[name]
    model = make().fit(X, two(X, names))
    check_explained(model, X, model.predict)


def test_three_classes_of_text() -> None:
    model = logistic(OneHotEncoder()).fit(X, three(X, ("bad", "fair", "good")))
    check_adapter(model, X.head(60))
    check_explained(model, X, model.predict, target="good")


def test_the_label_has_the_last_word_over_a_threshold() -> None:
    model = FixedThresholdClassifier(logistic(OneHotEncoder()), threshold=0.8, response_method="predict_proba")
    model.fit(X, two(X, ("no", "yes")))
    between = (model.predict(X) == "no") & (model.predict_proba(X)[:, 1] > 0.5)
    assert between.any(), "otherwise this shows nothing"
    check_adapter(model, X.head(100))
    rows = X[between].head(3)
    result = explainer(model, X).explain(rows)
    assert (result.prediction == "no").all()
    assert (result.target == "yes").all()
    assert (model.predict(result.counterfactuals[result.status == "found"]) == "yes").all()


def numeric(rows: int = 300) -> pd.DataFrame:
    return applicants(rows)[[*NUMBERS, "spouse"]]


@pytest.mark.parametrize("kind", ["tree", "pipeline", "forest"])
def test_a_model_fitted_on_an_array_does_not_warn_of_names(kind: str) -> None:
    table = numeric()
    model = {
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(5, random_state=0),
    }[kind].fit(table.to_numpy(dtype=float), two(X))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SchemaWarning)
        check_adapter(model, table.head(50))
        result = explainer(model, table).explain(table.head(5))
    assert (result.status == "found").all()
    flipped = model.predict(result.counterfactuals.to_numpy(dtype=float))
    assert (flipped == result.target.to_numpy()).all()
    assert isinstance(adapt(model), PreparedModel)


def test_a_model_fitted_on_an_array_of_objects_gets_one() -> None:
    words = X[WORDS]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(words.to_numpy(), two(X, ("no", "yes")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (adapt(model).predict(words) == model.predict(words.to_numpy())).all()
        check_adapter(model, words)


def test_columns_without_text_names_stay_a_frame() -> None:
    table = numeric().set_axis([0, 1, 2, 3], axis=1)
    model = make_pipeline(make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough"), LogisticRegression())
    model.fit(table, two(X))
    assert (adapt(model).predict(table) == model.predict(table)).all()


def test_a_regressor_fitted_on_an_array_still_says_so() -> None:
    table = numeric()
    model = LinearRegression().fit(table.to_numpy(dtype=float), strength(X))
    check_adapter(model, table)
    fitted = explainer(model, table)
    assert fitted.state_.numbers is not None
    low, high = np.quantile(model.predict(table.to_numpy(dtype=float)), [0.6, 0.8])
    result = fitted.explain(table.head(6), target=(low, high))
    predicted = model.predict(result.counterfactuals[result.status == "found"].to_numpy(dtype=float))
    assert len(predicted) >= 2
    assert ((low <= predicted) & (predicted <= high)).all()
