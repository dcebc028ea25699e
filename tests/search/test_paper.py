"""The plain reading of the three algorithms on problems with known answers."""

from typing import Any

import numpy as np
import pytest

from fasterce.latent.directions import project_on
from fasterce.latent.line_search import along, cumulative
from fasterce.search import paper
from fasterce.search.context import SearchContext
from fasterce.search.pool import Pool
from fasterce.search.rounds import run_rounds


def run(variant: Any, context: SearchContext, n: int = 1) -> Pool:
    pools = run_rounds(context.judge, [variant(context, n)])
    assert pools is not None
    return pools[0]


ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def right(context: Any, codes: np.ndarray) -> np.ndarray:
    return (lead(codes) > 0).astype(int) == context.judge.target


@pytest.mark.parametrize("variant", [paper.closest, paper.realistic])
def test_the_walk_flips_a_linear_problem(toys: Any, variant: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    model.model_rows.clear()
    pool = run(variant, context)
    assert pool.codes.shape == (3, 1, 4)
    assert pool.valid.all()
    assert right(context, pool.codes[:, 0]).all()
    assert context.domain.contains(pool.codes).all()
    assert len(model.model_rows) == 1


def test_the_first_point_that_flips_is_taken(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0])
    found = run(paper.closest, context).codes[0, 0]
    normals, offsets = context.prediction_planes
    start = project_on(context.latent, normals[:, None], offsets[:, None])
    points = along(start, context.toward_target, cumulative(context.step, context.config.paper_steps)[None])
    codes = context.domain.project(context.state.codec.decode(points))[0]
    flips = np.flatnonzero(lead(codes) > 0)
    np.testing.assert_array_equal(found, codes[flips[0]])


def test_a_margin_goes_farther(toys: Any) -> None:
    near, _ = toys.scene(lead, ROWS)
    far, _ = toys.scene(lead, ROWS, margin=1.0)
    one, two = run(paper.closest, near), run(paper.closest, far)
    assert two.valid.all()
    assert (np.abs(lead(two.codes[:, 0])) > np.abs(lead(one.codes[:, 0])) + 0.5).all()
    assert (two.cost > one.cost).all()


def test_a_larger_step_goes_farther(toys: Any) -> None:
    small, _ = toys.scene(lead, ROWS[0], step=0.01)
    large, _ = toys.scene(lead, ROWS[0], step=2.0)
    assert 0 < lead(run(paper.closest, small).codes[:, 0])[0] <= lead(run(paper.closest, large).codes[:, 0])[0]


def test_no_flip_is_said_to_be_none(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS[0], frozen=[0, 2])
    for variant in (paper.closest, paper.sparse, paper.realistic):
        pool = run(variant, context)
        assert not pool.valid.any()
        assert np.isinf(pool.cost).all()
    assert model.model_rows


@pytest.mark.parametrize("named", [(), (0,), (2, 3)])
def test_sparse_changes_exactly_one_feature(toys: Any, named: tuple[int, ...]) -> None:
    frozen = [j for j in range(4) if named and j not in named]
    context, _ = toys.scene(lead, ROWS[:2], named=named, frozen=frozen)
    pool = run(paper.sparse, context)
    assert pool.valid.any(axis=1).all()
    for i, k in zip(*np.nonzero(pool.valid), strict=True):
        changed = np.flatnonzero(pool.codes[i, k] != context.domain.base[i])
        assert len(changed) == 1
        assert changed[0] in (named or (0, 2))
        assert (lead(pool.codes[i, k][None])[0] > 0) == (context.judge.target[i] == 1)


def test_sparse_varies_a_feature_alone_when_the_walk_does_not_settle_it(toys: Any) -> None:
    """Of k only 14 flips: the walk misses it, the sweep finds it."""
    context, _ = toys.scene(
        lambda codes: (codes[:, 3] == 14) * 1.0 + (codes[:, 0] > 9.9) - 0.5, ROWS[0], named=(3,), frozen=[0, 1, 2]
    )
    pool = run(paper.sparse, context)
    np.testing.assert_array_equal(pool.codes[pool.valid], [[3.0, 1.0, 5.0, 14.0]])


def test_realistic_changes_only_what_is_named(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[:2], named=(0, 2), frozen=[1, 3])
    pool = run(paper.realistic, context)
    assert pool.valid.all()
    np.testing.assert_array_equal(pool.codes[:, 0][:, [1, 3]], np.array(ROWS)[:2, [1, 3]])
    assert (pool.codes[:, 0][:, [0, 2]] != np.array(ROWS)[:2, [0, 2]]).all(), "both move together"


@pytest.mark.parametrize("name", paper.VARIANTS)
def test_no_rows_no_counterfactuals(toys: Any, name: str) -> None:
    context, _ = toys.scene(lead, np.zeros((0, 4)))
    pool = run(paper.VARIANTS[name], context)
    assert pool.codes.shape[0] == 0


def test_sparse_with_nothing_free_finds_nothing(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS, frozen=[0, 1, 2, 3])
    assert not run(paper.sparse, context).valid.any()
