"""Candidates from the latent space: the walk across the prediction hyperplane, and known examples of the wanted class."""

import numpy as np

from fasterce.latent.runtime import product
from fasterce.profile import Floats
from fasterce.search.directions import height, orthogonal_part
from fasterce.search.judge import Candidates, Indices
from fasterce.search.linesearch import along, distances_to_walk
from fasterce.search.project import carry_movement
from fasterce.search.task import Task

NEIGHBOURS = 6


def walk(task: Task, direction: Floats) -> Candidates:
    """Walk from every row across the prediction hyperplane, decode, carry the movement over to the row."""
    normals, offsets = task.prediction_planes
    slope = np.maximum((direction * task.toward_target).sum(axis=1), 0.05)
    gap = -height(task.latent, normals, offsets) / slope
    points = along(task.latent, direction, distances_to_walk(gap, task.step))
    after = task.knowledge.autoencoder.decode(points)
    return different(task, carry_movement(task.knowledge.codec, task.domain, task.decoded, after))


def keeping_frozen_still(task: Task) -> Floats:
    """CE3's direction: toward the wanted class, orthogonal only to the features that must not change."""
    frozen = ~task.domain.free
    if not frozen.any():
        return task.toward_target
    normals = task.feature_planes[0] * frozen[:, :, None]
    return orthogonal_part(task.toward_target, normals[:, frozen.any(axis=0)])


def neighbours(task: Task, most: int = NEIGHBOURS) -> Candidates:
    """The nearest examples of the wanted class, made legal for the row. With nothing frozen they flip for certain."""
    rows, features = task.domain.base.shape
    codes = np.repeat(task.domain.base[:, None, :], most, axis=1)
    for target in np.unique(task.judge.target):
        wanted = np.flatnonzero(task.knowledge.example_classes == target)
        mine = np.flatnonzero(task.judge.target == target)
        if wanted.size:
            nearest = _nearest(task, mine, wanted, most)
            codes[mine[:, None], np.arange(nearest.shape[1])] = task.knowledge.examples[nearest]
    return different(task, task.domain.project(codes))


def _nearest(task: Task, rows: Indices, wanted: Indices, most: int) -> Indices:
    """By squared distance in the codec's matrix, free features only where the row's rules are the same for all."""
    matrix = task.knowledge.codec.encode(task.domain.base[rows])
    examples = task.knowledge.example_matrix[wanted]
    squared = (examples**2).sum(axis=1) - 2 * product(matrix, np.ascontiguousarray(examples.T))
    order = np.argsort(np.round(squared, 6), axis=1, kind="stable")[:, :most]
    return np.asarray(wanted[order])


def different(task: Task, codes: Floats) -> Candidates:
    """Candidates, with those that change nothing closed."""
    return Candidates(codes, (codes != task.domain.base[:, None, :]).any(axis=2))
