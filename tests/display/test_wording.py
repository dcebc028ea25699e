"""Values as people read them."""

import pytest

from fasterce.display.wording import LONGEST, cut, text, values
from fasterce.schema import Feature


@pytest.mark.parametrize("length", [1, LONGEST, LONGEST + 1, 500])
def test_a_category_is_cut_to_a_line_and_says_so(length: int) -> None:
    shown = cut("x" * length)
    assert len(shown) == min(length, LONGEST)
    assert shown.endswith("…") == (length > LONGEST)


def test_a_sentence_is_never_cut() -> None:
    assert text("word " * 60).count("word") == 60


def test_missing_numbers_are_said_to_be_missing() -> None:
    feature = Feature("income", "numeric", decimals=2, missing="may_appear")
    assert values(feature, None, [1250.5, 3.0]) == ("missing", ["1250.5", "3"])
    assert values(feature, 12.0, [None]) == ("12", ["missing"])
