"""N rows in, N distinct rows out, in columns that do not depend on what the rows hold."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.io import explain_chunk, schema


def test_every_counterfactual_is_a_line_and_flips_the_model(explainer: FasterCE, people: pd.DataFrame) -> None:
    lines = explain_chunk(explainer, people, {"n": 2}).to_pandas()
    explained = explainer.explain(people, n=2)
    assert lines["row"].nunique() == len(people)
    assert lines.groupby("row")["status"].first().tolist() == explained.status.tolist()
    answered = lines[lines["rank"].notna()]
    assert len(answered) == len(explained.arrays)
    assert answered["distance"].tolist() == explained.arrays.distance.tolist()
    after = answered[[f"cf_{name}" for name in people.columns]].set_axis(people.columns, axis=1)
    assert (explainer.model(after.astype(people.drop(columns="grade").dtypes)) == answered["target"]).all()


def test_changes_say_what_differs_from_the_row(explainer: FasterCE, people: pd.DataFrame) -> None:
    lines = explain_chunk(explainer, people).to_pandas()
    for _, line in lines[lines["rank"] == 0].iterrows():
        changes = json.loads(line["changes"])
        assert len(changes) == line["n_changed"] > 0
        for change in changes:
            before = people.loc[line["row"], change["feature"]]
            assert change["from"] == before or (change["from"] is None and np.isnan(before))
            assert change["to"] == line[f"cf_{change['feature']}"] != change["from"]


def test_a_row_without_a_counterfactual_has_one_line_with_the_reason(explainer: FasterCE, people: pd.DataFrame) -> None:
    bad = people.astype({"age": object})
    bad.loc[1, "age"] = "abc"
    lines = explain_chunk(explainer, bad.iloc[:3], {"target": "yes", "n": 3}).to_pandas()
    mine = lines[lines["row"] == 1]
    assert len(mine) == 1
    assert mine["status"].item() == "invalid_input"
    assert mine["reason"].item() == "Column 'age' must be a finite number; got 'abc'."
    assert mine["rank"].isna().item()
    assert mine["cf_age"].isna().item()
    assert mine["prediction"].isna().item()


@pytest.mark.parametrize("which", ["none", "all bad", "already", "some"])
def test_the_columns_do_not_depend_on_the_rows(explainer: FasterCE, people: pd.DataFrame, which: str) -> None:
    options = {"target": "yes"}
    there = explainer.model(people) == "yes"
    rows = {
        "none": people.iloc[:0],
        "all bad": people.iloc[:2].assign(zip="99"),
        "already": people[there].iloc[:2],
        "some": people.iloc[:5],
    }[which]
    extra = pa.table({"status": pa.array(["x"] * len(rows)), "id": pa.array(range(len(rows)), pa.int32())})
    expected = schema(explainer, options, extra.schema)
    found = explain_chunk(explainer, rows, options, extra, first=100)
    assert found.schema == expected
    assert found["row"].unique().to_pylist() == list(range(100, 100 + len(rows)))
    assert expected.names[:3] == ["row", "status_", "id"]
    assert expected.field("cf_weight").type == pa.float32()
    assert expected.field("cf_own").type == pa.bool_()
    assert expected.field("cf_code").type == pa.int64()
    assert expected.field("cf_zip").type == pa.string()


def test_targets_and_predictions_are_of_the_models_own_type() -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 9, 200).round(2), "y": np.linspace(5, 0, 200).round(2)})

    def three(rows: pd.DataFrame) -> Any:
        return np.digitize(rows["x"], [3, 6])

    def number(rows: pd.DataFrame) -> Any:
        return rows["x"].to_numpy() * 2

    def identity(matrix: Any) -> Any:
        return matrix

    settings: dict[str, Any] = {"autoencoder": (identity, identity), "progress": False, "config": Config.fast()}
    classes = FasterCE(three, Schema.infer(frame), **settings).fit(frame)
    numbers = FasterCE(number, Schema.infer(frame), task="regression", **settings).fit(frame)
    named = explain_chunk(classes, frame.iloc[:2], {"target": 2})
    assert named.schema.field("target").type == named.schema.field("prediction").type == pa.int64()
    assert named["target"].to_pylist() == [2, 2]
    other = explain_chunk(classes, frame.iloc[:2], {"target": "any other"})
    assert other["target"].to_pylist() == ["any other"] * 2
    within = explain_chunk(numbers, frame.iloc[:2], {"target": (10, None)})
    assert within["target"].to_pylist() == ["[10.0, null]"] * 2
    assert within["prediction"].to_pylist() == number(frame.iloc[:2]).tolist() == within["score"].to_pylist()
    assert all(score >= 10 for score in within["new_score"].to_pylist())


class Wobbling:
    """Its chances differ in the last bits with the number of rows, as products of matrices do."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        chance = 1 / (1 + np.exp(-(frame["x"].to_numpy() - 5) / 2)) * (1 + 4e-16 * (len(frame) % 7))
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, frame: pd.DataFrame) -> Any:
        return self.classes_[(frame["x"].to_numpy() >= 5).astype(int)]


def test_scores_are_the_same_alone_and_in_company(fitted: Any) -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 9, 200).round(2), "y": np.linspace(5, 0, 200).round(2)})
    wobbling = fitted(frame=frame, model=Wobbling(), schema=Schema.infer(frame))
    options = {"target": "yes", "target_score": (0.6, 1)}
    rows = frame.iloc[5:17]
    whole = explain_chunk(wobbling, rows, options)
    alone = [explain_chunk(wobbling, rows.iloc[[k]], options, first=k) for k in range(len(rows))]
    assert pa.concat_tables(alone).equals(whole)
    assert min(whole["new_score"].to_pylist()) >= 0.6
    scored = wobbling.explain(rows, **options).score
    assert any(scored.iloc[k] != wobbling.explain(rows.iloc[[k]], **options).score.iloc[0] for k in range(len(rows)))


def test_finer_numbers_are_explained_as_the_model_knows_them(explainer: FasterCE, people: pd.DataFrame) -> None:
    finer = people.assign(weight=people["weight"].astype(str).astype(np.float64))
    assert explain_chunk(explainer, finer).equals(explain_chunk(explainer, people))
