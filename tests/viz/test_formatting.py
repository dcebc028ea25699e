"""Values as people read them."""

import math

import pytest

from fasterce.data.schema import Feature
from fasterce.viz.formatting import LONGEST, bounds, cut, percent, predicted, text, values


@pytest.mark.parametrize("length", [1, LONGEST, LONGEST + 1, 500])
def test_a_category_is_cut_to_a_line_and_says_so(length: int) -> None:
    shown = cut("x" * length)
    assert len(shown) == min(length, LONGEST)
    assert shown.endswith("…") == (length > LONGEST)


def test_a_sentence_is_never_cut() -> None:
    assert text("word " * 60).count("word") == 60


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (100_000, math.inf, "at least 100,000"),
        (-math.inf, -2.5, "at most -2.5"),
        (10, 20, "between 10 and 20"),
        (0.125, 0.25, "between 0.125 and 0.25"),
        (7.0, 7.0, "exactly 7"),
    ],
)
def test_bounds_in_words(low: float, high: float, expected: str) -> None:
    assert bounds(low, high) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(1.0, "100 %"), (0.999, "99 %"), (0.969, "97 %"), (0.5, "50 %"), (0.001, "1 %"), (0.0, "0 %")]
)
def test_only_all_of_it_is_a_hundred_per_cent(share: float, expected: str) -> None:
    assert percent(share) == expected


def test_predictions_have_the_digits_that_matter() -> None:
    assert [predicted(value) for value in (1234.5, 123456.789, 0.00012345678, -3.0, 0.0)] == [
        "1,234.5",
        "123,457",
        "0.000123457",
        "-3",
        "0",
    ]


def test_missing_numbers_are_shown_as_missing() -> None:
    feature = Feature("income", "numeric", decimals=2, missing="may_appear")
    assert values(feature, None, [1250.5, 3.0]) == ("missing", ["1,250.5", "3"])
    assert values(feature, 12.0, [None]) == ("12", ["missing"])
