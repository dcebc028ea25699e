"""Walks in the latent space, and their directions."""

from typing import Any

import numpy as np

from fasterce.search.proposals import latent

ROW = [3.0, 1.0, 5.0, 7.0]


def lead(codes: np.ndarray) -> np.ndarray:
    return codes[:, 0] + codes[:, 2] - 12.0


def test_the_walk_crosses_the_boundary_and_stays_legal(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    walked = latent.walk(context, context.toward_target)
    assert context.domain.contains(walked.codes).all()
    leads = np.stack([lead(codes) for codes in walked.codes])
    assert (leads[0] > 0).any()
    assert (leads[1] <= 0).any()
    assert leads[0, 0] < leads[0, -1], "row 0 goes up"
    assert leads[1, 0] > leads[1, -1], "row 1 goes down"
    np.testing.assert_array_equal(walked.open, (walked.codes != context.domain.row[:, None]).any(axis=2))


def test_the_walk_lands_near_the_hyperplane(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    walked = latent.walk(context, context.toward_target)
    assert abs(lead(walked.codes[0, 3:4])[0]) < 1.5, "the fourth point is the projection"


def test_frozen_features_do_not_move(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW, frozen=[2, 1])
    direction = latent.frozen_aware_direction(context)
    walked = latent.walk(context, direction)
    np.testing.assert_array_equal(walked.codes[0][:, [1, 2]], [[1.0, 5.0]] * walked.codes.shape[1])
    planes = context.feature_planes[0][0]
    for j in (1, 2):
        assert abs(direction[0] @ planes[j]) / np.linalg.norm(planes[j]) < 1e-3
    assert direction[0] @ context.toward_target[0] > 0.3


def test_with_nothing_frozen_the_direction_is_the_predictions(toys: Any) -> None:
    context, _ = toys.scene(lead, ROW)
    np.testing.assert_array_equal(latent.frozen_aware_direction(context), context.toward_target)


def test_each_features_own_direction_moves_it_toward_the_wanted_class(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]])
    directions = latent.own_directions(context)
    planes = context.feature_planes[0]
    for i, sign in ((0, 1.0), (1, -1.0)):
        assert sign * (directions[i, 0] @ planes[i, 0]) > 0
        for a in range(4):
            for j in set(range(4)) - {a}:
                assert abs(directions[i, a] @ planes[i, j]) / np.linalg.norm(planes[i, j]) < 1e-3


def test_combinations_free_few_features_those_with_the_steepest_effect_first(toys: Any) -> None:
    context, _ = toys.scene(lead, [ROW, [9.0, 2.0, 9.0, 3.0]], frozen=[1])
    masks = latent.combinations(context, 5)
    assert len(masks) == 5
    free = [frozenset(np.flatnonzero(~mask[0])) for mask in masks]
    assert frozenset({0, 2}) in free[:3]
    assert len(set(free)) == 5
    assert all(mask[:, 1].all() for mask in masks), "what is frozen stays so"
