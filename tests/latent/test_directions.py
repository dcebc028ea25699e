"""Directions and projections, as properties over random geometry."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fasterce.latent.directions import each_without_others, height, orthogonal_part, project_on, unit

seeds = st.integers(0, 2**32 - 1)


def test_unit_leaves_zero_alone() -> None:
    np.testing.assert_allclose(unit(np.array([[3.0, 4.0], [0.0, 0.0]])), [[0.6, 0.8], [0.0, 0.0]])


@settings(max_examples=80, deadline=None)
@given(seeds, st.integers(2, 12), st.data())
def test_orthogonal_to_every_normal_where_there_is_room(seed: int, dimensions: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, dimensions - 1))
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(3, count, dimensions)) * 10.0 ** rng.uniform(-2, 2, size=(3, count, 1))
    directions = unit(rng.normal(size=(3, dimensions)))
    assume(np.linalg.svd(unit(normals), compute_uv=False).min() > 0.1)
    exact = np.stack(
        [d - n.T @ np.linalg.lstsq(n.T, d, rcond=None)[0] for d, n in zip(directions, unit(normals), strict=True)]
    )
    assume(np.linalg.norm(exact, axis=1).min() > 0.2)
    found = orthogonal_part(directions, normals)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    assert np.abs((unit(normals) * found[:, None]).sum(axis=2)).max() < 1e-4
    np.testing.assert_allclose(found, unit(exact), atol=1e-3)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(2, 8), st.integers(0, 4))
def test_where_nothing_is_orthogonal_the_direction_leaks_little(seed: int, dimensions: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    normals = unit(rng.normal(size=(1, dimensions + more, dimensions)))
    direction = unit(rng.normal(size=(1, dimensions)))
    found = orthogonal_part(direction, normals)
    assert np.linalg.norm(found) == pytest.approx(1.0)
    gained = float(found[0] @ direction[0])
    assert gained > 0, "it still goes the way it was asked to"

    def leak(vector: np.ndarray) -> float:
        return float(np.linalg.norm(normals[0] @ vector))

    assert leak(found[0]) <= leak(direction[0]) + 1e-9


def test_least_leaky_direction_in_a_spanned_plane() -> None:
    """The first axis is held by a normal, the second hardly: of a diagonal wish the second is what remains."""
    normals = np.array([[[1.0, 0.0], [1.0, 0.05], [0.0, 1.0]]])
    weak = np.array([[[1.0, 0.0], [1.0, 0.02]]])
    diagonal = unit(np.array([[1.0, 1.0]]))
    spanned = orthogonal_part(diagonal, normals)[0]
    assert spanned[1] > spanned[0] > 0
    assert abs(orthogonal_part(diagonal, weak)[0] @ [0.0, 1.0]) > 0.99


def test_a_spanned_direction_still_reaches_the_target() -> None:
    """One axis is held hard, the other barely: a wish along the hard one is bent, not thrown away."""
    normals = np.array([[[1.0, 0.05], [1.0, -0.05]]])
    wish = unit(np.array([[0.98, 0.2]]))
    found = orthogonal_part(wish, normals)
    assert 0.5 < float(found[0] @ wish[0]) < 0.95


def test_repeated_normals_count_once() -> None:
    normals = np.array([[[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    found = orthogonal_part(unit(np.array([[1.0, 2.0, 2.0]])), normals)
    np.testing.assert_allclose(found, [[0.0, 0.5**0.5, 0.5**0.5]], atol=1e-5)


def test_rows_are_independent_and_may_differ_in_rank() -> None:
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(40, 4, 4))
    normals[::2, 2:] = 0.0
    directions = unit(rng.normal(size=(40, 4)))
    points, offsets = rng.normal(size=(40, 4)), rng.normal(size=(40, 4))
    walked, landed = orthogonal_part(directions, normals), project_on(points, normals, offsets)
    for k in range(40):
        one = slice(k, k + 1)
        np.testing.assert_array_equal(orthogonal_part(directions[one], normals[one])[0], walked[k])
        np.testing.assert_array_equal(project_on(points[one], normals[one], offsets[one])[0], landed[k])
    leak = np.abs((unit(normals[::2, :2]) * walked[::2, None]).sum(axis=2))
    assert leak.max() < 1e-3


def test_no_normals_no_rows() -> None:
    direction = np.array([[3.0, 4.0]])
    np.testing.assert_allclose(orthogonal_part(direction, np.zeros((1, 0, 2))), [[0.6, 0.8]])
    assert orthogonal_part(np.zeros((0, 3)), np.zeros((0, 2, 3))).shape == (0, 3)
    assert project_on(np.zeros((0, 3)), np.zeros((0, 2, 3)), np.zeros((0, 2))).shape == (0, 3)


@settings(max_examples=80, deadline=None)
@given(seeds, st.integers(2, 10), st.data())
def test_projection_is_the_nearest_point_of_the_intersection(seed: int, dimensions: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, dimensions))
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(count, dimensions)) * 10.0 ** rng.uniform(-2, 2, size=(count, 1))
    offsets = rng.normal(size=count) * np.linalg.norm(normals, axis=1)
    point = rng.normal(size=dimensions)
    assume(np.linalg.svd(unit(normals), compute_uv=False).min() > 0.1)
    found = project_on(point[None], normals[None], offsets[None])[0]
    step = np.linalg.lstsq(normals, -(normals @ point + offsets), rcond=None)[0]
    np.testing.assert_allclose(found, point + step, atol=1e-3 * max(1.0, float(np.linalg.norm(step))))
    assert np.abs((normals @ found + offsets) / np.linalg.norm(normals, axis=1)).max() < 1e-3 * max(
        1.0, float(np.linalg.norm(step))
    )


def test_projection_is_the_limit_of_the_papers_alternating_one() -> None:
    rng = np.random.default_rng(1)
    normals, offsets, point = unit(rng.normal(size=(2, 5))), rng.normal(size=2), rng.normal(size=5)
    current = point.copy()
    for _ in range(2000):
        for n, b in zip(normals, offsets, strict=True):
            current = current - (n @ current + b) * n
    np.testing.assert_allclose(project_on(point[None], normals[None], offsets[None])[0], current, atol=1e-4)


def test_planes_that_contradict_each_other_meet_half_way() -> None:
    normals = np.array([[[1.0, 0.0], [2.0, 0.0]]])
    found = project_on(np.array([[7.0, 3.0]]), normals, np.array([[-1.0, -6.0]]))
    np.testing.assert_allclose(found, [[2.0, 3.0]], atol=1e-4)


def test_parallel_planes_that_agree_and_planes_that_are_none() -> None:
    normals = np.array([[[1.0, 0.0], [-3.0, 0.0], [0.0, 0.0]]])
    found = project_on(np.array([[7.0, 3.0]]), normals, np.array([[-1.0, 3.0, 5.0]]))
    np.testing.assert_allclose(found, [[1.0, 3.0]], atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(seeds, st.floats(-12, 0))
def test_nearly_parallel_planes_stay_finite(seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    normal = unit(rng.normal(size=(1, 4)))
    normals = np.concatenate([normal, unit(normal + 10.0**exponent * rng.normal(size=(1, 4)))])
    offsets = rng.normal(size=2)
    point = rng.normal(size=4)
    found = project_on(point[None], normals[None], offsets[None])[0]
    beyond = np.abs(normals @ point + offsets).max()
    assert np.linalg.norm(found - point) <= 1000 * beyond


def test_height_is_the_signed_distance() -> None:
    points = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 1.0]])
    normals = np.array([[0.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(height(points, normals, np.array([-2.0, 5.0, 9.0])), [3.0, 1.0, 0.0])


@pytest.mark.parametrize(("count", "dimensions"), [(4, 6), (6, 6), (7, 5)])
def test_each_without_others_is_the_orthogonal_part_of_each(count: int, dimensions: int) -> None:
    normals = np.random.default_rng(count).normal(size=(3, count, dimensions))
    normals[1, 2] = 0.0
    found = each_without_others(normals)
    for a in range(count):
        wanted = orthogonal_part(unit(normals[:, a]), np.delete(normals, a, axis=1))
        np.testing.assert_allclose(found[:, a], wanted, atol=1e-3)
