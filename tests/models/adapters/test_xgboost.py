"""XGBoost: estimators and native boosters, categories, missing values, objectives, early stopping."""

import copy
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from fasterce.errors import InputError
from fasterce.models.adapters import XGBoostModel, adapt
from fasterce.models.adapters.xgboost import _categories, _categories_of_file
from fasterce.testing import check_adapter
from tests.models.adapters.tables import (
    applicants,
    categorical,
    check_classes,
    check_explained,
    explainer,
    strength,
    three,
    two,
    two_or_three,
)

xgboost = pytest.importorskip("xgboost")

X = applicants(300, gaps=True)
Xc = categorical(X)
FRESH = applicants(200, seed=1, gaps=True)


def classifier(y: Any, **settings: Any) -> Any:
    return xgboost.XGBClassifier(
        n_estimators=15, max_depth=3, enable_categorical=True, n_jobs=1, random_state=0, **settings
    ).fit(Xc, y)


def booster(objective: str, y: Any, **settings: Any) -> Any:
    data = xgboost.DMatrix(Xc, label=y, enable_categorical=True)
    return xgboost.train({"objective": objective, "max_depth": 3, "nthread": 1, **settings}, data, 15)


def again(model: Any, path: Path) -> Any:
    model.save_model(path)
    loaded = xgboost.Booster()
    loaded.load_model(path)
    return loaded


def as_trained(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(job=frame["job"].astype(Xc["job"].dtype), home=frame["home"].astype(Xc["home"].dtype))


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("labels", [two, three])
def test_a_booster_from_a_file_predicts_for_text_what_the_estimator_does_for_categories(
    labels: Any, suffix: str, tmp_path: Path
) -> None:
    model = classifier(labels(X))
    loaded = XGBoostModel(again(model, tmp_path / f"model.{suffix}"))
    assert (loaded.predict(FRESH) == model.predict(as_trained(FRESH))).all()
    np.testing.assert_array_equal(loaded.predict_proba(FRESH), model.predict_proba(as_trained(FRESH)))
    check_adapter(loaded, FRESH.head(80))


def test_an_estimator_is_given_the_categories_it_was_fitted_with() -> None:
    model = classifier(two(X))
    with pytest.raises(ValueError, match="category"):
        model.predict(FRESH)
    assert (adapt(model).predict(FRESH) == model.predict(as_trained(FRESH))).all()
    check_adapter(model, FRESH.head(80))


def test_one_row_whose_text_is_missing_is_predicted() -> None:
    model = classifier(two(X))
    row = FRESH[FRESH["job"].isna()].head(1)
    assert (adapt(model).predict(row) == model.predict(as_trained(row))).all()


def test_an_unknown_category_is_reported() -> None:
    with pytest.raises(InputError, match=r"'nurze' of column 'job'.*Did you mean 'nurse'"):
        adapt(booster("binary:logistic", two(X))).predict(FRESH.head(3).assign(job="nurze"))


def test_a_missing_column_is_reported() -> None:
    with pytest.raises(InputError, match=r"needs column 'debt'.*Did you mean 'debts'"):
        adapt(booster("binary:logistic", two(X))).predict(FRESH.rename(columns={"debt": "debts"}))


def test_categories_are_read_without_pyarrow_too() -> None:
    model = booster("binary:logistic", two(X))
    content = json.loads(bytes(model.save_raw("json")))
    assert _categories_of_file(content) == dict(_categories(model)) == {3: sorted(JOBS), 4: sorted(HOMES)}


JOBS = ["clerk", "nurse", "smith"]
HOMES = ["own", "rent", "with family"]


@pytest.mark.parametrize(
    "objective", ["binary:logistic", "binary:logitraw", "binary:hinge", "multi:softprob", "multi:softmax"]
)
def test_every_objective_of_classes(objective: str) -> None:
    many = objective.startswith("multi")
    model = booster(objective, two_or_three(X, many), **({"num_class": 3} if many else {}))
    adapted = check_classes(model, X, many)
    assert hasattr(adapted, "predict_proba") == (objective != "binary:hinge")
    if objective == "multi:softmax":
        assert (adapted.predict(X) == model.predict(xgboost.DMatrix(Xc, enable_categorical=True))).all()


@pytest.mark.parametrize("objective", ["reg:squarederror", "reg:absoluteerror", "count:poisson"])
def test_other_objectives_predict_numbers(objective: str) -> None:
    y = np.maximum(strength(X), 1)
    model = booster(objective, y)
    assert cast(Any, adapt(model)).predicts_numbers
    check_adapter(model, X.head(80))
    with pytest.raises(InputError, match="predicts numbers"):
        XGBoostModel(model, classes=["a", "b"])


def test_a_native_regression_is_explained_without_the_option_task() -> None:
    whole = applicants(300)
    data = xgboost.DMatrix(categorical(whole), label=strength(whole), enable_categorical=True)
    model = xgboost.train({"max_depth": 3, "nthread": 1}, data, 15)
    wanted = (60.0, None)
    result = explainer(model, whole).explain(whole.head(6), target=wanted)
    counterfactuals = result.counterfactuals[result.status == "found"]
    assert len(counterfactuals) >= 3
    frame = counterfactuals.assign(
        job=pd.Categorical(counterfactuals["job"], JOBS), home=pd.Categorical(counterfactuals["home"], HOMES)
    )
    assert (model.inplace_predict(frame) >= 60).all()


def test_named_classes() -> None:
    model = XGBoostModel(booster("binary:logistic", two(X)), classes=["refused", "granted"])
    assert set(model.predict(X)) == {"refused", "granted"}
    assert model.classes_.tolist() == ["refused", "granted"]
    with pytest.raises(InputError, match=r"the 2 classes .*got 'a', 'b', 'c'"):
        XGBoostModel(model.booster, classes=["a", "b", "c"])


def test_early_stopping_is_kept_as_the_estimator_keeps_it(tmp_path: Path) -> None:
    noisy = np.random.default_rng(0).integers(0, 2, len(X))
    model = xgboost.XGBClassifier(
        n_estimators=40, early_stopping_rounds=3, max_depth=4, enable_categorical=True, n_jobs=1, random_state=0
    ).fit(Xc, noisy, eval_set=[(as_trained(FRESH), two(FRESH))], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    for held in (model.get_booster(), again(model, tmp_path / "stopped.ubj")):
        np.testing.assert_array_equal(cast(Any, adapt(held)).predict_proba(FRESH), model.predict_proba(as_trained(FRESH)))


def test_a_booster_without_names_takes_columns_by_place() -> None:
    table = applicants(300)[["age", "pay", "debt", "spouse"]]
    data = xgboost.DMatrix(table.to_numpy(dtype=float), label=two(applicants(300)))
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 10)
    assert (adapt(model).predict(table) == (model.predict(xgboost.DMatrix(table.to_numpy(dtype=float))) > 0.5)).all()
    check_adapter(model, table.head(50))
    with pytest.raises(InputError, match="text in column 'job'"):
        adapt(model).predict(applicants(5))


def test_categories_given_as_codes_stay_codes() -> None:
    table = applicants(300).assign(job=lambda frame: frame["job"].map({"clerk": 0, "nurse": 1, "smith": 2}))
    table = table[["age", "pay", "debt", "job"]]
    types = ["q", "q", "q", "c"]
    data = xgboost.DMatrix(table.astype(float), label=two(applicants(300)), feature_types=types, enable_categorical=True)
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1, "max_cat_to_onehot": 1}, data, 10)
    np.testing.assert_array_equal(cast(Any, adapt(model)).predict_proba(table)[:, 1], model.predict(data))
    with pytest.raises(InputError, match=r"does not store the categories of column 'job'.*category dtype"):
        adapt(model).predict(table.assign(job="nurse"))


def test_a_linear_booster() -> None:
    table = applicants(300)[["age", "pay", "debt"]]
    data = xgboost.DMatrix(table, label=two(applicants(300)))
    model = xgboost.train({"booster": "gblinear", "objective": "binary:logistic", "nthread": 1}, data, 20)
    np.testing.assert_array_equal(cast(Any, adapt(model)).predict_proba(table)[:, 1], model.predict(data))
    check_adapter(model, table.head(50), exact=False)


def test_a_dart_booster_does_not_drop_trees() -> None:
    model = booster("binary:logistic", two(X), booster="dart", rate_drop=0.5)
    check_adapter(model, X.head(60))
    content = json.loads(bytes(model.save_raw("json")))
    assert dict(_categories_of_file(content)) == dict(_categories(model))


def test_columns_named_by_numbers() -> None:
    table = Xc.set_axis(range(Xc.shape[1]), axis=1)
    model = xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1).fit(table, two(X))
    assert (adapt(model).predict(X.set_axis(table.columns, axis=1)) == model.predict(table)).all()


def test_a_frame_that_will_do_is_handed_on_as_it_is() -> None:
    ready = cast(Any, adapt(classifier(two(X)))).prepare
    assert ready(Xc) is Xc
    assert ready(X) is not X


def test_an_estimator_that_is_not_fitted_comes_back_itself() -> None:
    model = xgboost.XGBClassifier()
    assert adapt(model) is model


def test_a_native_booster_is_explained_and_confirms() -> None:
    table = applicants(300)
    data = xgboost.DMatrix(categorical(table), label=two(table), enable_categorical=True)
    model = xgboost.train({"objective": "binary:logistic", "max_depth": 3, "nthread": 1}, data, 15)

    def own(frame: pd.DataFrame) -> Any:
        cast = frame.assign(job=pd.Categorical(frame["job"], JOBS), home=pd.Categorical(frame["home"], HOMES))
        return (model.inplace_predict(cast) > 0.5).astype(int)

    check_explained(model, table, own)
    copied = copy.deepcopy(adapt(model))
    assert (copied.predict(table) == own(table)).all()


def test_gaps_are_explained_where_the_model_takes_them() -> None:
    model = booster("binary:logistic", two(X))
    check_explained(model, X, lambda frame: (model.inplace_predict(as_trained(frame)) > 0.5).astype(int))
