"""A record as a letter: its own words, every change, and nothing that is more than text."""

import base64
import hashlib
import inspect
import json
import re
from copy import deepcopy
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fasterce import FasterCE, records
from fasterce.constraints import Frozen, Near, OnlyDown, OnlyUp, Range, Require
from fasterce.constraints.io import to_dict
from fasterce.errors import InputError
from fasterce.serve import letter as letter_module
from fasterce.serve.letter import PLACEHOLDER, letter, load_words, policy
from tests.records.worlds import Bank, Limit, fitted, people, refused

# Words of a letter that are data: names of the software and of digests.
KNOWN = {"fasterce", "sha256"}
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
    assert record["notice"] in text
    assert "Your decision D-7 explained" in text
    assert record["digests"]["artifact"] in text
    assert record["ids"]["record"] in text
    assert "the decision is: bad." in text
    assert "the decision would have been: good." in text
    assert letter(record).count("<tbody>") == len(record["counterfactuals"])


def test_the_alternatives_chosen_go_in_and_equal_ones_are_one(record: dict[str, Any]) -> None:
    first, second = record["counterfactuals"]
    assert first["changes"] != second["changes"]
    twice = {**record, "counterfactuals": [first, {**first, "method": "sparse"}, second]}
    assert letter(twice).count("<tbody>") == 2
    assert letter(twice, alternatives=[0, 1]).count("<tbody>") == 1
    assert "Possibility" not in letter(twice, alternatives=[0, 1])
    cells = re.findall(r'<th scope="row">(.*?)</th>', letter(twice, alternatives=[2]))
    assert [name.lower() for name in cells] == [change["feature"] for change in second["changes"]]


def test_changes_stand_from_and_to(record: dict[str, Any]) -> None:
    cells = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td><strong>(.*?)</strong>', letter(record))
    changes = [change for one in record["counterfactuals"] for change in one["changes"]]
    assert len(cells) == len(changes)
    for (name, before, after), change in zip(cells, changes, strict=True):
        assert name.lower() == change["feature"]
        assert before != after


def test_what_the_record_does_not_know_is_typed_or_a_placeholder(record: dict[str, Any]) -> None:
    assert "[Organisation, address]" in shown(letter(record))
    text = shown(letter(record, sender="A Bank\nA Street", contact="Ms Doe", recipient=""))
    assert "A Bank A Street" in text
    assert "Ms Doe" in text
    assert "[Organisation" not in text
    assert "[Name and address" in text, "what was left empty stays a placeholder"


def test_an_infeasible_record_says_in_words_what_prevents_a_change(bank: FasterCE) -> None:
    rows = refused(Bank(), 1)
    words = {
        "features": {"income": "yearly income", "debt": "debts"},
        "units": {"income": "EUR"},
        "classes": {"good": "Granted"},
    }
    limits = [Frozen("income", "age", "owner"), OnlyUp("debt")]
    found = bank.explain(rows, constraints=limits)
    (record,) = records.make(bank, found, template=words, constraints_by="Ms Doe")
    assert record["status"] == "none_found"
    text = shown(letter(record))
    assert "Why no change is proposed" in text
    assert "No change was found that leads to “Granted” within the limits below." in text
    assert "These details stay as they are: Yearly income, Age and Owner" in text
    assert "Debts does not go down" in text
    assert "set for this explanation by Ms Doe" in text
    assert re.search(r"Without (it|all of these), this would have been enough", text)
    assert not re.search(r"\bmay not change\b|\(constraints\)", text), "no words of the program"


@pytest.mark.parametrize("proven", [True, False])
def test_a_no_that_is_proven_says_so(bank: FasterCE, proven: bool) -> None:
    (record,) = records.make(bank, bank.explain(refused(Bank(), 1), constraints=[Frozen("income", "debt", "age", "owner")]))
    assert record["status"] == "none_found"
    text = shown(letter({**record, "infeasible": {**record["infeasible"], "proven": proven}}))
    assert ("every change that is permitted was evaluated" in text) is proven


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (Range("income", 10, 20), "Yearly income is from 10 EUR to 20 EUR"),
        (Range("income", low=1000), "Yearly income is at least 1,000 EUR"),
        (
            Near("income", up=2, percent=10),
            "Yearly income goes up by at most 2 EUR and Yearly income changes by at most 10 %",
        ),
        (OnlyDown("debt"), "Debt does not go up"),
        (Require("income >= 2 * debt"), "Yearly income >= 2 * debt"),
    ],
)
def test_limits_are_in_words(record: dict[str, Any], constraint: Any, text: str) -> None:
    entry = {"source": "constraints", "text": constraint.text, "constraint": to_dict([constraint])[0]}
    wording = {"features": {"income": "yearly income"}, "units": {"income": "EUR"}}
    made = deepcopy(record) | {"constraints": {"set_by": None, "constraints": [entry]}}
    made["configuration"]["wording"] = wording
    assert text in shown(letter(made))


def test_edited_details_and_changes_against_the_interest_are_marked(record: dict[str, Any]) -> None:
    made = deepcopy(record)
    made["input"]["edited"] = ["age"]
    made["counterfactuals"][0]["changes"][0]["against"] = True
    text = shown(letter(made))
    assert re.search(r"Age \d+ \(edited\)", text)
    assert text.count("(edited)") == 1
    assert "were changed by hand" in text
    assert "(not in your interest)" in text
    assert "it is no advice" in text
    assert "edited" not in shown(letter(record))


def test_a_person_who_has_the_wanted_outcome_is_told_so(bank: FasterCE) -> None:
    rows = people(60).query("age != 79")
    granted = rows[Bank().predict(rows) == "good"].head(1)
    (record,) = records.make(bank, bank.explain(granted, target="good"), template={"classes": {"good": "Granted"}})
    text = shown(letter(record))
    assert "The decision already is the one that is wanted: Granted." in text
    assert "Would have to be" not in text


def test_every_word_comes_from_the_file(record: dict[str, Any], bank: FasterCE, tmp_path: Path) -> None:
    """A file with another word for each: nothing of the default is left in any kind of letter."""
    usual = load_words()
    other = {
        name: f"X{k}" + "".join(f" {{{one}}}" for one in PLACEHOLDER.findall(text))
        for k, (name, text) in enumerate(usual.items())
    }
    other["months"] = ",".join(12 * ["Xm"])
    # Between the labels of columns there must be something that is no part of a word.
    other["comma"] = other["and"] = "; "
    file = tmp_path / "letter.toml"
    file.write_text("\n".join(f"{name} = {json.dumps(text)}" for name, text in other.items()))
    words = load_words(file)
    blocked = bank.explain(refused(Bank(), 1), constraints=[Frozen("income", "debt", "age", "owner")])
    broken = bank.explain(refused(Bank(), 1).assign(age=79))
    marked = deepcopy(record)
    marked["input"]["edited"] = ["age"]
    marked["counterfactuals"][0]["changes"][0]["against"] = True
    (no,) = records.make(bank, blocked)
    proven = {**no, "infeasible": {**no["infeasible"], "proven": True}}
    for made in (marked, no, proven, *records.make(bank, broken)):
        text = shown(letter(made, words))
        known = set(
            re.findall(r"[a-z]{4,}", " ".join([*texts_of({**made, "notice": ""}), *made["input"]["columns"]]).lower())
        )
        assert set(re.findall(r"[a-z]{4,}", text.lower())) - KNOWN - known == set()


def texts_of(part: Any) -> list[str]:
    """The texts of a record that are data."""
    if isinstance(part, dict):
        return [text for value in part.values() for text in texts_of(value)]
    if isinstance(part, list):
        return [text for value in part for text in texts_of(value)]
    return [part] if isinstance(part, str) else []


def test_the_template_uses_every_word_and_no_other() -> None:
    """A word that nobody uses, or one that is missing, would only show in the letter that needs it."""
    source = (Path(letter_module.__file__).parent / "templates" / "letter.html.j2").read_text() + inspect.getsource(
        letter_module
    )
    used = set(re.findall(r"\"([a-z_]+)\"", source))
    made = {"near_up", "near_down", "near_by", "near_percent", "range_low", "range_high"}
    assert set(load_words()) <= used | made
    named = set(re.findall(r"words\[\"([a-z_]+)\"\]|fill\(\"([a-z_]+)\"", source))
    assert {one or other for one, other in named} <= set(load_words())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('titel = "x"', "titel"),
        ('title = "{name}"', "name"),
        ("title = 3", "title"),
        ("title = ", "Invalid"),
    ],
)
def test_a_file_of_words_that_does_not_fit_is_rejected(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "letter.toml"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        load_words(file)


def test_rows_that_could_not_be_explained_have_a_letter_too(bank: FasterCE) -> None:
    broken = refused(Bank(), 1).assign(age=79)
    (record,) = records.make(bank, bank.explain(broken))
    assert record["status"] == "model_error"
    assert "could not be" in shown(letter(record))


def test_numbers_have_a_letter(record: dict[str, Any]) -> None:
    explainer = fitted(Limit(), task="regression")
    (made,) = records.make(explainer, explainer.explain(refused(Bank(), 1), target=(6000, None)))
    after = made["counterfactuals"][0]["prediction"]
    assert f"its prediction would have been {after:,.6f}".rstrip("0").rstrip(".") in shown(letter(made))


def test_hostile_text_is_text(record: dict[str, Any]) -> None:
    """Every text of a record replaced by markup: none of it gets through."""
    page = letter(hostile(deepcopy(record)), sender=HOSTILE, contact=HOSTILE, recipient=HOSTILE)
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
    assert "Your income" in text
    assert "the decision is: refused." in text
