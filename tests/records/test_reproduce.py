"""A record can be made again, here and in a fresh process; and where it cannot, what differs is named."""

import copy
import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import joblib
import pytest

from fasterce import FasterCE, artifact, load, records
from fasterce.constraints import AtMost, Frozen, Near, Require
from fasterce.errors import InputError, Problem
from tests.records.worlds import Bank, fitted, people, refused

AGAIN = """
import sys
import joblib
from fasterce import load, records

model = joblib.load(sys.argv[1])
explainer = load(sys.argv[2], model)
found = records.replay(records.read(sys.argv[3]), explainer, model_digest=records.file_digest(sys.argv[1]))
print(found)
sys.exit(0 if found.same else 3)
"""


def recorded(explainer: FasterCE, rows: Any = None, **options: Any) -> list[dict[str, Any]]:
    found = records.make(explainer, explainer.explain(refused(explainer.model, 4) if rows is None else rows, **options))
    return [json.loads(records.to_json(record)) for record in found]


def fields(replay: records.Replay) -> set[str]:
    return {field for _, field, _, _ in replay.differences}


def test_a_fresh_process_with_the_saved_explainer_makes_the_same_records(real: FasterCE, tmp_path: Path) -> None:
    model, folder, lines = tmp_path / "model.joblib", tmp_path / "saved", tmp_path / "records.jsonl"
    joblib.dump(real.model, model)
    real.save(folder)
    rows = refused(real.model, 5)
    constraints = [AtMost(2), Require("debt <= income")]
    options: list[dict[str, Any]] = [{}, {"method": "all"}, {"n": 3, "constraints": constraints}, {"target_score": (0.7, 1)}]
    digest = records.file_digest(model)
    records.write(
        lines, [one for wish in options for one in records.make(real, real.explain(rows, **wish), model_digest=digest)]
    )
    command = [sys.executable, "-c", AGAIN, str(model), str(folder), str(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 of 20 records were reproduced, the same in all that is compared." in done.stdout
    assert "digest could not be compared" not in done.stdout


def test_records_of_equal_configuration_are_made_again_in_one_call(bank: FasterCE, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded(bank) + recorded(bank, n=2) + recorded(bank)
    calls: list[int] = []
    explain = FasterCE.explain

    def counted(self: FasterCE, rows: Any, **given: Any) -> Any:
        calls.append(len(rows))
        return explain(self, rows, **given)

    monkeypatch.setattr(FasterCE, "explain", counted)
    assert records.replay(found, bank).same
    assert calls == [8, 4]


def test_one_record_is_enough(bank: FasterCE) -> None:
    again = records.replay(recorded(bank)[2], bank)
    assert again.same
    assert records.replay(OrderedDict(recorded(bank)[2]), bank).same
    assert again.count == 1
    assert "1 of 1 records were reproduced" in str(again)
    assert "1 of 1 records were reproduced" in again._repr_html_()
    assert repr(again) == "Replay(1 records, 0 differences, 0 skipped)"


def test_a_real_model_makes_records_of_a_batch_again_one_by_one(real: FasterCE) -> None:
    for record in recorded(real, n=2):
        again = records.replay(record, real)
        assert again.same, again.differences


def test_a_record_of_before_a_proof_was_a_field_is_made_again(real: FasterCE) -> None:
    rows = refused(real.model, 12).sort_values("income").head(1)
    (record,) = recorded(real, rows, constraints=[Frozen("age", "income", "debt")])
    assert records.replay(record, real).same
    assert record["infeasible"].pop("proven")
    records.validate(record)
    assert records.replay(record, real).same
    record["infeasible"]["proven"] = False
    assert fields(records.replay(record, real)) == {"infeasible.proven"}


def test_no_records_prove_nothing(bank: FasterCE, tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text("\n")
    for nothing in ([], records.read(tmp_path / "records.jsonl")):
        assert problem_of(nothing, bank).code == "records.no_records"


def rewritten(value: Any, number: Any) -> Any:
    """JSON as another tool may write it again."""
    if isinstance(value, dict):
        return {name: one if name == "version" else rewritten(one, number) for name, one in value.items()}
    if isinstance(value, list):
        return [rewritten(one, number) for one in value]
    return number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


@pytest.mark.parametrize("number", [float, lambda one: int(one) if float(one).is_integer() else one])
def test_numbers_are_compared_as_numbers(bank: FasterCE, number: Any) -> None:
    constraints = [AtMost(2), Near("income", percent=50.0), Require("debt <= income")]
    options: dict[str, Any] = {
        "n": 2,
        "constraints": constraints,
        "permitted_range": {"income": (10.0, 100.0)},
        "budget": 400,
    }
    found = recorded(bank, **options)
    other = [rewritten(record, number) for record in found]
    assert [records.to_json(record) for record in other] != [records.to_json(record) for record in found]
    again = records.replay(other, bank)
    assert again.same, again.differences
    other[0]["counterfactuals"][0]["rank"] = False
    assert fields(records.replay(other, bank)) == {"counterfactuals[0].rank"}


def add_a_field(record: dict[str, Any]) -> None:
    record["verdict"] = "fair"


def add_a_field_deep_down(record: dict[str, Any]) -> None:
    record["counterfactuals"][0]["changes"][0]["note"] = "seen"


def misspell_an_option(record: dict[str, Any]) -> None:
    record["configuration"]["options"]["budgt"] = 3


def put_a_list_for_a_value(record: dict[str, Any]) -> None:
    record["input"]["values"][0] = [1]


def put_a_value_for_an_object(record: dict[str, Any]) -> None:
    record["digests"] = 3


def put_an_object_for_a_word(record: dict[str, Any]) -> None:
    record["text"] = {"a": 1}


def leave_out_the_score_of_a_class(record: dict[str, Any]) -> None:
    del record["outcome"]["score"]["values"]


@pytest.mark.parametrize(
    ("spoil", "code", "place", "name"),
    [
        (add_a_field, "unknown_field", "$", "verdict"),
        (add_a_field_deep_down, "unknown_field", "$.counterfactuals[0].changes[0]", "note"),
        (misspell_an_option, "unknown_field", "$.configuration.options", "budgt"),
        (put_a_list_for_a_value, "wrong_type", "$.input.values[0]", "list"),
        (put_a_value_for_an_object, "wrong_type", "$.digests", "int"),
        (put_an_object_for_a_word, "wrong_type", "$.text", "dict"),
        (leave_out_the_score_of_a_class, "missing_field", "$.outcome.score", "values"),
    ],
)
def test_a_record_of_another_structure_is_rejected(bank: FasterCE, spoil: Any, code: str, place: str, name: str) -> None:
    found = recorded(bank)
    spoil(found[1])
    with pytest.raises(InputError) as caught:
        records.replay(found, bank)
    problem = caught.value.problem
    assert problem.code == f"records.{code}"
    assert problem.details["record"] == found[1]["ids"]["record"]
    assert problem.details["place"] == place
    assert (problem.expected if code == "missing_field" else problem.received) == name
    assert problem.details.get("suggestion") == ("budget" if name == "budgt" else problem.details.get("suggestion"))


def test_a_record_that_hides_that_it_cannot_be_made_again_is_reported(bank: FasterCE) -> None:
    found = recorded(bank, deadline=60.0)
    found[0] |= {"replayable": True, "why_not_replayable": None}
    assert {"replayable", "why_not_replayable"} <= fields(records.replay(found, bank))


def test_every_field_is_listed_as_compared_or_not(bank: FasterCE) -> None:
    (record, *_) = recorded(bank)
    message = " ".join(str(records.replay(record, bank)).split())
    proved, taken = message.split("Compared: ")[1].split("Taken from the record and not proved: ")
    for part in ("digests", "outcome", "target", "constraints", "status", "problems", "infeasible", "counterfactual", "text"):
        assert part in proved
    loose = {
        **{"ids": {**record["ids"], "subject": "another"}, "time": "2020-01-01T00:00:00.000000Z", "software": {"numpy": "1"}},
        **{"reasons": {"method": "none", "reasons": []}, "notice": "none", "metrics": record["metrics"] | {"seconds": 99}},
        **{"human_review": "agreed", "retain_until": "2099-01-01", "reason": "In another language."},
    }
    loose["software"] = record["software"] | loose["software"]
    assert records.replay(record | loose, bank).same
    for part in (*loose, "input", "options", "threshold", "who set the constraints"):
        assert {"human_review": "human review", "retain_until": "retention"}.get(part, part) in taken


def test_another_model_is_found_by_its_predictions(bank: FasterCE) -> None:
    found = recorded(bank)
    other = bank._for(Bank(50.0))
    again = records.replay(found, other)
    assert not again.same
    assert "outcome.score.values[1]" in fields(again)
    assert {record for record, *_ in again.differences} == {record["ids"]["record"] for record in found}
    assert "4 differ" in str(again)


def test_another_model_is_found_by_its_digest_even_if_it_predicts_alike(bank: FasterCE) -> None:
    one, two = (f"sha256:{letter * 64}" for letter in "ab")
    found = records.make(bank, bank.explain(refused(bank.model, 2)), model_digest=one)
    again = records.replay(found, bank, model_digest=two)
    assert again.differences == [(record["ids"]["record"], "digests.model", one, two) for record in found]
    assert records.replay(found, bank, model_digest=one).notes == ()
    assert "could not be compared" in records.replay(found, bank).notes[0]


def test_an_explainer_that_learned_more_is_reported(bank: FasterCE) -> None:
    found = recorded(bank)
    other = copy.copy(bank)
    other.update(people(50, seed=9).query("age != 79"))
    again = records.replay(found, other)
    assert "digests.artifact" in fields(again)


def change_the_input(record: dict[str, Any]) -> None:
    record["input"]["values"][1] += 1.5


def change_an_option(record: dict[str, Any]) -> None:
    record["configuration"]["options"]["features_to_vary"] = ["age"]


def change_an_answer(record: dict[str, Any]) -> None:
    record["counterfactuals"][0]["changes"][0]["to"] = 1234


def change_a_distance_in_its_last_bit(record: dict[str, Any]) -> None:
    record["counterfactuals"][0]["distance"] *= 1 + 2**-52


def change_the_text(record: dict[str, Any]) -> None:
    record["text"] = "If you were someone else."


def change_the_status(record: dict[str, Any]) -> None:
    record["status"] = "none_found"


def change_a_score(record: dict[str, Any]) -> None:
    record["counterfactuals"][0]["score"]["values"][0] += 1e-6


def drop_an_answer(record: dict[str, Any]) -> None:
    record["counterfactuals"] = []


def change_the_seed(record: dict[str, Any]) -> None:
    record["configuration"]["seed"] = 5


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (change_the_input, "outcome.score.values[0]"),
        (change_an_option, "constraints.constraints"),
        (change_an_answer, "counterfactuals[0].changes[0].to"),
        (change_a_distance_in_its_last_bit, "counterfactuals[0].distance"),
        (change_the_text, "text"),
        (change_the_status, "status"),
        (change_a_score, "counterfactuals[0].score.values[0]"),
        (drop_an_answer, "counterfactuals"),
        (change_the_seed, "configuration.seed"),
    ],
)
def test_whatever_was_changed_in_a_record_is_named(bank: FasterCE, spoil: Any, field: str) -> None:
    found = recorded(bank)
    spoil(found[1])
    again = records.replay(found, bank)
    assert field in fields(again)
    assert {record for record, *_ in again.differences} == {found[1]["ids"]["record"]}
    assert field in again._repr_html_()


def test_the_wording_is_made_again_too(bank: FasterCE) -> None:
    words = records.Wording(change="{feature}: {from} > {to}", features={"income": "what you earn"})
    found = records.make(bank, bank.explain(refused(bank.model, 3), n=2), template=words)
    assert "what you earn: " in " ".join(record["text"] for record in found)
    assert records.replay([json.loads(records.to_json(record)) for record in found], bank).same


def test_who_set_the_constraints_and_the_threshold_are_taken_from_the_record(bank: FasterCE) -> None:
    found = records.make(bank, bank.explain(refused(bank.model, 2)), constraints_by="someone", threshold=0.5)
    assert records.replay(found, bank).same


def test_records_that_cannot_be_made_again_are_skipped_and_reported(bank: FasterCE) -> None:
    found = recorded(bank, deadline=60.0) + recorded(bank)
    again = records.replay(found, bank)
    assert not again.same
    assert again.differences == []
    assert [record for record, _ in again.skipped] == [record["ids"]["record"] for record in found[:4]]
    assert "4 of 8 records were reproduced" in str(again)
    assert "4 cannot be reproduced" in " ".join(str(again).split())


def test_other_versions_are_noted_but_are_no_difference(bank: FasterCE) -> None:
    (record, *_) = recorded(bank)
    record["software"]["numpy"] = "1.0"
    again = records.replay(record, bank)
    assert again.same
    assert any(note.startswith("numpy was 1.0 and is ") for note in again.notes)


def test_the_text_of_a_model_error_may_differ(bank: FasterCE) -> None:
    rows = refused(bank.model, 3)
    rows.iloc[1, 0] = 79
    found = recorded(bank, rows)
    assert found[1]["status"] == "model_error"
    assert records.replay(found, bank).same
    found[1]["reason"] = "The model raised ConnectionError: gone"
    assert records.replay(found, bank).same


def test_another_schema_is_a_difference_not_a_crash(bank: FasterCE) -> None:
    data = people()[["age", "income"]]
    other = fitted(lambda frame: ["good" if one > 50 else "bad" for one in frame["income"]], data)
    again = records.replay(recorded(bank), other)
    assert {"digests.schema", "digests.artifact", "explain"} <= fields(again)


def problem_of(record: Any, explainer: FasterCE) -> Problem:
    with pytest.raises(InputError) as caught:
        records.replay(record, explainer)
    return caught.value.problem


def test_what_is_not_a_record_is_rejected(bank: FasterCE) -> None:
    (record, *_) = recorded(bank)
    found = problem_of({}, bank)
    assert (found.code, found.details["field"], found.expected) == ("records.other_format", "format", "fasterce-record")
    assert problem_of(["record"], bank).code == "records.not_a_record"
    found = problem_of({**record, "version": 3}, bank)
    assert (found.code, found.details["field"], found.expected) == ("records.other_format", "version", 2)
    spoilt = copy.deepcopy(record)
    spoilt["input"]["values"][0] = {"type": "float", "text": "many"}
    found = problem_of(spoilt, bank)
    assert found.code == "records.invalid_record"
    assert "could not convert string to float" in str(found)
    spoilt["input"]["values"].pop()
    found = problem_of(spoilt, bank)
    assert (found.code, found.expected) == ("records.value_count", 5)
    del record["configuration"]
    found = problem_of(record, bank)
    assert (found.code, found.expected, found.details["place"]) == ("records.missing_field", "configuration", "$")


def test_saved_and_loaded_the_artifact_digest_in_the_record_is_that_of_the_folder(real: FasterCE, tmp_path: Path) -> None:
    real.save(tmp_path / "saved")
    (record, *_) = recorded(real)
    assert record["digests"]["artifact"] == artifact.digest_of(tmp_path / "saved")
    assert (
        record["digests"]["schema"]
        == f"sha256:{json.loads((tmp_path / 'saved' / 'manifest.json').read_text())['schema_sha256']}"
    )
    loaded = load(tmp_path / "saved", real.model)
    assert records.replay(record, loaded).same
