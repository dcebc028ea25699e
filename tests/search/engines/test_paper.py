"""The three algorithms of the paper on problems with known answers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fasterce.constraints.compile import CompiledConstraints
from fasterce.data.table import Table
from fasterce.latent.directions import project_on
from fasterce.latent.line_search import along, increments
from fasterce.options import PaperOptions
from fasterce.search.context import SearchContext
from fasterce.search.engines import paper
from fasterce.search.pool import Pool
from fasterce.search.proposals.latent import on_boundary
from fasterce.search.rounds import run_rounds
from tests.search.conftest import ToyModel


def run(variant: Any, context: SearchContext, n: int = 1) -> Pool:
    pools = run_rounds(context.evaluator, [variant(context, n)])
    assert pools is not None
    return pools[0]


ROWS = [[3.0, 1.0, 5.0, 7.0], [9.0, 2.0, 9.0, 3.0], [1.0, 0.0, 2.0, 19.0]]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def right(context: Any, codes: np.ndarray) -> np.ndarray:
    return (lead(codes) > 0).astype(int) == context.evaluator.target


@pytest.mark.parametrize("variant", [paper.closest, paper.realistic])
def test_the_walk_flips_a_linear_problem(toys: Any, variant: Any) -> None:
    context, model = toys.scene(lead, ROWS)
    model.model_rows.clear()
    pool = run(variant, context)
    assert pool.codes.shape == (3, 1, 4)
    assert pool.valid.all()
    assert right(context, pool.codes[:, 0]).all()
    assert context.domain.contains(pool.codes).all()
    assert len(model.model_rows) == 1


def test_the_first_point_that_flips_is_taken(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0])
    found = run(paper.closest, context).codes[0, 0]
    normals, offsets = context.prediction_planes
    start = project_on(context.latent, normals[:, None], offsets[:, None])
    points = along(start, context.toward_target, increments(0.1, 4.0)[None])
    codes = context.domain.project(context.state.codec.decode(points))[0]
    flips = np.flatnonzero(lead(codes) > 0)
    np.testing.assert_array_equal(found, codes[flips[0]])


def test_a_margin_goes_farther(toys: Any) -> None:
    near, _ = toys.scene(lead, ROWS)
    far, _ = toys.scene(lead, ROWS, margin=1.0)
    one, two = run(paper.closest, near), run(paper.closest, far)
    assert two.valid.all()
    assert (np.abs(lead(two.codes[:, 0])) > np.abs(lead(one.codes[:, 0])) + 0.5).all()
    assert (two.cost > one.cost).all()


def test_a_larger_step_goes_farther(toys: Any) -> None:
    small, _ = toys.scene(lead, ROWS[0], paper=PaperOptions(step=0.01))
    large, _ = toys.scene(lead, ROWS[0], paper=PaperOptions(step=2.0))
    assert 0 < lead(run(paper.closest, small).codes[:, 0])[0] <= lead(run(paper.closest, large).codes[:, 0])[0]


def test_no_flip_is_said_to_be_none(toys: Any) -> None:
    context, model = toys.scene(lead, ROWS[0], frozen=[0, 2])
    for variant in (paper.closest, paper.sparse, paper.realistic):
        pool = run(variant, context)
        assert not pool.valid.any()
        assert np.isinf(pool.cost).all()
    assert model.model_rows


@pytest.mark.parametrize("named", [(), (0,), (2, 3)])
def test_sparse_changes_exactly_one_feature(toys: Any, named: tuple[int, ...]) -> None:
    frozen = [j for j in range(4) if named and j not in named]
    context, _ = toys.scene(lead, ROWS[:2], named=named, frozen=frozen)
    pool = run(paper.sparse, context)
    assert pool.valid.any(axis=1).all()
    for i, k in zip(*np.nonzero(pool.valid), strict=True):
        changed = np.flatnonzero(pool.codes[i, k] != context.domain.base[i])
        assert len(changed) == 1
        assert changed[0] in (named or (0, 2))
        assert (lead(pool.codes[i, k][None])[0] > 0) == (context.evaluator.target[i] == 1)


@pytest.mark.parametrize("perturbation", ["random", "sweep"])
def test_sparse_varies_a_feature_alone_when_the_walk_does_not_settle_it(toys: Any, perturbation: Any) -> None:
    """Of k only 14 flips: the walk misses it, other values find it."""
    context, _ = toys.scene(
        lambda codes: (codes[:, 3] == 14) * 1.0 + (codes[:, 0] > 9.9) - 0.5,
        ROWS[0],
        named=(3,),
        frozen=[0, 1, 2],
        paper=PaperOptions(perturbation=perturbation),
    )
    pool = run(paper.sparse, context)
    np.testing.assert_array_equal(pool.codes[pool.valid], [[3.0, 1.0, 5.0, 14.0]])


def test_realistic_changes_only_what_is_named(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS[:2], named=(0, 2), frozen=[1, 3])
    pool = run(paper.realistic, context)
    assert pool.valid.all()
    np.testing.assert_array_equal(pool.codes[:, 0][:, [1, 3]], np.array(ROWS)[:2, [1, 3]])
    assert (pool.codes[:, 0][:, [0, 2]] != np.array(ROWS)[:2, [0, 2]]).all(), "both move together"


@pytest.mark.parametrize("name", paper.VARIANTS)
def test_no_rows_no_counterfactuals(toys: Any, name: str) -> None:
    context, _ = toys.scene(lead, np.zeros((0, 4)))
    pool = run(paper.VARIANTS[name], context)
    assert pool.codes.shape[0] == 0


def test_sparse_with_nothing_free_finds_nothing(toys: Any) -> None:
    context, _ = toys.scene(lead, ROWS, frozen=[0, 1, 2, 3])
    assert not run(paper.sparse, context).valid.any()


def test_the_increments_grow_up_to_the_largest(toys: Any) -> None:
    np.testing.assert_allclose(increments(0.1, 0.4), [0, 0.1, 0.3, 0.6, 1.0])
    np.testing.assert_allclose(increments(0.1, 0.85, "multiplicative"), [0, 0.1, 0.3, 0.7, 1.5])
    np.testing.assert_array_equal(increments(0.5, 0.2), [0.0])
    np.testing.assert_array_equal(increments(0.5, 0.2, "multiplicative"), [0.0])
    assert len(increments(0.01, 4.0)) == 401, "a tenth of the step takes ten times as many"


@pytest.mark.parametrize("growth", ["linear", "multiplicative"])
def test_a_walk_goes_on_in_rounds_of_growing_size(toys: Any, growth: Any) -> None:
    """A model that flips far away only: the first twenty points are not enough."""
    far = PaperOptions(step=0.0005, growth=growth)
    context, model = toys.scene(lambda codes: codes[:, 0] - 9.5, [[0.0, 1.0, 5.0, 7.0]], paper=far)
    model.model_rows.clear()
    found = run(paper.closest, context)
    assert found.valid.any()
    assert (len(model.model_rows) > 1) == (growth == "linear")
    short, _ = toys.scene(
        lambda codes: codes[:, 0] - 9.5, [[0.0, 1.0, 5.0, 7.0]], paper=PaperOptions(step=0.01, eps_max=0.02)
    )
    assert not run(paper.closest, short).valid.any(), "nothing lies within eps_max"


def test_the_model_sees_whole_decoded_rows_and_frozen_features_are_put_back_afterwards(toys: Any) -> None:
    """The decoder moves the frozen feature too: the model is evaluated for that row first, then for the row returned."""
    context, model = toys.scene(lead, ROWS[0], frozen=[0])
    direction = np.zeros_like(context.latent)
    direction[:, :3] = 1.0
    seen: list[Any] = []
    evaluate = model.lead

    def watched(codes: Any) -> Any:
        seen.append(codes)
        return evaluate(codes)

    model.lead = watched
    walk = paper.PaperWalk.of(context.latent, direction, ~context.domain.free)
    (pool,) = run_rounds(context.evaluator, [paper._line_search(context, walk)]) or []
    assert (seen[0][:, 0] != ROWS[0][0]).any(), "as decoded"
    assert (seen[1][:, 0] == ROWS[0][0]).all(), "then put back"
    assert pool.valid.any()
    assert (pool.codes[pool.valid][:, 0] == ROWS[0][0]).all()


def test_rows_that_break_a_constraint_are_returned_as_illegal_candidates(toys: Any) -> None:
    """They are withheld and counted where candidates are verified."""
    context, _ = toys.scene(lead, ROWS[0])
    context = replace(context, domain=replace(context.domain, upper=np.minimum(context.domain.upper, 6.0)))
    pool = run(paper.closest, context)
    legal = context.domain.contains(pool.codes)
    assert (pool.valid & ~legal).sum() > 0
    assert (lead(pool.codes[pool.valid & ~legal]) > 0).all()


@pytest.mark.parametrize("variant", [paper.closest, paper.realistic])
def test_several_counterfactuals_come_from_combinations_of_features(toys: Any, variant: Any) -> None:
    context, _ = toys.scene(lead, ROWS[0])
    pool = run(variant, context, n=3)
    sets = {tuple(np.flatnonzero(code != context.domain.base[0])) for code in pool.codes[pool.valid]}
    assert {(0, 2)} < sets | {(0, 2)}
    assert len(sets) >= 3


def test_realistic_starts_at_the_contours_of_the_frozen_features(toys: Any) -> None:
    """On the way to the prediction hyperplane, frozen features keep the value they have, not their mean."""
    context, _ = toys.scene(lead, ROWS[:2], frozen=[0, 3])
    context = context.by_one_hyperplane()
    frozen = ~context.domain.free
    start = on_boundary(context, frozen)
    normals, offsets = context.prediction_planes
    np.testing.assert_allclose((start * normals).sum(axis=1) + offsets, 0, atol=1e-3)
    contours = context.feature_planes[0][:, [0, 3]]
    before, after = ((contours * points[:, None]).sum(axis=2) for points in (context.latent, start))
    np.testing.assert_allclose(before, after, atol=1e-3)


def test_ranges_of_a_call_leave_out_latent_samples(toys: Any) -> None:
    """Within a <= 4, more of b is needed: the hyperplanes are those of such samples only."""
    frame = toys.frame()
    codec, codes = toys.codec(frame)
    model = ToyModel(lambda codes: codes[:, 0] * (codes[:, 0] > 4) * 3 + codes[:, 2] - 9)
    state = toys.state(codec, codes, model)
    latent = state.autoencoder.encode(codec.encode(codes))
    state = replace(state, samples=latent.astype(np.float32), sample_classes=model.label(codes))
    table = Table.like(frame, codec.schema)
    within = paper.within_ranges(state, CompiledConstraints.compile(table, codec, None, {"a": (0, 4)}, (), False))
    whole, part = (each.hyperplanes.of_class(np.array([1]))[0][0] for each in (state, within))
    assert part[0] / np.linalg.norm(part) < 0.2 < whole[0] / np.linalg.norm(whole)
    everything = CompiledConstraints.compile(table, codec, None, {"a": (0, 10)}, (), False)
    assert paper.within_ranges(state, everything) is state
    nothing = CompiledConstraints.compile(table, codec, None, {"a": (0, 0.01)}, (), False)
    assert paper.within_ranges(state, nothing) is state, "too few samples are left"


@pytest.mark.parametrize("perturbation", ["random", "sweep"])
def test_sparse_takes_the_first_random_value_or_the_nearest_of_a_sweep(toys: Any, perturbation: Any) -> None:
    options = PaperOptions(eps_max=0, perturbation=perturbation)
    context, _ = toys.scene(lambda codes: codes[:, 0] - 5.0, [[0.5, 1.0, 5.0, 7.0]], named=(0,), paper=options)
    pool = run(paper.sparse, context)
    (value,) = pool.codes[pool.valid][:, 0]
    assert value > 5.5 if perturbation == "random" else 5.0 < value < 5.5


@pytest.mark.parametrize("name", paper.VARIANTS)
def test_a_row_alone_is_as_in_a_batch(toys: Any, name: str) -> None:
    context, _ = toys.scene(lead, ROWS)
    together = run(paper.VARIANTS[name], context, n=2)
    for i, row in enumerate(ROWS):
        alone = run(paper.VARIANTS[name], toys.scene(lead, row)[0], n=2)
        np.testing.assert_array_equal(alone.codes[0][alone.valid[0]], together.codes[i][together.valid[i]])
