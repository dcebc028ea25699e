"""How realism is measured: known rows near a query, copies of them, features that matter."""

from dataclasses import replace
from typing import Any

import numpy as np

from fasterce.search.propose import nearest_examples
from fasterce.search.realism import Realism

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def test_implausibility_is_the_mean_distance_to_the_nearest_known_rows(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    realism = Realism.of(context)
    candidates = np.repeat(context.domain.row[:, None], 3, axis=1)
    candidates[:, 1, 0] += 0.5
    candidates[:, 2, [1, 3]] = [3.0, 8.0]
    away = context.state.distance.total(candidates[:, :, None], realism.known[:, None])
    count = context.config.realistic_neighbours
    expected = np.sort(away, axis=2)[:, :, :count].mean(axis=2)
    changes = np.array([0, 1, 2]) * context.config.realistic_change
    np.testing.assert_allclose(realism.implausibility(candidates), expected + changes)


def test_known_rows_have_the_target_and_are_the_nearest(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    known = Realism.of(context).known
    np.testing.assert_array_equal(known, nearest_examples(context, context.config.realistic_examples))
    for rows, target in zip(known, context.evaluator.target, strict=True):
        assert (model.label(rows) == target).all()


def test_the_query_is_no_known_row_where_there_are_few(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    state = context.state
    few = np.concatenate([np.flatnonzero(state.example_classes == label)[:2] for label in (0, 1)])
    state = replace(state, examples=state.examples[few], example_classes=state.example_classes[few])
    known = Realism.of(replace(context, state=state)).known
    assert not (known == context.domain.row[:, None]).all(axis=2).any()


def test_the_weight_follows_the_dial_and_the_units_of_the_distance(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    plain = Realism.of(context).weight
    np.testing.assert_allclose(plain, context.config.realistic_weight)
    doubled = context.state.distance.times(dict.fromkeys(range(4), 2.0))
    np.testing.assert_allclose(Realism.of(replace(context, priced=doubled)).weight, 2 * plain)
    np.testing.assert_allclose(Realism.of(replace(context, realism=0.75)).weight, 3 * plain)


def test_copies_have_the_changed_values_of_a_known_row(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    realism = Realism.of(context)
    row = context.domain.row[:, None]
    whole = realism.known[:, :1]
    partly = np.where(np.arange(4) == 0, whole, row)
    beside = np.where(np.arange(4) == 0, whole + 0.01, whole)
    np.testing.assert_array_equal(realism.copies(np.concatenate([whole, partly, beside], axis=1)), [[True, True, False]] * 2)
    assert not Realism.of(replace(context, realism=1.0)).copies(whole).any()


def test_numbers_are_moved_back_toward_the_query(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    realism = Realism.of(context)
    moved = realism.moved_back(realism.known)
    plain, row = context.state.distance, context.domain.row[:, None]
    assert (plain.total(moved, row) < plain.total(realism.known, row)).all()
    np.testing.assert_array_equal(moved[:, :, 1], realism.known[:, :, 1])


def test_unread_features_change_only_with_one_they_are_tied_to(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    state = replace(context.state, unread=np.array([False, True, False, True]), groups=np.array([0, 1, 0 + 2, 0]))
    realism = Realism.of(replace(context, state=state))
    codes = context.domain.row[:, None] + 1.0
    np.testing.assert_array_equal(realism.matters_only(codes), np.where([True, False, True, True], codes, codes - 1.0))
    alone = np.where(np.arange(4) == 3, codes, codes - 1.0)
    np.testing.assert_array_equal(realism.matters_only(alone), codes - 1.0)


def test_improvement_lowers_the_objective_and_keeps_the_target(toys: Any) -> None:
    parts = {0: lambda knots: knots, 2: lambda knots: knots}
    context, _ = toys.scene(lead, ROWS, copy=lambda codec: toys.copy_of(codec, parts, -12.0))
    realism = Realism.of(context)
    starts = [realism.legal[:, :1], realism.legal[:, 5:8]]
    codes, margin = realism.improve(starts)
    assert (margin > 0).all()
    assert context.domain.contains(codes).all()
    np.testing.assert_allclose(realism.margins(codes) + realism.shift[:, None], margin, atol=1e-9)

    def objective(candidates: np.ndarray) -> np.ndarray:
        distance = context.distance.total(candidates, context.domain.row[:, None])
        return distance + realism.weight[:, None] * realism.implausibility(candidates)

    before = objective(np.concatenate([part[:, :1] for part in starts], axis=1))
    assert (objective(codes) <= before + 1e-9).all()
    assert (objective(codes) < before - 1e-3).any()
