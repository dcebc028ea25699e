import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.serve.workers.queue import LatencyModel


def after(calls):
    model = LatencyModel()
    for rows, seconds in calls:
        model.observe(rows, seconds)
    return model


def test_a_call_and_its_rows_are_told_apart():
    model = after([(rows, 0.03 + 0.001 * rows) for _ in range(100) for rows in (1, 8, 64)])
    assert model.predict(1) == pytest.approx(0.031, rel=0.05)
    assert model.predict(64) == pytest.approx(0.094, rel=0.05)


def test_calls_of_one_size_tell_of_that_size_and_let_a_crowd_in():
    model = after([(1, 0.04)] * 300)
    assert model.predict(1) == pytest.approx(0.04, rel=0.05)
    assert 0.04 < model.predict(64) < 0.5


def test_a_machine_that_slows_down_is_noticed_soon():
    model = after([(8, 0.05)] * 200 + [(8, 0.5)] * 40)
    assert model.predict(8) > 0.4


@given(st.lists(st.tuples(st.integers(1, 256), st.floats(1e-6, 60)), max_size=50), st.integers(1, 256))
def test_never_negative_and_more_rows_never_take_less(calls, rows):
    model = after(calls)
    assert 0 <= model.predict(rows) <= model.predict(rows + 1) + 1e-9
