"""Single edits: their values and costs."""

import numpy as np
import pytest

from fasterce.data.schema import MISSING
from fasterce.kernels.edits import at_precision, change_cost, list_edits, total_cost
from fasterce.kernels.profile import workspace
from fasterce.kernels.structs import as_struct
from tests.kernels.worlds import NUMBERS, SIZES, World, column, draw

EVERY_KIND = (*NUMBERS, *SIZES)
DISTANCES = ("gower", "percentile", "mad", "euclidean")


def edits_of(world: World, q: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Values and costs of the edits of each feature of a query."""
    work = workspace(world.scorer, world.space)
    list_edits(as_struct(world.scorer), as_struct(world.space), as_struct(world.queries), q, as_struct(work))
    first = work.edits.first
    parts = [slice(first[j], first[j + 1]) for j in range(len(world.kinds))]
    return [work.edits.value[part].copy() for part in parts], [work.edits.cost[part].copy() for part in parts]


@pytest.mark.parametrize("distance", DISTANCES)
def test_costs_are_those_of_the_distance(distance: str) -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        world = draw(seed, kinds=EVERY_KIND, distance=distance)
        space = as_struct(world.space)
        rows, others = (np.column_stack([column(rng, kind, 40) for kind in world.kinds]) for _ in range(2))
        others = np.where(rng.random(rows.shape) < 0.4, rows, others)
        for row, other in zip(rows, others, strict=True):
            parts = np.array([change_cost(space, j, other[j], row[j]) for j in range(len(row))])
            np.testing.assert_allclose(parts, world.distance.parts(other, row), atol=1e-9)
            assert total_cost(space, parts) == pytest.approx(float(world.distance.total(other, row)), abs=1e-8)


def test_numbers_are_rounded_as_the_domain_rounds_them() -> None:
    world = draw(4, kinds=("whole", "decimal", "single"), rows=1)
    space, queries = as_struct(world.space), as_struct(world.queries)
    for j in range(3):
        for value in np.linspace(-1, 11, 97):
            expected = world.domain.round_flat(np.array([value]), j, np.array([0]))[0]
            assert at_precision(space, queries, 0, j, value) == expected


def test_numbers_on_a_grid_are_rounded_as_the_domain_rounds_them() -> None:
    world = draw(4, kinds=("grid", "grid"), rows=1)
    space, queries = as_struct(world.space), as_struct(world.queries)
    for j in range(2):
        for value in np.linspace(-1, 11, 97):
            assert (
                at_precision(space, queries, 0, j, value) == world.domain.round_flat(np.array([value]), j, np.array([0]))[0]
            )


def test_edits_are_within_the_domain_and_there_is_one_for_every_cell() -> None:
    """With trees, one value of every cell a query may move to, the nearest of the cell."""
    for seed in range(8):
        world = draw(seed, kinds=("whole", "decimal", "single", "nullable", "few", "many"))
        trees = world.scorer.trees
        for q in range(3):
            values, costs = edits_of(world, q)
            for j, kind in enumerate(world.kinds):
                legal, base = world.values(q, j), world.domain.base[q, j]
                assert np.isin(values[j], legal).all(), kind
                assert len(set(values[j])) == len(values[j])
                expected = [
                    world.distance.single(np.array([j]), np.array([[v]]), world.domain.row[[q]])[0, 0] for v in values[j]
                ]
                np.testing.assert_allclose(costs[j], expected, atol=1e-8)
                if kind in SIZES:
                    assert set(values[j]) == set(legal)
                    continue
                edges = trees.edges[trees.edge_start[j] : trees.edge_start[j + 1]]
                reach = legal[legal != MISSING]
                cells, mine = np.searchsorted(edges, reach), np.searchsorted(edges, values[j][values[j] != MISSING])
                own = -1 if base == MISSING else int(np.searchsorted(edges, base))
                assert set(cells) - {own} <= set(mine)
                assert (MISSING in values[j]) == (MISSING in legal)
                for cell in set(cells) - {own} if base != MISSING else set():
                    nearest = np.abs(reach[cells == cell] - base).min()
                    assert np.abs(values[j][values[j] != MISSING][mine == cell] - base).min() == nearest


def test_edits_without_edges_are_the_listed_values_and_the_ends() -> None:
    for seed in range(5):
        world = draw(seed, kinds=("whole", "decimal", "single", "few", "nullable"), scorer="network")
        for q in range(3):
            values, _ = edits_of(world, q)
            for j in range(len(world.kinds)):
                assert set(values[j]) == set(world.tried(q, j))


def test_frozen_features_have_no_edits() -> None:
    values, _ = edits_of(draw(0, kinds=EVERY_KIND, frozen=(0, 5, 6)), 0)
    assert [len(some) > 0 for some in values] == [False, True, True, True, True, False, False]
