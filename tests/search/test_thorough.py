"""Asking about everything: what flips is found, and what is not needed dropped."""

from typing import Any

import numpy as np
import pytest

from fasterce.search import sweep, thorough
from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Verdict
from fasterce.search.pool import Pool
from fasterce.search.rounds import run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def run(search: Any, context: SearchContext) -> Pool:
    pools = run_rounds(context.judge, [search])
    assert pools is not None
    return pools[0]


def flips(context: SearchContext, pool: Pool, model: Any = lead) -> bool:
    rows, _ = np.nonzero(pool.valid)
    return bool(((model(pool.codes[pool.valid]) > 0) == context.judge.target[rows]).all())


@pytest.mark.parametrize("graded", [True, False])
def test_everything_finds_single_changes_and_sets_that_flip(toys: Any, graded: bool) -> None:
    context, _ = toys.scene(lead, ROWS, graded=graded)
    pool = run(thorough.everything(context), context)
    assert pool.valid.any(axis=1).all()
    assert flips(context, pool)
    count = (pool.codes != context.domain.base[:, None]).sum(axis=2)
    assert np.where(pool.valid, count, 9).min(axis=1).tolist() == [1, 1, 2], "the last is too far for one"
    assert (np.where(pool.valid, count, 0).max(axis=1) > 1).all()


@pytest.mark.parametrize("graded", [True, False])
def test_a_corner_that_takes_three_changes_is_found(toys: Any, graded: bool) -> None:
    def corner(codes: np.ndarray) -> np.ndarray:
        return np.minimum.reduce([codes[:, 0] - 8.0, codes[:, 2] - 8.0, codes[:, 3] - 15.5])

    context, _ = toys.scene(corner, ROWS[0], graded=graded)
    pool = run(thorough.shrunk(context, run(thorough.everything(context), context), 1), context)
    assert pool.valid.any()
    assert flips(context, pool, corner)
    assert (pool.best(1).codes[0, 0] != ROWS[0]).tolist() == [True, False, True, True]


def test_the_sweep_finds_the_cheapest_single_change_and_returns_what_was_said(toys: Any) -> None:
    context, model = toys.scene(lambda codes: np.maximum(codes[:, 0] - 9.0, codes[:, 3] - 12.2), ROWS[0])
    asked = sweep.coarse(context)
    search = thorough.sweep_all(context, asked)
    proposal = next(search)
    with pytest.raises(StopIteration) as done:
        search.send(context.judge.judge(*proposal))
    verdict, pool = done.value.value
    assert len(model.model_rows) == 1
    np.testing.assert_array_equal(verdict.valid[0], (model.label(_edited(asked)) == 1) & asked.open[0])
    assert ((pool.codes != context.domain.base[:, None]).sum(axis=2)[pool.valid] == 1).all()
    assert np.flatnonzero(pool.best(1).codes[0, 0] != ROWS[0]).tolist() == [3]


def _edited(asked: Any) -> np.ndarray:
    codes = np.repeat(asked.base, len(asked.feature), axis=0)
    codes[np.arange(len(codes)), asked.feature] = asked.value[0]
    return codes


def test_finer_changes_find_a_narrow_window(toys: Any) -> None:
    context, _ = toys.scene(lambda codes: 0.15 - np.abs(codes[:, 0] - 4.55), ROWS[0])
    pool = run(thorough.finer_changes(context), context)
    assert pool.valid.any()
    assert (np.abs(pool.codes[pool.valid][:, 0] - 4.55) < 0.15).all()


@pytest.mark.parametrize("graded", [True, False])
def test_changes_that_are_not_needed_are_dropped(toys: Any, graded: bool) -> None:
    context, _ = toys.scene(lead, ROWS[0], graded=graded)
    far = Pool.start(np.array([[[9.0, 3.0, 9.0, 12.0]]]), np.ones((1, 1), dtype=bool), context.domain, context.distance)
    pool = run(thorough.needed_changes(context, far), context)
    assert flips(context, pool)
    needed = {tuple(np.flatnonzero(code != ROWS[0])) for code in pool.codes[pool.valid]}
    assert needed & {(0,), (2,), (0, 2)}
    assert pool.cost.min() < far.cost[0, 0]


def test_what_is_evaluated_beside_them_comes_back_too(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS[0])
    far = Pool.start(np.array([[[9.0, 3.0, 9.0, 12.0]]]), np.ones((1, 1), dtype=bool), context.domain, context.distance)
    pair = Candidates(np.array([[[6.0, 1.0, 7.0, 7.0]]]), np.array([[True]]))
    pool = run(thorough.needed_changes(context, far, [pair]), context)
    assert any((code == [6.0, 1.0, 7.0, 7.0]).all() for code in pool.codes[pool.valid])
    assert len(model.model_rows) == 2


@pytest.mark.parametrize("n", [1, 2])
def test_shrinking_is_never_more_expensive_and_ends_near_the_boundary(toys: Any, n: int) -> None:
    context, _ = toys.scene(lead, ROWS)
    wide = run(thorough.everything(context), context)
    pool = run(thorough.shrunk(context, wide, n), context)
    assert flips(context, pool)
    least = np.abs(lead(np.array(ROWS))) / 10
    assert (pool.cost.min(axis=1) <= wide.cost.min(axis=1)).all()
    assert (pool.cost.min(axis=1) <= least + 0.03).all()
    if n == 2:
        for i, codes in enumerate(pool.codes):
            sets = [tuple(np.flatnonzero(code != ROWS[i])) for code in codes[pool.valid[i]]]
            assert len(set(sets)) == len(sets) == 2


def test_the_row_itself_and_what_fails_are_not_kept(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0])
    codes = np.array([[ROWS[0], [8.0, 1.0, 5.0, 7.0], [7.5, 1.0, 5.0, 7.0]]])
    said = Verdict(np.array([[True, True, False]]), np.array([[1.0, 1.0, -0.5]]))
    kept = thorough.flipping(context, Candidates(codes, np.ones((1, 3), dtype=bool)), said)
    assert kept.valid.sum() == 1
    np.testing.assert_array_equal(kept.codes[kept.valid], [[8.0, 1.0, 5.0, 7.0]])
    np.testing.assert_array_equal(kept.lead[kept.valid], [1.0])
