"""Going on beyond the boundary by a margin."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.constraints.compile.domain import MissingValues
from fasterce.data.schema import MISSING
from fasterce.search.margin import beyond
from fasterce.search.pool import Pool
from fasterce.search.rounds import run_rounds

ROW = [3.0, 1.0, 5.0, 7.0]


def push(toys: Any, lead: Any, codes: Any, margin: float, row: Any = ROW, **constraints: Any) -> tuple[Any, Pool, Pool]:
    context, model = toys.scene(lead, row, margin=margin, **constraints)
    model.model_rows.clear()
    pool = Pool.start(np.array([codes], dtype=float), np.ones((1, len(codes)), dtype=bool), context.domain, context.distance)
    pools = run_rounds(context.evaluator, [beyond(context, pool)])
    assert pools is not None
    return context, pool, pools[0]


def test_every_changed_number_moves_on_by_margin_deviations(toys: Any) -> None:
    context, before, after = push(toys, lambda codes: codes[:, 0] - 6.0, [[6.01, 1.0, 4.0, 7.0]], 0.5)
    std = context.state.codec.profile.std
    np.testing.assert_allclose(after.codes[0, 0], [6.01 + 0.5 * std[0], 1.0, 4.0 - 0.5 * std[2], 7.0], atol=0.006)
    assert after.cost[0, 0] == pytest.approx(context.distance.total(after.codes[0, 0], context.domain.row[0]))
    assert after.cost[0, 0] > before.cost[0, 0]


def test_no_margin_no_evaluation(toys: Any) -> None:
    context, before, after = push(toys, lambda codes: codes[:, 0] - 6.0, [[6.01, 1.0, 5.0, 7.0]], 0.0)
    assert after is before
    assert context.evaluator.predict.model_rows == []


def test_as_far_as_the_model_agrees(toys: Any) -> None:
    """Valid only from 6 to 7.6: a whole margin of about 2.9 is too far, half of it is not."""
    context, _, after = push(
        toys, lambda codes: np.minimum(codes[:, 0] - 6.0, 7.6 - codes[:, 0]), [[6.01, 1.0, 5.0, 7.0]], 1.0
    )
    std = context.state.codec.profile.std[0]
    assert 0.5 * std < 1.59 < 0.75 * std
    assert after.codes[0, 0, 0] == pytest.approx(6.01 + 0.5 * std, abs=0.006)


def test_where_nothing_farther_flips_the_candidate_stays(toys: Any) -> None:
    _, before, after = push(toys, lambda codes: 0.05 - np.abs(codes[:, 0] - 6.0), [[6.01, 1.0, 5.0, 7.0]], 1.0)
    np.testing.assert_array_equal(after.codes, before.codes)
    np.testing.assert_array_equal(after.cost, before.cost)


def test_categories_stay_and_ranges_hold(toys: Any) -> None:
    _, _, after = push(toys, lambda codes: codes[:, 0] - 6.0, [[9.5, 3.0, 5.0, 7.0], [7.0, 1.0, 5.0, 7.0]], 1.0)
    nearer, farther = after.codes[0]
    np.testing.assert_array_equal(farther, [10.0, 3.0, 5.0, 7.0])
    np.testing.assert_array_equal(nearer[1:], [1.0, 5.0, 7.0])
    assert after.cost[0, 0] < after.cost[0, 1]


def test_invalid_candidates_are_not_evaluated(toys: Any) -> None:
    context, model = toys.scene(lambda codes: codes[:, 0] - 6.0, ROW, margin=1.0)
    pool = Pool.start(np.array([[[5.0, 1.0, 5.0, 7.0]]]), np.array([[False]]), context.domain, context.distance)
    model.model_rows.clear()
    pools = run_rounds(context.evaluator, [beyond(context, pool)])
    assert pools is not None
    after = pools[0]
    assert model.model_rows == []
    assert np.isinf(after.cost[0, 0])


def test_what_did_not_change_is_left_exactly_as_it_was(toys: Any) -> None:
    """The row's own b is finer than the two decimals of the training data."""
    _, _, after = push(toys, lambda codes: codes[:, 0] - 6.0, [[6.01, 1.0, 5.12345, 7.0]], 0.5, row=[3.0, 1.0, 5.12345, 7.0])
    assert after.codes[0, 0, 2] == 5.12345
    assert after.codes[0, 0, 0] > 6.5


def test_what_was_filled_or_went_missing_stays_where_it_is(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: codes[:, 2] - 6.0, [MISSING, 1.0, 5.0, 7.0], margin=0.5)
    code = np.array([MISSING, np.nan, np.nan, MISSING])
    context = replace(
        context, domain=replace(context.domain, missing=MissingValues(code, np.array([False, False, False, True])))
    )
    pool = Pool.start(np.array([[[4.0, 1.0, 6.01, MISSING]]]), np.array([[True]]), context.domain, context.distance)
    pools = run_rounds(context.evaluator, [beyond(context, pool)])
    assert pools is not None
    after = pools[0].codes[0, 0]
    assert after[[0, 1, 3]].tolist() == [4.0, 1.0, MISSING]
    assert after[2] > 6.5
