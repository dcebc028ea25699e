"""Columns a model never reads."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from fasterce import FasterCE, load
from fasterce.config import Config
from fasterce.errors import InputError
from fasterce.fitting.unread import find_unread
from fasterce.models.predictions import Predictions


def people(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.permutation(rows),
            "pay": rng.uniform(0, 100, rows).round(1),
            "age": rng.integers(18, 80, rows),
            "job": rng.choice(["clerk", "nurse"], rows),
            "remark": [" ".join(rng.choice(["good", "late", "calm", "loud", "paid"], 6)) for _ in range(rows)],
        }
    )


class Model:
    """Reads `pay`; `job` only for high pay; and the remark, if told so."""

    classes_ = np.array(["no", "yes"])

    def __init__(self, reads_remark: bool = False, labels_only: bool = False) -> None:
        self.reads_remark = reads_remark
        if not labels_only:
            self.predict_proba = self._probabilities

    def _probabilities(self, frame: pd.DataFrame) -> np.ndarray:
        score = (frame["pay"] - 60) / 10 + ((frame["pay"] > 95) & (frame["job"] == "clerk")) * 0.5
        if self.reads_remark:
            score = score + 3 * frame["remark"].str.count("good") - 3
        chance = 1 / (1 + np.exp(-score.to_numpy(dtype=float)))
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert list(frame.columns) == ["number", "pay", "age", "job", "remark"]
        return self.classes_[self._probabilities(frame).argmax(axis=1)]


def fitted(model: Any, **options: Any) -> FasterCE:
    return FasterCE(model, config=Config.fast(), progress=False, **options).fit(people())


@pytest.mark.parametrize("labels_only", [False, True])
def test_unread_features_are_found_and_reported(labels_only: bool) -> None:
    explainer = fitted(Model(labels_only=labels_only))
    state = explainer.state_.search
    names = explainer.schema_.names
    assert names == ("pay", "age", "job")
    unread = {name for name, is_unread in zip(names, state.unread, strict=True) if is_unread}
    # Labels alone do not show that the job matters: it never changes one.
    assert unread == ({"age", "job"} if labels_only else {"age"})
    assert explainer.report_.unread == sorted(unread)
    assert (state.read == ~state.unread).all()
    assert "columns the model never reads: age" in str(explainer.report_)


class Labels:
    """Returns labels only."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.predict(frame))


def test_with_labels_only_effects_are_looked_for_at_the_decision_boundary() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    # No change of one value in a training row makes this forest predict another class.
    explainer = FasterCE(Labels(forest), config=Config.fast(), progress=False).fit(X)
    assert explainer.report_.unread == []
    assert (explainer.explain(X.head(20)).status == "found").all()


def test_with_labels_only_categories_and_missing_values_are_moved_to_the_boundary() -> None:
    frame = people()[["pay", "age", "job"]]
    frame.loc[::5, "pay"] = np.nan

    def predict(rows: pd.DataFrame) -> np.ndarray:
        return np.where((rows["job"] == "nurse") & (rows["pay"].isna() | (rows["pay"] > 60)), "yes", "no")

    explainer = FasterCE(predict, config=Config.fast(), progress=False).fit(frame)
    assert explainer.report_.unread == ["age"]


def test_nothing_is_known_to_be_unread_where_no_feature_has_an_effect() -> None:
    search = fitted(Model()).state_.search

    def constant(codes: np.ndarray) -> Predictions:
        return Predictions(np.zeros(len(codes), dtype=int), None)

    assert not find_unread(constant, search.codec, search.examples, Config.fast().fit).any()


def test_columns_that_are_no_features_reach_the_model_unchanged() -> None:
    explainer = fitted(Model())
    assert explainer.report_.passthrough == {"number": "looks like an id", "remark": "is free text"}
    rows = people().head(20)
    result = explainer.explain(rows)
    assert (result.status == "found").all()
    assert result.counterfactuals[["number", "remark"]].equals(rows[["number", "remark"]])
    less = explainer.explain(rows.drop(columns=["remark", "number"]))
    assert less.counterfactuals["pay"].equals(result.counterfactuals["pay"])


def test_a_model_that_reads_text_is_explained_with_each_rows_own_text(tmp_path: Any) -> None:
    model = Model(reads_remark=True)
    explainer = fitted(model)
    assert explainer.report_.passthrough["remark"] == "is free text; the model reads it"
    rows = people().head(12)
    result = explainer.explain(rows)
    found = (result.status == "found").to_numpy()
    assert found.sum() >= 8
    assert (model.predict(result.counterfactuals[found]) != model.predict(rows[found])).all()
    assert (result.counterfactuals["remark"][found] == rows["remark"][found]).all()
    alone = [explainer.explain(rows.iloc[[k]]).to_frame() for k in range(len(rows))]
    pd.testing.assert_frame_equal(pd.concat(alone, ignore_index=True), result.to_frame())
    explainer.save(tmp_path / "text.fasterce")
    again = load(tmp_path / "text.fasterce", model)
    pd.testing.assert_frame_equal(again.explain(rows).to_frame(), result.to_frame())
    assert (again.state_.search.unread == explainer.state_.search.unread).all()
    with pytest.raises(InputError, match="rows must have the columns of the schema; missing 'remark'"):
        explainer.explain(rows.drop(columns="remark"))


def test_no_text_of_a_person_is_kept_without_rows() -> None:
    table = fitted(Model(), keep_rows=False).state_.table
    assert {one.name: one.value for one in table.passthrough} == {"number": 0, "remark": ""}


@pytest.mark.parametrize("method", ["closest", "sparse"])
def test_columns_that_are_not_read_stay_with_labels_alone(method: Any) -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {
            "pay": rng.normal(size=1500).round(2),
            "age": rng.normal(size=1500).round(2),
            "kids": rng.integers(0, 9, 1500),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 30_000_000, 1500), unit="s"),
            "noise": rng.normal(size=1500).round(3),
        }
    )

    def model(frame: pd.DataFrame) -> np.ndarray:
        curved = frame["pay"] + frame["age"] * (frame["kids"] - 4) / 4 - 0.2 * np.sin(3 * frame["age"])
        return np.where(curved > 0.6, "yes", "no")

    explainer = FasterCE(model, config=Config.fast(), progress=False).fit(X)
    result = explainer.explain(X[model(X) == "no"].head(150), method, n=3)
    assert (result.status == "found").all()
    changed = set(result.to_frame()["changed"].explode())
    assert changed == {"pay", "age", "kids"}
