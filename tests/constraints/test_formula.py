"""Formulas: what they say, what they may be made of, and that nothing is ever executed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.constraints.formula import Node, parse_comparison, parse_formula
from fasterce.errors import SchemaError


def value(text: str, **columns: float) -> float:
    return float(parse_formula(text).evaluate({name: np.array([number]) for name, number in columns.items()})[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 2 * b", 7.0),
        ("(a + 2) * b", 10.0),
        ("-a ** 2", -9.0),
        ("a ** -1", 1 / 3),
        ("a ** 0.5", math.sqrt(3)),
        ("a ** b", 9.0),
        ("min(a, b, 1)", 1.0),
        ("max(a, b)", 3.0),
        ("abs(b - a)", 1.0),
        ("+a / b", 1.5),
    ],
)
def test_formulas_mean_what_they_say(text: str, expected: float) -> None:
    assert value(text, a=3.0, b=2.0) == pytest.approx(expected, rel=1e-15)


def test_columns_that_are_no_identifiers_stand_in_backticks() -> None:
    node = parse_formula("`capital gain` - 2 * `0` + class_")
    assert node.columns == ("capital gain", "0", "class_")
    columns = {"capital gain": np.array([9.0]), "0": np.array([2.0]), "class_": np.array([1.0])}
    assert node.evaluate(columns).tolist() == [6.0]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "a.real",
        "a[0]",
        "lambda: 1",
        "a if b else c",
        "[a for a in b]",
        "'text'",
        "True",
        "a // b",
        "a % b",
        "a and b",
        "abs(a, b)",
        "min(a)",
        "max()",
        "sum(a, b)",
        "min(a, key=b)",
        "f(*a)",
        "1j",
        "a <= b",
        "a; b",
        "",
        "a +",
        "`a",
        "1e999",
        "9" * 400,
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SchemaError, match=r"^A formula must .*; got .*\.$"):
        parse_formula(text)


@pytest.mark.parametrize("text", ["a", "a <= b <= c", "a != b", "a in b", "a is b", "a = b", "1 <= 2"])
def test_a_requirement_is_one_comparison_of_columns(text: str) -> None:
    with pytest.raises(SchemaError, match=r"^A formula must .*; got"):
        parse_comparison(text)


def test_monsters_are_refused_or_harmless() -> None:
    for text in ("(" * 400 + "a" + ")" * 400, "-" * 900 + "a", "+".join(["a"] * 300), "a" * 20_001):
        with pytest.raises(SchemaError, match=r"^A formula must "):
            parse_formula(text)
    assert value("a + 2 ** 9999999", a=1.0) == math.inf
    assert value("a ** 9 ** 9 ** 9", a=2.0) == math.inf
    assert math.isnan(value("(0 - a) ** 0.3", a=2.0))


def test_no_number_is_text_and_text_is_no_number() -> None:
    with pytest.raises(SchemaError, match=r"^A formula must be text; got 3\.$"):
        parse_formula(3)


def test_linear_formulas_give_their_coefficients() -> None:
    assert parse_comparison("monthly * 12 <= 0.4 * (income - 5) / 2").linear == ({"monthly": 12.0, "income": -0.2}, 1.0)
    assert parse_formula("a * b").linear is None
    assert parse_formula("a / b").linear is None
    assert parse_formula("max(a, 1)").linear is None
    assert parse_formula("a / 0").linear is None
    assert parse_formula("2 ** 3 * a").linear == ({"a": 8.0}, 0.0)


def trees() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["a", "b", "2", "0.5", "3"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
            st.builds("({}) ** {}".format, inner, st.sampled_from(["2", "3", "0"])),
            st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
            st.builds("abs(-{})".format, inner),
        ),
        max_leaves=8,
    )


@settings(max_examples=200, deadline=None)
@given(text=trees(), ends=st.tuples(*[st.integers(-5, 5)] * 4), shares=st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_values_lie_within_the_interval_and_on_the_line(text: str, ends: tuple[int, ...], shares: list[float]) -> None:
    (a, b), (c, d) = sorted(ends[:2]), sorted(ends[2:])
    node = parse_formula(text)
    low, high = node.interval({"a": (a, b), "b": (c, d)})
    columns = {"a": np.array([a + s * (b - a) for s in shares]), "b": np.array([c + s * (d - c) for s in shares[::-1]])}
    values = np.broadcast_to(node.evaluate(columns), 4)
    known = values[np.isfinite(values)]
    slack = 1e-9 * max(1.0, float(np.abs(known).max(initial=0.0)))
    assert ((known >= low - slack) & (known <= high + slack)).all()
    if node.linear is not None:
        factors, constant = node.linear
        line = sum((factor * columns[name] for name, factor in factors.items()), np.full(4, constant))
        np.testing.assert_allclose(line, values, rtol=1e-9, atol=slack)


@settings(max_examples=100, deadline=None)
@given(text=trees(), seed=st.integers(0, 1000))
def test_a_row_alone_comes_out_as_in_a_batch(text: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    node: Node = parse_formula(text)
    a, b = rng.normal(size=(2, 37)) * 100
    batch = np.broadcast_to(node.evaluate({"a": a, "b": b}), 37)
    alone = [float(np.broadcast_to(node.evaluate({"a": a[i : i + 1], "b": b[i : i + 1]}), 1)[0]) for i in range(37)]
    np.testing.assert_array_equal(batch, alone)


def test_what_can_never_hold_is_seen() -> None:
    never = parse_comparison("a * 12 <= 0.4 * b")
    assert not never.possible({"a": (10, 20), "b": (0, 100)})
    assert never.possible({"a": (10, 20)})
    assert not parse_comparison("a == b + 1").possible({"a": (0, 1), "b": (5, 6)})
    assert not parse_comparison("a < b").possible({"a": (3, 4), "b": (1, 3)})
    assert parse_comparison("a <= b").possible({"a": (3, 4), "b": (1, 3)})
