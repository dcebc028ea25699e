"""Candidates without one of their changes."""

import numpy as np

from fasterce.search.shrink import without_one_change

ROW = [3.0, 1.0, 5.0, 7.0]


def test_each_change_is_dropped_in_turn() -> None:
    base = np.array([ROW])
    codes = np.array([[[6.0, 1.0, 8.0, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    found = without_one_change(codes, base)[0].tolist()
    assert found == [[3.0, 1.0, 8.0, 7.0], [6.0, 1.0, 5.0, 7.0], ROW, ROW]


def test_no_candidates_no_rows() -> None:
    assert without_one_change(np.zeros((2, 0, 4)), np.zeros((2, 4))).shape == (2, 0, 4)
    assert without_one_change(np.zeros((0, 3, 4)), np.zeros((0, 4))).shape == (0, 0, 4)
