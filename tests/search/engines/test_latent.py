"""The engine "latent": what it proposes comes from the autoencoder, is within the constraints, and is refined."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.latent.runtime import Callables
from fasterce.search.context import SearchContext
from fasterce.search.engines import latent
from fasterce.search.pool import LATENT, Pool
from fasterce.search.rounds import run_rounds

ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]
METHODS = sorted(latent.VARIANTS)


def run(method: str, context: SearchContext, n: int = 1) -> Pool:
    pools = run_rounds(context.evaluator, [latent.VARIANTS[method](context, n)])
    assert pools is not None
    return pools[0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


@pytest.mark.parametrize("graded", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_every_row_of_a_linear_problem_reaches_the_target(toys: Any, method: str, graded: bool) -> None:
    context, model = toys.scene(lead, ROWS, graded=graded)
    model.model_rows.clear()
    pool = run(method, context)
    assert pool.valid.any(axis=1).all()
    assert (pool.origin == LATENT).all()
    assert context.domain.contains(pool.codes)[pool.valid].all()
    rows, place = np.nonzero(pool.valid)
    assert ((lead(pool.codes[rows, place]) > 0) == (context.evaluator.target[rows] == 1)).all()
    assert len(model.model_rows) <= 14, "few batched calls, however many rows"


@pytest.mark.parametrize("method", METHODS)
def test_unneeded_changes_are_dropped_and_numbers_end_at_the_boundary(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, ROWS)
    pool = run(method, context)
    for i in range(len(ROWS)):
        code = pool.codes[i, np.flatnonzero(pool.valid[i])[0]]
        changed = np.flatnonzero(code != context.domain.base[i])
        assert set(changed) <= {0, 2}, "the model reads only these"
        assert 0 <= abs(lead(code[None])[0]) <= 1.0


@pytest.mark.parametrize("method", METHODS)
def test_frozen_features_stay_and_nothing_free_finds_nothing(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, ROWS[:2], frozen=[0, 1])
    pool = run(method, context)
    assert pool.valid.any(axis=1).all()
    base = np.broadcast_to(context.domain.base[:, None], pool.codes.shape)
    np.testing.assert_array_equal(pool.codes[..., :2][pool.valid], base[..., :2][pool.valid])
    frozen, _ = toys.scene(lead, ROWS, frozen=[0, 1, 2, 3])
    assert not run(method, frozen).valid.any()


def test_sparse_varies_a_feature_alone_where_its_walk_misses(toys: Any) -> None:
    """Of the fourth feature only a few values far away reach the target, and nothing else does."""
    context, _ = toys.scene(lambda codes: np.abs(codes[:, 3] - 7) - 9.5, ROWS[0])
    pool = run("sparse", context)
    assert pool.valid.any()
    changed = pool.codes[pool.valid] != context.domain.base[0]
    assert (changed.sum(axis=1) == 1).any()


@pytest.mark.parametrize("method", METHODS)
def test_several_counterfactuals_change_different_features(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, ROWS[0])
    pool = run(method, context, n=2)
    sets = {tuple(np.flatnonzero(code != context.domain.base[0])) for code in pool.codes[pool.valid]}
    assert len(sets) >= 2


@pytest.mark.parametrize("method", METHODS)
def test_a_margin_goes_farther(toys: Any, method: str) -> None:
    near, _ = toys.scene(lead, ROWS[:1])
    far, _ = toys.scene(lead, ROWS[:1], margin=0.5)
    one, two = (run(method, context) for context in (near, far))
    assert abs(lead(two.codes[:, 0])[0]) > abs(lead(one.codes[:, 0])[0]) + 0.2


@pytest.mark.parametrize("method", METHODS)
def test_the_surrogate_is_never_used_and_the_autoencoder_is(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, ROWS, copy=lambda codec: Forbidden())
    counted = Counting(context.state.autoencoder)
    context = replace(context, state=replace(context.state, autoencoder=counted))
    assert run(method, context).valid.any(axis=1).all()
    assert counted.encoded >= len(ROWS)
    assert counted.decoded > 20 * len(ROWS)


@pytest.mark.parametrize("method", METHODS)
def test_an_autoencoder_of_noise_gives_other_counterfactuals(toys: Any, method: str) -> None:
    """Three features have to change together, which only a learned space knows."""
    together = np.array([3.0, 5.0, 4.0])
    context, _ = toys.scene(lambda codes: 5.0 - np.abs(codes[:, [0, 2, 3]] - together - 3).max(axis=1), ROWS[1:])
    noise = np.random.default_rng(0).normal(size=(context.state.codec.width,) * 2)
    scrambled = Callables(lambda matrix: np.tanh(matrix @ noise), lambda points: np.sin(7 * points @ noise.T))
    learned = run(method, context)
    random = run(method, replace(context, state=replace(context.state, autoencoder=scrambled)))
    assert learned.valid.any(axis=1).all()
    assert learned.valid.sum() != random.valid.sum() or (learned.codes[learned.valid] != random.codes[random.valid]).any()


@pytest.mark.parametrize("method", METHODS)
def test_a_row_alone_is_as_in_a_batch(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, ROWS)
    together = run(method, context, n=2)
    for i, row in enumerate(ROWS):
        alone = run(method, toys.scene(lead, row)[0], n=2)
        np.testing.assert_array_equal(alone.codes[0][alone.valid[0]], together.codes[i][together.valid[i]])


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_no_counterfactuals(toys: Any, method: str) -> None:
    context, _ = toys.scene(lead, np.zeros((0, 4)))
    assert run(method, context).codes.shape[0] == 0


class Forbidden:
    """A surrogate that must not be asked anything."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the surrogate's {name} was used")


class Counting:
    """An autoencoder that counts the rows it encodes and decodes."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.encoded, self.decoded = inner, 0, 0

    def encode(self, matrix: np.ndarray) -> np.ndarray:
        self.encoded += len(matrix)
        return np.asarray(self.inner.encode(matrix))

    def decode(self, points: np.ndarray) -> np.ndarray:
        self.decoded += int(np.prod(points.shape[:-1]))
        return np.asarray(self.inner.decode(points))
