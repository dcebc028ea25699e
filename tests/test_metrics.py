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


def older(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["a"] >= 4, "yes", "no")


@pytest.fixture
def peers(scale: metrics.Scale) -> metrics.Peers:
    """Three rows say yes, at a distance of 0.2 + 0.25 (first, second) and 0.4 + 0.5 + 2 (second, third)."""
    return metrics.Peers.of(older, scale, TRAINING, "yes")


def test_embedding_keeps_gower_distances(scale: metrics.Scale) -> None:
    between = np.abs(scale.embed(ROWS) - scale.embed(AFTER)).sum(axis=1)
    np.testing.assert_allclose(between, metrics.gower_l1(scale, ROWS, AFTER))


def test_usual_distance_leaves_the_row_itself_out(peers: metrics.Peers) -> None:
    assert len(peers.embedded) == 3
    assert peers.usual_distance == pytest.approx((0.45 + 0.45 + 2.9) / 3)


def test_nn_ratio_compares_with_real_rows(peers: metrics.Peers) -> None:
    beside = TRAINING.iloc[[2, 4]].assign(a=[5.0, 10.0])
    assert metrics.nn_ratio(peers, beside) == pytest.approx((0.1 + 0) / 2 / peers.usual_distance)


def test_nn_ratio_of_real_rows_is_zero_as_each_is_its_own_neighbour(peers: metrics.Peers) -> None:
    assert metrics.nn_ratio(peers, TRAINING.iloc[2:]) == 0


def test_nn_ratio_is_not_a_number_where_every_real_row_has_a_twin(scale: metrics.Scale) -> None:
    twins = metrics.Peers.of(older, scale, pd.concat([TRAINING, TRAINING]), "yes")
    assert np.isnan(metrics.nn_ratio(twins, AFTER))


def test_inlier_tells_the_crowd_from_the_stray() -> None:
    generator = np.random.default_rng(0)
    crowd = pd.DataFrame({"a": generator.normal(size=300), "b": generator.normal(size=300), "c": ["x"] * 299 + ["y"]})
    peers = metrics.Peers.of(lambda frame: np.zeros(len(frame)), metrics.Scale.of(crowd), crowd, 0.0)
    asked = pd.DataFrame({"a": [0.0, 40.0], "b": [0.0, -40.0], "c": ["x", "y"]})
    assert metrics.inlier(peers, asked).tolist() == [True, False]


def test_filling_and_emptying_count_as_a_changed_category() -> None:
    training = TRAINING.assign(a=[0.0, 2.0, np.nan, 6.0, 10.0], c=["x", "x", None, "y", "z"])
    scale = metrics.Scale.of(training)
    before = pd.DataFrame({"a": [np.nan, 2.0, np.nan], "n": [2, 2, 2], "c": ["x", None, None], "d": list("ppp")})
    after = pd.DataFrame({"a": [6.0, np.nan, np.nan], "n": [2, 2, 2], "c": ["x", "y", None], "d": list("ppp")})
    assert metrics.features_changed(scale, before, after).tolist() == [1, 2, 0]
    np.testing.assert_allclose(metrics.gower_l1(scale, before, after), [1.0, 2.0, 0.0])
    np.testing.assert_allclose(metrics.proximity(scale, before, after), [1 / 2, 2 / 2, 0.0])
    apart = np.abs(scale.embed(before) - scale.embed(after)).sum(axis=1)
    assert apart[2] == 0.0
    assert (apart[:2] >= [1.0, 2.0]).all()
