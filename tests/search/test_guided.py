"""The search with the surrogate: what it returns was evaluated, whatever the surrogate says."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.search import guided
from fasterce.search.guided import Evaluated, Guide
from fasterce.search.rounds import run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def searched(context: Any) -> Any:
    pools = run_rounds(context.evaluator, [guided.search(context)])
    assert pools is not None
    return pools[0]


def bent(codes: np.ndarray) -> np.ndarray:
    return np.minimum(codes[:, 0] - 6.0, codes[:, 2] - 7.0) + 0.3 * np.sin(codes[:, 3])


@pytest.mark.parametrize("graded", [True, False])
@pytest.mark.parametrize("model", [lead, bent])
def test_every_candidate_was_evaluated_and_reaches_the_target(toys: Any, graded: bool, model: Any) -> None:
    context, asked = toys.scene(model, ROWS, graded=graded, trained=True)
    pool = searched(context)
    assert pool.valid.any(axis=1).all()
    seen = {tuple(row) for rows in asked.model_rows for row in rows}
    for row, codes in zip(*np.nonzero(pool.valid)[:1], pool.codes[pool.valid], strict=True):
        assert tuple(codes) in seen
        assert (model(codes[None])[0] > 0) == (context.evaluator.target[row] == 1)


def test_the_best_is_near_the_boundary(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS, trained=True)
    best = searched(context).best(1)
    least = np.abs(lead(np.array(ROWS))) / 10
    assert (best.cost[:, 0] >= least - 1e-9).all()
    assert (best.cost[:, 0] <= 1.05 * least + 0.01).all()


def test_a_compiled_model_is_evaluated_until_one_step_back_fails(toys: Any) -> None:
    """Candidates cost no model call there: whichever number moves one step toward the query, the target is lost."""
    context, _ = toys.scene(bent, ROWS, trained=True)
    pool = searched(replace(context, free=True))
    best = pool.best(1).codes[:, 0]
    for row, codes in enumerate(best):
        for j in np.flatnonzero(codes != context.domain.base[row]):
            step = 1.0 if context.domain.integer[j] else 10.0 ** -float(context.domain.decimals[j])
            back = codes.copy()
            back[j] += step * np.sign(context.domain.base[row, j] - codes[j])
            assert (bent(back[None])[0] > 0) != (context.evaluator.target[row] == 1), (row, j)


def test_a_surrogate_that_is_wrong_is_corrected(toys: Any) -> None:
    """It expects the second number to do nothing and the first to do twice as much as it does."""
    wrong = lambda codec: toys.copy_of(codec, {0: lambda value: 2 * value}, -12.0, error=0.5)  # noqa: E731
    context, _ = toys.scene(lead, ROWS[:1], copy=wrong)
    best = searched(context).best(1)
    assert best.valid.all()
    assert best.cost[0, 0] < 0.55


def test_no_row_is_evaluated_twice(toys: Any) -> None:
    context, asked = toys.scene(bent, ROWS[:1], trained=True)
    searched(context)
    rows = [tuple(row) for rows in asked.model_rows for row in rows]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("graded", [True, False])
def test_a_query_is_searched_the_same_alone_and_among_others(toys: Any, graded: bool) -> None:
    context, _ = toys.scene(bent, ROWS, graded=graded, trained=True)
    together = searched(context).best(1)
    for row in range(len(ROWS)):
        alone = searched(replace(context).take(np.array([row]))).best(1)
        np.testing.assert_array_equal(alone.codes[0], together.codes[row])


def test_without_a_surrogate_single_changes_and_examples_are_tried(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    assert context.state.surrogate is None
    assert searched(context).valid.any(axis=1).all()


def test_queries_that_cannot_reach_the_target_have_no_candidate(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: np.full(len(codes), -1.0), ROWS[:1], trained=True)
    assert not searched(context).valid.any()


def test_frozen_features_stay(toys: Any) -> None:
    context, asked = toys.scene(lead, ROWS[:2], frozen=[0], trained=True)
    pool = searched(context)
    assert pool.valid.any(axis=1).all()
    for rows in asked.model_rows:
        assert set(rows[:, 0]) <= {row[0] for row in ROWS}


def test_alternatives_have_no_unneeded_change_and_the_first_stays(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS, trained=True)
    before = searched(context).distinct(context.domain.row).best(6)
    (after,) = run_rounds(context.evaluator, [guided.needed(context, before)]) or []
    after = after.best(6)
    np.testing.assert_array_equal(after.codes[:, 0], before.codes[:, 0])
    rows, place = np.nonzero(after.valid)
    for row, k in zip(rows, place, strict=True):
        if k == 0:
            continue
        for j in np.flatnonzero(after.codes[row, k] != ROWS[row]):
            undone = after.codes[row, k].copy()
            undone[j] = ROWS[row][j]
            assert (lead(undone[None])[0] > 0) != (context.evaluator.target[row] == 1)


ROW = [3.0, 1.0, 5.0, 7.0]


def nearer(toys: Any, found: list[float], margin: float, failed: list[tuple[list[float], float]]) -> np.ndarray:
    """Rows proposed between a query and a row that reaches the target; `failed` are rows that do not, with margins."""
    context, _ = toys.scene(lead, [ROW])
    rows, margins = np.array([[found, *(row for row, _ in failed)]]), np.array([[margin, *(low for _, low in failed)]])
    cost = np.where(margins > 0, context.distance.total(rows, np.array(ROW)), np.inf)
    return Guide(replace(context, start=np.array([-1.0]))).nearer(Evaluated(rows, margins, margins, cost))[0]


def shrunk(toys: Any, margin: float, failed: list[tuple[float, float]]) -> np.ndarray:
    """Values tried for the first number, which was raised from 3 to 9; `failed` are values known to fail, with margins."""
    found = nearer(toys, [9.0, *ROW[1:]], margin, [([value, *ROW[1:]], low) for value, low in failed])
    assert (found[:, 1:] == ROW[1:]).all()
    return np.unique(found[found[:, 0] != 3.0, 0])


def test_each_change_is_dropped_in_turn(toys: Any) -> None:
    found = nearer(toys, [9.0, 1.0, 8.0, 7.0], 1.0, []).tolist()
    assert [9.0, 1.0, 5.0, 7.0] in found
    assert [3.0, 1.0, 8.0, 7.0] in found


def test_values_lie_between_the_candidate_and_the_query(toys: Any) -> None:
    values = shrunk(toys, 1.0, [])
    assert len(values) >= 4
    assert ((values > 3.0) & (values < 9.0)).all()


def test_a_value_is_tried_where_margins_interpolate_to_zero(toys: Any) -> None:
    """The margin falls from 1 at 9 to -1 at 3, the query."""
    assert np.abs(shrunk(toys, 1.0, []) - 6.0).min() < 0.2


def test_values_known_to_fail_bound_the_search(toys: Any) -> None:
    values = shrunk(toys, 1.0, [(5.0, -1.0), (8.0, -0.25)])
    assert values.min() > 8.0
    assert np.abs(values - 8.2).min() < 0.1


def test_a_failure_beyond_the_candidate_says_nothing(toys: Any) -> None:
    np.testing.assert_array_equal(shrunk(toys, 1.0, [(9.5, -1.0)]), shrunk(toys, 1.0, []))


def test_a_failure_with_a_larger_other_change_bounds_the_search_too(toys: Any) -> None:
    """Raising the third number farther did not help at 8, so 8 fails with the smaller change as well."""

    def values(other: float) -> np.ndarray:
        found = nearer(toys, [9.0, 1.0, 8.0, 7.0], 1.0, [([8.0, 1.0, other, 7.0], -0.25)])
        return found[(found[:, 0] != 9.0) & (found[:, 0] != 3.0), 0]

    assert values(9.0).min() > 8.0
    assert values(6.0).min() < 8.0


def test_single_changes_are_the_most_promising_and_cheaper_than_the_best_known(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW], trained=True)
    guide, none = Guide(context), Evaluated.nothing(context.domain.base)
    found = guide.single_changes(none)[0]
    assert ((found != ROW).sum(axis=1) <= 1).all()
    changed = found[(found != ROW).any(axis=1)]
    each = (changed != ROW).sum(axis=0)
    assert each.max() <= context.config.single_values
    # The first and the third number are all that counts, the higher the better.
    assert lead(changed)[:4].min() >= np.sort(lead(changed))[-8]
    known = np.array([[[9.0, *ROW[1:]]]])
    cost = context.distance.total(known, np.array(ROW))
    graded = guide.single_changes(Evaluated(known, np.ones((1, 1)), np.ones((1, 1)), cost))
    assert (graded == ROW).all()
    labels, _ = toys.scene(lead, [ROW], graded=False, trained=True)
    cheaper = Guide(labels).single_changes(Evaluated(known, np.ones((1, 1)), np.ones((1, 1)), cost))[0]
    assert (cheaper != ROW).any()
    assert (context.distance.total(cheaper, np.array(ROW)) < cost[0, 0]).all()
