"""The margins of all single edits of a row are those of the edited rows, each evaluated by itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.kernels.arrays import EXPONENTIAL, IDENTITY, LOG, LOG_SIGMOID
from fasterce.kernels.edits import list_edits
from fasterce.kernels.profile import profile, row_margin, workspace
from fasterce.kernels.structs import as_struct
from tests.kernels.worlds import ACTIVATIONS, NUMBERS, SIZES, TARGETS, World, draw

EVERY_KIND = (*NUMBERS, *SIZES)


def profiles(world: World, q: int, state: np.ndarray, changing: np.ndarray) -> tuple[float, list[tuple[int, float, float]]]:
    """The margin of a state, and feature, value and margin of each edit of its `changing` features."""
    space = world.space
    work = workspace(world.scorer, space)
    scorer, spaces, queries, scratch = as_struct(world.scorer), as_struct(space), as_struct(world.queries), as_struct(work)
    list_edits(scorer, spaces, queries, q, scratch)
    own = profile(scorer, spaces, queries, q, scratch, state, changing)
    first = work.edits.first
    found = [
        (int(j), float(work.edits.value[e]), float(work.margin[e]))
        for j in np.flatnonzero(changing)
        for e in range(first[j], first[j + 1])
    ]
    return own, found


def check(world: World, seed: int) -> int:
    """Compare the profile of each query, and of a row with other changes, with full evaluations; return how many edits."""
    rng = np.random.default_rng(seed)
    count = 0
    for q in range(len(world.domain.row)):
        base = world.domain.base[q]
        other = base.copy()
        for j in np.flatnonzero(rng.random(len(base)) < 0.5):
            values = world.values(q, int(j))
            other[j] = rng.choice(values) if len(values) else base[j]
        some = rng.random(len(base)) < 0.5
        one = np.arange(len(base)) == rng.integers(len(base))
        for state, changing in ((base, np.ones(len(base), dtype=bool)), (other, other == base), (other, some), (other, one)):
            own, found = profiles(world, q, state, changing)
            np.testing.assert_allclose(own, world.margins(q, state)[0], atol=1e-9)
            if found:
                rows = np.repeat(state[None], len(found), axis=0)
                rows[np.arange(len(found)), [j for j, _, _ in found]] = [value for _, value, _ in found]
                np.testing.assert_allclose([margin for _, _, margin in found], world.margins(q, rows), atol=1e-9)
            count += len(found)
    return count


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("outputs", "link"), [(1, IDENTITY), (1, LOG), (3, IDENTITY), (3, LOG), (4, LOG_SIGMOID)])
def test_profiles_of_trees(outputs: int, link: int, target: str) -> None:
    edits = sum(check(draw(seed, kinds=EVERY_KIND, outputs=outputs, link=link, target=target), seed) for seed in range(4))
    assert edits > 500


@pytest.mark.parametrize(
    "kinds", [["many", "many", "whole"], ["nullable", "nullable"], ["few"], ["single", "grid"]], ids=" ".join
)
def test_profiles_of_trees_of_few_kinds_of_features(kinds: list[str]) -> None:
    assert sum(check(draw(seed, kinds=kinds, trees=12, depth=6), seed) for seed in range(10)) > 100


@pytest.mark.parametrize("hidden", [(), (6,), (7, 5)], ids=["linear", "one layer", "two layers"])
@pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_profiles_of_networks(outputs: int, activation: int, hidden: tuple[int, ...]) -> None:
    if activation == EXPONENTIAL and len(hidden) > 1:
        pytest.skip("exponentials of exponentials")
    options: dict[str, Any] = {"scorer": "network", "hidden": hidden, "activation": activation, "outputs": outputs}
    worlds = [draw(seed, kinds=EVERY_KIND, target=target, **options) for seed, target in enumerate(TARGETS)]
    assert sum(check(world, seed) for seed, world in enumerate(worlds)) > 500


def test_the_margin_needed_beyond_the_boundary_is_taken_off() -> None:
    world = draw(3)
    need = world.targets.demanding(np.array([0.5, 1.0, 1.5]))
    for q in range(3):
        state = world.domain.base[q]
        work = workspace(world.scorer, world.space)
        queries = as_struct(replace(world, targets=need).queries)
        found = row_margin(as_struct(world.scorer), queries, q, as_struct(work), state)
        assert found == pytest.approx(world.margins(q, state)[0] - 0.5 * (q + 1))
