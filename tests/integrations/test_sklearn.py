"""FasterCE beside other scikit-learn estimators: cloned, set, piped, transformed, pickled."""

import io
import pickle
from typing import Any, cast

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.data.frames import as_kind
from fasterce.errors import InputError
from tests.samples import people

IDENTITY = (np.asarray, np.asarray)
SETTINGS: dict[str, Any] = {"autoencoder": IDENTITY, "progress": False, "compile": "never", "config": Config.fast()}


def fitted_model(data: pd.DataFrame) -> Pipeline:
    columns = make_column_transformer((OneHotEncoder(), ["job", "own"]), remainder="passthrough")
    rich = data["pay"] - data["debt"] + 10 * (data["job"] == "smith") > 30
    return make_pipeline(columns, LogisticRegression(max_iter=2000)).fit(data, np.where(rich, "yes", "no"))


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return people(200)


@pytest.fixture(scope="module")
def model(data: pd.DataFrame) -> Pipeline:
    return fitted_model(data)


@pytest.fixture(scope="module")
def explainer(data: pd.DataFrame, model: Pipeline) -> FasterCE:
    return FasterCE(model, Schema.infer(data, immutable=["own"]), **SETTINGS).fit(data)


def test_a_clone_is_unfitted_and_explains_the_same_fitted_model(explainer: FasterCE, data: pd.DataFrame) -> None:
    copy = clone(explainer)
    assert copy.get_params(deep=False) == explainer.get_params(deep=False)
    assert copy.model is explainer.model, "a clone of the model would have forgotten what it learned"
    with pytest.raises(NotFittedError):
        copy.explain(data.head(1))
    again = copy.fit(data).explain(data.head(10))
    pd.testing.assert_frame_equal(again.to_frame(), explainer.explain(data.head(10)).to_frame())


def test_parameters_are_read_and_set_also_those_of_the_model(data: pd.DataFrame) -> None:
    mine = FasterCE(fitted_model(data), random_state=3)
    assert mine.get_params()["random_state"] == 3
    assert mine.get_params()["model__logisticregression__max_iter"] == 2000
    mine.set_params(random_state=4, model__logisticregression__max_iter=50)
    assert (mine.random_state, mine.model[-1].max_iter) == (4, 50)
    with pytest.raises(ValueError, match="Invalid parameter 'colour'"):
        mine.set_params(colour="red")


def test_transform_gives_the_best_counterfactual_of_every_row(explainer: FasterCE, data: pd.DataFrame) -> None:
    rows = data.head(15)
    pd.testing.assert_frame_equal(explainer.transform(rows), explainer.explain(rows).counterfactuals)
    wished = explainer.transform(rows, target="yes", features_to_vary=["pay"])
    there = explainer.model.predict(rows) == "yes"
    assert there.any()
    assert wished[there].isna().all(axis=None)
    found = wished.dropna()
    assert len(found)
    pd.testing.assert_frame_equal(found.drop(columns="pay"), rows.loc[found.index].drop(columns="pay"), check_dtype=False)


@pytest.mark.parametrize(("wish", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("default", pd.DataFrame)])
def test_output_is_what_set_output_wants(explainer: FasterCE, data: pd.DataFrame, wish: Any, kind: type) -> None:
    mine: Any = pickle.loads(pickle.dumps(explainer)).set_output(transform=wish)
    assert mine.set_output() is mine
    given: Any = mine.transform(data.head(5))
    assert type(given) is kind
    assert list(cast(Any, given).columns) == list(mine.get_feature_names_out())
    assert type(mine.transform(as_kind(data.head(5), "polars"))) is (pl.DataFrame if wish != "pandas" else pd.DataFrame)
    assert clone(mine)._output() == wish


def test_the_configuration_of_scikit_learn_counts_too(explainer: FasterCE, data: pd.DataFrame) -> None:
    with config_context(transform_output="polars"):
        assert isinstance(explainer.transform(data.head(2)), pl.DataFrame)
    with pytest.raises(InputError, match="Did you mean 'polars'"):
        explainer.set_output(transform="polar")  # type: ignore[arg-type]


def test_the_last_step_of_a_pipeline(model: Pipeline, data: pd.DataFrame) -> None:
    holes = data.drop(columns=["job", "own"]).mask(np.random.default_rng(0).random((len(data), 3)) < 0.1)
    plain = LogisticRegression(max_iter=2000)
    filled = SimpleImputer().set_output(transform="pandas").fit_transform(holes)
    plain.fit(filled, filled["pay"] > filled["debt"] + 30)
    pipeline = make_pipeline(SimpleImputer().set_output(transform="pandas"), FasterCE(plain, **SETTINGS))
    given = pipeline.fit(holes).transform(holes.head(8))
    assert list(given.columns) == ["age", "pay", "debt"]
    assert given.index.equals(holes.index[:8])
    now = plain.predict(given.dropna())
    before = plain.predict(filled.loc[given.dropna().index])
    assert (now != before).all()
    assert pipeline.get_feature_names_out().tolist() == ["age", "pay", "debt"]
    assert isinstance(pipeline.set_output(transform="polars")[-1].transform(filled.head(2)), pl.DataFrame)
    copy = clone(pipeline)
    assert copy[-1].model is plain
    explained = pipeline[-1].explain(filled.head(3))
    assert len(explained) == 3


def test_a_step_before_another(explainer: FasterCE, data: pd.DataFrame) -> None:
    """What would the counterfactuals look like to the next step?"""
    pipeline = Pipeline([("what if", clone(explainer)), ("only pay", FunctionTransformer(lambda frame: frame[["pay"]]))])
    assert list(pipeline.fit_transform(data.head(60)).columns) == ["pay"]


def test_fitted_or_not(explainer: FasterCE, data: pd.DataFrame) -> None:
    check_is_fitted(explainer)
    assert explainer.n_features_in_ == 5
    assert explainer.feature_names_in_.tolist() == list(data.columns)
    fresh = clone(explainer)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    for name in ("n_features_in_", "feature_names_in_"):
        assert not hasattr(fresh, name)
    with pytest.raises(NotFittedError):
        fresh.get_feature_names_out()
    with pytest.raises(NotFittedError):
        fresh.transform(data)
    with pytest.raises(InputError, match="input_features"):
        explainer.get_feature_names_out(["a"])


def test_names_that_are_no_text_have_no_feature_names_in(data: pd.DataFrame) -> None:
    numbers = data[["age", "pay", "debt"]].set_axis([0, 1, 2], axis=1)
    mine = FasterCE(lambda frame: (frame[1] > 50).to_numpy(), **SETTINGS).fit(numbers)
    assert not hasattr(mine, "feature_names_in_")
    assert mine.n_features_in_ == 3


def test_tags_and_looks(explainer: FasterCE) -> None:
    tags = explainer.__sklearn_tags__()
    assert tags.transformer_tags is not None
    assert (tags.input_tags.string, tags.input_tags.categorical, tags.input_tags.allow_nan) == (True, True, True)
    assert not tags.target_tags.required
    assert isinstance(explainer, BaseEstimator)
    assert repr(explainer).startswith("FasterCE(")
    assert "FasterCE" in explainer._repr_html_()


@pytest.mark.parametrize("compiled", ["never", "auto"])
def test_a_fitted_explainer_is_pickled_by_those_who_want_that(model: Pipeline, data: pd.DataFrame, compiled: Any) -> None:
    fitted = FasterCE(model, autoencoder=IDENTITY, progress=False, compile=compiled, config=Config.fast()).fit(data)
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for again in (joblib.load(file), pickle.loads(pickle.dumps(fitted))):
        pd.testing.assert_frame_equal(again.explain(data.head(8)).to_frame(), fitted.explain(data.head(8)).to_frame())
