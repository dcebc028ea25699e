"""Regional hyperplanes: taken where one plane fails, left where it does, and every point in its own region whatever
points stand beside it."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons

from fasterce.config import LatentConfig
from fasterce.latent.directions import height
from fasterce.latent.hyperplanes import Hyperplanes, adapted_svms, fit_hyperplanes
from fasterce.latent.regions import Agreement, Regions, fit_regions
from fasterce.search.engines import paper
from fasterce.search.rounds import run_rounds


def planes_of(latent: np.ndarray, labels: np.ndarray, classes: int) -> Hyperplanes:
    return fit_hyperplanes(latent, np.zeros((len(latent), 0)), 0, labels, classes)


def fit(
    latent: np.ndarray,
    labels: np.ndarray,
    classes: int = 2,
    seed: int = 0,
    origin: np.ndarray | None = None,
    config: LatentConfig | None = None,
) -> tuple[Regions, Agreement]:
    origin = np.arange(len(latent)) if origin is None else origin
    planes = planes_of(latent, labels, classes)
    return fit_regions(latent, labels, origin, planes, seed, config or LatentConfig())


def xor(rows: int, seed: int, dimensions: int = 2) -> tuple[np.ndarray, np.ndarray]:
    latent = np.random.default_rng(seed).uniform(-1, 1, (rows, dimensions))
    return latent, (latent[:, 0] * latent[:, 1] > 0).astype(np.intp)


def moons(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    latent, labels = make_moons(rows, noise=0.1, random_state=seed)
    return latent, labels.astype(np.intp)


def right_side(found: Regions, latent: np.ndarray, labels: np.ndarray) -> float:
    truth = labels[:, None] == np.arange(found.normals.shape[1])
    return float(((found.heights(latent) > 0) == truth).mean())


@pytest.mark.parametrize(("draw", "most"), [(xor, 0.75), (moons, 0.9)])
def test_regions_are_taken_where_one_plane_fails(
    draw: Callable[[int, int], tuple[np.ndarray, np.ndarray]], most: float
) -> None:
    found, agreement = fit(*draw(4000, 0))
    assert len(found) > 1
    assert agreement.one_plane < most
    assert agreement.regional > 0.9
    unseen = draw(2000, 1)
    assert right_side(Regions.whole(planes_of(*draw(4000, 0), 2)), *unseen) < most
    assert right_side(found, *unseen) > 0.93


@pytest.mark.parametrize("seed", range(5))
def test_one_region_with_the_global_planes_is_left_where_it_is_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(3000, 8)) @ rng.normal(size=(8, 8))
    lead = latent @ rng.normal(size=8)
    labels = (lead + 0.2 * lead.std() * rng.normal(size=3000) > 0.3 * lead.std()).astype(np.intp)
    planes = planes_of(latent, labels, 2)
    found, agreement = fit_regions(latent, labels, np.arange(3000), planes, seed)
    assert len(found) == 1
    assert agreement.one_plane == agreement.regional > 0.9
    target = rng.integers(2, size=len(latent))
    for mine, globally in zip(found.planes(latent, target), planes.of_class(target), strict=True):
        np.testing.assert_array_equal(mine, globally)


def test_noise_is_seldom_mistaken_for_regions() -> None:
    """Three numbers of regions are tried, each may look better by luck; the report then says how little."""
    mistaken = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        found, agreement = fit(rng.normal(size=(2000, 10)), rng.integers(2, size=2000))
        mistaken += len(found) > 1
        assert agreement.regional == pytest.approx(0.5, abs=0.05)
    assert mistaken <= 4


def test_copies_of_a_few_points_do_not_vouch_for_each_other() -> None:
    """Labels without rhyme or reason, each repeated in a small cloud: held out one by one they would seem learnable."""
    rng = np.random.default_rng(1)
    seeds, labels = rng.normal(size=(60, 10)), rng.integers(2, size=60)
    latent = np.repeat(seeds, 40, axis=0) + 0.1 * rng.normal(size=(2400, 10))
    labels, origin = np.repeat(labels, 40), np.repeat(np.arange(60), 40)
    assert fit(latent, labels)[1].regional > 0.9
    found, agreement = fit(latent, labels, origin=origin)
    assert agreement.regional < 0.7
    assert len(found) == 1


def test_a_rare_class_counts_as_much_as_a_common_one() -> None:
    """Two strips of one in forty each, on opposite sides: no plane has both, regions have."""
    rng = np.random.default_rng(2)
    latent = rng.uniform(-1, 1, (8000, 2))
    labels = (np.abs(latent[:, 0]) > 0.95).astype(np.intp)
    assert labels.mean() < 0.06
    found, agreement = fit(latent, labels)
    assert agreement.one_plane < 0.6
    assert agreement.regional > 0.8
    own = found.heights(latent) > 0
    assert own[labels == 1, 1].mean() > 0.8
    assert own[labels == 0, 0].mean() > 0.6


def test_three_classes_each_with_its_own_planes() -> None:
    rng = np.random.default_rng(3)
    latent = rng.uniform(-1, 1, (6000, 2))
    labels = np.where(latent[:, 1] > 0.5, 2, (latent[:, 0] * latent[:, 1] > 0).astype(int)).astype(np.intp)
    found, agreement = fit(latent, labels, 3)
    assert found.normals.shape == (len(found), 3, 2)
    assert found.offsets.shape == (len(found), 3)
    assert agreement.regional > agreement.one_plane + 0.1
    target = rng.integers(3, size=50)
    normals, offsets = found.planes(latent[:50], target)
    own = (normals * latent[:50]).sum(axis=1) + offsets
    np.testing.assert_allclose(own, found.heights(latent[:50])[np.arange(50), target], atol=1e-12)


def test_a_class_never_predicted_keeps_its_plane_and_does_not_count() -> None:
    latent, labels = xor(3000, 4)
    two, three = fit(latent, labels, 2), fit(latent, labels, 3)
    assert two[1].regional == pytest.approx(three[1].regional, abs=1e-9)
    np.testing.assert_array_equal(three[0].normals[:, 2], 0.0)
    np.testing.assert_array_equal(three[0].offsets[:, 2], -1.0)


def test_a_pure_region_still_shows_the_way_to_the_other_class() -> None:
    """Four corners, one class each two: the plane of a corner faces the nearest points of the class it does not hold."""
    rng = np.random.default_rng(5)
    corners = np.array([[3.0, 3.0], [-3.0, 3.0], [-3.0, -3.0], [3.0, -3.0]])
    latent = np.repeat(corners, 400, axis=0) + rng.normal(scale=0.5, size=(1600, 2))
    labels = np.repeat([0, 1, 0, 1], 400)
    found, agreement = fit(latent, labels)
    assert len(found) == 4
    assert agreement.regional > 0.95
    for corner, label in zip(corners, (0, 1, 0, 1), strict=True):
        normal, offset = (part[0] for part in found.planes(corner[None], np.array([1 - label])))
        assert height(corner, normal, offset) < -0.5
        assert normal @ -corner > 0, "away from the corner, toward the others"


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_a_points_region_and_planes_do_not_depend_on_its_company(scale: float, shift: float) -> None:
    latent, labels = xor(3000, 6, dimensions=7)
    latent = scale * (latent + shift)
    found, _ = fit(latent, labels)
    together, target = found.of(latent), 1 - labels
    assert len(found) > 1
    assert len(np.unique(together)) == len(found)
    normals, offsets = found.planes(latent, target)
    for one in (0, 63, 64, 1700, 2999):
        alone = slice(one, one + 1)
        assert found.of(latent[alone])[0] == together[one]
        np.testing.assert_array_equal(found.planes(latent[alone], target[alone])[0][0], normals[one])
        np.testing.assert_array_equal(found.planes(latent[alone], target[alone])[1][0], offsets[one])
    order = np.random.default_rng(0).permutation(len(latent))
    np.testing.assert_array_equal(found.of(latent[order]), together[order])
    nearest = ((latent[:, None, :] - found.centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == together).mean() > 0.999


def test_the_same_seed_gives_the_same_regions() -> None:
    one, two = fit(*xor(2000, 7), seed=3), fit(*xor(2000, 7), seed=3)
    assert one[1] == two[1]
    for name in ("centres", "normals", "offsets"):
        np.testing.assert_array_equal(getattr(one[0], name), getattr(two[0], name))


@pytest.mark.parametrize(
    ("latent", "labels"),
    [
        (np.zeros((500, 3)), np.arange(500) % 2),
        (np.repeat(np.eye(3), 200, axis=0), np.arange(600) % 2),
        (np.random.default_rng(8).normal(size=(500, 3)), (np.arange(500) == 0).astype(int)),
        (np.random.default_rng(8).normal(size=(10, 3)), np.arange(10) % 2),
        (np.random.default_rng(8).normal(size=(300, 1)), np.arange(300) % 2),
    ],
    ids=["one point", "three points", "a class seen once", "ten points", "one dimension"],
)
def test_points_that_say_little_leave_one_region_and_no_warnings(latent: np.ndarray, labels: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, agreement = fit(latent, labels.astype(np.intp))
    assert len(found) == 1
    assert np.isfinite([agreement.one_plane, agreement.regional]).all()


def test_a_plane_is_bent_the_less_the_fewer_points_there_are() -> None:
    rng = np.random.default_rng(9)
    given = np.array([[1.0, 0.0]]), np.array([0.0])
    turns = []
    for rows in (20, 200, 20_000):
        latent = rng.normal(size=(rows, 2))
        truth = latent[:, 1:] > 0
        normals, _ = adapted_svms(*given, latent, truth, np.ones(truth.shape))
        turns.append(normals[0, 1] / np.linalg.norm(normals[0]))
    assert 0 < turns[0] < turns[1] < turns[2]
    assert turns[2] > 0.99


def test_points_that_weigh_nothing_bend_nothing() -> None:
    rng = np.random.default_rng(10)
    latent = rng.normal(size=(400, 2))
    truth = latent[:, 1:] > 0
    weight = (latent[:, :1] > 0).astype(float)
    counted = weight[:, 0] > 0
    flipped = np.where(counted[:, None], truth, ~truth)
    given = np.array([[1.0, 0.0]]), np.array([0.5])
    for one, two in zip(
        adapted_svms(*given, latent, truth, weight), adapted_svms(*given, latent, flipped, weight), strict=True
    ):
        np.testing.assert_allclose(one, two, atol=1e-9)
    for same, before in zip(adapted_svms(*given, latent, truth, 0 * weight), given, strict=True):
        np.testing.assert_allclose(same, before, atol=1e-9)


def test_too_few_points_are_not_divided() -> None:
    latent, labels = xor(1000, 11)
    assert len(fit(latent, labels)[0]) > 1
    assert len(fit(latent, labels, config=LatentConfig(points_per_region=300))[0]) == 1


ROWS = [[3.0, 1.0, 5.0, 7.0], [8.0, 3.0, 5.0, 7.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return (codes[:, 0] - 5.0) * (codes[:, 2] - 5.1)


def test_each_row_of_a_task_goes_by_its_regions_plane(toys: Any) -> None:
    task, _ = toys.scene(lead, ROWS)
    whole, latent = task.state.regions, task.latent
    two = Regions(latent, np.concatenate([whole.normals, -whole.normals]), np.concatenate([whole.offsets, 1 + whole.offsets]))
    local = replace(task, state=replace(task.state, regions=two))
    target = task.evaluator.target
    np.testing.assert_array_equal(local.prediction_planes[0][0], whole.normals[0, target[0]])
    np.testing.assert_array_equal(local.prediction_planes[0][1], -whole.normals[0, target[1]])
    np.testing.assert_array_equal(local.prediction_planes[1][1], 1 + whole.offsets[0, target[1]])
    np.testing.assert_array_equal(local.take(np.array([1])).prediction_planes[0], local.prediction_planes[0][1:])


@pytest.mark.parametrize("name", paper.VARIANTS)
def test_the_engine_paper_knows_no_regions(toys: Any, name: str) -> None:
    task, _ = toys.scene(lambda codes: codes[:, 0] + codes[:, 2] - 12.0, ROWS)
    whole = task.state.regions
    upside_down = replace(whole, normals=-whole.normals, offsets=-whole.offsets)
    local = replace(task, state=replace(task.state, regions=upside_down))
    assert (local.toward_target != task.toward_target).any()
    found = [run_rounds(scene.evaluator, [paper.VARIANTS[name](scene, 1)]) for scene in (task, local)]
    assert found[0] is not None
    assert found[1] is not None
    (one,), (two,) = found[0], found[1]
    np.testing.assert_array_equal(one.codes, two.codes)
    np.testing.assert_array_equal(one.valid, two.valid)
