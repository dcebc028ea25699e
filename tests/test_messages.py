"""The catalogue of messages: every code has a text, every text a use, and nothing but the wording depends on them."""

import ast
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter
from typing import Any

import pandas as pd
import pytest

from fasterce import FasterCE, Schema, load, records
from fasterce.config import Config
from fasterce.errors import FasterCEError, InputError, MissingExtraError, Problem, SchemaError, catalogue
from fasterce.models import load_model
from tests.io.conftest import approve, identity, people
from tests.language import other_language

SOURCE = Path(__file__).parents[1] / "src" / "fasterce"
TEXTS = {f"{section}.{name}": text for section, entries in catalogue().items() for name, text in entries.items()}
# Used by the renderer itself.
OWN_SECTION = "sentence"
CODE = re.compile(rf"^({'|'.join(set(catalogue()) - {OWN_SECTION})})\.[a-z][a-z0-9_]*$")
FIELDS = {"column", "row", "expected", "received", "option"}
# Text that looks like a code.
NOT_CODES = {"data.schema", "records.db"}
RAISERS = re.compile(r"(Error|Exception|Refused|Exceeded|Lost|Ready|Overloaded|InvalidRequest|^Problem|problem|^unknown)$")


def codes_used() -> tuple[dict[str, list[str]], set[str]]:
    """Return the codes written in the source with where they are, and the beginnings of those put together there."""
    literal: dict[str, list[str]] = {}
    prefixes: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr) and isinstance(node.values[:1], list)]
        parts = {id(part) for node in joined for part in node.values}
        for one in joined:
            beginning = str(one.values[0].value) if one.values and isinstance(one.values[0], ast.Constant) else ""
            if re.match(r"^[a-z]+\.", beginning) and any(code.startswith(beginning) for code in TEXTS):
                prefixes.add(beginning)
        for node in nodes:
            text = node.value if isinstance(node, ast.Constant) and id(node) not in parts else None
            if isinstance(text, str) and CODE.match(text) and text not in NOT_CODES:
                literal.setdefault(text, []).append(f"{path.relative_to(SOURCE)}:{node.lineno}")  # type: ignore[attr-defined]
    return literal, prefixes


def raised_codes() -> Iterator[tuple[str, str]]:
    """Yield the literal first argument of every exception and problem made in the source, and where it is."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], (ast.Constant, ast.JoinedStr)):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                first = node.args[0]
                text = first.value if isinstance(first, ast.Constant) else ast.unparse(first)
                if RAISERS.search(called) and isinstance(text, str):
                    yield text, f"{path.relative_to(SOURCE)}:{node.lineno}"


def test_every_code_has_a_text() -> None:
    literal, _ = codes_used()
    missing = {code: where for code, where in literal.items() if code not in TEXTS}
    assert not missing


def test_every_text_is_used() -> None:
    literal, prefixes = codes_used()
    unused = [
        code
        for code in TEXTS
        if not code.startswith(f"{OWN_SECTION}.") and code not in literal and not code.startswith(tuple(prefixes))
    ]
    assert not unused


@pytest.mark.parametrize("code", [code for code in TEXTS if not code.startswith(f"{OWN_SECTION}.")])
def test_texts_are_one_sentence_without_a_full_stop(code: str) -> None:
    text = TEXTS[code]
    assert text == text.strip()
    assert not text.endswith(".")
    assert "\n" not in text
    assert all(name is None or re.match(r"^[a-z_]+", name) for _, name, _, _ in Formatter().parse(text))


@pytest.fixture(scope="module")
def explainer() -> FasterCE:
    frame = people(300)
    schema = Schema.infer(frame, categorical=["code"], increasing=["age"])
    return FasterCE(approve, schema, autoencoder=(identity, identity), progress=False, config=Config.fast()).fit(frame)


def rows_with_problems() -> pd.DataFrame:
    rows = people(8, seed=1).astype({"age": object, "zip": object})
    rows.loc[0, "zip"] = "77"
    rows.loc[1, "age"] = "old"
    return rows


CALLS: dict[str, Callable[[FasterCE], object]] = {
    "an unknown method": lambda explainer: explainer.explain(people(2), method="closets"),  # type: ignore[arg-type]
    "no whole number": lambda explainer: explainer.explain(people(2), n=0),
    "an unknown class": lambda explainer: explainer.explain(people(2), target="ye"),
    "bounds of a score": lambda explainer: explainer.explain(people(2), target_score=(0.9, 0.1)),
    "an unknown column": lambda explainer: explainer.explain(people(2), features_to_vary=["agee"]),
    "an unknown column of a range": lambda explainer: explainer.explain(people(2), permitted_range={"agee": (1, 2)}),
    "a column that is missing": lambda explainer: explainer.explain(people(2).drop(columns="age")),
    "no table": lambda explainer: explainer.explain(7),
    "not fitted": lambda explainer: FasterCE(approve).explain(people(2)),
    "no artifact": lambda explainer: load("/no/such/folder"),
    "no model file": lambda explainer: load_model("/no/such/model.onnx"),
    "an empty range": lambda explainer: Schema.infer(people(20), ranges={"age": (5, 1)}),
    "noise without robust": lambda explainer: explainer.explain(people(2), noise={"pay": 1.0}),
    "a budget too small": lambda explainer: explainer.explain(people(2), budget=1),
}


def outcome_of(call: Callable[[FasterCE], object], explainer: FasterCE) -> tuple[type, Problem, str]:
    with pytest.raises(FasterCEError) as error:
        call(explainer)
    return error.type, error.value.problem, str(error.value)


@pytest.mark.parametrize("name", CALLS)
def test_exceptions_differ_in_wording_only(name: str, explainer: FasterCE, tmp_path: Path) -> None:
    kind, problem, sentence = outcome_of(CALLS[name], explainer)
    with other_language(tmp_path):
        other_kind, other_problem, other_sentence = outcome_of(CALLS[name], explainer)
    assert (other_kind, other_problem.to_dict()) == (kind, problem.to_dict())
    assert sentence != other_sentence
    assert f"⟦{problem.code}⟧" in other_sentence


def test_statuses_and_counterfactuals_do_not_depend_on_the_language(explainer: FasterCE, tmp_path: Path) -> None:
    here = explainer.explain(rows_with_problems(), target="yes")
    with other_language(tmp_path):
        there = explainer.explain(rows_with_problems(), target="yes")
        assert list(here.status) == list(there.status)
        assert [not reason for reason in here.reason] == [not reason for reason in there.reason]
        assert "⟦" in there.reason.iloc[0]
        pd.testing.assert_frame_equal(here.counterfactuals, there.counterfactuals)


def without_words(value: Any) -> Any:
    """Return a record without its texts for people."""
    words = ("text", "reason", "notice", "why_not_replayable", "message")
    if isinstance(value, dict):
        return {name: without_words(one) for name, one in value.items() if name not in words and name != "metrics"}
    return [without_words(one) for one in value] if isinstance(value, list) else value


def test_records_differ_in_wording_only(explainer: FasterCE, tmp_path: Path) -> None:
    def made() -> Any:
        found = explainer.explain(rows_with_problems(), target="yes")
        ids = [str(number) for number in range(len(found))]
        return records.make(explainer, found, ids=ids, now=datetime(2026, 1, 1, tzinfo=UTC))

    here = made()
    with other_language(tmp_path):
        there = made()
    for one, other in zip(here, there, strict=True):
        for record in (one, other):
            record["ids"].pop("record", None)
        assert without_words(one) == without_words(other)
    assert "⟦" in str(there[0]["reason"])


@pytest.mark.parametrize(
    "error",
    [InputError("options.not_a_count", option="n", expected=1, received=0), SchemaError("cli.no_stdout", option="out")],
)
def test_an_error_keeps_its_problem_in_any_language(error: FasterCEError, tmp_path: Path) -> None:
    before = error.problem.to_dict()
    with other_language(tmp_path):
        assert str(error).startswith(f"⟦{error.problem.code}⟧")
        assert "⟦errors.missing_extra⟧" in str(MissingExtraError("torch", "torch", "A PyTorch model"))
    assert error.problem.to_dict() == before


if __name__ == "__main__":  # what is left to convert
    for text, where in raised_codes():
        if text not in TEXTS:
            print(where, text[:100])
