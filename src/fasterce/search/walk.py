"""The latent walk of one row, projected on two axes for display."""

from dataclasses import dataclass

import numpy as np

from fasterce.latent.directions import height, unit
from fasterce.latent.line_search import first
from fasterce.search.context import SearchContext
from fasterce.search.proposals.latent import frozen_aware_direction, steps_of_walk, walk
from fasterce.typing import Floats, Mask


@dataclass(frozen=True)
class Walk:
    """Steps and examples on two axes: `height` above the prediction hyperplane, and `side`, within it."""

    distance: Floats
    height: Floats
    side: Floats
    valid: Mask
    flip: int
    cloud_height: Floats
    cloud_side: Floats
    cloud_wanted: Mask
    label: str
    target: str


def trace(context: SearchContext, label: str, target: str) -> Walk:
    """Return the walk of the first row of the context, with examples around it."""
    normals, offsets = context.prediction_planes
    direction = frozen_aware_direction(context)
    distance, points = steps_of_walk(context, direction)
    (evaluation,) = context.evaluator.evaluate(walk(context, direction))
    thin = slice(None, None, max(1, len(context.state.examples) // context.config.walk_examples))
    cloud, wanted = context.state.example_latent[thin], context.targets.welcome(context.state.example_classes)[0][thin]
    across = _widest_across(cloud, context.toward_target[0])
    return Walk(
        distance=distance[0],
        height=height(points[0], normals[0], offsets[0]),
        side=points[0] @ across,
        valid=evaluation.valid[0],
        flip=int(first(evaluation.valid)[0]),
        cloud_height=height(cloud, normals[0], offsets[0]),
        cloud_side=cloud @ across,
        cloud_wanted=wanted,
        label=label,
        target=target,
    )


def _widest_across(cloud: Floats, toward: Floats) -> Floats:
    """Return the direction within the hyperplane along which the examples spread most."""
    flat = cloud - cloud.mean(axis=0)
    flat = flat - np.outer(flat @ toward, toward)
    return unit(np.linalg.svd(flat, full_matrices=False)[2][0])
