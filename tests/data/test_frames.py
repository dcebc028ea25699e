"""Polars and PyArrow tables go in and come out; the model gets the kind of table it was fitted with."""

import sys
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, Schema, load, records
from fasterce.config import Config
from fasterce.data.frames import as_kind, as_pandas, kind_of
from fasterce.errors import InputError
from fasterce.explanation import Explanation
from fasterce.fairness import recourse_gap
from fasterce.viz.plots import dumbbell
from tests.samples import people

IDENTITY = (np.asarray, np.asarray)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS: dict[str, Any] = {"autoencoder": IDENTITY, "progress": False, "config": Config.fast()}


def mixed() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "whole": [1, 2, 3],
            "small": pl.Series([1, None, 3], dtype=pl.UInt8),
            "float": [0.5, None, 2.5],
            "single": pl.Series([0.1, 0.2, 0.3], dtype=pl.Float32),
            "text": ["a", None, "b"],
            "kind": pl.Series(["y", "x", None], dtype=pl.Categorical),
            "level": pl.Series(["low", "high", None], dtype=pl.Enum(["low", "mid", "high"])),
            "flag": [True, False, True],
            "maybe": [True, None, False],
        }
    )


def test_columns_keep_their_type_there_and_back() -> None:
    there = as_pandas(mixed())
    assert [str(dtype) for dtype in there.dtypes] == [
        *("int64", "UInt8", "float64", "float32", str(pd.Series(["a"]).dtype), "category", "category", "bool", "boolean"),
    ]
    assert there["level"].cat.ordered
    assert list(there["level"].cat.categories) == ["low", "mid", "high"]
    assert list(there["kind"].cat.categories) == ["x", "y"], "not those of other columns"
    back = as_kind(there, "polars")
    assert back.schema == mixed().schema
    assert back.equals(mixed())


def test_pyarrow_columns_keep_their_type_there_and_back() -> None:
    levels = pa.DictionaryArray.from_arrays(pa.array([0, 2, None]), ["low", "mid", "high"], ordered=True)
    table = mixed().to_arrow().set_column(6, "level", levels)  # old versions of Polars drop the order
    there = as_pandas(table)
    pd.testing.assert_frame_equal(there, as_pandas(mixed()))
    back = as_kind(there, "pyarrow")
    assert back.to_pydict() == table.to_pydict()
    assert [str(field.type) for field in back][:4] == ["int64", "uint8", "double", "float"]
    assert back.schema.field("level").type.ordered


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)), min_size=1, max_size=8),
    st.sampled_from([pl.Int32, pl.Int64]),
)
def test_whole_numbers_with_missing_values_stay_whole(values: list[int | None], dtype: Any) -> None:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
    assert as_kind(as_pandas(frame), "polars").equals(frame)


@given(st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=8).filter(any))
def test_text_with_missing_values_stays_text(values: list[str | None]) -> None:
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.String)})
    assert as_kind(as_pandas(frame), "polars").equals(frame)


def test_pandas_is_left_alone() -> None:
    frame = people(5)
    assert as_pandas(frame) is frame
    assert as_kind(frame, "pandas") is frame
    assert [kind_of(one) for one in (frame, mixed(), mixed().to_arrow(), 5)] == ["pandas", "polars", "pyarrow", "pandas"]


@pytest.mark.parametrize("wrong", [np.zeros((2, 2, 2)), [1, 2], None, pl.Series([1])])
def test_what_is_no_table_is_reported(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"must be a pandas, Polars or PyArrow table, a Series, .* or a NumPy array; got"):
        Schema.infer(wrong)


def test_a_lazy_frame_has_to_be_collected() -> None:
    with pytest.raises(InputError, match=r"must be a table in memory; got a LazyFrame \(call collect\(\)"):
        Schema.infer(mixed().lazy())


def test_importing_the_package_imports_neither() -> None:
    import subprocess

    code = "import sys, fasterce; print([m for m in ('polars', 'httpx', 'mlflow') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# The whole way.


def as_polars(frame: pd.DataFrame) -> pl.DataFrame:
    return as_kind(frame, "polars").with_columns(pl.col("job").cast(pl.Enum(["clerk", "nurse", "smith"])))


@pytest.fixture(scope="module")
def here() -> pd.DataFrame:
    frame = people(200).reset_index(drop=True)
    return frame.assign(job=pd.Categorical(frame["job"], ["clerk", "nurse", "smith"], ordered=True))


class OnlyPolars:
    """A model that cannot do with anything but Polars, and remembers what it saw."""

    classes_ = np.array(["no", "yes"])

    def __init__(self) -> None:
        self.seen: set[Any] = set()

    def predict(self, frame: pl.DataFrame) -> Any:
        self.seen.add(tuple(frame.schema.items()))
        wealth = (
            pl.col("pay") - pl.col("debt") + pl.when(pl.col("job") == "smith").then(10).otherwise(0) + pl.col("age") * 0.3
        )
        return np.where(frame.select(wealth.alias("w"))["w"].to_numpy() > 45, "yes", "no")


@pytest.fixture(scope="module")
def fitted(here: pd.DataFrame) -> FasterCE:
    return FasterCE(OnlyPolars(), **SETTINGS).fit(as_polars(here))


class InPandas:
    """The same model for pandas."""

    classes_ = np.array(["no", "yes"])

    def predict(self, frame: pd.DataFrame) -> Any:
        return OnlyPolars().predict(as_kind(frame, "polars"))


def test_results_are_those_of_pandas(fitted: FasterCE, here: pd.DataFrame) -> None:
    compiled = FasterCE(InPandas(), **SETTINGS).fit(here)
    for method in ("closest", "sparse"):
        given_back = fitted.explain(as_polars(here).head(20), method)
        assert isinstance(given_back, Explanation)
        expected = compiled.explain(here.head(20), method)
        pd.testing.assert_frame_equal(given_back.in_pandas().to_frame(), expected.to_frame())
        assert given_back.to_frame().equals(as_kind(expected.to_frame(), "polars"))
        assert given_back.counterfactuals.equals(as_kind(expected.counterfactuals, "polars"))
        assert given_back.summary()["found"] == expected.summary()["found"]


def test_the_model_sees_the_types_of_fit_and_nothing_else(fitted: FasterCE, here: pd.DataFrame) -> None:
    fitted.explain(as_polars(here).head(5))
    fitted.explain(here.head(5))
    assert fitted.model.seen == {tuple(as_polars(here).schema.items())}


def test_results_are_tables_of_the_kind_of_the_query(fitted: FasterCE, here: pd.DataFrame) -> None:
    frame = as_polars(here)
    result = fitted.explain(frame.head(20))
    assert result.rows.equals(frame.head(20))
    assert isinstance(result.status, pl.Series)
    assert result.rows.filter(result.status == "found").height == result.summary()["found"]
    assert result.counterfactuals.schema == frame.schema
    lines = result.to_frame()
    assert lines.schema["changed"] == pl.List(pl.String)
    assert lines["query"].to_list() == np.flatnonzero(np.asarray(result.status) == "found").tolist()
    assert isinstance(fitted.explain(here.head(3)).counterfactuals, pd.DataFrame)
    table = fitted.explain(frame.head(3).to_arrow())
    assert isinstance(table.counterfactuals, pa.Table)
    assert len(table) == 3
    assert table.counterfactuals.num_rows == 3


def test_rows_without_a_counterfactual_are_null(fitted: FasterCE, here: pd.DataFrame) -> None:
    result = fitted.explain(as_polars(here).head(10), target="yes")
    there = np.asarray(result.status) == "already_target"
    assert there.any()
    assert result.counterfactuals["age"].is_null().to_numpy().tolist() == there.tolist()
    assert result.counterfactuals.schema == as_polars(here).schema


def test_a_row_that_cannot_be_read_is_invalid_input_alone(fitted: FasterCE, here: pd.DataFrame) -> None:
    frame = as_polars(here).head(3).with_columns(age=pl.Series([None, 40, 50]), job=pl.Series(["clerk", "pope", "smith"]))
    result = fitted.explain(frame)
    assert result.status.to_list()[:2] == ["invalid_input", "invalid_input"]
    assert "must not be missing" in result.reason.to_list()[0]


def test_the_result_is_shown_compared_and_rechecked(fitted: FasterCE, here: pd.DataFrame) -> None:
    frame = as_polars(here).head(12)
    result = fitted.explain(frame)
    plain = result.in_pandas()
    assert (str(result), repr(result), result._repr_html_()) == (str(plain), repr(plain), plain._repr_html_())
    both = result.beside(fitted.explain(frame, "sparse"), labels=["closest", "sparse"])
    assert set(both.to_frame()["method"]) == {"closest", "sparse"}
    assert fitted.recheck(result).holds.all()
    assert fitted.recheck(result.to_frame(), rows=frame, target="yes").holds.sum() == (
        result.to_frame().height - sum(result.target.to_list()[k] != "yes" for k in result.to_frame()["query"])
    )
    assert len(recourse_gap(result, "own", n_boot=100).frame)
    assert dumbbell(result, 0).axes
    made, again = (records.make(fitted, one, now=NOON) for one in (result, plain))
    assert [{**one, "ids": None} for one in made] == [{**one, "ids": None} for one in again]
    assert records.texts(result) == records.texts(plain)


def test_drift_update_walk_and_ensemble_take_polars(fitted: FasterCE, here: pd.DataFrame, tmp_path: Any) -> None:
    frame = as_polars(here)
    assert fitted.drift(frame.head(50)).rows == 50
    code = fitted.explain(frame.head(1), target="yes" if fitted.explain(frame.head(1)).prediction[0] == "no" else "no")
    assert fitted.walk(code.rows) is not None
    fitted.save(tmp_path / "saved")
    other = load(tmp_path / "saved", OnlyPolars(), autoencoder=IDENTITY)
    assert other.explain(frame.head(10)).counterfactuals.equals(fitted.explain(frame.head(10)).counterfactuals)
    other.update(frame.head(60))
    other.explain(frame.head(3))
    assert other.model.seen == {tuple(frame.schema.items())}
    seen: list[type] = []

    def fit_one(X: Any, y: Any) -> OnlyPolars:
        seen.append(type(X))
        return OnlyPolars()

    fitted.fit_ensemble(fit_one, frame, fitted.model.predict(frame), count=2)
    assert seen == [pl.DataFrame] * 2
    assert fitted.explain(frame.head(3), ensemble_agreement=0.5).to_frame()["ensemble_agreement"].min() >= 0.5


def test_our_own_adapters_get_pandas(here: pd.DataFrame) -> None:
    xgboost = pytest.importorskip("xgboost")
    numbers = here[["age", "pay", "debt"]]
    rich = (numbers["pay"] - numbers["debt"] > 30).astype(int)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 2}, xgboost.DMatrix(numbers, label=rich), 8)
    frame = as_kind(numbers, "polars")
    result = FasterCE(booster, **SETTINGS).fit(frame).explain(frame.head(5))
    assert set(result.status) == {"found"}
    assert isinstance(result.counterfactuals, pl.DataFrame)


def test_a_pipeline_fitted_on_polars(here: pd.DataFrame) -> None:
    frame = as_kind(here.assign(job=here["job"].astype(str)), "polars")
    steps = make_column_transformer((StandardScaler(), ["age", "pay", "debt"]), (OneHotEncoder(), ["job", "own"]))
    model = make_pipeline(steps, LogisticRegression()).fit(frame, OnlyPolars().predict(frame))
    explainer = FasterCE(model, Schema.infer(frame, immutable=["own"]), **SETTINGS).fit(frame)
    result = explainer.explain(frame.head(10))
    assert set(result.status) == {"found"}
    assert (model.predict(result.counterfactuals) == np.asarray(result.target)).all()
    assert (result.counterfactuals["own"] == frame["own"].head(10)).all()


ROW = {"age": 30, "job": "nurse", "pay": 2.5}


@pytest.mark.parametrize(
    "given",
    [
        ROW,
        [ROW],
        pd.Series(ROW),
        [pd.Series(ROW)],
        np.array([list(ROW.values())], dtype=object),
        np.array(list(ROW.values()), dtype=object),
    ],
    ids=["dictionary", "list", "series", "list of series", "array", "flat array"],
)
def test_one_row_in_any_form(given: Any) -> None:
    frame = as_pandas(given, "rows", tuple(ROW))
    assert frame.to_dict("records") == [ROW]
    assert pd.api.types.is_integer_dtype(frame["age"].dtype)


def test_a_dictionary_of_lists_is_a_table_and_an_array_without_names_gets_some() -> None:
    assert as_pandas({"a": [1, 2], "b": ["x", "y"]}).to_dict("list") == {"a": [1, 2], "b": ["x", "y"]}
    assert list(as_pandas(np.zeros((2, 3))).columns) == ["x0", "x1", "x2"]
    with pytest.raises(InputError, match=r"X must be an array with one column per feature \(2\); got 3"):
        as_pandas(np.zeros((2, 3)), names=["a", "b"])
