"""The words of the constraint language: what each says of itself and what it refuses to be."""

import datetime
from typing import Any

import numpy as np
import pytest

from fasterce import Feature, Schema
from fasterce import constraints as c
from fasterce.errors import SchemaError


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (c.Frozen("sex", "race"), "sex, race may not change"),
        (c.OnlyUp("age"), "age may only go up"),
        (c.OnlyDown("debt"), "debt may only go down"),
        (c.Range("hours_per_week", 0, 60), "hours_per_week within 0 to 60"),
        (c.Range("hours", low=1.5), "hours at least 1.5"),
        (c.Range("hours", high=0), "hours at most 0"),
        (c.Near("income", percent=10), "income may change within 10 % of its value"),
        (c.Near("age", up=2, down=0), "age may change up by at most 2 and not down"),
        (c.Near("age", by=2), "age may change by at most 2 either way"),
        (c.Step("amount", 50), "amount only in steps of 50"),
        (c.Step("amount", 0.5, start="row"), "amount changes in steps of 0.5"),
        (c.Allowed("job", ["nurse", "smith"]), "job must be nurse or smith"),  # type: ignore[arg-type]
        (c.Forbidden("job", [("nurse", "smith")]), "job may not go from nurse to smith"),  # type: ignore[arg-type]
        (c.Order("grade", ["low", "high"]), "grade is ordered: low < high"),  # type: ignore[arg-type]
        (c.AtMost(1), "at most 1 feature may change"),
        (c.AtMost(3), "at most 3 features may change"),
        (c.Require(" pay*12  <= income"), "pay*12 <= income"),
        (c.If({"married": True}, then={"rel": ["a", "b"]}), "if married is True, then rel must be a or b"),
        (c.If({"age": (18, None)}, then={"x": (0, 1)}), "if age is at least 18, then x must be within 0 to 1"),
        (c.Together("edu", "income", slope=2), "when edu changes, income changes 2 times as much"),
        (c.Together("edu", "debt", direction="opposite"), "when edu changes, debt changes in the opposite direction"),
        (c.Derived("bmi", "weight / height ** 2"), "bmi = weight / height ** 2"),
        (c.Derived("bmi", len, of=["weight"]), "bmi is computed from weight"),  # type: ignore[arg-type]
        (c.Range("a", 0, 1, name="small"), "small: a within 0 to 1"),
    ],
)
def test_every_constraint_has_a_text(constraint: Any, text: str) -> None:
    assert constraint.text == text


def test_constraints_are_values() -> None:
    assert c.Range("a", 0, 1) == c.Range("a", np.int64(0), np.float64(1.0))  # type: ignore[arg-type]
    assert c.Allowed("a", ["x"]) == c.Allowed("a", ("x",))  # type: ignore[arg-type]
    assert c.Frozen(["a", "b"]) == c.Frozen("a", "b", "a")  # type: ignore[arg-type]
    assert len({c.If({"a": 1}, then={"b": [2]}), c.If({"a": [1]}, then={"b": 2})}) == 1
    assert c.If({"a": (1, 2)}, then={"b": 2}) != c.If({"a": [1, 2]}, then={"b": 2})
    with pytest.raises(AttributeError):
        c.Range("a", 0, 1).low = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (c.Frozen, "^features must name at least one column.$"),
        (lambda: c.Frozen({"a": 1}), "^feature must be a column name; got "),  # type: ignore[arg-type]
        (lambda: c.Range("a"), "^low or high must be given.$"),
        (lambda: c.Range("a", 3, 2), "^low must not be above high; got 3 and 2.$"),
        (lambda: c.Range("a", "0"), "^low must be a finite number; got '0'.$"),
        (lambda: c.Range("a", float("nan")), "^low must be a finite number; got nan.$"),
        (lambda: c.Range("a", True), "^low must be a finite number; got True.$"),
        (lambda: c.Near("a"), "^percent, by, up or down must be given.$"),
        (lambda: c.Near("a", up=-1), "^up must not be negative; got -1.$"),
        (lambda: c.Step("a", 0), "^size must be a number above zero; got 0.$"),
        (lambda: c.Step("a", None), "^size must be a number above zero.$"),  # type: ignore[arg-type]
        (lambda: c.Step("a", 1, "here"), "^start must be one of 'zero', 'row'; got 'here'.$"),  # type: ignore[arg-type]
        (lambda: c.Allowed("a", "x"), "^categories must be a list of categories; got 'x'.$"),  # type: ignore[arg-type]
        (lambda: c.Allowed("a", []), "^categories must hold at least one category.$"),  # type: ignore[arg-type]
        (lambda: c.Order("a", ["x", "x"]), "^categories must be distinct; got 'x', 'x'.$"),  # type: ignore[arg-type]
        (lambda: c.Forbidden("a", [("x",)]), r"^transitions must be a list of \(from, to\); got "),  # type: ignore[arg-type]
        (lambda: c.Forbidden("a", "xy"), r"^transitions must be a list of \(from, to\); got 'xy'.$"),  # type: ignore[arg-type]
        (lambda: c.AtMost(0), "^k must be a whole number of at least 1; got 0.$"),
        (lambda: c.AtMost(1.5), "^k must be a whole number of at least 1; got 1.5.$"),  # type: ignore[arg-type]
        (lambda: c.If({}, then={"a": 1}), r"^when must be a dictionary of columns and values; got"),
        (lambda: c.If({"a": 1}, then={"a": 2}), "^when and then must be about different columns; got 'a' in both.$"),
        (lambda: c.If({"a": (2, 1)}, then={"b": 2}), r"^low must not be above high; got 2 and 1.$"),
        (lambda: c.If({"a": []}, then={"b": 2}), "^when must list at least one value.$"),
        (lambda: c.Together("a", "a"), "^leader and follower must be two columns; got 'a' twice.$"),
        (lambda: c.Together("a", "b", direction="up"), "^direction must be one of 'same', 'opposite'; got 'up'.$"),  # type: ignore[arg-type]
        (lambda: c.Together("a", "b", 1.0, "opposite"), "^slope and direction='opposite' must not be given together"),
        (lambda: c.Derived("a", "a + b"), "^'a' must not be computed from itself.$"),
        (lambda: c.Derived("a", "3"), "^formula must use at least one column; got '3'.$"),
        (lambda: c.Derived("a", len), "^of must be a list of the columns the function takes.$"),  # type: ignore[arg-type]
        (lambda: c.Derived("a", "b", of=["b"]), "^of must be left out where a formula names its columns itself.$"),  # type: ignore[arg-type]
        (lambda: c.Derived("a", 3), "^formula must be text or a function; got 3.$"),  # type: ignore[arg-type]
        (lambda: c.OnlyUp("a", name=""), "^name must be a text that is not empty; got ''.$"),
    ],
)
def test_a_constraint_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_a_range_may_be_given_in_dates() -> None:
    dates = (Feature("start", "numeric", integer=True, value_type="date"),)
    given = c.Range("start", datetime.date(2020, 1, 1), "2020-12-31")
    assert str(given) == "start within 2020-01-01 to 2020-12-31"
    Schema(dates, constraints=(given,))
    for wrong in (c.Range("start", "soon"), c.Range("start", "2021-01-01", "2020-01-01")):
        with pytest.raises(SchemaError):
            Schema(dates, constraints=(wrong,))
    amounts = (*dates, Feature("x", "numeric"))
    Schema(amounts, constraints=(c.If({"start": (datetime.date(2020, 1, 1), None)}, {"x": (0, 5)}),))
    with pytest.raises(SchemaError, match="must have ends that are a number"):
        Schema(amounts, constraints=(c.If({"x": (datetime.date(2020, 1, 1), None)}, {"start": (0, 5)}),))
    with pytest.raises(SchemaError, match="must have ends that are a number"):
        Schema((Feature("x", "numeric"),), constraints=(c.Range("x", "2020-01-01"),))
