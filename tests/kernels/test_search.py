"""The compiled search on small random worlds, against brute force."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.config import SearchConfig
from fasterce.kernels.arrays import LOG, RELU, TANH
from tests.kernels.worlds import NUMBERS, ROUNDING, SIZES, TARGETS, World, draw

DISTANCES = ("gower", "percentile", "mad", "euclidean")
SCORERS: dict[str, dict[str, Any]] = {
    "trees": {"scorer": "trees"},
    "trees, three classes": {"scorer": "trees", "outputs": 3},
    "forest": {"scorer": "trees", "link": LOG},
    "linear": {"scorer": "network", "hidden": ()},
    "network": {"scorer": "network", "hidden": (6,), "activation": RELU},
    "network, three classes": {"scorer": "network", "hidden": (6, 5), "activation": TANH, "outputs": 3},
}
WORLDS = 12
# Filling a missing number costs slightly more far from its usual value; the search need not find the best of all cells.
FILLING = 1e-5
# Kinds of features whose values need no tidying.
PLAIN = tuple(kind for kind in (*NUMBERS, *SIZES) if kind != "grid")


def worlds(scorer: str, distance: str, count: int = WORLDS, **options: Any) -> Iterator[World]:
    for seed in range(count):
        kinds = tuple(map(str, np.random.default_rng(seed).choice(PLAIN, size=2 + seed % 4)))
        yield draw(
            seed, kinds=kinds, distance=distance, target=TARGETS[seed % 3], moved=seed % 5 == 4, **SCORERS[scorer] | options
        )


def candidates(world: World, found: Any) -> Iterator[tuple[int, np.ndarray, float, float]]:
    for q in range(len(found.count)):
        for k in range(found.count[q]):
            yield q, found.codes[q, k], float(found.cost[q, k]), float(found.margin[q, k])


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("scorer", SCORERS)
def test_candidates_reach_the_target_in_the_domain_at_the_stated_cost(scorer: str, distance: str) -> None:
    total = 0
    for world in worlds(scorer, distance):
        found = world.search()
        for q, codes, cost, margin in candidates(world, found):
            assert world.margins(q, codes)[0] > 0
            assert margin == pytest.approx(world.margins(q, codes)[0], abs=ROUNDING)
            assert world.domain.take(np.array([q])).contains(codes[None, None])[0, 0]
            assert cost == pytest.approx(float(world.distance.total(codes, world.domain.row[q])), abs=1e-8)
            total += 1
        for q, count in enumerate(found.count):
            assert (np.diff(found.cost[q, :count]) >= 0).all()
            sets = [tuple(np.flatnonzero(codes != world.domain.row[q])) for codes in found.codes[q, :count]]
            assert len(set(sets)) == count, "one candidate per set of changed features"
    assert total > 20


def test_candidates_are_on_the_grids_of_their_features() -> None:
    for options in SCORERS.values():
        for seed in range(6):
            world = draw(seed, kinds=("grid", "grid", "few"), **options)
            for q, codes, _, _ in candidates(world, world.search()):
                assert world.domain.take(np.array([q])).contains(codes[None, None])[0, 0]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("scorer", SCORERS)
def test_every_change_is_needed(scorer: str, distance: str) -> None:
    """A candidate loses the target if a change is reverted, or a number is moved one value toward the query."""
    for world in worlds(scorer, distance):
        for q, codes, _, _ in candidates(world, world.search()):
            for smaller in world.neighbours(q, codes):
                assert world.margins(q, smaller)[0] <= 2 * world.scorer.error, (q, codes, smaller)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("scorer", SCORERS)
def test_never_dearer_than_the_best_single_edit_and_seldom_than_the_best_pair(scorer: str, distance: str) -> None:
    """Pairs whose edits gain nothing by themselves may be missed: a tenth of the queries of random models at most."""
    dearer = []
    for world in worlds(scorer, distance):
        found = world.search()
        for q in range(len(found.count)):
            single, pair, best = (
                world.cheapest(q, world.singles(q)),
                world.cheapest(q, world.pairs(q)),
                float(found.cost[q, 0]),
            )
            assert best <= single + FILLING
            if np.isfinite(pair):
                dearer.append(best > 1.05 * pair)
    assert np.mean(dearer) < 0.1


@pytest.mark.parametrize("scorer", SCORERS)
def test_the_cheapest_stays_when_more_candidates_are_found_than_are_kept(scorer: str) -> None:
    config, kinds = SearchConfig(pool=4, improved=2), ("whole", "few", "decimal", "single", "nullable", "whole")
    for seed in range(20):
        world = draw(seed, kinds=kinds, rows=6, **SCORERS[scorer])
        one, several = world.search(config, wanted=1), world.search(config, wanted=3)
        np.testing.assert_array_equal(one.cost[:, 0], several.cost[:, 0])


def test_a_complete_search_has_tried_every_pair() -> None:
    for seed, q in ((11, 1), (5, 0)):
        world = draw(seed, outputs=3, target="within")
        found = world.search()
        assert not found.complete[q] or found.cost[q, 0] <= 1.05 * world.cheapest(q, world.pairs(q))


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_query_alone_gets_what_it_gets_in_a_batch(scorer: str) -> None:
    for seed in range(4):
        world = draw(seed, target=TARGETS[seed % 3], rows=5, **SCORERS[scorer])
        together = world.search()
        for q in range(5):
            alone = world.take(np.array([q])).search()
            for name, value in alone._asdict().items():
                np.testing.assert_array_equal(value[0], getattr(together, name)[q], err_msg=name)


@pytest.mark.parametrize("scorer", ["trees", "network"])
def test_frozen_features_keep_their_value(scorer: str) -> None:
    moved = set()
    for seed in range(8):
        world = draw(seed, kinds=("whole", "few", "decimal", "nullable"), frozen=(0, 1), **SCORERS[scorer])
        for q, codes, _, _ in candidates(world, world.search()):
            moved |= set(np.flatnonzero(codes != world.domain.row[q]))
    assert moved == {2, 3}


@pytest.mark.parametrize("scorer", ["trees", "network"])
@pytest.mark.parametrize("most", [1, 2])
def test_at_most_so_many_changes(scorer: str, most: int) -> None:
    total = 0
    for seed in range(8):
        world = draw(seed, kinds=("whole", "few", "decimal", "single", "nullable"), most_changes=most, **SCORERS[scorer])
        found = world.search()
        for q, codes, _, _ in candidates(world, found):
            assert (codes != world.domain.row[q]).sum() <= most
            total += 1
        if most == 1:
            for q in range(len(found.count)):
                assert float(found.cost[q, 0]) <= world.cheapest(q, world.singles(q)) + FILLING
    assert total > 5


def test_features_that_do_not_count_may_change_besides() -> None:
    beyond = 0
    for seed in range(12):
        world = draw(seed, kinds=("whole", "few", "decimal", "single"), most_changes=1, **SCORERS["network"])
        counted = np.array([True, True, False, False])
        world = replace(world, domain=replace(world.domain, counted=counted))
        for q, codes, _, _ in candidates(world, world.search()):
            changed = codes != world.domain.row[q]
            assert (changed & counted).sum() <= 1
            beyond += changed.sum() > 1
    assert beyond > 0


def test_starts_that_reach_the_target_are_used() -> None:
    """A candidate from elsewhere is brought to the boundary and kept."""
    world = draw(11, outputs=3, target="within").take(np.array([1]))
    pairs = world.pairs(0)
    start = pairs[world.many_margins(0, pairs) > ROUNDING][:1]
    found = world.search(starts=start[None])
    assert found.count[0] > 0
    assert world.margins(0, found.codes[0, 0])[0] > 0
    assert found.cost[0, 0] <= float(world.distance.total(start[0], world.domain.row[0])) + ROUNDING


def test_a_larger_margin_is_reached_where_it_is_needed() -> None:
    world = draw(2, kinds=("whole", "decimal", "few"), **SCORERS["linear"])
    need = np.full(3, 0.4)
    found = replace(world, targets=world.targets.demanding(need)).search()
    assert found.count.sum() > 0
    for q, codes, _, _ in candidates(world, found):
        assert world.margins(q, codes)[0] > 0.4


SMALL = """
import json, sys
from tests.kernels.worlds import draw
out = []
for scorer in ("trees", "network"):
    world = draw(7, kinds=("whole", "few", "nullable"), scorer=scorer, rows=2)
    found = world.search()
    out.append([found.codes.tolist(), found.count.tolist(), found.margin.tolist(), found.cost.tolist()])
json.dump(out, sys.stdout)
"""


def test_the_same_without_compilation() -> None:
    def run(**environment: str) -> Any:
        ran = subprocess.run(
            [sys.executable, "-c", SMALL], env=os.environ | environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    for plain, compiled in zip(run(NUMBA_DISABLE_JIT="1"), run(), strict=True):
        assert sum(compiled[1]) > 0
        for one, other in zip(plain, compiled, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
