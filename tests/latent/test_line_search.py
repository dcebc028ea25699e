"""Where the points of a walk lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasterce.latent.line_search import NEARER, STEP, STEPS, along, cumulative, distances_to_walk, first


@given(st.floats(1e-6, 100), st.integers(0, 60))
def test_the_kth_point_lies_where_growing_steps_lead(step: float, steps: int) -> None:
    position, expected = 0.0, [0.0]
    for k in range(1, steps + 1):
        position += k * step
        expected.append(position)
    found = cumulative(step, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(found, [step * k * (k + 1) / 2 for k in range(steps + 1)], rtol=1e-9)


def test_defaults_are_the_papers() -> None:
    assert STEP == 0.1
    assert cumulative()[1] == pytest.approx(0.1)
    assert cumulative()[2] == pytest.approx(0.3)
    assert len(cumulative()) == STEPS + 1


def test_a_few_points_before_the_hyperplane_then_beyond() -> None:
    found = distances_to_walk(np.array([4.0]), 0.5, 6)[0]
    np.testing.assert_allclose(found, [1.0, 2.0, 3.0, 4.0, 4.5, 5.5, 7.0])


def test_a_row_already_on_the_wanted_side_walks_on_from_where_it_stands() -> None:
    found = distances_to_walk(np.array([-3.0, 0.0]), 0.1)
    np.testing.assert_array_equal(found[:, : len(NEARER) + 1], 0.0)
    np.testing.assert_allclose(found[:, len(NEARER) :], [cumulative(0.1, STEPS - len(NEARER))] * 2)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=5), st.floats(0.01, 2))
def test_walks_never_turn_back(gaps: list[float], step: float) -> None:
    found = distances_to_walk(np.array(gaps), step)
    assert found.shape == (len(gaps), STEPS + 1)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found >= 0).all()
    assert (found[:, -1] > np.array(gaps)).all()


def test_points_lie_at_their_distance_along_the_direction() -> None:
    start, direction = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.6, 0.8]])
    found = along(start, direction, np.array([[0.0, 2.0, 5.0], [1.0, 10.0, 0.0]]))
    assert found.shape == (2, 3, 2)
    np.testing.assert_allclose(found[0], [[1.0, 2.0], [3.0, 2.0], [6.0, 2.0]])
    np.testing.assert_allclose(found[1], [[0.6, 0.8], [6.0, 8.0], [0.0, 0.0]])


def test_first_valid_step() -> None:
    valid = np.array([[False, True, True], [True, False, False], [False, False, False], [False, False, True]])
    np.testing.assert_array_equal(first(valid), [1, 0, -1, 2])
