"""All combinations of the values a query may take."""

import numpy as np

from fasterce.search.proof import combinations


def test_combinations_of_more_features_than_an_array_has_dimensions() -> None:
    found = combinations([np.array([0.0, 1.0]), *[np.zeros(1)] * 70, np.array([2.0, 3.0, 4.0])])
    assert found.shape == (6, 72)
    np.testing.assert_array_equal(found[:, [0, -1]], [[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]])
