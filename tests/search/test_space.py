"""The arrays of the compiled search, made from domain, distance and targets."""

import numpy as np
import pytest

from fasterce.data.schema import MISSING
from fasterce.kernels.score import NAMED, OTHER, WITHIN
from tests.kernels.worlds import NUMBERS, SIZES, draw

EVERY_KIND = (*NUMBERS, *SIZES)


def test_levels_are_the_nearest_values_on_both_sides_of_every_edge() -> None:
    for seed in range(6):
        world = draw(seed, kinds=("whole", "decimal", "single"))
        space, trees = world.space, world.scorer.trees
        for j in range(3):
            edges = trees.edges[trees.edge_start[j] : trees.edge_start[j + 1]]
            part = slice(space.level_start[j], space.level_start[j + 1])
            level, side = space.level[part], space.level_side[part]
            assert (np.diff(level) >= 0).all()
            decimals = 0 if world.kinds[j] == "whole" else 1
            values = np.arange(-3, 130) / 10 if decimals else np.arange(-3.0, 14.0)
            values = values.astype(np.float32).astype(float) if world.kinds[j] == "single" else values
            assert set(level[side < 0]) == {values[values <= edge].max() for edge in edges}
            assert set(level[side > 0]) == {values[values > edge].min() for edge in edges}


def test_trees_are_listed_by_the_features_they_split_on() -> None:
    world = draw(3, kinds=EVERY_KIND, trees=9)
    space, trees = world.space, world.scorer.trees
    ends = [*trees.root[1:], len(trees.feature)]
    for j in range(len(EVERY_KIND)):
        expected = [t for t in range(9) if j in trees.feature[trees.root[t] : ends[t]]]
        assert space.tree[space.tree_start[j] : space.tree_start[j + 1]].tolist() == expected


@pytest.mark.parametrize(("target", "kind"), [("named", NAMED), ("other", OTHER), ("within", WITHIN)])
def test_targets_and_domain_become_arrays(target: str, kind: int) -> None:
    world = draw(1, kinds=EVERY_KIND, outputs=3, target=target, frozen=(1,))
    queries = world.queries
    assert queries.kind == kind
    assert not queries.free[:, 1].any()
    np.testing.assert_array_equal(queries.row, world.domain.row)
    opened = np.concatenate([world.domain.open_to(j) for j, name in enumerate(EVERY_KIND) if name in SIZES], axis=1)
    np.testing.assert_array_equal(queries.open_categories, opened)
    nullable = EVERY_KIND.index("nullable")
    assert world.domain.missing is not None
    assert queries.may_be_missing[:, nullable].all() == world.domain.missing.may_appear[nullable]
    assert world.space.words == 2


def test_found_has_room_for_the_pool_and_says_how_many() -> None:
    world = draw(2, kinds=("whole", "decimal", "few"))
    found = world.search()
    assert found.codes.shape[:2] == found.cost.shape == found.margin.shape
    assert np.isinf(found.cost[np.arange(found.cost.shape[1]) >= found.count[:, None]]).all()
    assert (found.scored > 0).all()
    assert (found.codes[found.cost < np.inf] != MISSING).all()
