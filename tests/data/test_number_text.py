"""Numbers that a table has as text."""

import pandas as pd
import pytest

from fasterce.data.number_text import NumberText, number_text


@pytest.mark.parametrize(
    ("texts", "marks", "options", "numbers"),
    [
        (["1,5", "-2,25", "3"], NumberText(","), "--decimal ,", [1.5, -2.25, 3]),
        (["1.234,5", "2,5"], NumberText(",", "."), "--decimal , --thousands .", [1234.5, 2.5]),
        (["1,234", "12,500"], NumberText(".", ","), "--thousands ,", [1234, 12500]),
        (["1 234,5", "2,5"], NumberText(",", " "), '--decimal , --thousands " "', [1234.5, 2.5]),
        (["1.5", " 2"], NumberText(), "", [1.5, 2]),
    ],
)
def test_the_marks_are_found_and_the_line_works(
    texts: list[str], marks: NumberText, options: str, numbers: list[float]
) -> None:
    X = pd.DataFrame({"amount": texts})
    assert number_text(X["amount"]) == marks
    assert marks.options == options
    exec(marks.written_call("'amount'"), {"X": X, "pd": pd})
    assert X["amount"].tolist() == numbers


@pytest.mark.parametrize("texts", [["01234", "10115"], ["abc", "1,5"], [",", "1"], ["1,2,3", "4"], ["1.2.3"], ["", "1"]])
def test_codes_and_text_are_no_numbers(texts: list[str]) -> None:
    assert number_text(pd.Series(texts, name="amount")) is None


def test_whole_numbers_named_as_a_code_stay_text() -> None:
    assert number_text(pd.Series(["10115", "20095"], name="zip_code")) is None
    assert number_text(pd.Series(["35", "41"], name="age")) == NumberText()
