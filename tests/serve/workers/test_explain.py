"""Rows and options as JSON in, audit records out: the same alone, in any company, and by Python."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce import load, records
from fasterce.errors import ModelError
from fasterce.options import names
from fasterce.records.pseudonyms import VARIABLE as PSEUDONYM_KEY
from fasterce.serve.messages import InvalidRequest, WorkerRequest
from fasterce.serve.settings import ServedArtifact, Settings
from fasterce.serve.workers.explain import BatchExplainer, BatchResult
from tests.serve.models import Moody, as_json, refused

APART = ("ids", "time", "metrics")
PEOPLE = refused(16)
ROWS = as_json(PEOPLE)


@pytest.fixture(scope="module")
def batch_explainer(folder: Path, limit_folder: Path) -> BatchExplainer:
    return BatchExplainer(
        Settings(
            (
                ServedArtifact("moody", folder, "tests.serve.models:moody", title="Moody"),
                ServedArtifact("limit", limit_folder, "tests.serve.models:limit"),
            )
        )
    )


def question(*rows: dict[str, Any], seconds: float = 60.0, artifact: str = "moody", **options: Any) -> WorkerRequest:
    return WorkerRequest(artifact, rows, options, monotonic() + seconds, "request")


def record(answered: BatchResult, which: int = 0, row: int = 0) -> dict[str, Any]:
    outcome = answered.outcomes[which]
    assert not isinstance(outcome, InvalidRequest), outcome
    return dict(json.loads(outcome[row].body))


def content(one: dict[str, Any]) -> dict[str, Any]:
    return {part: value for part, value in one.items() if part not in APART}


BAD_CELLS: list[tuple[str, Any]] = [
    *(("age", value) for value in ("x", 30.5, None, [1], {"a": 1}, 10**400, "40")),
    *(("income", value) for value in ("nan", None, -1.0, 201)),
    *(("job", value) for value in ("king", 3, None, ["nurse"])),
    ("owner", "true"),
    ("debt", 1e300),
]


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=6),
    st.lists(st.sampled_from(BAD_CELLS), max_size=3),
    st.sampled_from(["raises", "count", "lies", ""]),
    st.sampled_from([{}, {"method": "sparse"}, {"n": 2, "freeze": ["job"]}, {"ranges": {"income": [None, 90]}}]),
)
def test_a_record_does_not_depend_on_the_company(
    batch_explainer: BatchExplainer, chosen: list[int], bad: list[tuple[str, Any]], mood: str, options: dict[str, Any]
) -> None:
    """Neither on good neighbours nor on rows of wrong types, nor on rows the model fails on."""
    strangers = [ROWS[0] | dict([cell]) for cell in bad] + ([ROWS[1] | {"mood": mood}] if mood else [])
    company = [question(ROWS[k], **options) for k in chosen]
    batch = batch_explainer.explain([*(question(row, **options) for row in strangers), *company])
    for place, k in enumerate(chosen):
        alone = batch_explainer.explain([question(ROWS[k], **options)])
        assert content(record(batch, len(strangers) + place)) == content(record(alone))


def test_a_record_is_what_python_makes(batch_explainer: BatchExplainer, folder: Path) -> None:
    explainer = load(folder, Moody(calm=True))
    made = records.make(explainer, explainer.explain(PEOPLE, n=2, features_to_vary=["income", "debt", "owner"]))
    served = batch_explainer.explain([question(*ROWS, n=2, vary=["income", "debt", "owner"])])
    for row, by_python in enumerate(made):
        assert content(record(served, 0, row)) == content(json.loads(records.to_json(by_python)))


def test_a_record_can_be_replayed(batch_explainer: BatchExplainer, folder: Path) -> None:
    no_years = {name: value for name, value in ROWS[3].items() if name != "years"}
    options: dict[str, Any] = {
        "freeze": ["job"],
        "ranges": {"income": [None, 80], "owner": [True]},
        "distance": {"debt": 3},
        "robust": 0.8,
    }
    served = batch_explainer.explain([question(*ROWS[:3], no_years, ROWS[4] | {"age": "old"}, **options)])
    kept = [record(served, 0, row) for row in range(5)]
    for one in kept:
        records.validate(one)
        assert one["replayable"]
        assert one["configuration"]["options"]["deadline"] is None
    assert [one["status"] for one in kept[3:]] == ["invalid_input", "invalid_input"]
    replayed = records.replay(kept, load(folder, Moody(calm=True)))
    assert replayed.same, replayed


@pytest.mark.parametrize(("column", "value"), BAD_CELLS)
def test_a_bad_cell_is_invalid_input_and_says_where(batch_explainer: BatchExplainer, column: str, value: Any) -> None:
    found = record(batch_explainer.explain([question(ROWS[0] | {column: value})]))
    assert found["status"] == "invalid_input"
    assert f"Column '{column}'" in found["reason"]
    assert found["counterfactuals"] == []


def test_a_column_left_out_is_invalid_even_where_a_value_may_be_missing(batch_explainer: BatchExplainer) -> None:
    missing = record(batch_explainer.explain([question(ROWS[0] | {"years": None})]))
    left_out = {name: value for name, value in ROWS[0].items() if name != "years"}
    assert missing["status"] == "found"
    found = record(batch_explainer.explain([question(left_out)]))
    assert found["status"] == "invalid_input"
    assert found["reason"] == "Column 'years' must be a finite number; got no value at all."


def test_an_unknown_column_is_refused_alone(batch_explainer: BatchExplainer) -> None:
    answered = batch_explainer.explain([question(ROWS[0]), question(ROWS[1], ROWS[2] | {"incom": 3}), question(ROWS[3])])
    wrong = answered.outcomes[1]
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "rows[1].incom"
    assert "Did you mean 'income'?" in str(wrong)
    assert record(answered, 0)["status"] == record(answered, 2)["status"] == "found"


@pytest.mark.parametrize("mood", ["raises", "nan", "shape", "count", "lies", "eats"])
def test_a_model_that_fails_is_a_status_of_its_row(batch_explainer: BatchExplainer, mood: str) -> None:
    asked = [question(ROWS[0]), question(ROWS[1] | {"mood": mood}), question(ROWS[2], ROWS[3])]
    answered = batch_explainer.explain(asked)
    failed = record(answered, 1)
    assert failed["status"] == "model_error"
    assert failed["reason"].startswith("The model ")
    assert failed["counterfactuals"] == []
    assert failed["outcome"]["prediction"] is None
    records.validate(failed)
    assert [record(answered, 0)["status"], *(record(answered, 2, k)["status"] for k in (0, 1))] == ["found"] * 3


def test_a_deadline_that_was_reached_is_said(batch_explainer: BatchExplainer) -> None:
    slow = [row | {"mood": "slow"} for row in ROWS[:4]]
    began = monotonic()
    answered = batch_explainer.explain([question(*slow, seconds=0.45, method="all", n=3)])
    assert monotonic() - began < 2.0
    assert answered.cut_short
    found = record(answered)
    assert 0.1 < found["configuration"]["options"]["deadline"] < 0.45
    assert not found["replayable"]
    assert "deadline" in found["why_not_replayable"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"n": 0}, "n"),
    ({"n": "3"}, "n"),
    ({"method": "nearest"}, "method"),
    ({"method": ["closest"]}, "method"),
    ({"freeze": ["aeg"]}, "freeze[0]"),
    ({"vary": ["job", 3]}, "vary[1]"),
    ({"ranges": {"age": [1]}}, "ranges.age"),
    ({"ranges": {"age": [50, 10]}}, "ranges"),
    ({"ranges": {"job": ["king"]}}, "ranges"),
    ({"constraints": [{"constraint": "rnage"}]}, "constraints"),
    ({"constraints": [{"constraint": "range", "feature": "aeg", "low": 1}]}, "constraints"),
    ({"constraints": {"constraint": "frozen"}}, "constraints"),
    ({"target": "great"}, "target"),
    ({"target": ["good"]}, "target"),
    ({"target_score": [2, 3]}, "target_score"),
    ({"target_score": 0.7}, "target_score"),
    ({"distance": "far"}, "distance"),
    ({"distance": {"age": -1}}, "distance"),
    ({"distance": {"aeg": 1}}, "distance"),
    ({"distance": 3}, "distance"),
    ({"realism": 3}, "realism"),
    ({"diversity": "much"}, "diversity"),
    ({"budget": 1}, "budget"),
    ({"robust": 7}, "robust"),
    ({"diagnose": "yes"}, "diagnose"),
    ({"override": 1}, "override"),
    ({"deadline": 3}, "deadline"),
]


@pytest.mark.parametrize(("options", "field"), WRONG)
def test_wrong_options_are_refused_by_name(batch_explainer: BatchExplainer, options: dict[str, Any], field: str) -> None:
    for outcome in batch_explainer.explain([question(ROWS[0], **options), question(ROWS[1], **options)]).outcomes:
        assert isinstance(outcome, InvalidRequest)
        assert outcome.field == field
        assert str(outcome).endswith((".", "?"))
        assert "permitted_range" not in outcome.problem.text(names=names("http"))


def test_options_mean_what_they_mean_in_python(batch_explainer: BatchExplainer) -> None:
    constraints = [{"constraint": "near", "feature": "income", "percent": 20}]
    found = record(
        batch_explainer.explain([question(ROWS[0], freeze=["age", "debt"], constraints=constraints, target="good", n=3)])
    )
    changed = {change["feature"] for one in found["counterfactuals"] for change in one["changes"]}
    assert changed
    assert not changed & {"age", "debt", "mood"}
    near = ROWS[0]["income"] * 1.2 + 0.1
    assert all(one["values"][1] <= near for one in found["counterfactuals"])
    said = [constraint["text"] for constraint in found["constraints"]["constraints"] if constraint["source"] == "constraints"]
    assert any("income" in sentence for sentence in said)
    assert any("age" in sentence for sentence in said)


def test_a_number_is_wanted_by_its_bounds(batch_explainer: BatchExplainer) -> None:
    row = ROWS[0]
    found = record(batch_explainer.explain([question(row, artifact="limit", target=[6000, None])]))
    assert found["status"] == "found"
    assert found["counterfactuals"][0]["prediction"] >= 6000
    wrong = batch_explainer.explain([question(row, artifact="limit", target="good")]).outcomes[0]
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "target"


def test_ids_are_the_questions_own(batch_explainer: BatchExplainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PSEUDONYM_KEY, "a secret of some length")
    first = WorkerRequest(
        "moody",
        tuple(ROWS[:2]),
        {},
        monotonic() + 60,
        "first",
        row_ids=("a", 7),
        decision_ids=("d1", "d2"),
        subjects=("Anna", "Bert"),
        constraints_by="the bank",
        retain_until="2031-05-01",
    )
    answered = batch_explainer.explain([first, question(ROWS[2])])
    kept = answered.outcomes[0]
    assert not isinstance(kept, InvalidRequest)
    assert [(one.request, one.decision, one.retain_until) for one in kept] == [
        ("first", "d1", "2031-05-01"),
        ("first", "d2", "2031-05-01"),
    ]
    assert all(one.subject is not None and one.subject.startswith("hmac-sha256:") for one in kept)
    assert all("Anna" not in one.body and "Bert" not in one.body for one in kept)
    mine, other = record(answered, 0, 1), record(answered, 1)
    assert (mine["ids"]["row"], mine["constraints"]["set_by"], mine["retain_until"]) == (7, "the bank", "2031-05-01")
    assert (other["ids"]["row"], other["constraints"]["set_by"], other["retain_until"]) == (0, None, None)
    for one in (mine, other):
        records.validate(one)


def test_subjects_without_a_key_are_refused(batch_explainer: BatchExplainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PSEUDONYM_KEY, raising=False)
    asked = WorkerRequest("moody", (ROWS[0],), {}, monotonic() + 60, "r", subjects=("Anna",))
    wrong = batch_explainer.explain([asked]).outcomes[0]
    assert isinstance(wrong, InvalidRequest)
    assert wrong.field == "subjects"
    assert PSEUDONYM_KEY in str(wrong)


def test_an_artifact_is_described(batch_explainer: BatchExplainer) -> None:
    described = batch_explainer.descriptions[0]
    assert (described.name, described.title) == ("moody", "Moody")
    body = json.loads(json.dumps(described.schema, allow_nan=False))
    features = {feature["name"]: feature for feature in body["features"]}
    assert features["income"] | {"typical": 0} == {
        **{"name": "income", "label": "income", "kind": "numeric", "type": "number", "whole": False, "decimals": 1},
        **{"low": 0.0, "high": 200.0},
        **{"promised": True, "categories": None, "ordered": False, "change": "any", "missing": False, "typical": 0},
        **{"unit": "", "format": "", "help": "", "preferred": "any", "near": {}},
    }
    assert features["age"]["change"] == "up"
    assert features["mood"]["change"] == "never"
    assert features["years"]["missing"]
    assert features["owner"]["categories"] == [False, True]
    assert 40 < features["income"]["typical"] < 60
    undeclared: dict[str, Any] = {"wanted": None, "unwanted": [], "labels": {}}
    assert body["target"] == {"kind": "classes", "classes": ["bad", "good"], **undeclared}
    assert body["scores"]
    assert any("mood" in sentence for sentence in body["constraints"])
    number = batch_explainer.descriptions[1].schema["target"]
    assert number["kind"] == "number"
    assert number["low"] < 5000 < number["high"]


def test_typical_values_are_a_row_that_can_be_explained(batch_explainer: BatchExplainer) -> None:
    typical = {feature["name"]: feature["typical"] for feature in batch_explainer.descriptions[0].schema["features"]}
    assert record(batch_explainer.explain([question(typical)]))["status"] in ("found", "already_target", "none_found")


def test_a_pickle_is_never_loaded(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match="pickle"):
        BatchExplainer(Settings((ServedArtifact("m", folder, str(tmp_path / "model.pkl")),)))


def test_company_does_not_spoil_single_precision(batch_explainer: BatchExplainer) -> None:
    """A number that 32 bits cannot hold exactly is asked as training had it."""
    found = record(batch_explainer.explain([question(ROWS[0] | {"debt": 25.3})]))
    assert found["input"]["values"][2] == float(pd.Series([25.3], dtype="float32")[0])
