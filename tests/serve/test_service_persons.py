"""Records belong to persons: what is required, what was edited, finding them by the person, and their letters."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from fasterce import records
from tests.serve.service import PSEUDONYM_KEY, Service, row, serving

WORDS = 'sender = "The Bank\\nBank Street 1"\ntitle = "About your application"\n'


@pytest.fixture(scope="module")
def strict(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Keeps no record without a subject and a decision, and has words of its own."""
    where = tmp_path_factory.mktemp("strict")
    (where / "letter.toml").write_text(WORDS)
    options = ("--require", "subjects,decision_ids", "--letter", where / "letter.toml")
    with serving(where, f"moody={folder}", *options) as started:
        yield started


def kept(service: Service, **more: Any) -> dict[str, Any]:
    answer = service.explain(row(), subjects=["customer 7"], decision_ids=["D-1"], **more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["records"][0])


def test_what_is_required_is_required_of_kept_records_only(strict: Service) -> None:
    answer = strict.explain(row())
    assert answer.status_code == 422
    assert {one["field"] for one in answer.json()["error"]["fields"]} == {"subjects", "decision_ids"}
    assert strict.explain(row(), keep=False).status_code == 200
    assert kept(strict)["ids"]["decision"] == "D-1"
    described = strict.client.get("/v1/schema").json()["records"]
    assert described["required"] == ["subjects", "decision_ids"]
    assert described["subjects"]
    assert described["letter"]["sender"].startswith("The Bank")


def test_edited_columns_are_in_the_record_and_unknown_ones_are_rejected(strict: Service) -> None:
    record = kept(strict, edited=[["income"]])
    assert record["input"]["edited"] == ["income"]
    records.validate(record)
    assert "edited" not in kept(strict)["input"]
    wrong = strict.explain(row(), subjects=["c"], decision_ids=["d"], edited=[["incom"]])
    assert wrong.status_code == 422
    assert "income" in wrong.text
    assert strict.explain(row(), subjects=["c"], decision_ids=["d"], edited=[[], []]).status_code == 422


def test_records_are_found_by_the_person_whose_name_is_in_no_address(strict: Service) -> None:
    answer = strict.explain(row(), subjects=["customer 8"], decision_ids=["D-2"])
    found = strict.client.post("/v1/records/find", json={"subject": "customer 8"}).json()["records"]
    assert [one["id"] for one in found] == [answer.json()["records"][0]["ids"]["record"]]
    assert found[0]["subject"] == records.pseudonym("customer 8", PSEUDONYM_KEY)
    assert strict.client.post("/v1/records/find", json={"subject": "nobody"}).json() == {"records": []}
    assert strict.client.post("/v1/records/find", json={"subject": ""}).status_code == 422
    erased = strict.client.delete("/v1/records", params={"subject": found[0]["subject"]})
    assert erased.json() == {"erased": 1}
    assert strict.client.post("/v1/records/find", json={"subject": "customer 8"}).json() == {"records": []}


def test_letters_have_the_words_of_the_service_and_what_was_chosen(strict: Service) -> None:
    record = kept(strict, method="all", n=2)
    where = f"/v1/records/{record['ids']['record']}/letter"
    plain = strict.client.get(where).text
    assert "The Bank<br>Bank Street 1" in plain
    assert "About your application" not in plain, "a numbered decision has another title"
    chosen = strict.client.post(where, json={"alternatives": [0], "recipient": "Jo Doe", "sender": ""})
    assert chosen.status_code == 200
    assert chosen.text.count("<tbody>") == 1
    assert "Jo Doe" in chosen.text
    assert "The Bank" in chosen.text
    assert re.search("style-src 'sha256-", chosen.headers["content-security-policy"])
    beyond = strict.client.post(where, json={"alternatives": [99]})
    assert beyond.status_code == 422
    assert beyond.json()["error"]["fields"][0]["field"] == "alternatives"
    assert strict.client.post(where, json={"alternatives": [-1]}).status_code == 422
    assert strict.client.post(where, json={"colour": "red"}).status_code == 422


def test_what_a_letter_contained_is_stored_with_the_record(strict: Service) -> None:
    record = kept(strict, method="all", n=3)
    where = f"/v1/records/{record['ids']['record']}/letter"
    assert strict.client.get(f"{where}s").json() == {"letters": []}
    strict.client.post(where, json={"alternatives": [0], "recipient": "Jo Doe"})
    assert strict.client.get(f"{where}s").json() == {"letters": []}, "a preview is no letter"
    sent = strict.client.post(where, json={"alternatives": [1, 0, 0], "recipient": "Jo Doe", "keep": True})
    strict.client.post(where, json={"alternatives": [0, 1], "recipient": "Jo Doe", "keep": True})
    (stored,) = strict.client.get(f"{where}s").json()["letters"]
    assert stored["alternatives"] == [0, 1]
    assert stored["digest"] == f"sha256:{hashlib.sha256(sent.text.encode()).hexdigest()}"
    assert "Jo Doe" not in json.dumps(stored)
    strict.client.post(where, json={"keep": True})
    assert len(strict.client.get(f"{where}s").json()["letters"]) == 2
    assert strict.client.get(f"/v1/records/{uuid4()}/letters").status_code == 404


def test_a_service_whose_letter_cannot_be_written_does_not_start(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.toml").write_text('titel = "x"')
    with pytest.raises(AssertionError, match="unknown word 'titel'"):
        Service(tmp_path, f"moody={folder}", "--letter", tmp_path / "letter.toml")


def test_a_requirement_that_is_none_is_told(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="decision_ids"):
        Service(tmp_path, f"moody={folder}", "--require", "decision_id")


def test_records_are_the_same_as_those_of_the_library(strict: Service) -> None:
    """Words of letters are no part of a record."""
    assert "The Bank" not in json.dumps(kept(strict))
