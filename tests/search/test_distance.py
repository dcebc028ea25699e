"""The price of a change."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.search.distance import Distance

GOWER = Distance.gower(np.array([10.0, 3.0, 0.5]), np.array([0, 2]))


def test_range_shares_and_one_for_a_category() -> None:
    row = np.array([2.0, 1.0, 0.5])
    np.testing.assert_allclose(GOWER.parts(np.array([7.0, 3.0, 0.25]), row), [0.5, 1.0, 0.5])
    assert GOWER.total(np.array([7.0, 3.0, 0.25]), row) == 2.0
    assert GOWER.total(row, row) == 0.0
    assert GOWER.total(np.array([2.0, 2.0, 0.5]), row) == GOWER.total(np.array([2.0, 0.0, 0.5]), row) == 1.0


def test_rows_broadcast_against_candidates() -> None:
    rows = np.array([[0.0, 0.0, 0.0], [10.0, 1.0, 0.5]])
    candidates = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[10.0, 1.0, 0.5], [0.0, 2.0, 0.0]]])
    np.testing.assert_allclose(GOWER.total(candidates, rows[:, None, :]), [[0.1, 1.0], [0.0, 3.0]])


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_single_changes_cost_what_the_whole_row_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(0, 10, 4), rng.integers(3, size=4), rng.uniform(0, 0.5, 4)])
    feature = rng.integers(3, size=7)
    value = np.where(feature == 1, rng.integers(3, size=(4, 7)), rng.uniform(0, 10, size=(4, 7)))
    found = GOWER.single(feature, value, rows)
    for i in range(4):
        for s in range(7):
            changed = rows[i].copy()
            changed[feature[s]] = value[i, s]
            assert found[i, s] == GOWER.total(changed, rows[i])


def test_ties_are_ties() -> None:
    """Two ways of writing the same distance differ in the last bit, and must not differ in rank."""
    distance = Distance.gower(np.array([1.0, 1.0, 1.0]), np.arange(3))
    zero = np.zeros(3)
    one, two = distance.total(np.array([0.1, 0.2, 0.0]), zero), distance.total(np.array([0.3, 0.0, 0.0]), zero)
    assert 0.1 + 0.2 != 0.3
    assert one == two
