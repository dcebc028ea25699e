"""What a schema and its table should be looked at for."""

import warnings

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema
from fasterce.constraints import Derived, Frozen, OnlyUp, Require
from fasterce.data.review import SchemaWarning


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
    said = [str(one.message) for one in warned]
    for line in (
        "passthrough=['order_no']",
        "X['since'] = pd.to_datetime(X['since'])",
        "increasing=['age']",
        "immutable=['sex']",
        "X = X.drop(columns=['target'])",
        "constraints=[Derived('left over', \"income - 2 * debt + 10\")]",
        'constraints=[Require("colour_red + colour_blue + colour_green == 1")]',
    ):
        assert any(text.endswith(f"Add: {line}") for text in said), line
    assert len(said) == 7


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
