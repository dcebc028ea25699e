"""One row's walk through latent space, laid out flat for looking at."""

from dataclasses import dataclass

import numpy as np

from fasterce.profile import Floats
from fasterce.search.directions import height, unit
from fasterce.search.goal import Mask
from fasterce.search.linesearch import first
from fasterce.search.propose import keeping_frozen_still, steps_of_walk, walk
from fasterce.search.task import Task

CLOUD = 600


@dataclass(frozen=True)
class Walk:
    """Steps and samples seen along two axes: `height` above the prediction hyperplane, and `side`, across it."""

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


def trace(task: Task, label: str, target: str) -> Walk:
    """The walk of the task's first row, with examples around it."""
    normals, offsets = task.prediction_planes
    direction = keeping_frozen_still(task)
    distance, points = steps_of_walk(task, direction)
    (verdict,) = task.judge.judge(walk(task, direction))
    thin = slice(None, None, max(1, len(task.knowledge.examples) // CLOUD))
    cloud, wanted = task.knowledge.example_latent[thin], task.goal.welcome(task.knowledge.example_classes)[0][thin]
    across = _widest_across(cloud, task.toward_target[0])
    return Walk(
        distance=distance[0],
        height=height(points[0], normals[0], offsets[0]),
        side=points[0] @ across,
        valid=verdict.valid[0],
        flip=int(first(verdict.valid)[0]),
        cloud_height=height(cloud, normals[0], offsets[0]),
        cloud_side=cloud @ across,
        cloud_wanted=wanted,
        label=label,
        target=target,
    )


def _widest_across(cloud: Floats, toward: Floats) -> Floats:
    """Of the directions within the hyperplane, the one along which the samples spread most."""
    flat = cloud - cloud.mean(axis=0)
    flat = flat - np.outer(flat @ toward, toward)
    return unit(np.linalg.svd(flat, full_matrices=False)[2][0])
