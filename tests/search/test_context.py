"""What a context knows of its rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.fitting.state import SearchState
from fasterce.latent.hyperplanes import Hyperplanes
from fasterce.latent.regions import Regions
from fasterce.search.distance import Distance

ROWS = [[3.0, 1.0, 5.0, 7.0], [8.0, 3.0, 5.0, 7.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] - 6.0


def test_the_wanted_side_is_the_normal_of_the_wanted_class(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    planes = context.state.hyperplanes
    normals, offsets = context.prediction_planes
    np.testing.assert_array_equal(normals, planes.normals[[-1, -2]])
    np.testing.assert_array_equal(offsets, planes.offsets[[-1, -2]])
    np.testing.assert_allclose(np.linalg.norm(context.toward_target, axis=1), 1.0)
    assert context.toward_target[0, 0] > 0.95, "row 0 must go up in a"
    assert context.toward_target[1, 0] < -0.95, "row 1 must go down"


def test_latent_and_decoded_are_of_the_base(toys: Any) -> None:
    base = [[4.0, 1.0, 5.0, 7.0], [7.0, 3.0, 5.0, 7.0]]
    context, _ = toys.scene(lead, ROWS, base=base)
    np.testing.assert_array_equal(context.latent, context.state.codec.encode(np.array(base)))
    np.testing.assert_array_equal(context.decoded, context.latent)


def test_a_features_plane_is_its_own_or_its_categorys(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS)
    planes, codec = context.state.hyperplanes, context.state.codec
    normals, offsets = context.feature_planes
    assert normals.shape == (2, 4, codec.width)
    for k, j in enumerate(codec.numeric):
        np.testing.assert_array_equal(normals[:, j], [planes.normals[k]] * 2)
        np.testing.assert_array_equal(offsets[:, j], [planes.offsets[k]] * 2)
    start = codec.blocks[0].start
    np.testing.assert_array_equal(normals[:, 1], planes.normals[[start + 1, start + 3]])
    np.testing.assert_array_equal(offsets[:, 1], planes.offsets[[start + 1, start + 3]])
    own = (normals[:, 1] * context.latent).sum(axis=1) + offsets[:, 1]
    assert (own > 0).all(), "a row lies on the positive side of its own category's plane"


def test_a_category_without_a_column_has_no_plane(toys: Any) -> None:
    towns = [f"t{k:03d}" for k in range(70)]
    frame = pd.DataFrame({"town": [*towns, *towns[:66]], "x": np.arange(136.0)})
    codec, codes = toys.codec(frame)
    count = codec.width + 2
    planes = Hyperplanes(np.ones((count, 3)), np.arange(1.0, count + 1), np.ones(count), np.ones(count), 2)
    distance = Distance.gower(codec.profile.span, codec.numeric)
    answers = np.zeros(len(codes), dtype=np.intp)
    peers: dict[str, Any] = {
        "typical": np.zeros(2),
        "groups": np.arange(2),
        "prototypes": np.zeros((1, 3)),
        "prototype_classes": np.zeros(1),
    }
    state = SearchState(codec, toys.identity, planes, Regions.whole(planes), codes, answers, distance, **peers)
    context = toys.context(state, toys.domain(codec, [[69.0, 5.0], [3.0, 5.0]]), toys.Model(lambda points: points[:, 1] - 60))
    normals, offsets = context.feature_planes
    np.testing.assert_array_equal(normals[0, 0], 0.0)
    assert offsets[0, 0] == 0.0
    np.testing.assert_array_equal(normals[1, 0], 1.0)
    assert offsets[1, 0] == codec.blocks[0].start + 3 + 1


def test_examples_are_known_in_matrix_and_latent_form(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    known = context.state
    np.testing.assert_array_equal(known.example_classes, model.label(known.examples))
    np.testing.assert_array_equal(known.example_matrix, known.codec.encode(known.examples))
    np.testing.assert_array_equal(known.example_latent, known.example_matrix)
    assert context.distance is known.distance
    assert known.typical == pytest.approx(0.1, abs=0.1)
