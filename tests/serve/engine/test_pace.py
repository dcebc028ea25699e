import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.engine.pace import Pace


def after(calls):
    pace = Pace()
    for rows, seconds in calls:
        pace.note(rows, seconds)
    return pace


def test_a_call_and_its_rows_are_told_apart():
    pace = after([(rows, 0.03 + 0.001 * rows) for _ in range(100) for rows in (1, 8, 64)])
    assert pace.expected(1) == pytest.approx(0.031, rel=0.05)
    assert pace.expected(64) == pytest.approx(0.094, rel=0.05)


def test_calls_of_one_size_tell_of_that_size_and_let_a_crowd_in():
    pace = after([(1, 0.04)] * 300)
    assert pace.expected(1) == pytest.approx(0.04, rel=0.05)
    assert 0.04 < pace.expected(64) < 0.5


def test_a_machine_that_slows_down_is_noticed_soon():
    pace = after([(8, 0.05)] * 200 + [(8, 0.5)] * 40)
    assert pace.expected(8) > 0.4


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(1e-6, 60)), max_size=50), st.integers(1, 256))
def test_never_below_nought_and_more_rows_never_take_less(calls, rows):
    pace = after(calls)
    assert 0 <= pace.expected(rows) <= pace.expected(rows + 1) + 1e-9
