"""Sentences for people: in any words, in any language, and never more than words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce import Schema, records
from fasterce.data.table import Table
from fasterce.errors import InputError, Problem
from fasterce.explanation import BlockingConstraint, CounterfactualArrays, Explanation, Infeasibility
from fasterce.models.predictor import ModelUsage
from fasterce.records import Wording

GERMAN = {
    "found": "Wenn {changes}, lautete die Entscheidung {target}.",
    "already": "Die Entscheidung lautet bereits {prediction}.",
    "none_found": "Es wurde keine Änderung gefunden.",
    "change": "{feature} {to} statt {from} wäre",
    "becomes_known": "{feature} bekannt und {to} wäre",
    "becomes_missing": "{feature} nicht bekannt wäre (statt {from})",
    "or_else": "Oder: {sentence}",
    "last_comma": " und ",
    "decimal_point": ",",
    "thousands": ".",
    "yes": "ja",
    "no": "nein",
    "features": {
        "duration": "die Laufzeit in Monaten",
        "amount": "der Betrag",
        "housing": "die Wohnung",
        "owner": "Eigentum",
    },
    "values": {"housing": {"own": "Eigentum", "rent": "Miete"}},
    "classes": {"good": "gut", "bad": "schlecht"},
}


def explained(after: dict[str, Any] | None, *more: dict[str, Any], **given: Any) -> Explanation:
    """One row by hand and what its counterfactuals change."""
    rows = pd.DataFrame(
        {
            "duration": [36.0, 12.0, np.nan],
            "amount": [12_345.5, 100.0, 200.25],
            "housing": ["rent", "own", None],
            "owner": [False, True, False],
        }
    )
    table = Table.like(rows, Schema.infer(rows, may_go_missing=["duration", "housing"]))
    row = rows.head(1).assign(**given.pop("row", {}))
    before = table.read(row).codes
    codes = [table.read(row.assign(**one)).codes[0] for one in ([] if after is None else [after, *more])]
    count = len(codes)
    status = given.pop("status", "found")
    made = CounterfactualArrays(
        np.zeros(count, dtype=np.intp),
        np.arange(count),
        np.full(count, "closest", dtype=object),
        np.repeat(before, count, axis=0),
        np.array(codes).reshape(count, len(rows.columns)),
        np.ones(count),
        score=np.array(given.pop("scores", np.full(count, np.nan))),
    )

    def column(value: Any) -> pd.Series:
        held = pd.Series([None], dtype=object)
        held.iat[0] = value
        return held

    series = {
        name: column(given.pop(name, value)) for name, value in (("target", "good"), ("prediction", "bad"), ("reason", ""))
    }
    own = pd.Series([given.pop("score", np.nan)])
    return Explanation(
        row, column(status), arrays=made, table=table, usage=ModelUsage(), seconds=0.0, score=own, **series, **given
    )


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            explained({"duration": 24.0, "housing": "own"}),
            "If duration were 24 instead of 36 and housing were own instead of rent, the decision would be good.",
        ),
        (
            explained({"duration": 24.0, "amount": 9_000.0, "owner": True}),
            "If duration were 24 instead of 36, amount were 9,000 instead of 12,345.5 and owner were true instead of false, "
            "the decision would be good.",
        ),
        (
            explained({"duration": 24.0}, {"amount": 5.25}),
            "If duration were 24 instead of 36, the decision would be good. "
            "Or: If amount were 5.25 instead of 12,345.5, the decision would be good.",
        ),
        (
            explained({"duration": 24.0}, row={"duration": np.nan}),
            "If duration were known and 24, the decision would be good.",
        ),
        (explained({"housing": None}), "If housing were not known instead of rent, the decision would be good."),
        (
            explained({"duration": 24.0}, target="any other"),
            "If duration were 24 instead of 36, the decision would no longer be bad.",
        ),
        (
            explained({"duration": 24.0}, scores=[0.714], options={"target_score": (0.7, 1)}),
            "If duration were 24 instead of 36, the chance of good would be 71 %.",
        ),
        (
            explained({"duration": 24.0}, scores=[2345.67], target=(2000.0, np.inf), prediction=12.0),
            "If duration were 24 instead of 36, the prediction would be 2,345.67.",
        ),
        (explained(None, status="already_target", prediction="good"), "The decision already is good."),
        (
            explained(None, status="already_target", score=0.8, options={"target_score": (None, 1)}),
            "The chance of good already is 80 %.",
        ),
        (
            explained(None, status="already_target", target=(-np.inf, 5.0), prediction=2.5, score=2.5),
            "The prediction already is 2.5.",
        ),
        (explained(None, status="none_found", reason="Nothing was found."), "Nothing was found."),
        (explained(None, status="stopped", reason="Stopped early."), "Stopped early."),
        (
            explained(
                None,
                status="invalid_input",
                problems=[[Problem("records.not_finite", row=0, received="x (row 0)", option="a")]],
            ),
            "This could not be explained: a must be a finite number; got 'x (row 0)'.",
        ),
        (
            explained(None, status="model_error", reason="It raised.", prediction=None, target=None),
            "This could not be explained: It raised.",
        ),
    ],
)
def test_sentences_read_well(result: Explanation, sentence: str) -> None:
    assert records.text(result) == sentence
    assert records.texts(result) == [sentence]


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (
            explained({"duration": 24.0, "housing": "own", "owner": True, "amount": 10_000.25}),
            "Wenn die Laufzeit in Monaten 24 statt 36 wäre, der Betrag 10.000,25 statt 12.345,5 wäre, die Wohnung Eigentum "
            "statt Miete wäre und Eigentum ja statt nein wäre, lautete die Entscheidung gut.",
        ),
        (
            explained({"duration": 6.0}, row={"duration": np.nan}),
            "Wenn die Laufzeit in Monaten bekannt und 6 wäre, lautete die Entscheidung gut.",
        ),
        (explained(None, status="already_target", prediction="good"), "Die Entscheidung lautet bereits gut."),
        (explained(None, status="none_found", reason="Nothing."), "Es wurde keine Änderung gefunden."),
    ],
)
def test_another_language(result: Explanation, sentence: str) -> None:
    assert records.text(result, template=GERMAN) == sentence
    assert records.text(result, 0, Wording.from_dict(GERMAN)) == sentence


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_wording_can_be_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"german{suffix}"
    path.write_text(json.dumps(GERMAN), encoding="utf-8")
    assert Wording.load(path) == Wording.from_dict(GERMAN)


def test_a_wording_is_the_same_after_json() -> None:
    words = Wording(features={0: "first"}, values={"owner": {True: "at home"}}, classes={1: "granted"})
    again = Wording.from_dict(json.loads(json.dumps(words.to_dict())))
    assert again.feature(0) == words.feature(0) == "first"
    assert again.label(1) == "granted"
    result = explained({"owner": True})
    expected = "If owner were at home instead of false, the decision would be good."
    assert records.text(result, template=words) == records.text(result, template=again) == expected
    assert Wording().to_dict() == {}


def test_what_only_bounds_say() -> None:
    words = {"found_number": "{changes}: {score} ({bounds})"}
    for low, high, said in ((1.0, 2.5, "between 1 and 2.5"), (1.0, np.inf, "at least 1"), (-np.inf, 2.5, "at most 2.5")):
        result = explained({"duration": 24.0}, scores=[2.0], target=(low, high), prediction=9.0)
        assert records.text(result, template=words) == f"duration were 24 instead of 36: 2 ({said})"


@pytest.mark.parametrize(
    "hostile",
    [
        "{feature.__class__}",
        "{feature[0]}",
        "{0}",
        "{}",
        "{feature!r}",
        "{feature:>99999999}",
        "{self}",
        "{__import__('os').system('true')}",
        "{wording.fill.__globals__}",
    ],
)
def test_a_hostile_template_is_refused_before_anything_is_filled_in(hostile: str) -> None:
    with pytest.raises(InputError) as caught:
        Wording(change=f"{hostile} were {{to}}")
    assert caught.value.problem.code == "records.unknown_placeholder"
    assert caught.value.problem.expected == ["feature", "from", "to"]


def test_what_is_filled_in_is_not_read_again() -> None:
    result = explained({"housing": "own"}, target="{changes} {feature.__class__} $x %s")
    words = {"values": {"housing": {"own": "{from}", "rent": "{{x}}"}}}
    sentence = "If housing were {from} instead of {{x}}, the decision would be {changes} {feature.__class__} $x %s."
    assert records.text(result, template=words) == sentence


def test_braces_that_are_meant_are_doubled() -> None:
    result = explained({"duration": 24.0})
    assert records.text(result, template={"found": "{{{changes}}}"}) == "{duration were 24 instead of 36}"
    with pytest.raises(InputError, match="braces in pairs"):
        Wording(found="If {changes, it would be")
    with pytest.raises(InputError, match="braces in pairs"):
        Wording(found="If } it would be")


@given(st.text(alphabet="{}abc.changes_[]!: ", max_size=40))
def test_any_template_is_filled_or_refused(template: str) -> None:
    try:
        words = Wording(found=template)
    except InputError:
        return
    filled = words.fill("found", changes="C", target="T", prediction="P")
    assert filled == template.format(changes="C", target="T", prediction="P"), "as str.format would"


@pytest.mark.parametrize(
    ("given_", "code", "part", "received"),
    [
        ({"fund": "x"}, "unknown_part", None, "fund"),
        ({"found": 3}, "part_not_text", "found", "int"),
        ({"found": "{chances}"}, "unknown_placeholder", "found", "chances"),
        ({"features": ["a"]}, "not_labels", "features", ["a"]),
        ({"values": {"a": "b"}}, "not_labels", "values", {"a": "b"}),
        ("If", "not_a_wording", None, "str"),
    ],
)
def test_an_invalid_wording_is_rejected(given_: Any, code: str, part: str | None, received: Any) -> None:
    with pytest.raises(InputError) as caught:
        Wording.from_dict(given_)
    problem = caught.value.problem
    assert (problem.code, problem.details.get("part"), problem.received) == (f"records.{code}", part, received)
    assert problem.details.get("suggestion") == ("changes" if received == "chances" else problem.details.get("suggestion"))


@pytest.mark.parametrize("content", ["[", "- a", "{a: {b: }"])
def test_a_file_that_is_no_wording_is_one_sentence(tmp_path: Path, content: str) -> None:
    for suffix in (".json", ".yaml"):
        path = tmp_path / f"words{suffix}"
        path.write_text(content)
        with pytest.raises(InputError, match="wording"):
            Wording.load(path)
    with pytest.raises(InputError, match="can be read"):
        Wording.load(tmp_path / "none.yaml")


def test_a_row_that_is_not_there_is_reported() -> None:
    with pytest.raises(InputError) as caught:
        records.text(explained({"duration": 24.0}), 1)
    assert (caught.value.problem.code, caught.value.problem.received) == ("records.not_a_row", 1)


def test_texts_without_a_counterfactual_give_the_reason() -> None:
    refused = explained(
        None,
        status="none_found",
        reason="No.",
        infeasible={0: Infeasibility((BlockingConstraint("a", "", ()),), (), True, 0.5)},
    )
    assert records.text(refused) == "No."
