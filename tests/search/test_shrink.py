"""Candidates between a counterfactual and its query."""

from typing import Any

import numpy as np

from fasterce.search.distance import Distance
from fasterce.search.pool import Pool
from fasterce.search.shrink import less_of_one_number, without_one_change

ROW = [3.0, 1.0, 5.0, 7.0]


def test_each_change_is_dropped_in_turn() -> None:
    base = np.array([ROW])
    codes = np.array([[[6.0, 1.0, 8.0, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    found = without_one_change(codes, base)[0].tolist()
    assert found == [[3.0, 1.0, 8.0, 7.0], [6.0, 1.0, 5.0, 7.0], ROW, ROW]


def test_no_candidates_no_rows() -> None:
    assert without_one_change(np.zeros((2, 0, 4)), np.zeros((2, 4))).shape == (2, 0, 4)
    assert without_one_change(np.zeros((0, 3, 4)), np.zeros((0, 4))).shape == (0, 0, 4)


def shrunk(toys: Any, margin: float, failed: list[tuple[float, float]]) -> np.ndarray:
    """Values tried for the first number, which was raised from 3 to 9; `failed` are values known to fail, with margins."""
    codec, _ = toys.codec(toys.frame())
    domain = toys.domain(codec, ROW)
    codes = np.array([[[9.0, *ROW[1:]]]])
    best = Pool.start(
        codes, np.array([[True]]), domain, Distance.gower(codec.profile.span, codec.numeric), lead=np.array([[margin]])
    )
    known = np.array([[[value, *ROW[1:]] for value, _ in failed]]).reshape(1, len(failed), 4)
    margins = np.array([[margin for _, margin in failed]]).reshape(1, len(failed))
    found = less_of_one_number(
        best, known, margins, np.array([-1.0]), domain, Distance.gower(codec.profile.span, codec.numeric)
    )[0]
    assert (found[:, 1:] == ROW[1:]).all()
    return np.unique(found[found[:, 0] != 3.0, 0])


def test_values_lie_between_the_candidate_and_the_query(toys: Any) -> None:
    values = shrunk(toys, 1.0, [])
    assert len(values) >= 4
    assert ((values > 3.0) & (values < 9.0)).all()


def test_a_value_is_tried_where_margins_interpolate_to_zero(toys: Any) -> None:
    """The margin falls from 1 at 9 to -1 at 3, the query."""
    assert np.abs(shrunk(toys, 1.0, []) - 6.0).min() < 0.2


def test_values_known_to_fail_bound_the_search(toys: Any) -> None:
    values = shrunk(toys, 1.0, [(5.0, -1.0), (8.0, -0.25)])
    assert values.min() > 8.0
    assert np.abs(values - 8.2).min() < 0.1


def test_a_failure_beyond_the_candidate_says_nothing(toys: Any) -> None:
    np.testing.assert_array_equal(shrunk(toys, 1.0, [(9.5, -1.0)]), shrunk(toys, 1.0, []))


def test_a_failure_with_a_larger_other_change_bounds_the_search_too(toys: Any) -> None:
    """Raising the third number farther did not help at 8, so 8 fails with the smaller change as well."""
    codec, _ = toys.codec(toys.frame())
    domain, distance = toys.domain(codec, ROW), Distance.gower(codec.profile.span, codec.numeric)
    codes = np.array([[[9.0, 1.0, 8.0, 7.0]]])
    best = Pool.start(codes, np.array([[True]]), domain, distance, lead=np.array([[1.0]]))

    def values(other: float) -> np.ndarray:
        failed = np.array([[[8.0, 1.0, other, 7.0]]])
        found = less_of_one_number(best, failed, np.array([[-0.25]]), np.array([-1.0]), domain, distance)[0]
        return found[(found[:, 0] != 9.0) & (found[:, 0] != 3.0), 0]

    assert values(9.0).min() > 8.0
    assert values(6.0).min() < 8.0
