"""Branch and bound on linear models, against all combinations of values."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fasterce.kernels.arrays import NO_NETWORK
from tests.kernels.worlds import World, draw, make_targets

KINDS = ("whole", "few", "whole", "grid", "few", "whole")
TARGETS = ("named", "other")
WORLDS = 10


def linear_world(seed: int, target: str) -> World:
    """A world whose model is a straight line in every number."""
    rng = np.random.default_rng([seed, 5])
    kinds = tuple(map(str, rng.permutation(KINDS)[: 3 + seed % 3]))
    world = draw(seed, kinds=kinds, scorer="network", hidden=())
    sizes = [4 if kind == "few" else 2 for kind in kinds]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    network = NO_NETWORK._replace(
        knots=np.concatenate([np.arange(4.0) if kind == "few" else [0.0, 10.0] for kind in kinds]),
        entries=rng.normal(size=(start[-1], 1)),
        start=start,
        numeric=np.array([kind != "few" for kind in kinds]),
        nullable=np.zeros(len(kinds), dtype=np.bool_),
        extrapolate=True,
        bias=rng.normal(size=1),
        curvature=np.zeros(len(kinds)),
    )
    scorer = world.scorer._replace(network=network)
    return replace(world, scorer=scorer, targets=make_targets(rng, scorer, target, world.domain.base))


@pytest.mark.parametrize("target", TARGETS)
def test_the_cheapest_candidate_is_the_optimum(target: str) -> None:
    compared, several = 0, 0
    for seed in range(WORLDS):
        world = linear_world(seed, target)
        found = world.search()
        for q in range(len(found.count)):
            options = [np.append(world.values(q, j), world.domain.base[q, j]) for j in range(len(world.kinds))]
            codes = np.array(list(product(*options)))
            codes = codes[world.margins(q, codes) > world.scorer.error]
            assert bool(len(codes)) == bool(found.count[q])
            if len(codes):
                cost = world.distance.total(codes, world.domain.row[q])
                changes = (codes != world.domain.row[q]).sum(axis=1)
                assert found.cost[q, 0] == pytest.approx(cost.min(), abs=1e-8)
                ours = (found.codes[q, : found.count[q]] != world.domain.row[q]).sum(axis=1)
                assert ours.min() == changes.min()
                fewest = found.cost[q, : found.count[q]][ours == ours.min()].min()
                assert fewest == pytest.approx(cost[changes == changes.min()].min(), abs=1e-8)
                compared, several = compared + 1, several + int(ours[0] > 1)
    assert compared >= WORLDS
    assert several >= 3, "some queries need several changes"
