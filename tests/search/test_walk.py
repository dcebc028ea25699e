"""One row's walk, laid out flat."""

from typing import Any

import numpy as np
import pytest

from fasterce.config import SearchConfig
from fasterce.latent.directions import height
from fasterce.search.walk import trace

ROW = [3.0, 1.0, 5.0, 7.0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def test_the_walk_rises_across_the_hyperplane_and_flips(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    walk = trace(context, "no", "yes")
    assert (walk.label, walk.target) == ("no", "yes")
    assert walk.height[0] < 0 < walk.height[-1]
    assert walk.height[3] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(walk.distance) >= 0).all()
    np.testing.assert_allclose(np.diff(walk.height), np.diff(walk.distance), atol=1e-9)
    np.testing.assert_allclose(walk.side, walk.side[0], atol=1e-9)
    assert walk.flip == int(np.argmax(walk.valid))
    assert walk.valid[walk.flip]
    assert walk.flip >= 2


def test_the_cloud_is_the_examples_seen_the_same_way(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    walk = trace(context, "no", "yes")
    assert len(walk.cloud_height) == len(walk.cloud_side) == len(walk.cloud_wanted) <= 2 * SearchConfig().walk_examples
    assert ((walk.cloud_height > 0) == walk.cloud_wanted).mean() > 0.9
    assert 0.2 < walk.cloud_wanted.mean() < 0.8
    assert walk.cloud_side.std() > 0.5


def test_a_walk_that_never_flips_says_so(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW, frozen=[0, 2])
    walk = trace(context, "no", "yes")
    assert walk.flip == -1
    assert not walk.valid.any()


def test_with_frozen_features_it_still_reaches_the_hyperplane(toys: Any) -> None:
    """The walk drawn is the walk searched: three points before the hyperplane, one on it, the rest beyond."""
    context, _ = toys.scene(lead, ROW, frozen=[2])
    walk = trace(context, "no", "yes")
    normals, offsets = context.prediction_planes
    assert height(context.latent, normals, offsets)[0] < -0.1
    assert walk.height[3] == pytest.approx(0.0, abs=1e-6)
