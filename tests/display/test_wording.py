"""Values as people read them."""

import pytest

from fasterce.display.wording import LONGEST, cut, text


@pytest.mark.parametrize("length", [1, LONGEST, LONGEST + 1, 500])
def test_a_category_is_cut_to_a_line_and_says_so(length: int) -> None:
    shown = cut("x" * length)
    assert len(shown) == min(length, LONGEST)
    assert shown.endswith("…") == (length > LONGEST)


def test_a_sentence_is_never_cut() -> None:
    assert text("word " * 60).count("word") == 60
