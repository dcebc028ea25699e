"""What a record holds, for every status, kind of target and kind of input; always valid by the published schema."""

import copy
import json
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fasterce import FasterCE, Schema, artifact, records
from fasterce.constraints import AtMost, Derived, Frozen, If, Near, OnlyUp, Range, Require, Step
from fasterce.errors import InputError, ModelError, SchemaError
from fasterce.explanation import Explanation
from fasterce.options import Method
from tests.records.worlds import Bank, fitted, people, refused

DIGEST = f"sha256:{'ab' * 32}"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def made(explainer: FasterCE, explanation: Explanation, **options: Any) -> list[dict[str, Any]]:
    """Records as they come back from a file, each valid."""
    found = [json.loads(records.to_json(record)) for record in records.make(explainer, explanation, **options)]
    assert len(found) == len(explanation)
    for record in found:
        records.validate(record)
    return found


def lasting(record: dict[str, Any]) -> dict[str, Any]:
    """All but what belongs to one call: ids, time, metrics."""
    return {part: value for part, value in record.items() if part not in ("ids", "time", "metrics")}


def as_rows(found: list[dict[str, Any]]) -> pd.DataFrame:
    """The counterfactuals of records as a table of the model's types, one line each."""
    lines = [one["values"] for record in found for one in record["counterfactuals"]]
    return pd.DataFrame(lines, columns=found[0]["input"]["columns"]).astype(people(2).dtypes.to_dict())


def test_a_record_holds_what_went_in_by_what_and_what_came_out(bank: FasterCE) -> None:
    rows = refused(bank.model, 3)
    (first, *_) = made(
        bank,
        bank.explain(rows, n=2, constraints=[AtMost(2, name="few")]),
        model_digest=DIGEST,
        ids=["r1", "r2", "r3"],
        decision_ids=[7, 8, 9],
        subjects=[records.pseudonym(k, "a secret of some length") for k in range(3)],
        constraints_by="credit policy 12",
        threshold=0.5,
        reasons=[["debt too high"], None, []],
        reasons_method="points lost, by factor",
        retain_until=date(2029, 1, 31),
        now=NOON,
    )
    assert (first["format"], first["version"]) == ("fasterce-record", 2)
    assert first["ids"]["request"] == "r1"
    assert (first["ids"]["row"], first["ids"]["decision"]) == (rows.index[0], 7)
    assert first["ids"]["subject"].startswith("hmac-sha256:")
    assert first["time"] == "2026-11-16T12:00:00.000000Z"
    assert first["digests"] == {"model": DIGEST, "schema": first["digests"]["schema"], "artifact": artifact.digest(bank)}
    assert first["software"]["numpy"] == np.__version__
    assert first["software"]["scikit-learn"] == sklearn.__version__
    assert first["configuration"]["options"]["n"] == 2
    assert first["configuration"]["options"]["constraints"] == [{"constraint": "at_most", "k": 2, "name": "few"}]
    assert first["configuration"]["seed"] == 0
    assert dict(zip(first["input"]["columns"], first["input"]["values"], strict=True)) == rows.iloc[0].to_dict()
    assert first["outcome"]["prediction"] == "bad"
    assert first["outcome"]["threshold"] == 0.5
    assert first["outcome"]["score"]["values"] == bank.model.predict_proba(rows.iloc[[0]])[0].tolist()
    assert first["target"] == {"kind": "class", "class": "good", "low": None, "high": None}
    assert first["constraints"]["set_by"] == "credit policy 12"
    listed = {(one["source"], one["text"]) for one in first["constraints"]["constraints"]}
    assert {("schema", "job may not change"), ("schema", "age may only go up"), ("schema", "income within 0 to 200")} < listed
    assert [text for source, text in listed if source == "constraints"] == [AtMost(2, name="few").text]
    assert first["reasons"] == {"method": "points lost, by factor", "reasons": ["debt too high"]}
    assert first["human_review"] is None
    assert first["retain_until"] == "2029-01-31"
    assert "not an adverse-action reason code" in first["notice"]
    assert first["text"].startswith("If ")
    assert first["replayable"] is True


def test_every_change_is_recorded_and_rescored(bank: FasterCE) -> None:
    rows = refused(bank.model, 6)
    result = bank.explain(rows, "all", n=2)
    found = made(bank, result)
    long = result.to_frame()
    recorded = [one for record in found for one in record["counterfactuals"]]
    assert [one["rank"] for one in recorded] == long["rank"].tolist()
    assert [one["method"] for one in recorded] == long["method"].tolist()
    assert [[change["feature"] for change in one["changes"]] for one in recorded] == long["changed"].tolist()
    assert [one["distance"] for one in recorded] == long["distance"].tolist()
    assert [one["nn_ratio"] for one in recorded] == long["nn_ratio"].tolist()
    assert [one["robust"] for one in recorded] == long["robust"].tolist()
    given_out = as_rows(found)
    pd.testing.assert_frame_equal(given_out, long[list(rows.columns)])
    np.testing.assert_array_equal([one["score"]["values"] for one in recorded], bank.model.predict_proba(given_out))
    assert {one["prediction"] for one in recorded} == {"good"}
    for record in found:
        before = dict(zip(record["input"]["columns"], record["input"]["values"], strict=True))
        for one in record["counterfactuals"]:
            after = dict(zip(record["input"]["columns"], one["values"], strict=True))
            changed = {change["feature"]: change["to"] for change in one["changes"]}
            assert {**before, **changed} == after
            assert one["n_changed"] == len(changed)
            assert all(change["from"] == pytest.approx(before[change["feature"]]) for change in one["changes"])


def test_records_need_one_call_for_probabilities_and_none_for_labels(bank: FasterCE, model_calls: list[str]) -> None:
    result = bank.explain(refused(bank.model, 10), n=3)
    model_calls.clear()
    made(bank, result)
    assert model_calls == ["predict_proba"]


def test_records_need_no_model_call_where_verification_obtained_scores(
    bank: FasterCE, grades: FasterCE, limit: FasterCE, model_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bank.explain(refused(bank.model, 4), target="good", target_score=(0.8, 1))
    model_calls.clear()
    assert all(record["outcome"]["score"]["kind"] == "chance" for record in made(bank, result))
    assert model_calls == []
    for explainer, target in ((grades, "any other"), (limit, (4_000, None))):
        result = explainer.explain(people(6, seed=3), target=target)
        with monkeypatch.context() as patch:
            patch.setattr(type(explainer.model), "predict", lambda self, frame: pytest.fail("the model was called"))
            made(explainer, result)


def test_every_status_has_its_record(bank: FasterCE) -> None:
    rows = refused(bank.model, 5).astype({"age": object})
    rows.iloc[1, rows.columns.get_loc("age")] = 79
    rows.iloc[2, rows.columns.get_loc("age")] = "old"
    rows.iloc[3, rows.columns.get_loc("income")] = 119.0
    rows.iloc[3, rows.columns.get_loc("debt")] = 0.0
    found = made(bank, bank.explain(rows, target="good"))
    assert [record["status"] for record in found] == ["found", "model_error", "invalid_input", "already_target", "found"]
    broken, invalid, there = found[1:4]
    assert "no one is 79" in broken["reason"]
    assert invalid["reason"] == "Column 'age' must be a finite number; got 'old'."
    (problem,) = invalid["problems"]
    assert (problem["column"], problem["received"]) == ("age", "old")
    assert "row" not in problem
    assert invalid["input"]["values"][0] == "old"
    assert invalid["text"] == f"This could not be explained: {invalid['reason']}"
    assert there["text"] == "The decision already is good."
    assert there["outcome"]["score"]["kind"] == "chance"
    for record in (broken, invalid):
        assert record["outcome"] == {"prediction": None, "score": None, "threshold": None}
        assert record["target"] is None
        assert record["counterfactuals"] == []


def test_infeasibility_is_kept_as_data(bank: FasterCE) -> None:
    row = refused(bank.model, 1).assign(income=20.0, debt=np.float32(30.0))
    (record,) = made(bank, bank.explain(row, constraints=[Frozen("income", "owner"), Range("age", high=78)]))
    assert record["status"] == "none_found"
    infeasible = record["infeasible"]
    assert infeasible["constrained"] is True
    assert 0 <= infeasible["progress"] <= 1
    assert infeasible["blocking"]
    assert infeasible["unlocked"]
    assert all(constraint["text"] in record["reason"] for constraint in infeasible["blocking"])
    assert all(constraint["origin"] and constraint["columns"] for constraint in infeasible["blocking"])
    assert record["problems"][0]["code"] == "search.no_closest"
    assert record["text"] == record["reason"]


@pytest.mark.parametrize("method", ["closest", "realistic", "all"])
def test_a_record_says_whether_there_is_none_or_none_was_found(real: FasterCE, bank: FasterCE, method: Method) -> None:
    """Few values and weights that can be read: all were evaluated. A model that can only be called proves nothing."""
    few = [Frozen("age", "income", "debt")]
    # Points are mostly income: owning a home is not enough for those who earn least.
    rows = refused(real.model, 12).sort_values("income").head(1)
    (record,) = made(real, real.explain(rows, method, constraints=few))
    assert (record["status"], record["infeasible"]["proven"]) == ("none_found", True)
    (record,) = made(bank, bank.explain(rows, method, constraints=few))
    assert (record["status"], record["infeasible"]["proven"]) == ("none_found", False)


def test_a_budget_that_is_spent_is_recorded(bank: FasterCE) -> None:
    rows = refused(bank.model, 8)
    found = made(bank, bank.explain(rows, "realistic", budget=7, features_to_vary=["age"]))
    assert "stopped" in {record["status"] for record in found}
    assert {record["infeasible"] is None for record in found} == {True}
    assert all(record["replayable"] for record in found)


@pytest.mark.parametrize("options", [{"deadline": 60.0}, {"ensemble_agreement": 0.5}])
def test_what_depends_on_time_or_on_models_not_saved_is_not_replayable(bank: FasterCE, options: dict[str, Any]) -> None:
    explainer = copy.copy(bank)
    data = people().query("age != 79")
    explainer.fit_ensemble(lambda X, y: Bank(55.0), data, explainer.model.predict(data), count=2)
    (record,) = made(explainer, explainer.explain(refused(explainer.model, 1), **options))
    assert record["replayable"] is False
    assert next(iter(options)) in record["why_not_replayable"]


def test_numbers(limit: FasterCE) -> None:
    rows = people(12, seed=3)
    found = made(limit, limit.explain(rows, target=(4_000, None)))
    for record, own in zip(found, limit.model.predict(rows), strict=True):
        assert record["outcome"]["prediction"] == record["outcome"]["score"]["value"] == own
        assert record["target"] == {"kind": "number", "class": None, "low": 4000.0, "high": None}
        for one in record["counterfactuals"]:
            assert one["score"]["value"] >= 4_000
            assert record["text"].endswith(".")
    assert {record["status"] for record in found} == {"found", "already_target"}
    assert found[0]["configuration"]["options"]["target"] == [4000, None]


def test_chances_that_are_wanted(bank: FasterCE) -> None:
    found = made(bank, bank.explain(refused(bank.model, 3), target="good", target_score=(0.8, 1)))
    for record in found:
        assert record["target"] == {"kind": "chance", "class": "good", "low": 0.8, "high": 1.0}
        assert record["counterfactuals"][0]["score"]["values"][1] >= 0.8
        assert re.search(r"the chance of good would be \d\d %\.$", record["text"])


def test_any_other_class_and_labels_alone(grades: FasterCE) -> None:
    found = made(grades, grades.explain(people(8, seed=4), target="any other"))
    for record in found:
        assert record["target"]["kind"] == "any other"
        assert record["outcome"]["score"] is None
        assert record["counterfactuals"][0]["prediction"] not in (None, record["outcome"]["prediction"])
        assert record["text"].endswith(f"the decision would no longer be {record['outcome']['prediction']}.")


def test_scores_that_are_not_wanted_are_not_recorded() -> None:
    explainer = fitted(Bank(), scores="never")
    result = explainer.explain(refused(explainer.model, 2))
    explainer.model.calls.clear()
    assert {record["outcome"]["score"] is None for record in made(explainer, result)} == {True}
    assert explainer.model.calls == []


def test_missing_values_are_null_and_read_well() -> None:
    data = people().astype({"owner": object})
    data.loc[data.index[::5], "income"] = np.nan
    data.loc[data.index[1::7], "job"] = None

    def model(frame: pd.DataFrame) -> np.ndarray:
        known = frame["income"].fillna(20).to_numpy(dtype=float) + 12 * (frame["job"] == "nurse").to_numpy(dtype=bool)
        return np.where(known > 50, "good", "bad")

    explainer = fitted(model, data, Schema.infer(data, immutable=["age", "debt", "owner"]))
    rows = data[data["income"].isna()].head(4)
    found = made(explainer, explainer.explain(rows, target="good", features_to_vary=["income"]))
    for record in found:
        assert record["input"]["values"][1] is None
        (change,) = record["counterfactuals"][0]["changes"]
        assert change["from"] is None
        assert record["text"] == f"If income were known and {change['to']:g}, the decision would be good."
    assert records.replay(found, explainer).same


def test_column_names_that_are_no_text() -> None:
    data = people().rename(columns={"age": 0, "income": 1, "debt": 2.5})
    data.columns = pd.Index([*data.columns[:3], ("job", "held"), "owner"], tupleize_cols=False)

    def model(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame[1] - frame[2.5] > 40, 1, 0)

    explainer = fitted(model, data, Schema.infer(data, immutable=[0, ("job", "held")]))
    options: dict[str, Any] = {
        "features_to_vary": [1, 2.5],
        "permitted_range": {1: (0, 90), "owner": [False, True]},
        "distance": {2.5: 2.0},
    }
    found = made(explainer, explainer.explain(data.head(5), target=1, constraints=[OnlyUp(1)], **options))
    assert found[0]["input"]["columns"] == [0, 1, 2.5, ["job", "held"], "owner"]
    assert {change["feature"] for record in found for one in record["counterfactuals"] for change in one["changes"]} <= {
        1,
        2.5,
    }
    assert found[0]["configuration"]["options"]["permitted_range"] == [
        {"feature": 1, "low": 0, "high": 90},
        {"feature": "owner", "values": [False, True]},
    ]
    assert records.replay(found, explainer).same


@pytest.mark.parametrize(
    ("value", "kept", "note"),
    [
        (np.inf, {"type": "float", "text": "inf"}, "type float"),
        (Decimal("50.5"), {"type": "number", "text": "50.5"}, "type number"),
        (pd.Timestamp("2026-01-02"), "2026-01-02 00:00:00", None),
        ([1, 2], {"type": "list", "text": "[1, 2]"}, "type list"),
        (10**5000, {"type": "int", "text": "a number too large to write"}, "type int"),
        (np.float32(50.5), 50.5, None),
        (np.int8(7), 7, None),
        (pd.NA, None, None),
        ("caf\ud800é", "caf\ud800é", None),
    ],
    ids=["inf", "decimal", "time", "list", "huge", "float32", "int8", "NA", "surrogate"],
)
def test_values_json_cannot_hold_are_kept_as_text_with_a_note(
    bank: FasterCE, value: Any, kept: Any, note: str | None
) -> None:
    row = refused(bank.model, 1).astype({"income": object})
    row["income"] = pd.Series([value], index=row.index, dtype=object)
    found = made(bank, bank.explain(row, target="good"))
    assert found[0]["input"]["values"][1] == kept
    assert (note is None) == (found[0]["input"]["notes"] == [])
    assert note is None or note in found[0]["input"]["notes"][0]
    again = records.replay(found, bank)
    assert again.same, again.differences


ALIKE = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["closest", "sparse", "realistic", "all"]),
        "n": st.integers(1, 3),
        "robust": st.just(0.8),
        "budget": st.integers(60, 200),
        "features_to_vary": st.sampled_from([["income"], ["age", "debt"], ["owner"]]),
        "permitted_range": st.just({"income": (10, 60.5)}),
        "constraints": st.lists(
            st.sampled_from(
                [
                    Step("debt", 5),
                    Near("income", percent=40),
                    AtMost(2),
                    Require("debt <= income"),
                    If({"owner": True}, {"age": (30, None)}),
                ]
            ),
            max_size=2,
            unique_by=str,
        ),
        "target": st.just("good"),
        "distance": st.sampled_from(["gower", "mad", {"debt": 3}]),
    },
)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(options=ALIKE, seed=st.integers(0, 10_000), spoilt=st.sampled_from([{}, {1: "clerks"}, {0: None}]))
def test_alone_or_in_a_batch_the_record_is_the_same(
    bank: FasterCE, options: dict[str, Any], seed: int, spoilt: dict[int, Any]
) -> None:
    rows = people(4, seed).query("age != 79")
    for row, job in spoilt.items():
        rows.iloc[row, rows.columns.get_loc("job")] = job
    together = made(bank, bank.explain(rows, **options))
    for k, record in enumerate(together):
        (alone,) = made(bank, bank.explain(rows.iloc[[k]], **options))
        assert lasting(alone) == lasting(record)
        assert records.to_json(lasting(alone)) == records.to_json(lasting(record)), "whole numbers stay whole"
    assert records.replay(together, bank).same


def test_a_row_too_far_out_has_the_same_reason_anywhere(bank: FasterCE) -> None:
    rows = refused(bank.model, 3).assign(age=70)
    options: dict[str, Any] = {"permitted_range": {"age": (20, 30)}}
    together = made(bank, bank.explain(rows, **options))
    (alone,) = made(bank, bank.explain(rows.iloc[[2]], **options))
    assert "may not change into it. " in together[2]["reason"] or together[2]["reason"].endswith("may not change into it.")
    assert lasting(alone) == lasting(together[2])


def test_no_rows_no_records(bank: FasterCE) -> None:
    assert records.make(bank, bank.explain(people(0))) == []


def test_another_model_than_the_one_explained_is_refused(bank: FasterCE) -> None:
    result = bank.explain(refused(bank.model, 4))
    other = bank._for(Bank(20.0))
    with pytest.raises(ModelError) as caught:
        records.make(other, result)
    assert caught.value.problem.code == "records.other_model"
    assert caught.value.problem.row in range(4)


def test_a_counterfactual_that_the_model_contradicts_is_refused(bank: FasterCE) -> None:
    rows = refused(bank.model, 4)
    result = bank.explain(rows)
    other = bank._for(Bank(58.0))
    with pytest.raises(ModelError) as caught:
        records.make(other, result)
    assert caught.value.problem.code == "records.other_model"


def test_a_model_that_fails_now_is_reported(bank: FasterCE) -> None:
    class Gone(Bank):
        def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
            raise ConnectionError("gone")

    with pytest.raises(ModelError, match="ConnectionError: gone") as caught:
        records.make(bank._for(Gone()), bank.explain(refused(bank.model, 2)))
    assert caught.value.problem.code == "records.model_failed"


@pytest.mark.parametrize(
    ("options", "code", "received"),
    [
        ({"ids": ["a"]}, "not_per_row", 1),
        ({"ids": "ab"}, "not_per_row", "ab"),
        ({"subjects": [Decimal, 1]}, "not_an_id", Decimal),
        ({"model_digest": "abc"}, "not_a_digest", "abc"),
        ({"reasons": [[], []]}, "needs_both", None),
        ({"reasons": ["x", None], "reasons_method": "m"}, "reasons_not_lists", "x"),
        ({"reasons": [[{1, 2}], None], "reasons_method": "m"}, "reasons_not_json", [{1, 2}]),
        ({"now": datetime(2026, 1, 1)}, "no_time_zone", datetime(2026, 1, 1)),
        ({"retain_until": "soon"}, "not_a_date", "soon"),
        ({"threshold": "high"}, "not_finite", "high"),
        ({"constraints_by": 3}, "not_text", "int"),
        ({"template": {"fund": "x"}}, "unknown_part", "fund"),
    ],
)
def test_invalid_arguments_are_rejected(bank: FasterCE, options: dict[str, Any], code: str, received: Any) -> None:
    result = bank.explain(refused(bank.model, 2))
    with pytest.raises(InputError) as caught:
        records.make(bank, result, **options)
    problem = caught.value.problem
    assert (problem.code, problem.received) == (f"records.{code}", received)
    assert problem.option in (None, *options)
    assert "\n" not in str(caught.value)


def test_times_are_written_in_utc_and_ids_may_be_uuids(bank: FasterCE) -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    one = uuid4()
    (record,) = made(bank, bank.explain(refused(bank.model, 1)), now=datetime(2026, 1, 1, 2, 0, tzinfo=east), ids=[one])
    assert record["time"] == "2025-12-31T20:30:00.000000Z"
    assert record["ids"]["request"] == str(one)


def test_records_have_ids_of_their_own(bank: FasterCE) -> None:
    result = bank.explain(refused(bank.model, 3))
    found = made(bank, result) + made(bank, result)
    assert len({record["ids"]["record"] for record in found}) == 6


def test_explanations_side_by_side_have_no_record(bank: FasterCE) -> None:
    rows = refused(bank.model, 2)
    both = bank.explain(rows).beside(bank.explain(rows, "sparse"))
    with pytest.raises(InputError, match="one call of explain"):
        records.make(bank, both)


def test_an_explainer_with_another_schema_is_refused(bank: FasterCE, grades: FasterCE) -> None:
    data = people()[["age", "income"]]
    other = fitted(lambda frame: np.where(frame["income"] > 50, "good", "bad"), data)
    with pytest.raises(InputError, match="the explainer of the explanation"):
        records.make(other, bank.explain(refused(bank.model, 1)))


def test_a_constraint_with_a_function_cannot_be_recorded(bank: FasterCE) -> None:
    constraint = Derived("debt", lambda frame: 0.5 * frame["income"], of=("income",))
    with pytest.raises(SchemaError, match="a Python function cannot be written"):
        records.make(bank, bank.explain(refused(bank.model, 1), constraints=[constraint]))


def test_options_that_are_used_up_cannot_be_recorded(bank: FasterCE) -> None:
    result = bank.explain(refused(bank.model, 1), features_to_vary=iter(["income"]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="features_to_vary must be a list to be recorded"):
        records.make(bank, result)


def test_derived_columns_are_among_the_constraints(bank: FasterCE) -> None:
    constraint = Derived("debt", "income / 2")
    (record,) = made(bank, bank.explain(refused(bank.model, 1), constraints=[constraint]))
    assert {"constraint": "derived", "feature": "debt", "formula": "income / 2"}.items() <= next(
        one["constraint"] for one in record["constraints"]["constraints"] if one["source"] == "constraints"
    ).items()


def test_a_changed_record_changes_no_later_one(bank: FasterCE) -> None:
    rows = refused(bank.model, 1)
    (first,) = records.make(bank, bank.explain(rows))
    before = copy.deepcopy(first)
    first["constraints"]["constraints"].append("spoilt")
    first["configuration"]["options"]["n"] = 99
    (second,) = records.make(bank, bank.explain(rows))
    assert lasting(second) == lasting(before)
    assert second["constraints"] == before["constraints"]


def test_options_are_written_as_they_were_given(bank: FasterCE) -> None:
    rows = refused(bank.model, 1)
    for share in (0.5, 0.75, None, 0.5):
        (record,) = records.make(bank, bank.explain(rows, robust=share))
        assert record["configuration"]["options"]["robust"] == share
