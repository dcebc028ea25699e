"""Walks in the latent space: their directions, their points, and the candidates these decode to."""

import itertools

import numpy as np

from fasterce.constraints.compile.domain import carry_movement
from fasterce.latent.directions import each_without_others, height, orthogonal_part, project_on
from fasterce.latent.line_search import along, distances_to_walk
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates
from fasterce.typing import Floats, Mask

# Features with the steepest effect on the prediction that are combined.
COMBINED_FEATURES = 6


def walk(context: SearchContext, direction: Floats) -> Candidates:
    """Walk from every row across the prediction hyperplane, decode, and apply the movement to the row."""
    return decoded_movement(context, steps_of_walk(context, direction)[1])


def decoded_movement(context: SearchContext, points: Floats) -> Candidates:
    """Return candidates that differ from each row by what the decoder moved from the row's own point to these points
    (rows, K, L); those that change nothing are closed."""
    after = context.state.autoencoder.decode(points)
    codes = carry_movement(context.state.codec, context.domain, context.decoded, after)
    return Candidates(codes, np.asarray((codes != context.domain.row[:, None, :]).any(axis=2)))


def steps_of_walk(context: SearchContext, direction: Floats) -> tuple[Floats, Floats]:
    """Return the distance of each step from the start (rows, K), and the latent points (rows, K, L)."""
    normals, offsets = context.prediction_planes
    slope = np.maximum((direction * context.toward_target).sum(axis=1), context.config.min_slope)
    distance = distances_to_walk(-height(context.latent, normals, offsets) / slope, context.paper.step)
    return distance, along(context.latent, direction, distance)


def on_boundary(context: SearchContext, kept: Mask) -> Floats:
    """Return the nearest point of the prediction hyperplane at which the features `kept` (rows, features) have the value
    they have at the row's own point: the intersection with the contours through it."""
    normals, offsets = context.prediction_planes
    contours = context.feature_planes[0] * kept[:, :, None]
    contours = contours[:, kept.any(axis=0)]
    through = -(contours * context.latent[:, None, :]).sum(axis=2)
    planes = np.concatenate([normals[:, None, :], contours], axis=1)
    return project_on(context.latent, planes, np.concatenate([offsets[:, None], through], axis=1))


def own_directions(context: SearchContext) -> Floats:
    """Return the normal of every feature, orthogonal to those of all others and toward the target (rows, features, L)."""
    directions = each_without_others(context.feature_planes[0])
    along_prediction = (directions * context.toward_target[:, None, :]).sum(axis=2, keepdims=True)
    return directions * np.where(along_prediction < 0, -1.0, 1.0)


def frozen_aware_direction(context: SearchContext, frozen: Mask | None = None) -> Floats:
    """Return the direction of CE3: toward the target, orthogonal to the frozen features (rows, features) only; by default
    those the domain does not let change."""
    frozen = ~context.domain.free if frozen is None else frozen
    if not frozen.any():
        return context.toward_target
    normals = context.feature_planes[0] * frozen[:, :, None]
    return orthogonal_part(context.toward_target, normals[:, frozen.any(axis=0)])


def combinations(context: SearchContext, count: int) -> list[Mask]:
    """Return which features stay frozen (rows, features) for different combinations of one to three free ones, those with
    the steepest effect on the prediction first."""
    normals, free = context.feature_planes[0], context.domain.free
    length = np.linalg.norm(normals, axis=2)
    effect = np.abs((normals * context.toward_target[:, None, :]).sum(axis=2)) / np.where(length > 0, length, 1.0)
    order = np.argsort(-np.round(np.where(free, effect, -1.0), 9), axis=1, kind="stable")
    most = min(COMBINED_FEATURES, free.shape[1])
    sets = sorted((places for size in (2, 3, 1) for places in itertools.combinations(range(most), size)), key=sum)
    masks = []
    for places in sets[:count]:
        chosen = np.zeros_like(free)
        np.put_along_axis(chosen, order[:, list(places)], True, axis=1)
        masks.append(~(chosen & free))
    return masks
