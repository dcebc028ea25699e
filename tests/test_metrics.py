"""Scores of anyone's counterfactuals, against values worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema, metrics

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
    """Median absolute deviations: a 2, n 1; two numeric and two categorical of four features."""
    expected = [0.0, 2 / 4 * 2.5 + 2 / 4 * 1 / 2, 2 / 4 * np.sqrt(5**2 + 2**2) + 2 / 4 * 2 / 2]
    np.testing.assert_allclose(metrics.proximity(scale, ROWS, AFTER), expected)


def test_a_feature_without_deviation_is_divided_by_its_standard_deviation() -> None:
    training = pd.DataFrame({"rare": [0.0] * 9 + [10.0]})
    found = metrics.proximity(metrics.Scale.of(training), training.iloc[:1], training.iloc[9:])
    np.testing.assert_allclose(found, [10 / 3])


def test_validity_calls_the_model(scale: metrics.Scale) -> None:
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


def test_nn_ratio_is_nan_where_every_real_row_has_a_duplicate(scale: metrics.Scale) -> None:
    duplicates = metrics.Peers.of(older, scale, pd.concat([TRAINING, TRAINING]), "yes")
    assert np.isnan(metrics.nn_ratio(duplicates, AFTER))


def test_inlier_tells_the_crowd_from_the_stray() -> None:
    generator = np.random.default_rng(0)
    crowd = pd.DataFrame({"a": generator.normal(size=300), "b": generator.normal(size=300), "c": ["x"] * 299 + ["y"]})
    peers = metrics.Peers.of(lambda frame: np.zeros(len(frame)), metrics.Scale.of(crowd), crowd, 0.0)
    queries = pd.DataFrame({"a": [0.0, 40.0], "b": [0.0, -40.0], "c": ["x", "y"]})
    assert metrics.inlier(peers, queries).tolist() == [True, False]


def test_filling_and_emptying_count_as_a_changed_category() -> None:
    training = TRAINING.assign(a=[0.0, 2.0, np.nan, 6.0, 10.0], c=["x", "x", None, "y", "z"])
    scale = metrics.Scale.of(training)
    before = pd.DataFrame({"a": [np.nan, 2.0, np.nan], "n": [2, 2, 2], "c": ["x", None, None], "d": list("ppp")})
    after = pd.DataFrame({"a": [6.0, np.nan, np.nan], "n": [2, 2, 2], "c": ["x", "y", None], "d": list("ppp")})
    assert metrics.features_changed(scale, before, after).tolist() == [1, 2, 0]
    np.testing.assert_allclose(metrics.gower_l1(scale, before, after), [1.0, 2.0, 0.0])
    np.testing.assert_allclose(metrics.proximity(scale, before, after), [1 / 4, 2 / 4, 0.0])
    apart = np.abs(scale.embed(before) - scale.embed(after)).sum(axis=1)
    assert apart[2] == 0.0
    assert (apart[:2] >= [1.0, 2.0]).all()


def test_norms_are_of_shares_of_the_range(scale: metrics.Scale) -> None:
    found = metrics.norms(scale, ROWS, AFTER)
    np.testing.assert_allclose(found["l0"], [0, 2, 4])
    np.testing.assert_allclose(found["l1"], metrics.gower_l1(scale, ROWS, AFTER))
    np.testing.assert_allclose(found["l2"], [0.0, np.sqrt(0.5**2 + 1), np.sqrt(1 + 0.5**2 + 2)])
    np.testing.assert_allclose(found["linf"], [0.0, 1.0, 1.0])


def test_the_sum_of_shares_is_gower_with_gaps_too() -> None:
    training = TRAINING.assign(a=[0.0, 2.0, np.nan, 6.0, 10.0])
    scale = metrics.Scale.of(training)
    before, after = training.iloc[[2, 1, 3]], training.iloc[[1, 2, 4]]
    np.testing.assert_allclose(scale.shares(before, after).sum(axis=1), metrics.gower_l1(scale, before, after))


def test_ynn_counts_neighbours_of_all_classes(scale: metrics.Scale) -> None:
    """Nearest to a=3, n=2, c=y, d=p are the third row (0.1), the fourth (0.3 + 0.25) and the second (0.1 + 0.25 + 1)."""
    around = metrics.Neighbourhood.of(older, scale, TRAINING, "yes")
    queries = pd.DataFrame({"a": [3.0], "n": [2], "c": ["y"], "d": ["p"]})
    assert metrics.ynn(around, queries, voters=1).tolist() == [1.0]
    np.testing.assert_allclose(metrics.ynn(around, queries, voters=3), [2 / 3])
    np.testing.assert_allclose(metrics.ynn(around, queries, voters=50), [3 / 5])


def test_violations_count_frozen_directions_ranges_and_constraints() -> None:
    schema = Schema.infer(TRAINING, immutable=["c"], increasing=["n"], ranges={"a": (0.0, 20.0)})
    scale = metrics.Scale.of(TRAINING, schema)
    before = pd.DataFrame({"a": [4.0] * 4, "n": [2] * 4, "c": ["x"] * 4, "d": ["p"] * 4})
    after = before.assign(n=[3, 1, 6, 2], c=["x", "y", "x", "x"], a=[20.0, 4.0, 4.0, 12.0])
    assert metrics.violations(scale, before, after).tolist() == [0, 2, 1, 0]
    assert metrics.violations(scale, before, after, permitted_range={"a": (0, 10)}).tolist() == [1, 2, 1, 1]
    assert metrics.violations(scale, before, after, features_to_vary=["n"]).tolist() == [1, 3, 1, 1]


def above_five(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["a"] > 5, "yes", "no")


@pytest.fixture
def finer() -> metrics.Scale:
    """With a number that is not whole, whose deviation is 3.4."""
    return metrics.Scale.of(TRAINING.assign(a=[0.0, 2.0, 4.5, 6.0, 10.0]))


def test_robustness_is_the_share_of_noise_samples_that_keep_the_prediction(finer: metrics.Scale) -> None:
    """Half of the samples of a row on the border cross it, one far from it never does."""
    counterfactuals = pd.DataFrame({"a": [5.0001, 9.0, 1.0], "n": [2, 2, 2], "c": list("xxx"), "d": list("ppp")})
    found = metrics.robustness(above_five, finer, counterfactuals, "yes", samples=400)
    assert found[0] == pytest.approx(0.5, abs=0.1)
    assert found[1:].tolist() == [1.0, 0.0]


def test_robustness_of_recourse_adds_noise_only_to_what_changed(finer: metrics.Scale) -> None:
    before = pd.DataFrame({"a": [5.0001, 2.0], "n": [1, 2], "c": list("xx"), "d": list("pp")})
    after = before.assign(a=[5.0001, 5.0001], n=[2, 2])
    found = metrics.robustness(above_five, finer, after, "yes", rows=before, samples=400)
    assert found[0] == 1.0
    assert found[1] == pytest.approx(0.5, abs=0.1)


def test_noise_stays_in_range_and_whole(finer: metrics.Scale) -> None:
    seen: list[pd.DataFrame] = []

    def spy(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return np.array(["yes"] * len(frame))

    metrics.robustness(spy, finer, TRAINING, "yes", size=2.0)
    queries = pd.concat(seen)
    assert queries["a"].between(0.0, 10.0).all()
    assert set(queries["n"]) == {1, 2, 3, 4, 5}
    assert queries["a"].nunique() > 100


def test_robustness_of_nothing_is_nothing(finer: metrics.Scale) -> None:
    assert metrics.robustness(above_five, finer, TRAINING.iloc[:0], "yes").shape == (0,)


def test_diversity_is_the_mean_distance_of_two_counterfactuals(scale: metrics.Scale) -> None:
    """Pairs of the three: 0.2 + 1, 0.4 + 0.25 and 0.2 + 0.25 + 1."""
    counterfactuals = pd.DataFrame({"a": [4.0, 2.0, 0.0], "n": [2, 2, 1], "c": list("xyx"), "d": list("ppp")})
    assert metrics.diversity(scale, counterfactuals) == pytest.approx((1.2 + 0.65 + 1.45) / 3)
    assert np.isnan(metrics.diversity(scale, counterfactuals.iloc[:1]))


def test_agreement_is_what_both_change_of_what_either_does() -> None:
    first = np.array([[True, True, False], [False, False, False], [True, False, False]])
    second = np.array([[True, False, True], [False, False, False], [False, True, False]])
    np.testing.assert_allclose(metrics.agreement(first, second), [1 / 3, 1.0, 0.0])
