"""Hyperplanes against known answers and against scikit-learn's own solvers."""

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.svm import LinearSVC

from fasterce.config import LatentConfig
from fasterce.latent.hyperplanes import Hyperplanes, fit_hyperplanes


def cosine(one: np.ndarray, two: np.ndarray) -> float:
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


def fit_truth(latent: np.ndarray, truth: np.ndarray) -> Hyperplanes:
    """Planes for one boolean column, and for the classes not-it and it."""
    return fit_hyperplanes(latent, truth[:, None].astype(float), 0, truth.astype(np.intp), 2)


def test_a_linear_feature_is_recovered() -> None:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(3000, 4))
    normal = np.array([1.0, -2.0, 0.5, 0.0])
    values = latent @ normal + 3.0
    planes = fit_hyperplanes(latent, values[:, None], 1, (values > 0).astype(np.intp), 2)
    assert cosine(planes.normals[0], normal) > 0.9999
    assert planes.offsets[0] == pytest.approx(3.0, abs=0.01)
    assert planes.fit[0] > 0.999
    assert planes.base[0] == 0


@pytest.mark.parametrize("seed", range(3))
def test_lassos_equal_sklearns_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    values = latent @ rng.normal(size=(6, 5)) + rng.normal(size=(400, 5)) + 2.0
    values[:, 2] = rng.normal(size=400)
    planes = fit_hyperplanes(latent, values, 5, rng.integers(2, size=400), 2)
    for k in range(5):
        own = Lasso(alpha=LatentConfig().lasso_penalty, max_iter=5000).fit(latent, values[:, k])
        np.testing.assert_allclose(planes.normals[k], own.coef_, atol=2e-3)
        assert planes.offsets[k] == pytest.approx(own.intercept_, abs=5e-3)
        assert planes.fit[k] == pytest.approx(own.score(latent, values[:, k]), abs=1e-4)


def test_one_numeric_feature_alone() -> None:
    rng = np.random.default_rng(1)
    latent = rng.normal(size=(200, 1))
    planes = fit_hyperplanes(latent, 2 * latent, 1, (latent[:, 0] > 0).astype(np.intp), 2)
    assert planes.normals.shape == (3, 1)
    assert planes.normals[0, 0] == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_separators_are_as_good_as_sklearns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dimensions = int(rng.integers(2, 15))
    scale = 10.0 ** rng.uniform(-2, 2, size=dimensions)
    latent = rng.normal(size=(1500, dimensions)) * scale + rng.normal(size=dimensions)
    lead = (latent - latent.mean(axis=0)) / latent.std(axis=0) @ rng.normal(size=dimensions)
    truth = lead + 0.3 * lead.std() * rng.normal(size=1500) > rng.uniform(-1, 1) * lead.std()
    planes = fit_truth(latent, truth)
    scaled = (latent - latent.mean(axis=0)) / latent.std(axis=0)
    theirs = LinearSVC(class_weight="balanced", dual=False).fit(scaled, truth)
    assert planes.fit[0] > theirs.score(scaled, truth) - 0.02
    assert cosine(planes.normals[0] * latent.std(axis=0), theirs.coef_[0]) > 0.99


def test_a_clean_separator_is_found_with_its_offset() -> None:
    rng = np.random.default_rng(2)
    latent = rng.normal(loc=[0.0, 0.0, 5.0], size=(4000, 3))
    normal = np.array([3.0, 4.0, 0.0]) / 5
    height = latent @ normal - 0.7
    planes = fit_truth(latent, height > 0)
    assert planes.fit[0] > 0.97
    assert cosine(planes.normals[0], normal) > 0.995
    own = (latent @ planes.normals[0] + planes.offsets[0]) / np.linalg.norm(planes.normals[0])
    np.testing.assert_allclose(own, height, atol=0.25)


def test_class_planes_face_each_other() -> None:
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(1000, 3))
    labels = (latent[:, 0] > 0.2).astype(np.intp)
    planes = fit_hyperplanes(latent, np.zeros((1000, 0)), 0, labels, 2)
    np.testing.assert_allclose(planes.normals[0], -planes.normals[1], atol=1e-8)
    np.testing.assert_allclose(planes.offsets[0], -planes.offsets[1], atol=1e-8)


def test_a_category_that_never_or_always_occurs_has_no_direction() -> None:
    rng = np.random.default_rng(4)
    latent = rng.normal(size=(500, 3))
    matrix = np.stack([np.zeros(500), np.ones(500), latent[:, 0] > 0], axis=1).astype(float)
    planes = fit_hyperplanes(latent, matrix, 0, (latent[:, 1] > 0).astype(np.intp), 3)
    np.testing.assert_array_equal(planes.normals[:2], 0.0)
    assert planes.offsets[0] < 0 < planes.offsets[1]
    np.testing.assert_array_equal(planes.normals[5], 0.0)
    assert planes.offsets[5] < 0, "class 2 was never answered"
    assert planes.fit[0] == planes.fit[1] == planes.base[0] == planes.base[1] == 1.0
    assert np.abs(planes.normals[2, 0]) > 10 * np.abs(planes.normals[2, 1:]).max()


def test_a_rare_category_gets_a_plane_that_finds_it() -> None:
    rng = np.random.default_rng(5)
    latent = rng.normal(size=(4000, 4))
    truth = latent[:, 2] > 2.2
    assert 0.005 < truth.mean() < 0.03
    planes = fit_truth(latent, truth)
    found = latent @ planes.normals[0] + planes.offsets[0] > 0
    assert found[truth].mean() > 0.95
    assert found[~truth].mean() < 0.1
    assert cosine(planes.normals[0], np.eye(4)[2]) > 0.95


def test_several_classes() -> None:
    rng = np.random.default_rng(6)
    centres = np.array([[4.0, 0.0], [-4.0, 0.0], [0.0, 5.0]])
    labels = rng.integers(3, size=900)
    latent = centres[labels] + rng.normal(size=(900, 2))
    planes = fit_hyperplanes(latent, np.zeros((900, 0)), 0, labels, 3)
    assert ((latent @ planes.normals.T + planes.offsets).argmax(axis=1) == labels).mean() > 0.98
    normals, offsets = planes.of_class(np.array([2, 0]))
    np.testing.assert_array_equal(normals, planes.normals[[2, 0]])
    np.testing.assert_array_equal(offsets, planes.offsets[[2, 0]])


def test_rows_are_matrix_columns_then_classes() -> None:
    rng = np.random.default_rng(7)
    latent = rng.normal(size=(300, 3))
    matrix = np.concatenate([latent[:, :2], (latent[:, 2:] > 0).astype(float)], axis=1)
    planes = fit_hyperplanes(latent, matrix, 2, (latent[:, 0] > 0).astype(np.intp), 2)
    assert planes.normals.shape == (5, 3)
    assert planes.features == slice(0, 3)
    strongest = np.abs(planes.normals).argmax(axis=1)
    np.testing.assert_array_equal(strongest, [0, 1, 2, 0, 0])
    assert planes.normals[4, 0] > 0 > planes.normals[3, 0]
    np.testing.assert_array_equal(planes.of_class(np.array([1]))[0], planes.normals[[4]])


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e3 + 0.1])
def test_a_latent_dimension_that_never_moves_takes_no_part(constant: float) -> None:
    rng = np.random.default_rng(8)
    latent = np.column_stack([rng.normal(size=(1000, 2)), np.full(1000, constant)])
    planes = fit_truth(latent, latent[:, 0] > 0.3)
    assert cosine(planes.normals[0], np.array([1.0, 0.0, 0.0])) > 0.99
    assert planes.fit[0] > 0.97
