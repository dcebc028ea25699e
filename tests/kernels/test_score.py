"""Outputs and margins of rows, against plain NumPy."""

from typing import Any

import numpy as np
import pytest

from fasterce.kernels.arrays import IDENTITY, LOG, LOG_SIGMOID
from fasterce.kernels.score import NAMED, OTHER, WITHIN, margin_of, outputs
from fasterce.kernels.structs import as_struct
from fasterce.search.query_targets import Named, Other, Within
from fasterce.surrogate.runtime import NO_LIMIT
from tests.kernels.worlds import ACTIVATIONS, NUMBERS, SIZES, World, column, draw, margins
from tests.models.compiled.oracle import oracle

EVERY_KIND = (*NUMBERS, *SIZES)


def rows_of(world: World, count: int = 60) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.column_stack([column(rng, kind, count) for kind in world.kinds])


@pytest.mark.parametrize("outputs_", [1, 3])
def test_outputs_of_trees(outputs_: int) -> None:
    for seed in range(6):
        world = draw(seed, kinds=EVERY_KIND, outputs=outputs_, trees=10, depth=6)
        codes = rows_of(world)
        np.testing.assert_allclose(outputs(world.scorer, codes), oracle(world.scorer, codes), atol=1e-12)


@pytest.mark.parametrize("extrapolate", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (5,), (6, 4), (6, 5, 4)])
def test_outputs_of_networks(hidden: tuple[int, ...], activation: int, extrapolate: bool) -> None:
    options: dict[str, Any] = {"hidden": hidden, "activation": activation, "extrapolate": extrapolate}
    world = draw(2, kinds=EVERY_KIND, scorer="network", outputs=2, **options)
    codes = rows_of(world)
    codes[:9, 0] = np.linspace(-4, 14, 9)
    np.testing.assert_allclose(outputs(world.scorer, codes), oracle(world.scorer, codes), atol=1e-10)


@pytest.mark.parametrize(("count", "link"), [(1, IDENTITY), (1, LOG), (3, IDENTITY), (3, LOG), (4, LOG_SIGMOID)])
def test_margins_of_the_three_kinds_of_target(count: int, link: int) -> None:
    rng = np.random.default_rng(count)
    scorer = draw(0, outputs=count, link=link).scorer
    compiled = as_struct(scorer)
    for _ in range(50):
        out = rng.dirichlet(np.ones(max(count, 2)))[:count] if link == LOG else rng.normal(size=count) * 4
        label, low = int(rng.integers(max(count, 2))), float(rng.normal())
        own, ends = np.array([label]), (np.array([low]), np.array([low + 1.5]))
        for kind, targets in (
            (NAMED, Named(own)),
            (OTHER, Other(own, own=own)),
            (WITHIN, Within(own, of=own, low=ends[0], high=ends[1])),
        ):
            expected = margins(scorer, targets, 0, out[None])[0]
            found = margin_of(compiled, out, kind, label, low, low + 1.5, NO_LIMIT)
            assert found == pytest.approx(expected, abs=1e-9), (kind, out, label)


def test_scores_below_the_lowest_count_as_the_lowest() -> None:
    scorer = as_struct(draw(0, outputs=3).scorer)
    assert margin_of(scorer, np.array([1.0, -50.0, -60.0]), NAMED, 1, 0.0, 0.0, -9.0) == -10.0
    assert margin_of(scorer, np.array([-60.0, -50.0, -20.0]), NAMED, 2, 0.0, 0.0, -9.0) == 0.0
