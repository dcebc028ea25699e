"""One call for everything, and margins whose sign is the model's word."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fasterce.models.predictions import Predictions
from fasterce.search.evaluator import Candidates, Evaluator, distinct
from fasterce.search.query_targets import Named


def edits(feature: list[int], value: Any, open_: Any) -> Candidates:
    """Candidates that differ from BASE in one feature each."""
    codes = np.repeat(BASE[:, None, :], len(feature), axis=1)
    codes[:, np.arange(len(feature)), feature] = value
    return Candidates(codes, np.array(open_))


BASE = np.array([[1.0, 0.0], [5.0, 2.0]])


def test_one_call_for_several_groups(toys: Any) -> None:
    model = toys.Model(lambda codes: codes[:, 0] - 3)
    evaluator = Evaluator(model, Named(np.array([1, 0])), True)
    some = Candidates(np.array([[[4.0, 0.0], [2.0, 0.0]], [[4.0, 0.0], [2.0, 1.0]]]), np.array([[True, True], [True, False]]))
    changed = edits([0, 1], [[9.0, 1.0], [2.0, 1.0]], np.array([[True, True], [True, True]]))
    first, second = evaluator.evaluate(some, changed)
    assert len(model.model_rows) == 1
    np.testing.assert_allclose(first.margin, [[1.0, -1.0], [-1.0, -np.inf]])
    np.testing.assert_array_equal(first.valid, [[True, False], [False, False]])
    np.testing.assert_allclose(second.margin, [[6.0, -2.0], [1.0, -2.0]])
    np.testing.assert_array_equal(second.valid, [[True, False], [True, False]])


def test_identical_candidates_are_evaluated_once(toys: Any) -> None:
    model = toys.Model(lambda codes: codes[:, 0] - 3)
    evaluator = Evaluator(model, Named(np.array([1, 0])), True)
    same = Candidates(np.tile([4.0, 0.0], (2, 3, 1)), np.ones((2, 3), dtype=bool))
    changed = edits([0], [[4.0], [4.0]], np.ones((2, 1), dtype=bool))
    first, second = evaluator.evaluate(same, changed)
    assert sorted(map(tuple, model.model_rows[0])) == [(4.0, 0.0), (4.0, 2.0)]
    np.testing.assert_allclose(first.margin, [[1.0] * 3, [-1.0] * 3])
    np.testing.assert_allclose(second.margin, [[1.0], [-1.0]])


def test_scores_of_candidates_that_reach_the_target_are_kept_once(toys: Any) -> None:
    model = toys.Model(lambda codes: codes[:, 0] - 3)
    evaluator = Evaluator(model, Named(np.array([1, 0])), True)
    changed = edits([0, 1], [[9.0, 1.0], [2.0, 1.0]], np.ones((2, 2), dtype=bool))
    evaluator.kept_scores = []
    evaluator.take(np.array([0, 1])).evaluate(changed)
    reaching = np.array([[2.0, 2.0], [9.0, 0.0]])
    found = evaluator.pop_scores(reaching)
    assert found is not None
    np.testing.assert_allclose(found, model(reaching).scores)
    assert evaluator.pop_scores(reaching) is None
    evaluator.evaluate(changed)
    assert evaluator.pop_scores(np.array([[9.0, 0.0], [1.0, 1.0]])) is None


def test_nothing_open_asks_nothing(toys: Any) -> None:
    model = toys.Model(lambda codes: codes[:, 0])
    evaluator = Evaluator(model, Named(np.array([1, 1])), True)
    closed = Candidates(np.zeros((2, 3, 2)), np.zeros((2, 3), dtype=bool))
    none = Candidates(np.zeros((2, 0, 2)), np.zeros((2, 0), dtype=bool))
    first, second = evaluator.evaluate(closed, none)
    assert model.model_rows == []
    assert not first.valid.any()
    assert np.isneginf(first.margin).all()
    assert second.valid.shape == (2, 0)


def test_labels_alone_give_plus_and_minus_one(toys: Any) -> None:
    evaluator = Evaluator(toys.Model(lambda codes: codes[:, 0] - 3, graded=False), Named(np.array([1, 0])), False)
    asked = Candidates(np.array([[[4.0, 0.0]], [[4.0, 0.0]]]), np.ones((2, 1), dtype=bool))
    (evaluation,) = evaluator.evaluate(asked)
    np.testing.assert_array_equal(evaluation.margin, [[1.0], [-1.0]])


def test_a_failed_candidate_does_not_spoil_its_neighbours(toys: Any) -> None:
    def ask(codes: np.ndarray) -> Any:
        failed = codes[:, 0] == 7
        scores = np.where(failed[:, None], np.nan, np.stack([-codes[:, 0], codes[:, 0]], axis=1))
        return Predictions(np.where(failed, -1, 1), scores)

    asked = Candidates(np.array([[[7.0, 0.0], [2.0, 0.0], [7.0, 0.0]]]), np.ones((1, 3), dtype=bool))
    (evaluation,) = Evaluator(ask, Named(np.array([1])), True).evaluate(asked)
    np.testing.assert_array_equal(evaluation.valid, [[False, True, False]])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 12))
def test_distinct_finds_exactly_the_distinct_rows(seed: int, rows: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    codes = rng.integers(-2, 3, size=(rows, features)).astype(float)
    if kind == 1:
        codes = codes * 0.1 + rng.integers(3, size=(rows, 1)) * 1e-12
    if kind == 2:
        codes = codes * 10.0 ** rng.integers(-200, 200, size=features)
    codes = np.where((codes == 0) & (rng.random(codes.shape) < 0.5), -0.0, codes)
    once, back = distinct(codes)
    expected = np.unique(codes + 0.0, axis=0)
    assert len(once) == len(expected)
    np.testing.assert_array_equal(codes[once][back], codes)
    np.testing.assert_array_equal(np.unique(codes[once] + 0.0, axis=0), expected)


def test_negative_zero_is_zero() -> None:
    once, back = distinct(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert len(once) == 1
    np.testing.assert_array_equal(back, [0, 0])


def test_distinct_on_a_grid_of_small_whole_numbers() -> None:
    """Every combination of seven values in six columns: a fingerprint that only adds up would collide here."""
    grid = np.stack(np.meshgrid(*[np.arange(7.0)] * 6), axis=-1).reshape(-1, 6)
    assert len(distinct(grid)[0]) == 7**6


def test_distinct_does_not_depend_on_memory_layout() -> None:
    codes = np.random.default_rng(0).integers(0, 3, size=(100, 4)).astype(float)
    np.testing.assert_array_equal(distinct(np.asfortranarray(codes))[1], distinct(codes)[1])
    np.testing.assert_array_equal(distinct(np.repeat(codes, 2, axis=1)[:, ::2])[1], distinct(codes)[1])
