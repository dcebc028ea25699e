"""Changes against the person's interest are marked wherever changes are shown."""

import pandas as pd
import pytest

from fasterce.explanation import Explanation
from fasterce.viz import html, terminal
from fasterce.viz.grid import AGAINST_LEGEND
from fasterce.viz.views import row_view, table_lines, tall, wide
from tests.viz.conftest import Build

CHANGES = [
    (0, "line", {"income": 52000, "rate": 1.75}, 0.3),
    (0, "tree", {"income": 8000}, 0.5),
    (1, "line", {"age": 47}, 0.1),
]


@pytest.fixture
def marked(build: Build, people: pd.DataFrame) -> Explanation:
    return build(people, CHANGES, preferred={"income": "higher", "rate": "lower"})


def test_only_changes_in_the_wrong_direction_are_marked(marked: Explanation) -> None:
    income, rate = row_view(marked, 0).features
    assert (income.name, set(income.against)) == ("income", {1})
    assert (rate.name, set(rate.against)) == ("rate", {0})
    assert row_view(marked, 1).legend == ""


@pytest.mark.parametrize("layout", [wide, lambda row: tall(row, range(2))], ids=["wide", "tall"])
def test_grids_show_the_mark_behind_the_value(marked: Explanation, layout: object) -> None:
    cells = [str(cell) for line in layout(row_view(marked, 0)).lines for cell in line]  # type: ignore[operator]
    assert [cell for cell in cells if cell.endswith("!")] != []
    assert all(("8,000" in cell or "1.75" in cell) == cell.endswith("!") for cell in cells if "\u2192" in cell)


def test_the_terminal_says_what_the_mark_means(marked: Explanation) -> None:
    text = terminal.render(marked)
    assert "8,000 !" in text
    assert "52,000 !" not in text
    assert text.count(AGAINST_LEGEND) == 1, "under the row that has such changes"


def test_html_marks_them_too(marked: Explanation) -> None:
    fragment = str(html.fragment(marked))
    assert fragment.count('<strong class="fce-against">!</strong>') == 2
    assert "! not in the person&#39;s interest" in fragment
    assert [one.against for line in table_lines(marked) for one in line.changes or ()] == [False, True, True, False]


def test_without_preferences_nothing_is_marked(build: Build, people: pd.DataFrame) -> None:
    plain = build(people, CHANGES)
    assert AGAINST_LEGEND not in terminal.render(plain)
    assert "<strong" not in str(html.fragment(plain))
    assert "against" not in plain.to_frame().columns
    assert "against" in build(people, CHANGES, preferred={"income": "higher"}).to_frame().columns
