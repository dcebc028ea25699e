"""A record as a letter: its own words, every change, and nothing that is more than text."""

import base64
import hashlib
import json
import re
from copy import deepcopy
from html import unescape
from typing import Any

import pytest

from fasterce import FasterCE, records
from fasterce.constraints import Frozen
from fasterce.serve.letter import letter, policy
from tests.records.worlds import Bank, Limit, fitted, refused

HOSTILE = "<img src=x onerror=alert(1)>&\"'"


@pytest.fixture(scope="module")
def bank() -> FasterCE:
    return fitted(Bank())


@pytest.fixture(scope="module")
def record(bank: FasterCE) -> dict[str, Any]:
    made = records.make(bank, bank.explain(refused(Bank(), 1), n=2), decision_ids=["D-7"], subjects=["p-1"])
    return json.loads(json.dumps(made[0]))


def shown(page: str) -> str:
    """What a reader sees."""
    without_style = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", without_style)))


def test_it_says_what_the_record_says(record: dict[str, Any]) -> None:
    text = shown(letter(record))
    assert record["text"] in text
    assert record["notice"] in text
    assert "D-7" in text
    assert record["digests"]["artifact"] in text
    assert record["ids"]["record"] in text
    assert "answer was bad" in text
    assert letter(record).count("<tbody>") == len(record["counterfactuals"])


def test_changes_stand_from_and_to(record: dict[str, Any]) -> None:
    cells = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td><strong>(.*?)</strong>', letter(record))
    changes = [change for one in record["counterfactuals"] for change in one["changes"]]
    assert len(cells) == len(changes)
    for (name, before, after), change in zip(cells, changes, strict=True):
        assert name.lower() == change["feature"]
        assert before != after


def test_what_the_record_does_not_know_is_a_placeholder(record: dict[str, Any]) -> None:
    assert "[Organisation, address]" in shown(letter(record))
    text = shown(letter(record, organisation="A Bank\nA Street", contact="Ms Doe"))
    assert "A Bank A Street" in text
    assert "Ms Doe" in text
    assert "[Organisation" not in text


def test_an_infeasible_record_says_what_prevents_a_change(bank: FasterCE) -> None:
    rows = refused(Bank(), 1)
    found = bank.explain(rows, constraints=[Frozen("income", "debt", "age", "owner")])
    (record,) = records.make(bank, found)
    assert record["status"] == "none_found"
    text = shown(letter(record))
    assert "Why no change is proposed" in text
    assert record["reason"] in text
    assert "Without this constraint" in text


def test_rows_that_could_not_be_explained_have_a_letter_too(bank: FasterCE) -> None:
    broken = refused(Bank(), 1).assign(age=79)
    (record,) = records.make(bank, bank.explain(broken))
    assert record["status"] == "model_error"
    assert "could not be" in shown(letter(record))


def test_numbers_have_a_letter(record: dict[str, Any]) -> None:
    explainer = fitted(Limit(), task="regression")
    (made,) = records.make(explainer, explainer.explain(refused(Bank(), 1), target=(6000, None)))
    assert made["text"] in shown(letter(made))


def test_hostile_text_is_text(record: dict[str, Any]) -> None:
    """Every text of a record replaced by markup: none of it gets through."""
    page = letter(hostile(deepcopy(record)), organisation=HOSTILE, contact=HOSTILE, recipient=HOSTILE)
    assert "<img" not in page
    assert page.count("&lt;img") > 10


def hostile(part: Any, key: str = "") -> Any:
    if isinstance(part, dict):
        return {name: hostile(value, name) for name, value in part.items()}
    if isinstance(part, list):
        return [hostile(value) for value in part]
    return HOSTILE if isinstance(part, str) and key not in ("time", "status", "kind") else part


def test_it_loads_nothing_and_its_policy_names_its_style(record: dict[str, Any]) -> None:
    page = letter(record)
    (style,) = re.findall(r"<style>(.*?)</style>", page, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy()
    assert not re.search(r"<script|<link|<img|\ssrc=|url\(|@import|\sstyle=", page)


def test_words_people_know_are_used_where_the_record_has_them(bank: FasterCE) -> None:
    words = {"features": {"income": "your income"}, "classes": {"bad": "refused"}}
    (record,) = records.make(bank, bank.explain(refused(Bank(), 1)), template=words)
    text = shown(letter(record))
    assert "your income" in text
    assert "answer was refused" in text
