"""What comes back lines up with what went in, whatever the index."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_index_equal
from sklearn.linear_model import LogisticRegression

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.explanation import Change, CounterfactualArrays, Explanation
from fasterce.models.predictor import ModelUsage


def people(index: Any = None) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20, 40, 60],
            "income": [1.5, 2.25, 3.0],
            "job": ["clerk", "nurse", "smith"],
            "owner": [True, False, True],
        },
        index=index,
    )


def explain(
    rows: pd.DataFrame, found: Sequence[tuple[int, dict[Any, Any]]], status: Sequence[str] = ("found",) * 3
) -> Explanation:
    """An explanation by hand; `found` are (row, codes to put in) in the order of the rows, best first."""
    table = Table.like(rows, Schema.infer(rows))
    codes = table.read(rows).codes
    query = np.array([row for row, _ in found], dtype=np.intp)
    after = codes[query]
    for line, (_, changes) in enumerate(found):
        for name, code in changes.items():
            after[line, table.schema.position(name)] = code

    def series(values: Any) -> pd.Series:
        return pd.Series(list(values), index=rows.index, dtype=object)

    return Explanation(
        rows=rows,
        status=series(status),
        reason=series("" if word == "found" else f"Because {word}." for word in status),
        prediction=series(["no"] * len(rows)),
        target=series(["yes"] * len(rows)),
        arrays=CounterfactualArrays(
            query=query,
            rank=np.arange(len(query)) - np.searchsorted(query, query),
            method=np.array(["closest", "sparse", "realistic", "closest"][: len(query)], dtype=object),
            before=codes[query],
            codes=after,
            distance=np.linspace(0.5, 2.0, 4)[: len(query)],
        ),
        table=table,
        usage=ModelUsage(calls=7, rows=90),
        seconds=0.6,
    )


EVERY: list[tuple[int, dict[Any, Any]]] = [
    (0, {"age": 25, "job": 2}),
    (1, {"owner": 1}),
    (1, {"income": 2.5}),
    (2, {"income": 1.75}),
]
INDICES = {
    "range": pd.RangeIndex(3),
    "repeated": pd.Index([5, 5, 1]),
    "all the same": pd.Index([7, 7, 7]),
    "text": pd.Index(["ann", "bob", "ann"], name="who"),
    "levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["site", "number"]),
    "dates": pd.date_range("2020-01-01", periods=3),
}


@pytest.fixture(params=list(INDICES))
def index(request: pytest.FixtureRequest) -> pd.Index:
    return INDICES[request.param]


def test_counterfactuals_line_up_with_the_rows(index: pd.Index) -> None:
    rows = people(index)
    expected = people(index).assign(
        age=[25, 40, 60], income=[1.5, 2.25, 1.75], job=["smith", "nurse", "smith"], owner=[True, True, True]
    )
    assert_frame_equal(explain(rows, EVERY).counterfactuals, expected)
    assert_frame_equal(rows, people(index))


def test_rows_without_a_counterfactual_are_missing_and_keep_their_place(index: pd.Index) -> None:
    explanation = explain(people(index), EVERY[1:3], ["none_found", "found", "already_target"])
    result = explanation.counterfactuals
    assert_index_equal(result.index, index)
    assert result.isna().all(axis=1).tolist() == [True, False, True]
    assert result.iloc[1].tolist() == [40, 2.25, "nurse", True]
    assert [str(dtype) for dtype in result.dtypes] == ["Int64", "float64", str(people(index)["job"].dtype), "boolean"]


def test_nothing_found_gives_a_row_of_gaps_for_every_row(index: pd.Index) -> None:
    explanation = explain(people(index), [], ["none_found"] * 3)
    assert_index_equal(explanation.counterfactuals.index, index)
    assert explanation.counterfactuals.isna().all(axis=None)
    assert list(explanation.counterfactuals.columns) == list(people().columns)
    assert len(explanation.to_frame()) == 0
    assert list(explanation.to_frame().columns[:6]) == ["query", "rank", "method", "origin", "n_changed", "changed"]


def test_the_long_form_has_one_line_a_counterfactual(index: pd.Index) -> None:
    frame = explain(people(index), EVERY).to_frame()
    about = ["query", "rank", "method", "origin", "n_changed", "changed", "distance", "new_prediction"]
    assert list(frame.columns) == [*about, "age", "income", "job", "owner"]
    assert frame["query"].tolist() == [index[0], index[1], index[1], index[2]]
    assert frame["rank"].tolist() == [0, 0, 1, 0]
    assert frame["method"].tolist() == ["closest", "sparse", "realistic", "closest"]
    assert frame["n_changed"].tolist() == [2, 1, 1, 1]
    assert frame["changed"].tolist() == [["age", "job"], ["owner"], ["income"], ["income"]]
    assert frame["distance"].tolist() == [0.5, 1.0, 1.5, 2.0]
    assert frame["age"].tolist() == [25, 40, 40, 60]
    assert frame["income"].tolist() == [1.5, 2.25, 2.5, 1.75]
    assert frame["owner"].tolist() == [True, True, False, True]
    assert frame[people().columns].dtypes.tolist() == people().dtypes.tolist()
    assert frame.index.tolist() == [0, 1, 2, 3]


def test_columns_with_numbers_as_names() -> None:
    rows = pd.DataFrame({3: [1, 2], 1: ["x", "y"]})
    explanation = explain(rows, [(0, {1: 1}), (1, {3: 5})], ["found"] * 2)
    assert explanation.counterfactuals[3].tolist() == [1, 5]
    assert explanation.to_frame()["changed"].tolist() == [[1], [3]]
    assert explanation.changes(0) == [Change(1, "x", "y")]


def test_a_column_called_like_one_of_ours_keeps_its_own_name() -> None:
    rows = people().rename(columns={"income": "distance"})
    frame = explain(rows, [(0, {"distance": 2.0})]).to_frame()
    assert frame.columns.is_unique


def test_changes_are_plain_values_in_the_order_of_the_columns() -> None:
    explanation = explain(people(), EVERY)
    assert explanation.changes(0) == [Change("age", 20, 25), Change("job", "clerk", "smith")]
    assert explanation.changes(1) == [Change("owner", False, True)]
    assert explanation.changes(2) == [Change("income", 2.25, 2.5)]
    values = [value for k in range(4) for change in explanation.changes(k) for value in (change.before, change.after)]
    assert {type(value) for value in values} == {int, str, bool, float}


def test_the_lines_of_a_row_are_found() -> None:
    explanation = explain(people(), EVERY)
    assert [explanation.of_row(position) for position in range(3)] == [[0], [1, 2], [3]]
    assert explain(people(), EVERY[:1]).of_row(2) == []


def test_the_summary_counts_rows_and_averages_the_best() -> None:
    summary = explain(people(), EVERY[:3], ["found", "found", "none_found"]).summary()
    assert summary == {
        "rows": 3,
        "found": 2,
        "none_found": 1,
        "features_changed": 1.5,
        "distance": 0.75,
        "calls": 7,
        "model_rows_each": 30.0,
        "ms_each": pytest.approx(200.0),
    }


def test_the_summary_of_nothing_found_has_no_means() -> None:
    summary = explain(people(), [], ["invalid_input", "model_error", "none_found"]).summary()
    assert np.isnan(summary["features_changed"])
    assert np.isnan(summary["distance"])
    assert (summary["invalid_input"], summary["model_error"], summary["none_found"]) == (1, 1, 1)
    assert "found" not in summary


def test_no_rows_at_all() -> None:
    rows = people().iloc[:0]
    table = Table.like(people(), Schema.infer(people()))
    nothing = np.zeros(0, dtype=np.intp)
    counterfactuals = CounterfactualArrays(
        nothing, nothing, np.zeros(0, dtype=object), np.zeros((0, 4)), np.zeros((0, 4)), np.zeros(0)
    )
    empty = pd.Series([], dtype=object)
    explanation = Explanation(rows, empty, empty, empty, empty, counterfactuals, table, ModelUsage(), 0.0)
    assert len(explanation) == 0
    assert_frame_equal(explanation.counterfactuals, rows)
    assert explanation.summary()["model_rows_each"] == 0.0
    assert repr(explanation) == "Explanation(0 rows: none; 0 calls, 0 model rows)"


def test_the_short_form_tells_rows_outcomes_and_cost() -> None:
    explanation = explain(people(), EVERY[:3], ["found", "found", "none_found"])
    assert len(explanation) == 3
    assert repr(explanation) == "Explanation(3 rows: 2 found, 1 none_found; 7 calls, 90 model rows)"


def test_printing_shows_a_change_and_a_reason() -> None:
    explanation = explain(people(), EVERY[:1], ["found", "none_found", "none_found"])
    for shown in (str(explanation), explanation._repr_html_()):
        assert "smith" in shown
        assert "Because none_found." in shown


def test_explanations_of_the_same_rows_stand_side_by_side(index: pd.Index) -> None:
    rows = people(index)
    first = explain(rows, EVERY[:1], ["found", "none_found", "none_found"])
    second = explain(rows, [(0, {"income": 2.0}), (2, {"age": 50})], ["found", "none_found", "found"])
    both = first.beside(second, labels=["one", "two"])
    frame = both.to_frame()
    assert frame["query"].tolist() == [index[0], index[0], index[2]]
    assert frame["method"].tolist() == ["one", "two", "two"]
    assert frame["rank"].tolist() == [0, 1, 0]
    assert both.status.tolist() == ["found", "none_found", "found"]
    assert both.reason.tolist() == ["", "Because none_found.", ""]
    assert (both.usage.calls, both.usage.rows, both.seconds) == (14, 180, 1.2)
    assert first.beside(second).to_frame()["method"].tolist() == ["closest", "closest", "sparse"]


def test_side_by_side_only_the_options_in_common_hold() -> None:
    one, two = (
        replace(explain(people(), [], ["none_found"] * 3), options={"method": method, "n": 1, "constraints": ()})
        for method in ("closest", "sparse")
    )
    assert one.beside(two).options == {"n": 1, "constraints": ()}
    assert one.beside(one).options == one.options


def test_predictions_of_verification_are_kept() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300)})
    model = LogisticRegression().fit(frame, np.where(frame["x"] + frame["y"] > 0, "yes", "no"))
    explainer = FasterCE(model, autoencoder=(lambda m: m, lambda z: z), progress=False, config=Config.fast()).fit(frame)
    result = explainer.explain(frame.head(5))
    arrays = result.arrays
    assert [explainer.classes_[k] for k in arrays.predicted] == model.predict(result.to_frame()[["x", "y"]]).tolist()
    by_score = explainer.explain(frame.head(5), target="yes", target_score=(0.7, None))
    expected = model.predict_proba(by_score.to_frame()[["x", "y"]])
    np.testing.assert_allclose(by_score.arrays.probabilities, expected)
    assert by_score.probabilities is not None
    np.testing.assert_allclose(by_score.probabilities, model.predict_proba(frame.head(5)))
    part = by_score.take(2, 4)
    assert part.probabilities is not None
    np.testing.assert_allclose(part.probabilities, model.predict_proba(frame.iloc[2:4]))
