"""The table learned by probing: what the steps of a pipeline do, without a DataFrame."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from fasterce import Schema
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import (
    MATRIX,
    as_matrix,
    column_preprocessor,
    learn_preprocessor,
)
from tests.models.compiled.models import coded, columns, numbers, outcome, people, shuffled


def both(steps: Any, frame: pd.DataFrame, rows: pd.DataFrame) -> tuple[Any, np.ndarray, np.ndarray]:
    steps.fit(frame, outcome(frame))
    table, codes = coded(frame)
    preprocessor = learn_preprocessor(steps.transform, table, codes, False)
    queries = table.read(rows).codes
    return preprocessor, preprocessor.inputs(queries, len(queries))[MATRIX], as_matrix(steps.transform(table.frame(queries)))


@pytest.mark.parametrize(
    "steps",
    [
        columns(),
        columns(sparse_threshold=0),
        columns(MinMaxScaler(), OneHotEncoder(drop="first")),
        columns(RobustScaler(), OrdinalEncoder()),
        columns(MaxAbsScaler(), TargetEncoder()),
        columns("passthrough", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="if_binary"))),
        make_pipeline(columns(sparse_threshold=0), StandardScaler()),
        make_pipeline(columns(), SelectKBest(k=4)),
        columns(make_union(StandardScaler(), MinMaxScaler())),
        columns(FunctionTransformer(lambda x: 3 - 2 * x)),
        make_column_transformer(("drop", ["age"]), (OneHotEncoder(), ["land"]), remainder="drop"),
    ],
    ids=range(11),
)
def test_lines_and_tables_are_exact(steps: Any) -> None:
    frame = people()
    preprocessor, found, wanted = both(steps, frame, shuffled(frame))
    assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert not preprocessor.curves


def test_words_one_hot_are_switches_and_not_lookups() -> None:
    preprocessor, _, _ = both(make_pipeline(columns(sparse_threshold=0), StandardScaler()), people(), people(5))
    assert preprocessor.switches.features.tolist() == [1, 3]
    assert not preprocessor.lookups


def test_categories_with_several_outputs_are_looked_up() -> None:
    frame = people()
    table, codes = coded(frame)
    lengths = {name: np.array([len(name), ord(name[0]), 1.5]) for name in frame["land"].unique()}

    def measured(rows: pd.DataFrame) -> np.ndarray:
        return np.stack([lengths[name] for name in rows["land"]])

    preprocessor = learn_preprocessor(measured, table, codes, False)
    assert [lookup.feature for lookup in preprocessor.lookups] == [1]
    assert (preprocessor.inputs(codes, len(codes))[MATRIX] == measured(frame)).all()


@pytest.mark.parametrize("bend", [FunctionTransformer(np.log1p), QuantileTransformer(n_quantiles=40)], ids=["log", "ranks"])
def test_bent_numbers_become_curves(bend: Any) -> None:
    frame = numbers().clip(lower=0)
    unseen = numbers(300, seed=1).clip(lower=frame.min(), upper=frame.max(), axis=1).astype(frame.dtypes)
    preprocessor, found, wanted = both(bend, frame, unseen)
    assert len(preprocessor.curves) == 3
    assert np.abs(found - wanted).max() < 1e-2


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        (PCA(2), "mix columns"),
        (PolynomialFeatures(2, include_bias=False), "mix columns"),
        (FunctionTransformer(lambda x: np.asarray(x) - np.asarray(x).mean(axis=0)), "separately|mix columns"),
        (FunctionTransformer(lambda x: np.full((len(x), 2), np.nan)), "missing or infinite"),
        (FunctionTransformer(lambda x: sparse.csr_matrix((len(x), 10**7))), "too large"),
    ],
    ids=["components", "products", "centred on the batch", "missing", "too wide"],
)
def test_steps_that_are_no_table_are_recognised(steps: Any, why: str) -> None:
    frame = numbers()
    table, codes = coded(frame)
    steps.fit(frame)
    with pytest.raises(NotCompiledError, match=why):
        learn_preprocessor(steps.transform, table, codes, False)


def test_an_interaction_the_first_row_does_not_show_is_found_on_the_others() -> None:
    frame = numbers().sort_values("age", ignore_index=True)
    table, codes = coded(frame)

    def hidden(rows: pd.DataFrame) -> np.ndarray:
        return np.where(rows["age"] > 30, rows["debt"], 0.0)[:, None] * [1.0]

    with pytest.raises(NotCompiledError, match=r"mix columns|separately"):
        learn_preprocessor(hidden, table, codes, False)


def test_padding_and_types() -> None:
    frame = people()
    table, codes = coded(frame)
    steps = columns().fit(frame)
    preprocessor = learn_preprocessor(steps.transform, table, codes, False).with_dtype(np.float32)
    padded = preprocessor.inputs(codes[:3], 8)[MATRIX]
    assert padded.shape == (8, preprocessor.width)
    assert padded.dtype == np.float32
    assert np.isfinite(padded).all()
    assert (padded[:3] == preprocessor.inputs(codes[:3], 3)[MATRIX]).all()


def test_what_a_sparse_matrix_leaves_out_is_missing_where_configured() -> None:
    frame = people().assign(debt=lambda f: f["debt"].where(f.index % 3 > 0, 0.0))
    steps = columns("passthrough", sparse_threshold=1.0).fit(frame)
    table, codes = coded(frame)
    given = steps.transform(frame)
    assert sparse.issparse(given)
    found = learn_preprocessor(steps.transform, table, codes, True).with_dtype(np.float32).inputs(codes, len(codes))[MATRIX]
    dense = given.toarray()
    assert (np.isnan(found) == (dense == 0)).all()
    assert np.allclose(np.nan_to_num(found), dense)


def test_numbers_are_taken_as_their_columns_hold_them() -> None:
    frame = people()
    table, codes = coded(frame)
    preprocessor = learn_preprocessor(columns("passthrough").fit(frame).transform, table, codes, False)
    between = codes[:50].copy()
    between[:, 0] += 0.7
    between[:, 4] += 1e-9
    assert (preprocessor.inputs(between, 50)[MATRIX] == preprocessor.inputs(codes[:50], 50)[MATRIX]).all()


def test_columns_for_a_graph_of_all_steps() -> None:
    frame = people().assign(grade=[1, 2] * 250)
    table, codes = coded(frame, Schema.infer(frame, categorical=["grade"]))
    inputs = column_preprocessor(table, np.float64).inputs(codes[:3], 5)
    assert list(inputs) == ["age", "land", "debt", "owner", "years", "grade"]
    assert {values.shape for values in inputs.values()} == {(5, 1)}
    assert inputs["land"][:3, 0].tolist() == frame["land"].head(3).tolist()
    assert inputs["grade"].dtype == np.float64
    mixed = Schema.infer(frame.assign(land=["a", 1] * 250))
    with pytest.raises(NotCompiledError, match="mixes text and numbers"):
        column_preprocessor(coded(frame.assign(land=["a", 1] * 250), mixed)[0], np.float64)


def test_text_reaching_the_last_step_is_named() -> None:
    with pytest.raises(NotCompiledError, match="text in column 'land'"):
        as_matrix(people(5))
    assert as_matrix(people(5, words="category"))[:, 1].max() <= 3


def test_selectors_of_columns_are_seen_through() -> None:
    picked = make_column_transformer((StandardScaler(), make_column_selector("age|years")), remainder="passthrough")
    preprocessor, found, wanted = both(picked, numbers(), numbers(50))
    assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert preprocessor.width == 3


@pytest.mark.parametrize("indicator", [True, False])
def test_what_steps_make_of_missing_values(indicator: bool) -> None:
    frame = people().drop(columns="owner").astype({"age": float})
    rng = np.random.default_rng(2)
    for name in frame.columns:
        frame[name] = frame[name].mask(rng.random(len(frame)) < 0.2)
    imputer = make_pipeline(SimpleImputer(add_indicator=indicator), StandardScaler())
    steps = columns(imputer, OneHotEncoder(), sparse_threshold=0).fit(frame)
    table, codes = coded(frame)
    preprocessor = learn_preprocessor(steps.transform, table, codes, False)
    found = preprocessor.inputs(codes, len(codes))[MATRIX]
    assert np.allclose(found, steps.transform(frame), atol=1e-6)


def test_missing_values_that_steps_leave_alone() -> None:
    frame = numbers().astype({"age": float})
    frame["debt"] = frame["debt"].mask(frame["age"] > 50)
    table, codes = coded(frame)
    preprocessor = learn_preprocessor(lambda rows: rows, table, codes, False)
    found = preprocessor.inputs(codes, len(codes))[MATRIX]
    np.testing.assert_array_equal(found, frame.to_numpy())
