"""Results as JSON, as a styled table, as a page and as a figure."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE
from fasterce.config import Config
from fasterce.explanation import Explanation
from tests.viz.conftest import Build


class Model:
    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        days = (frame["since"] - pd.Timestamp("2020-01-01")).dt.days.to_numpy(dtype=float)
        scores = np.stack([days / 300, 0 * days, frame["pay"].to_numpy() / 10 - 5], axis=1)
        chances = np.exp(scores)
        return chances / chances.sum(axis=1, keepdims=True)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    since = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1500, 300), unit="D")
    return pd.DataFrame({"since": since, "pay": rng.uniform(0, 100, 300).round(2), "<b>": rng.integers(0, 9, 300)})


@pytest.fixture(scope="module")
def result(rows: pd.DataFrame) -> Explanation:
    explainer = FasterCE(Model(), config=Config.fast(), progress=False).fit(rows)
    broken = rows.head(6).astype({"pay": float}).copy()
    broken.loc[3, "pay"] = np.nan
    return explainer.explain(broken, target="any other")


def test_the_new_class_and_its_probability_are_in_the_table(result: Explanation) -> None:
    frame = result.to_frame()
    model = Model()
    predicted = model.predict(frame[["since", "pay", "<b>"]])
    assert frame["new_prediction"].tolist() == predicted.tolist()
    assert (frame["new_prediction"].to_numpy() != result.prediction[frame["query"]].to_numpy()).all()
    chances = model.predict_proba(frame[["since", "pay", "<b>"]]).max(axis=1)
    np.testing.assert_allclose(frame["new_score"], chances, atol=5e-5)
    first = frame.iloc[0]
    assert f"{first['new_prediction']} ({100 * first['new_score']:.1f} %)" in str(result)


def test_json_has_one_object_per_row(result: Explanation, tmp_path: Path) -> None:
    content = json.loads(result.to_json(tmp_path / "result.json"))
    assert json.loads((tmp_path / "result.json").read_text()) == content
    assert [row["status"] for row in content["rows"]] == result.status.tolist()
    assert content["model"] == "Model"
    missing = content["rows"][3]
    assert (missing["row"]["pay"], missing["counterfactuals"], missing["prediction"]) == (None, [], None)
    first = content["rows"][0]["counterfactuals"][0]
    assert {change["feature"] for change in first["changes"]} <= {"since", "pay"}
    assert first["new_prediction"] in ("a", "b", "c")


def test_rows_with_labels_of_several_levels_are_named_by_all_of_them(build: Build, people: pd.DataFrame) -> None:
    people.index = pd.MultiIndex.from_arrays([np.array([1, 1, 2]), ["ann", "bob", "cat"]])
    found = build(people, [(0, "line", {"income": 52000}, 0.3)])
    assert str(found).startswith("Row 1, ann:")
    assert [row["query"] for row in json.loads(found.to_json())["rows"]] == [[1, "ann"], [1, "bob"], [2, "cat"]]


def test_changed_cells_are_marked_in_the_styled_table(result: Explanation) -> None:
    shown = result.style.to_html()
    changed = int(result.arrays.changed.sum())
    assert shown.count("background-color: #dbeafe") >= 1
    assert len(result.style.data) == len(result.to_frame())
    assert changed >= len(result.style.data)


def test_the_page_has_all_rows_the_model_the_date_and_what_the_distance_means(result: Explanation, tmp_path: Path) -> None:
    page = result.to_html(tmp_path / "page.html", title="Loans <in> March")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "Loans &lt;in&gt; March" in page
    assert f"Model · {datetime.datetime.now(datetime.UTC):%Y-%m-%d}" in page
    assert page.count("<tr data-status=") == len(result)
    assert "share of training rows between the two values" in page
    assert "Constraints in force" in page
    assert "<b>" not in page.replace("&lt;b&gt;", "")


def test_plots_follow_the_number_of_rows(result: Explanation) -> None:
    assert "What changes in" in result.plot().get_suptitle()
    assert result.plot(row=0).get_suptitle().startswith("Row 0")
    assert result.take(0, 1).plot().get_suptitle().startswith("Row 0")
