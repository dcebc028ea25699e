"""What a schema and its table should be looked at for."""

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from fasterce import Schema
from fasterce.constraints import Derived, Frozen, OnlyUp, Require
from fasterce.constraints.io import from_dict
from fasterce.data.review import SchemaWarning, combined, review


def table(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    colour = rng.integers(0, 3, rows)
    frame = pd.DataFrame(
        {
            "order_no": rng.permutation(rows),
            "since": pd.Series(pd.date_range("2020-01-01", periods=rows)).dt.strftime("%Y-%m-%d"),
            "age": rng.integers(18, 80, rows),
            "sex": rng.choice(["f", "m"], rows),
            "income": rng.uniform(1000, 9000, rows).round(2),
            "debt": rng.uniform(0, 900, rows).round(2),
        }
    )
    frame["left over"] = (frame["income"] - 2 * frame["debt"] + 10).round(2)
    for k, name in enumerate(("red", "blue", "green")):
        frame[f"colour_{name}"] = (colour == k).astype(int)
    return frame.assign(target=rng.integers(0, 2, rows))


def lines(frame: pd.DataFrame, schema: Schema) -> dict[str, str]:
    return {advice.problem.code: advice.line for advice in schema.review(frame)}


def inferred(frame: pd.DataFrame, **options: object) -> Schema:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        return Schema.infer(frame, **options)  # type: ignore[arg-type]


def test_every_finding_names_the_line_to_add() -> None:
    frame = table()
    with pytest.warns(SchemaWarning) as warned:
        Schema.infer(frame)
    messages = [str(one.message) for one in warned]
    for line in (
        "passthrough=['order_no']",
        "X['since'] = pd.to_datetime(X['since'])",
        "increasing=['age']",
        "immutable=['sex']",
        "X = X.drop(columns=['target'])",
        "constraints=[Derived('left over', \"income - 2 * debt + 10\")]",
        'constraints=[Require("colour_red + colour_blue + colour_green == 1")]',
    ):
        assert any(text.endswith(f"Add: {line}") for text in messages), line
    assert len(messages) == 7


def test_the_lines_settle_it() -> None:
    frame = table().drop(columns="target")
    frame["since"] = pd.to_datetime(frame["since"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Schema.infer(
            frame,
            passthrough=["order_no"],
            increasing=["age"],
            immutable=["sex"],
            constraints=[
                Derived("left over", "income - 2 * debt + 10"),
                Require("colour_red + colour_blue + colour_green == 1"),
            ],
        )


def test_constraints_settle_what_parameters_would() -> None:
    frame = table()[["age", "sex", "income"]]
    assert set(lines(frame, inferred(frame))) == {"review.age", "review.protected"}
    assert lines(frame, inferred(frame, constraints=[Frozen("sex"), OnlyUp("age")])) == {}


def test_an_identity_must_hold_in_every_row() -> None:
    frame = table(3000)[["income", "debt", "left over"]]
    assert "review.derived" in lines(frame, inferred(frame))
    frame.loc[2900, "left over"] += 1
    assert "review.derived" not in lines(frame, inferred(frame))


def test_flags_that_are_not_one_hot_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    flags = pd.DataFrame(rng.integers(0, 2, (100, 3)), columns=["has_car", "has_house", "has_dog"])
    assert lines(flags, inferred(flags)) == {}


def test_the_command_line_gets_its_own_words() -> None:
    frame = table()
    remedies = {advice.problem.code: advice.remedy for advice in inferred(frame).review(frame)}
    assert remedies["review.protected"] == "Add: --freeze sex"
    assert 'formula: "income - 2 * debt + 10"' in remedies["review.derived"]


def pasted(frame: pd.DataFrame) -> Schema:
    """Return the schema that the lines of all advice make."""
    schema = inferred(frame)
    code = combined(schema_advice(frame, schema))
    names: dict[str, object] = {"X": frame.copy()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        exec(code, names)
    found = names["schema"]
    assert isinstance(found, Schema)
    return found


def schema_advice(frame: pd.DataFrame, schema: Schema) -> list[Any]:
    return review(frame, schema, schema.passthrough)


def test_the_lines_work_together_when_pasted() -> None:
    schema = pasted(table())
    assert [constraint.text for constraint in schema.constraints] == [
        "colour_red + colour_blue + colour_green == 1",
        "left over = income - 2 * debt + 10",
    ]
    assert schema["since"].value_type == "date"
    assert "target" not in schema.names


@pytest.mark.parametrize("drop_first", [False, True])
@pytest.mark.parametrize("dtype", [bool, int, float])
def test_the_line_for_dummies_works_when_pasted(dtype: Any, drop_first: bool) -> None:
    kinds = ['say "a"', "with, comma", "back\\slash", "lambda"]
    frame = pd.DataFrame({"kind": np.random.default_rng(0).choice(kinds, 300), "size": np.arange(300) % 7})
    dummies = pd.get_dummies(frame, drop_first=drop_first, dtype=dtype)
    (advice,) = inferred(dummies).review(dummies)
    assert advice.problem.code == ("review.one_hot_dropped" if drop_first else "review.one_hot")
    schema = pasted(dummies)
    assert len(schema.constraints) == 1
    file_form = yaml.safe_load(advice.remedy.removeprefix("Add to the constraints of the file: "))
    assert from_dict([file_form]) == schema.constraints


def test_the_line_for_hundreds_of_dummies_works_when_pasted() -> None:
    frame = pd.get_dummies(pd.DataFrame({"home_town": [f"town number {k % 300}" for k in range(900)]}))
    assert len(pasted(frame).constraints[0].columns) == 300


def test_dates_and_numbers_as_text_get_a_line_that_works() -> None:
    days = pd.date_range("2020-02-01", periods=60)
    frame = pd.DataFrame(
        {
            "opened": days.strftime("%d.%m.%Y"),
            "amount": [f"{k * k % 61},5" for k in range(60)],
            "grade": ["1,5", "2,0"] * 30,
            "size": np.arange(60) ** 2 % 17,
        }
    )
    schema = pasted(frame)
    assert schema["opened"].value_type == "date"
    assert schema["opened"].text(schema["opened"].upper) == "2020-03-31"
    assert (schema["amount"].lower, schema["amount"].upper) == (0.5, 60.5)
    assert schema["grade"].numeric
    remedies = [advice.remedy for advice in schema_advice(frame, inferred(frame))]
    assert "Add: --dates opened" in remedies
    assert remedies.count("Pass: --decimal ,") == 2


@pytest.mark.parametrize("arrow", [False, True])
def test_decimals_and_dates_computed_from_others_are_found(arrow: bool) -> None:
    rng = np.random.default_rng(0)
    net, fee = ([Decimal(int(cents)) / 100 for cents in rng.integers(100, 9000, 80)] for _ in range(2))
    frame = pd.DataFrame({"net": net, "fee": fee, "total": [a + b for a, b in zip(net, fee, strict=True)]})
    if arrow:
        frame = frame.astype(pd.ArrowDtype(pa.decimal128(12, 2)))
    frame["start"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, 80), unit="D")
    frame["days"] = rng.integers(1, 900, 80)
    frame["end"] = frame["start"] + pd.to_timedelta(frame["days"], unit="D")
    found = {str(c.feature): set(c.inputs) for c in pasted(frame).constraints if isinstance(c, Derived)}
    assert set().union({"total"}, found["total"]) == {"net", "fee", "total"}
    (other,) = [name for name in found if name != "total"]
    assert {other, *found[other]} == {"start", "days", "end"}
