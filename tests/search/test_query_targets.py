"""What counts as the wanted answer, and margins whose sign is the model's word."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.config import Config, SearchConfig
from fasterce.models.predictions import Predictions
from fasterce.search.query_targets import Named, Other, QueryTargets, Within

SEEDS = st.integers(0, 2**32 - 1)


def every(targets: QueryTargets) -> np.ndarray:
    return np.arange(len(targets.target))


def within(of: list[int], low: float, high: float, target: Any = None) -> Within:
    rows = len(of)
    wanted = np.array(of if target is None else target)
    return Within(wanted, of=np.array(of), low=np.full(rows, low), high=np.full(rows, high))


def chances(*rows: list[float]) -> np.ndarray:
    return np.log(np.array(rows))


def random_goal(rng: np.random.Generator, rows: int, classes: int) -> QueryTargets:
    target = rng.integers(classes, size=rows)
    kind = rng.integers(3)
    if kind == 0:
        return Named(target)
    if kind == 1:
        return Other(target, own=(target + 1) % classes)
    low = rng.normal(size=rows)
    return Within(target, of=rng.integers(classes, size=rows), low=low, high=low + rng.gamma(1.0, size=rows))


# -- a class ---------------------------------------------------------------------------------------------------------------


def test_margins_grade_by_the_lead_over_the_next_best(toys: Any) -> None:
    scores = np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    targets = Named(np.array([1, 2, 0]))
    found = targets.margins(Predictions(np.array([1, 1, 0]), scores), every(targets))
    np.testing.assert_allclose(found, [0.2, -0.2, 0.8])


def test_the_class_decides_where_scores_tie_or_disagree(toys: Any) -> None:
    scores = np.array([[0.5, 0.5], [0.5, 0.5], [0.4, 0.6], [0.5, 0.5 + 1e-13]])
    targets = Named(np.array([1, 1, 1, 1]))
    found = targets.margins(Predictions(np.array([1, 0, 0, 1]), scores), every(targets))
    np.testing.assert_array_equal(found > 0, [True, False, False, True])
    np.testing.assert_array_equal(found < 0, [False, True, True, False])
    assert np.abs(found).max() < 1e-9


@pytest.mark.parametrize("scores", [None, np.array([[np.nan, np.nan], [0.1, 0.9]])])
@pytest.mark.parametrize("targets", [Named(np.array([1, 1])), Other(np.array([1, 1]), own=np.array([0, 0]))])
def test_rows_the_model_failed_on_are_never_valid(toys: Any, targets: QueryTargets, scores: Any) -> None:
    found = targets.margins(Predictions(np.array([-1, 1]), scores), every(targets))
    assert np.isneginf(found[0])
    assert found[1] > 0


def test_scores_below_the_lowest_count_as_the_lowest(toys: Any) -> None:
    said = Predictions(np.array([0]), np.array([[0.0, -27.6]]))
    targets = Named(np.array([1]))
    assert targets.margins(said, every(targets), lowest=-5.0).tolist() == [-5.0]


# -- any other -------------------------------------------------------------------------------------------------------------


def test_any_other_is_missed_by_the_lead_of_ones_own_class(toys: Any) -> None:
    scores = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.2, 0.3, 0.5]])
    targets = Other(np.array([1, 1, 1]), own=np.array([0, 0, 0]))
    found = targets.margins(Predictions(np.array([0, 1, 2]), scores), every(targets))
    np.testing.assert_allclose(found, [-0.3, 0.3, 0.3])
    assert targets.reached(Predictions(np.array([0, 1, 2])), every(targets)).tolist() == [False, True, True]


def test_any_other_welcomes_every_class_but_its_own() -> None:
    targets = Other(np.array([1, 0]), own=np.array([0, 2]))
    assert targets.welcome(np.array([0, 1, 2])).tolist() == [[False, True, True], [True, True, False]]
    assert Named(np.array([1, 0])).welcome(np.array([0, 1, 2])).tolist() == [[False, True, False], [True, False, False]]


# -- a number within bounds ------------------------------------------------------------------------------------------------


def test_within_bounds_is_a_chance_of_the_class_against_all_others_together(toys: Any) -> None:
    targets = within([2, 2, 2, 2], np.log(0.5 / 0.5), np.log(0.75 / 0.25))
    scores = chances([0.3, 0.3, 0.4], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8], [0.25, 0.25, 0.5])
    said = Predictions(np.array([2, 2, 2, 2]), scores)
    assert targets.reached(said, every(targets)).tolist() == [False, True, False, True]
    found = targets.margins(said, every(targets))
    np.testing.assert_allclose(found[:3], [np.log(0.4 / 0.6), np.log(1.5), np.log(3) - np.log(4)], atol=1e-9)
    assert 0 < found[3] < 1e-9, "on the bound itself is inside"


def test_an_open_end_is_no_bound(toys: Any) -> None:
    said = Predictions(np.array([1, 0]), np.array([[-500.0, 500.0], [500.0, -500.0]]))
    at_least, at_most = within([1, 1], 3.0, np.inf), within([1, 1], -np.inf, 3.0)
    assert at_least.reached(said, every(at_least)).tolist() == [True, False]
    assert at_most.reached(said, every(at_most)).tolist() == [False, True]


def test_a_failed_row_is_within_no_bounds(toys: Any) -> None:
    targets = within([1, 1], -1.0, 1.0)
    said = Predictions(np.array([-1, 1]), np.array([[np.nan, np.nan], [0.0, 0.1]]))
    assert targets.reached(said, every(targets)).tolist() == [False, True]
    assert np.isneginf(targets.margins(said, every(targets))[0])


# -- all of them -----------------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(2, 5), st.integers(1, 40))
def test_the_sign_of_a_margin_is_whether_it_is_reached(seed: int, classes: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    targets = random_goal(rng, rows, classes)
    scores = rng.normal(size=(rows, classes)).round(1)
    said = Predictions(scores.argmax(axis=1), scores)
    margin = targets.margins(said, every(targets))
    np.testing.assert_array_equal(margin > 0, targets.reached(said, every(targets)))
    assert (margin != 0).all()


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 5))
def test_rows_do_not_depend_on_each_other(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    targets = random_goal(rng, 12, classes).demanding(rng.gamma(1.0, size=12))
    scores = rng.normal(size=(30, classes))
    rows = rng.integers(12, size=30)
    together = targets.margins(Predictions(scores.argmax(axis=1), scores), rows)
    outputs = rng.normal(size=(12, 7, 1 if classes == 2 else classes)).astype(np.float32)
    expected = targets.expected(outputs)
    for k in range(30):
        alone = targets.take(rows[k : k + 1]).margins(
            Predictions(scores[k : k + 1].argmax(axis=1), scores[k : k + 1]), np.array([0])
        )
        assert alone[0] == together[k]
    for i in range(12):
        np.testing.assert_array_equal(targets.take(np.array([i])).expected(outputs[i : i + 1])[0], expected[i])


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 5))
def test_what_the_surrogate_expects_is_graded_as_the_models_own_scores_are(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    targets = random_goal(rng, 20, classes)
    scores = rng.normal(size=(20, classes)).astype(np.float32)
    outputs = (scores[:, 1:] - scores[:, :1])[:, None] if classes == 2 else scores[:, None]
    told = Predictions(scores.argmax(axis=1), scores.astype(np.float64))
    np.testing.assert_allclose(targets.expected(outputs)[:, 0], targets.margins(told, every(targets)), atol=1e-5)


def test_a_demanding_goal_wants_so_much_more(toys: Any) -> None:
    scores = np.array([[0.0, 0.3], [0.0, 0.7]])
    targets = Named(np.array([1, 1]))
    more, said = targets.demanding(np.array([0.5, 0.5])), Predictions(np.array([1, 1]), scores)
    np.testing.assert_allclose(more.margins(said, every(more)), [-0.2, 0.2])
    np.testing.assert_allclose(more.expected(np.array([[[0.3]], [[0.7]]], dtype=np.float32))[:, 0], [-0.2, 0.2], atol=1e-6)
    assert more.reached(said, every(more)).all(), "the model says it all the same"


# -- where to look ---------------------------------------------------------------------------------------------------------


class Known:
    """Five examples of three classes, each class with a hyperplane of its own; no copy."""

    example_classes = np.array([0, 1, 2, 1, 0])
    example_outputs: Any = None

    class hyperplanes:
        @staticmethod
        def of_class(classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.stack([classes + 1.0, np.zeros(len(classes))], axis=1), classes + 10.0

    @classmethod
    def planes_of(cls, latent: np.ndarray, classes: np.ndarray, regional: bool) -> tuple[np.ndarray, np.ndarray]:
        return cls.hyperplanes.of_class(classes)


def seen(targets: QueryTargets, state: Any = Known) -> list[tuple[list[int], list[int]]]:
    parts = [(part.rows.tolist(), part.examples.tolist()) for part in targets.parts(state)]
    assert sorted(row for rows, _ in parts for row in rows) == every(targets).tolist(), "every row is in one part"
    return parts


def test_examples_are_those_that_have_what_is_wanted() -> None:
    assert seen(Named(np.array([1, 0, 1]))) == [([1], [0, 4]), ([0, 2], [1, 3])]
    assert seen(Other(np.array([1, 1]), own=np.array([0, 2]))) == [([0], [1, 2, 3]), ([1], [0, 1, 3, 4])]


def test_examples_within_bounds_are_those_the_surrogate_expects_there() -> None:
    class TwoExamples(Known):
        config = Config(search=SearchConfig(min_interval_examples=2))
        example_outputs = np.array([[-2.0], [0.5], [1.5], [0.9], [3.0]], dtype=np.float32)

    class ThreeExamples(TwoExamples):
        config = Config(search=SearchConfig(min_interval_examples=3))

    targets = Within(np.array([1, 0]), of=np.array([1, 1]), low=np.array([0.0, 1.0]), high=np.array([1.0, np.inf]))
    assert sorted(seen(targets, TwoExamples)) == [([0], [1, 3]), ([1], [2, 4])]
    assert sorted(seen(targets, ThreeExamples)) == [([0], [1, 2, 3]), ([1], [2, 3, 4])], (
        "and where these are few, those next to them"
    )
    assert sorted(seen(targets)) == [([0], [1, 3]), ([1], [0, 4])], "without a copy, those of the class to head for"


def test_away_from_ones_own_class_is_the_other_side_of_its_hyperplane() -> None:
    targets, latent = Other(np.array([1, 0]), own=np.array([0, 2])), np.zeros((2, 2))
    normals, offsets = targets.planes(Known, latent, regional=False)  # type: ignore[arg-type]
    np.testing.assert_array_equal(normals[:, 0], [-1.0, -3.0])
    np.testing.assert_array_equal(offsets, [-10.0, -12.0])
    normals, offsets = Named(np.array([1, 0])).planes(Known, latent, regional=False)  # type: ignore[arg-type]
    np.testing.assert_array_equal(normals[:, 0], [2.0, 1.0])
