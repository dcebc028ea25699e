"""Corrections of an inexact scorer."""

from typing import Any

import numpy as np
import pytest

from fasterce.kernels.arrays import IDENTITY, NETWORK, NO_NETWORK, NO_TREES, Scorer
from fasterce.kernels.correct import correct
from fasterce.kernels.score import NAMED, WITHIN
from fasterce.kernels.warm_up import _queries


def line(slope: float = 1.0) -> Scorer:
    """The sum of two numbers less 1, times `slope`."""
    network = NO_NETWORK._replace(
        knots=np.array([0.0, 1.0, 0.0, 1.0]),
        entries=slope * np.array([[0.0], [1.0], [0.0], [1.0]]),
        start=np.array([0, 2, 4], dtype=np.int64),
        numeric=np.ones(2, dtype=np.bool_),
        nullable=np.zeros(2, dtype=np.bool_),
        extrapolate=True,
        bias=np.array([-slope]),
    )
    return Scorer(NETWORK, NO_TREES, network, 1, IDENTITY, False, 0.1)


def corrected(start: float, rows: list[list[float]], leads: list[float], graded: bool = True, kind: int = NAMED) -> Any:
    queries = _queries(np.array([[0.0, 0.0]]))._replace(kind=kind, low=np.array([-9.0]), high=np.array([9.0]))
    codes = np.array([rows], dtype=float).reshape(1, len(rows), 2)
    correct(line(), queries, np.array([start]), codes, np.array([leads], dtype=float).reshape(1, len(leads)), graded)
    return queries.shift[0], queries.correction[0]


@pytest.mark.parametrize("kind", [NAMED, WITHIN])
def test_the_query_itself_is_right_afterwards(kind: int) -> None:
    shift, correction = corrected(-3.0, [], [], kind=kind)
    assert shift == pytest.approx(-2.0)
    np.testing.assert_array_equal(correction, [0.0, 0.0])


def test_a_deviation_goes_to_the_feature_that_changed() -> None:
    _, correction = corrected(-1.0, [[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]], [3.0, 3.0, 3.0])
    assert correction[0] == pytest.approx(2.0 * 3 / 3.3, rel=1e-6)
    assert correction[1] == 0.0


def test_deviations_of_several_rows_are_told_apart() -> None:
    """The first number does 2 more than expected, the second 1 less."""
    rows = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] * 20
    _, correction = corrected(-1.0, rows, [2.0, -1.0, 2.0] * 20)
    np.testing.assert_allclose(correction, [2.0, -1.0], atol=0.05)


def test_rows_without_a_lead_do_not_count() -> None:
    _, correction = corrected(-1.0, [[2.0, 0.0], [0.0, 5.0]], [-np.inf, 4.0])
    assert correction[0] == 0.0
    assert abs(correction[1]) < 1e-9


def test_labels_move_a_guess_to_the_boundary_only() -> None:
    _, wrong = corrected(-1.0, [[3.0, 0.0]], [-1.0], graded=False)
    assert wrong[0] == pytest.approx(-2.0 / 1.3)
    _, right = corrected(-1.0, [[3.0, 0.0]], [1.0], graded=False)
    assert right[0] == 0.0
