"""The engine "paper" beside Algorithms 1 to 3 written down as loops over one row, with the deviations of docs/paper.md."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from fasterce import FasterCE, PaperOptions
from fasterce.config import Config

COLUMNS = ["alcohol", "malic_acid", "color_intensity", "proline"]
TARGET = 1


@cache
def world() -> tuple[FasterCE, pd.DataFrame]:
    data = load_wine(as_frame=True)
    frame, wanted = data.data[COLUMNS], (data.target == 0).astype(int)
    model = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=2000)).fit(frame, wanted)
    explainer = FasterCE(model, progress=False, config=Config.fast()).fit(frame)
    return explainer, frame[model.predict(frame) != TARGET].head(12).reset_index(drop=True)


def reaches(row: np.ndarray) -> bool:
    return bool(world()[0].model.predict(pd.DataFrame(row[None], columns=COLUMNS))[0] == TARGET)


def decoded(point: np.ndarray) -> np.ndarray:
    state = world()[0].state_.search
    codes = state.codec.decode(state.autoencoder.decode(point[None]))[0]
    features = state.codec.schema.features
    return np.array([np.clip(round(v, f.decimals), f.lower, f.upper) for v, f in zip(codes, features, strict=True)])


def steps(start: np.ndarray, direction: np.ndarray, options: PaperOptions) -> Iterator[np.ndarray]:
    """z = z + ε c / ‖c‖ while ε <= ε_max; ε grows by δε, or doubles."""
    point, eps = start, 0.0
    while eps <= options.eps_max + 1e-9:
        point = point + eps * direction / np.linalg.norm(direction)
        yield decoded(point)
        eps = eps + options.step if options.growth == "linear" or eps == 0 else 2 * eps


def planes(row: pd.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return the row's latent point, the normals of its features, and the hyperplane of the target."""
    state = world()[0].state_.search
    point = state.autoencoder.encode(state.codec.encode(row.to_numpy(float)[None]))[0]
    normals, offsets = state.hyperplanes.normals, state.hyperplanes.offsets
    toward = len(normals) - state.hyperplanes.classes + TARGET
    return point, normals[: len(COLUMNS)], normals[toward], float(offsets[toward])


def intersection(point: np.ndarray, normal: np.ndarray, offset: float, contours: np.ndarray) -> np.ndarray:
    """Return the nearest point of the prediction hyperplane on the contours of features through the row's own point."""
    every = np.vstack([normal, contours])
    missing = np.concatenate([[-offset], contours @ point]) - every @ point
    return point + np.linalg.lstsq(every, missing, rcond=None)[0]


def orthogonal(direction: np.ndarray, normals: np.ndarray) -> np.ndarray:
    return direction - normals.T @ np.linalg.lstsq(normals.T, direction, rcond=None)[0]


def algorithm1(row: pd.Series, options: PaperOptions) -> np.ndarray | None:
    point, _, normal, offset = planes(row)
    start = intersection(point, normal, offset, np.zeros((0, len(point))))
    return next((found for found in steps(start, normal, options) if reaches(found)), None)


def algorithm2(row: pd.Series, a: int, options: PaperOptions) -> np.ndarray | None:
    """Return the row with feature `a` of the first decoded row that reaches the target, if that is enough."""
    point, normals, normal, offset = planes(row)
    direction = orthogonal(normals[a], np.delete(normals, a, axis=0))
    direction = direction * np.sign(direction @ normal)
    start = intersection(point, normal, offset, normals[a : a + 1])
    flipped = next((found for found in steps(start, direction, options) if reaches(found)), None)
    if flipped is None:
        return None
    sparse = row.to_numpy(float).copy()
    sparse[a] = flipped[a]
    return sparse if reaches(sparse) else None


def algorithm3(row: pd.Series, free: list[int], options: PaperOptions) -> np.ndarray | None:
    """Change the features `free` only; the others are put back after the model was evaluated, and it is evaluated again."""
    point, normals, normal, offset = planes(row)
    fixed = [j for j in range(len(COLUMNS)) if j not in free]
    start = intersection(point, normal, offset, normals[fixed])
    for found in steps(start, orthogonal(normal, normals[fixed]), options):
        reset = found.copy()
        reset[fixed] = row.to_numpy(float)[fixed]
        if reaches(found) and reaches(reset):
            return reset
    return None


def assert_same(found: Any, expected: list[np.ndarray | None]) -> None:
    assert [status == "found" for status in found.status] == [one is not None for one in expected]
    for row, one in zip(found.counterfactuals.to_numpy(float), expected, strict=True):
        if one is not None:
            np.testing.assert_allclose(row, one, rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        PaperOptions(),
        PaperOptions(step=0.3),
        PaperOptions(step=0.01),
        PaperOptions(step=0.02, eps_max=0.06),
        PaperOptions(growth="multiplicative"),
        PaperOptions(step=0.02, eps_max=0.7, growth="multiplicative"),
    ],
    ids=str,
)
def test_closest_is_algorithm_1(options: PaperOptions) -> None:
    explainer, refused = world()
    found = explainer.explain(refused, "closest", engine="paper", paper=options, diagnose=False)
    assert_same(found, [algorithm1(row, options) for _, row in refused.iterrows()])


def test_a_small_step_loses_no_validity() -> None:
    """ε_max limits the search, not the number of steps."""
    explainer, refused = world()
    found = [explainer.explain(refused, engine="paper", paper=PaperOptions(step=step)) for step in (0.1, 0.01)]
    assert (found[0].status == "found").sum() <= (found[1].status == "found").sum()


@pytest.mark.parametrize("a", range(len(COLUMNS)))
def test_sparse_is_algorithm_2(a: int) -> None:
    explainer, refused = world()
    options = PaperOptions()
    found = explainer.explain(refused, "sparse", engine="paper", features_to_vary=[COLUMNS[a]], diagnose=False)
    for k, (_, row) in enumerate(refused.iterrows()):
        expected, status = algorithm2(row, a, options), found.status.iloc[k]
        if expected is not None:
            assert status == "found"
            np.testing.assert_allclose(found.counterfactuals.iloc[k].to_numpy(float), expected, rtol=1e-3)
        elif status == "found":
            changed = found.counterfactuals.iloc[k].to_numpy(float) != row.to_numpy(float)
            assert changed.tolist() == [j == a for j in range(len(COLUMNS))], "varied at random, alone"


@pytest.mark.parametrize("free", [[0, 3], [1, 2], [0, 2, 3], [0, 1, 2, 3]], ids=str)
def test_realistic_is_algorithm_3(free: list[int]) -> None:
    explainer, refused = world()
    vary = [COLUMNS[j] for j in free]
    found = explainer.explain(refused, "realistic", engine="paper", features_to_vary=vary, diagnose=False)
    assert_same(found, [algorithm3(row, free, PaperOptions()) for _, row in refused.iterrows()])
