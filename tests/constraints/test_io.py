"""Rules as plain data: there and back again exactly, and one sentence for what is not a rule."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from fasterce import constraints as c
from fasterce.errors import FasterCEError, InputError, MissingExtraError, SchemaError
from tests.constraints.worlds import rule_sets

EXAMPLES: list[Any] = [
    c.Frozen("sex", "race", name="protected"),
    c.Range("hours", high=60.5),
    c.Near("income", percent=10),
    c.Step("amount", 50, start="row"),
    c.Forbidden("job", (("a", "b"), ("b", 3))),
    c.If({"married": True, "age": (None, 40)}, then={"rel": ["x", "y"], "k": [1, 2]}),
    c.Together("edu", "income", direction="opposite"),
    c.Derived("bmi", "weight / `body height` ** 2"),
    c.Frozen(("two", "levels"), 3),
    c.If({("two", "levels"): 1}, then={3: (0, 1)}),
]


def test_a_constraint_is_a_flat_dictionary() -> None:
    assert c.to_dict([c.Range("hours", 0, 60)]) == [{"constraint": "range", "feature": "hours", "low": 0, "high": 60}]


@settings(max_examples=100, deadline=None)
@given(constraints=rule_sets())
def test_there_and_back_again(constraints: Any) -> None:
    written = [constraint for constraint in constraints if not callable(getattr(constraint, "formula", None))]
    assert c.from_dict(json.loads(json.dumps(c.to_dict(written)))) == tuple(written)


@pytest.mark.parametrize("name", ["rules.json", "rules.yaml", "rules.YML"])
def test_files_hold_constraints_exactly(tmp_path: Path, name: str) -> None:
    c.save(EXAMPLES, tmp_path / name)
    assert c.load(str(tmp_path / name)) == tuple(EXAMPLES)


def test_yaml_may_be_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        "- {constraint: range, feature: hours, high: 60}\n"
        "- constraint: if\n  when: {married: 'yes', age: {low: 18}}\n  then: {rel: [husband, wife]}\n"
    )
    assert c.load(tmp_path / "r.yaml") == (
        c.Range("hours", high=60),
        c.If({"married": "yes", "age": (18, None)}, then={"rel": ["husband", "wife"]}),
    )


def test_yaml_never_builds_objects(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("!!python/object/apply:os.getcwd []")
    with pytest.raises(InputError, match=r"r\.yaml must be YAML; got "):
        c.load(tmp_path / "r.yaml")


def test_without_pyyaml_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r'pip install "fasterce\[yaml\]"'):
        c.save([c.AtMost(2)], tmp_path / "r.yaml")
    c.save([c.AtMost(2)], tmp_path / "r.json")


def test_a_function_cannot_be_written_and_nothing_is(tmp_path: Path) -> None:
    function: Any = len
    with pytest.raises(
        SchemaError, match=r"^Constraint 2 \(derived\): a Python function cannot be written; expected a formula for 'b'"
    ):
        c.save([c.AtMost(2), c.Derived("b", function, of=("a",))], tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"constraint": "range"}, "^Constraints must come as a list of dictionaries; got "),
        (["range"], "^Constraint 1 must be a dictionary; got 'range'.$"),
        ([{"constraint": "rnge"}], r"^Constraint 1: unknown kind 'rnge'; .*Did you mean 'range'\?$"),
        ([{"feature": "a"}], "^Constraint 1: unknown kind None; "),
        (
            [{"constraint": "range", "feature": "a", "lo": 3}],
            r"^Constraint 1 \(range\): Unknown field 'lo'; .*Did you mean 'low'\?$",
        ),
        (
            [{"constraint": "at_most", "k": 1}, {"constraint": "at_most", "k": "2"}],
            r"^Constraint 2 \(at_most\): k must be a whole number .*got '2'.$",
        ),
        ([{"constraint": "step", "feature": "a"}], r"^Constraint 1 \(step\): expected the fields .*got .*'size'.$"),
        (
            [{"constraint": "frozen", "features": "a"}],
            r"^Constraint 1 \(frozen\): features must be a list of column names; got 'a'.$",
        ),
        (
            [{"constraint": "if", "when": {"a": {"lo": 1}}, "then": {"b": 1}}],
            r"^Constraint 1 \(if\): A range in when must have low and high",
        ),
        ([{"constraint": "if", "when": 3, "then": {"b": 1}}], r"^Constraint 1 \(if\): when must be a dictionary"),
        ([{"constraint": "require", "formula": "a +"}], r"^Constraint 1 \(require\): A formula must be made of"),
        ([{"constraint": "require", "formula": ["a"]}], r"^Constraint 1 \(require\): "),
        (
            [{"constraint": "derived", "feature": "a", "formula": 3}],
            r"^Constraint 1 \(derived\): formula must be text or a function; got 3.$",
        ),
    ],
)
def test_what_is_no_constraint_gets_a_sentence_that_names_the_place(described: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        c.from_dict(described)


@pytest.mark.parametrize(("name", "text"), [("r.json", "{"), ("r.yaml", "a: [")])
def test_a_broken_file_gets_a_sentence(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=r"^The constraints in .* must be (JSON|YAML); got "):
        c.load(tmp_path / name)


def test_other_files_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in '\.yaml', '\.yml', '\.json'; got 'r\.toml'"):
        c.load(tmp_path / "r.toml")
    with pytest.raises(FasterCEError, match=r"^The constraints must come from a file that can be read; got "):
        c.load(tmp_path / "none.json")
