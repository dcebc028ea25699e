"""Scores of anyone's counterfactuals, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from fasterce import metrics

TRAINING = pd.DataFrame({"a": [0.0, 2.0, 4.0, 6.0, 10.0], "n": [1, 1, 2, 3, 5], "c": list("xxyyz"), "d": list("ppppq")})
ROWS = pd.DataFrame({"a": [4.0, 2.0, 0.0], "n": [2, 2, 1], "c": list("xyz"), "d": list("ppp")})
AFTER = pd.DataFrame({"a": [4.0, 7.0, 10.0], "n": [2, 2, 3], "c": list("xyx"), "d": list("pqq")})


@pytest.fixture
def scale() -> metrics.Scale:
    return metrics.Scale.of(TRAINING)


def test_features_changed_counts_cells(scale: metrics.Scale) -> None:
    assert metrics.features_changed(scale, ROWS, AFTER).tolist() == [0, 2, 4]


def test_gower_is_share_of_range_and_one_for_a_category(scale: metrics.Scale) -> None:
    np.testing.assert_allclose(metrics.gower_l1(scale, ROWS, AFTER), [0.0, 0.5 + 1, 1 + 0.5 + 2])


def test_proximity_is_the_papers(scale: metrics.Scale) -> None:
    """Median absolute deviations: a 2, n 1; two continuous and two categorical features."""
    expected = [0.0, np.sqrt(2.5**2) / 2 + 1 / 2, np.sqrt(5**2 + 2**2) / 2 + 2 / 2]
    np.testing.assert_allclose(metrics.proximity(scale, ROWS, AFTER), expected)


def test_a_feature_without_deviation_is_divided_by_its_standard_deviation() -> None:
    training = pd.DataFrame({"rare": [0.0] * 9 + [10.0]})
    found = metrics.proximity(metrics.Scale.of(training), training.iloc[:1], training.iloc[9:])
    np.testing.assert_allclose(found, [10 / 3])


def test_validity_asks_the_model(scale: metrics.Scale) -> None:
    valid = metrics.validity(lambda frame: frame["a"] > 5, scale, ROWS, AFTER)
    assert valid.tolist() == [False, True, True]
