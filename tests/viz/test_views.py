"""What a row's grid says of numbers wanted and trials stood, whatever it is drawn with."""

import math
from typing import Any

import pandas as pd
import pytest

from fasterce.viz.html import fragment
from fasterce.viz.views import row_view, tall, wide

COUNTERFACTUALS = [(0, "line", {"income": 52000}, 0.3), (0, "tree", {"job": "nurse"}, 0.5), (1, "line", {"age": 47}, 0.1)]


def lines(grid: Any) -> list[list[str]]:
    return [list(map(str, line)) for line in (*grid.lines, *grid.foot)]


def test_a_number_is_shown_with_the_bounds_wanted_and_what_it_becomes(build: Any, people: pd.DataFrame) -> None:
    made = build(
        people,
        COUNTERFACTUALS,
        prediction=81234.56,
        target=(100_000.0, math.inf),
        score=[81234.56] * 3,
        scores=[100_250.4, 130_000.0, 100_001.0],
    )
    row = row_view(made, 0)
    assert row.heading == "Row ann: 81,234.6 → at least 100,000"
    assert wide(row).header == ("Method", "income", "job", "Prediction", "Distance")
    assert [line[3] for line in lines(wide(row))] == ["81,234.6", "100,250", "130,000"]
    assert lines(tall(row, (0, 1)))[-2] == ["Prediction", "81,234.6 → 100,250", "81,234.6 → 130,000"]
    assert "at least 100,000" in str(made)


def test_a_chance_is_shown_as_one_and_not_as_a_class_that_may_not_come(build: Any, people: pd.DataFrame) -> None:
    made = build(people, COUNTERFACTUALS, score=[0.91234, 0.1, 0.5], scores=[0.3333, 0.25, 0.31])
    row = row_view(made, 0)
    assert row.heading == "Row ann: refused, chance of granted 0.912"
    grid = wide(row)
    assert grid.header == ("Method", "income", "job", "Chance of granted", "Distance")
    assert [line[3] for line in lines(grid)] == ["0.912", "0.333", "0.25"]
    assert "Prediction" not in str(made)


def test_any_other_is_shown_as_the_target(build: Any, people: pd.DataFrame) -> None:
    assert row_view(build(people, COUNTERFACTUALS, target="any other"), 0).heading == "Row ann: refused → any other"


@pytest.mark.parametrize("measured", [("robust",), ("ensemble_agreement",), ("robust", "ensemble_agreement")])
def test_robustness_is_shown_where_measured(build: Any, people: pd.DataFrame, measured: tuple[str, ...]) -> None:
    names = {"robust": "Holds under noise", "ensemble_agreement": "Holds after refit"}
    made = build(people, COUNTERFACTUALS, **dict.fromkeys(measured, (1.0, 0.96875, 0.999)))
    row = row_view(made, 0)
    count = len(measured)
    assert wide(row).header[-count:] == tuple(names[name] for name in measured)
    assert [line[-1] for line in lines(wide(row))] == ["", "100 %", "97 %"]
    assert [line[0] for line in lines(tall(row, (0, 1)))][-count:] == [names[name] for name in measured]
    for shown in (str(made), fragment(made)):
        assert "97 %" in shown
        assert all((name in shown) == (key in measured) for key, name in names.items())


def test_nothing_measured_changes_nothing(loans: Any) -> None:
    row = row_view(loans, 0)
    assert [line.name for line in row.measures] == ["Prediction", "Distance"]
    assert wide(row).header[-2:] == ("Prediction", "Distance")
    assert "Holds" not in fragment(loans)
