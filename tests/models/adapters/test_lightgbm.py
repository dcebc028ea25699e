"""LightGBM: estimators and native boosters, categories, missing values, objectives."""

from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from fasterce.errors import InputError
from fasterce.models.adapters import LightGBMModel, adapt
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

lightgbm = pytest.importorskip("lightgbm")

X = applicants(300, gaps=True)
Xc = categorical(X)
FRESH = applicants(200, seed=1, gaps=True)
QUIET = {"verbose": -1, "num_threads": 1, "seed": 0}


def booster(objective: str, y: Any, **settings: Any) -> Any:
    return lightgbm.train({**QUIET, "objective": objective, **settings}, lightgbm.Dataset(Xc, label=y), 15)


def as_trained(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(job=frame["job"].astype(Xc["job"].dtype), home=frame["home"].astype(Xc["home"].dtype))


@pytest.mark.parametrize("labels", [two, three])
def test_a_booster_from_text_predicts_for_text_what_the_estimator_does_for_categories(labels: Any) -> None:
    model = lightgbm.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1).fit(
        Xc, labels(X, ("a", "b", "c")[: 2 + (labels is three)])
    )
    loaded = lightgbm.Booster(model_str=model.booster_.model_to_string())
    adapted = LightGBMModel(loaded, classes=model.classes_.tolist())
    assert (adapted.predict(FRESH) == model.predict(as_trained(FRESH))).all()
    np.testing.assert_array_equal(adapted.predict_proba(FRESH), model.predict_proba(as_trained(FRESH)))
    check_adapter(adapted, FRESH.head(80))


def test_an_estimator_is_given_its_categories_and_its_order() -> None:
    model = lightgbm.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1).fit(Xc, two(X, ("no", "yes")))
    wanted = model.predict(as_trained(FRESH))
    assert (adapt(model).predict(FRESH) == wanted).all()
    assert (adapt(model).predict(FRESH[FRESH.columns[::-1]]) == wanted).all()
    turned = as_trained(FRESH)[FRESH.columns[::-1]]
    assert not (model.predict(turned) == wanted).all(), "LightGBM itself goes by place"
    check_adapter(model, FRESH.head(80))


@pytest.mark.parametrize("objective", ["binary", "multiclass", "multiclassova"])
def test_every_objective_of_classes(objective: str) -> None:
    many = objective != "binary"
    check_classes(booster(objective, two_or_three(X, many), **({"num_class": 3} if many else {})), X, many)


@pytest.mark.parametrize("objective", ["regression", "regression_l1", "poisson"])
def test_other_objectives_predict_numbers(objective: str) -> None:
    model = booster(objective, np.maximum(strength(X), 1))
    assert cast(Any, adapt(model)).predicts_numbers
    check_adapter(model, X.head(80))
    with pytest.raises(InputError, match="predicts numbers"):
        LightGBMModel(model, classes=["a", "b"])


def test_a_native_regression_is_explained_without_the_option_task() -> None:
    model = booster("regression", strength(X))
    result = explainer(model, X).explain(X.head(6), target=(55.0, None))
    counterfactuals = result.counterfactuals[result.status == "found"]
    assert len(counterfactuals) >= 3
    assert (model.predict(as_trained(counterfactuals)) >= 55).all()


def test_whole_numbers_as_categories() -> None:
    table = applicants(300).assign(region=np.random.default_rng(0).integers(1, 6, 300))[["pay", "debt", "region"]]
    y = ((table["pay"] - table["debt"] + 20 * table["region"].isin([2, 5])) > 40).astype(int)
    held = table.assign(region=table["region"].astype("category"))
    model = lightgbm.train({**QUIET, "objective": "binary"}, lightgbm.Dataset(held, label=y), 15)
    np.testing.assert_array_equal(cast(Any, adapt(model)).predict_proba(table)[:, 1], model.predict(held))


def test_columns_with_spaces_and_other_columns_beside_them() -> None:
    table = applicants(300)[["age", "pay", "debt"]].rename(columns={"pay": "monthly pay"})
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(table, two(applicants(300)))
    wanted = model.predict(table)
    assert (adapt(model.booster_).predict(table.assign(extra=1)[["extra", "debt", "monthly pay", "age"]]) == wanted).all()


def test_a_booster_fitted_on_an_array_takes_columns_by_place() -> None:
    table = applicants(300)[["age", "pay", "debt"]]
    data = lightgbm.Dataset(table.to_numpy(), label=two(applicants(300)))
    model = lightgbm.train({**QUIET, "objective": "binary"}, data, 5)
    np.testing.assert_array_equal(cast(Any, adapt(model)).predict_proba(table)[:, 1], model.predict(table.to_numpy()))
    with pytest.raises(InputError, match="0 categorical columns; got"):
        adapt(model).predict(table.assign(debt="much"))


def test_a_native_booster_is_explained_and_confirms() -> None:
    model = booster("binary", two(X))
    check_explained(model, X, lambda frame: (model.predict(as_trained(frame)) > 0.5).astype(int))
