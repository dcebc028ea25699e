"""Candidates from latent space and from known examples."""

from typing import Any

import numpy as np
import pytest

from fasterce.search import propose

ROW = [3.0, 1.0, 5.0, 7.0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def test_the_walk_crosses_the_boundary_and_stays_legal(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    walked = propose.walk(context, context.toward_target)
    assert context.domain.contains(walked.codes).all()
    leads = np.stack([lead(codes) for codes in walked.codes])
    assert (leads[0] > 0).any()
    assert (leads[1] <= 0).any()
    assert leads[0, 0] < leads[0, -1], "row 0 goes up"
    assert leads[1, 0] > leads[1, -1], "row 1 goes down"
    np.testing.assert_array_equal(walked.open, (walked.codes != context.domain.row[:, None]).any(axis=2))


def test_the_walk_lands_near_the_hyperplane(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    walked = propose.walk(context, context.toward_target)
    assert abs(lead(walked.codes[0, 3:4])[0]) < 1.5, "the fourth point is the projection"


def test_frozen_features_do_not_move(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW, frozen=[2, 1])
    direction = propose.frozen_aware_direction(context)
    walked = propose.walk(context, direction)
    np.testing.assert_array_equal(walked.codes[0][:, [1, 2]], [[1.0, 5.0]] * walked.codes.shape[1])
    planes = context.feature_planes[0][0]
    for j in (1, 2):
        assert abs(direction[0] @ planes[j]) / np.linalg.norm(planes[j]) < 1e-3
    assert direction[0] @ context.toward_target[0] > 0.3


def test_with_nothing_frozen_the_direction_is_the_predictions(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    np.testing.assert_array_equal(propose.frozen_aware_direction(context), context.toward_target)


def test_a_features_own_direction_moves_it_toward_the_wanted_class(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    direction = propose.own_direction(context, 0)
    planes = context.feature_planes[0]
    for i, sign in ((0, 1.0), (1, -1.0)):
        assert sign * (direction[i] @ planes[i, 0]) > 0
        for j in (1, 2, 3):
            assert abs(direction[i] @ planes[i, j]) / np.linalg.norm(planes[i, j]) < 1e-3
    np.testing.assert_array_equal(propose.turned(context, -direction), direction)


def test_feature_walks_change_the_named_features_alone(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW, named=(0, 3))
    walks = propose.feature_walks(context)
    assert set(walks.feature) == {0, 3}
    _, codes = walks.flat()
    assert ((codes != context.domain.base[0]).sum(axis=1) == 1).all()
    moved = walks.value[0][walks.feature == 0]
    assert moved.max() > 7.0
    assert (lead(codes) > 0).any()


def test_no_named_features_no_walks(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, ROW])
    walks = propose.feature_walks(context)
    assert walks.value.shape == (2, 0)


def test_nearest_examples_are_of_the_wanted_class_and_nearest(toys: Any) -> None:
    context, model = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    found = propose.nearest_examples(context, 5)
    known = context.state
    for i, target in ((0, 1), (1, 0)):
        assert (model.label(found[i]) == target).all()
        gaps = context.distance.total(known.examples[known.example_classes == target], context.domain.base[i])
        mine = context.distance.total(found[i], context.domain.base[i])
        assert (np.diff(mine) >= 0).all()
        np.testing.assert_allclose(mine[0], gaps.min())
        assert mine[-1] <= np.quantile(gaps, 0.05)


def test_a_class_without_examples_leaves_the_row(toys: Any) -> None:
    from dataclasses import replace

    context, _ = toys.scene(lead, ROW)
    bare = replace(context.state, example_classes=np.zeros(len(context.state.examples), dtype=np.intp))
    lonely = replace(context, state=bare)
    np.testing.assert_array_equal(propose.nearest_examples(lonely, 3), [[ROW] * 3])
    np.testing.assert_array_equal(propose.more_examples(lonely)[0, 0], ROW)
    assert not propose.neighbours(lonely, propose.nearest_examples(lonely)).open.any()


def test_fewer_examples_than_requested(toys: Any) -> None:
    from dataclasses import replace

    context, _ = toys.scene(lead, ROW)
    few = np.flatnonzero(context.state.example_classes == 1)[:2]
    small = replace(context.state, examples=context.state.examples[few], example_classes=np.ones(2, dtype=np.intp))
    found = propose.nearest_examples(replace(context, state=small), 4)
    assert {tuple(code) for code in found[0, :2]} == {tuple(code) for code in context.state.examples[few]}
    np.testing.assert_array_equal(found[0, 2:], [ROW] * 2)


def test_more_examples_include_the_deepest(toys: Any) -> None:
    context, model = toys.scene(lead, ROW)
    found = propose.more_examples(context)
    assert found.shape == (1, 2 * context.config.more_examples, 4)
    assert (model.label(found[0]) == 1).all()
    wanted = context.state.examples[context.state.example_classes == 1]
    assert lead(found[0, context.config.more_examples :]).mean() > np.quantile(lead(wanted), 0.9)


def test_neighbours_flip_with_nothing_frozen_and_obey_what_is(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    known = propose.neighbours(context, propose.nearest_examples(context))
    assert known.open.all()
    assert (lead(known.codes[0]) > 0).all()
    bound, _ = toys.scene(lead, ROW, frozen=[1], upper={0: 6.0})
    known = propose.neighbours(bound, propose.nearest_examples(bound))
    assert bound.domain.contains(known.codes).all()
    assert (known.codes[0, :, 1] == 1.0).all()


def test_latent_gains_point_toward_the_wanted_class(toys: Any) -> None:
    from fasterce.search import sweep

    context, _ = toys.scene(lead, ROW)
    edits = sweep.coarse(context)
    gain = propose.latent_gains(context, edits)
    assert np.isneginf(gain[~edits.open]).all()
    opened = edits.open[0]
    a = opened & (edits.feature == 0)
    np.testing.assert_array_equal(gain[0, a] > 0, edits.value[0, a] > 3.0)
    assert np.abs(gain[0, opened & (edits.feature == 3)]).max() < 0.3 * gain[0, a].max()


def test_trifles_are_taken_back(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    codes = np.array([[[3.1, 1.0, 5.0, 7.0], [3.5, 1.0, 5.19, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    found = propose.without_trifles(context, propose.different(context, codes))
    np.testing.assert_array_equal(found.codes, [[ROW, [3.5, 1.0, 5.0, 7.0], [3.0, 2.0, 5.0, 7.0]]])
    np.testing.assert_array_equal(found.open, [[False, True, True]])


@pytest.mark.parametrize("base", [None, [4.0, 1.0, 5.0, 7.0]])
def test_a_row_moved_into_its_range_is_a_candidate(toys: Any, base: Any) -> None:
    context, _ = toys.scene(lead, ROW, base=base)
    found = propose.different(context, propose.as_it_is(context).codes)
    assert found.open.tolist() == [[base is not None]]
    np.testing.assert_array_equal(found.codes, [[base or ROW]])
