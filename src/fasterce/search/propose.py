"""Candidates from the latent space: the walk across the prediction hyperplane, and known examples of the wanted class."""

import numpy as np

from fasterce.latent.runtime import BLOCK_ROWS, on_one_thread, spread
from fasterce.profile import Floats
from fasterce.search.directions import height, orthogonal_part, unit
from fasterce.search.goal import Indices
from fasterce.search.judge import Candidates, Edits
from fasterce.search.linesearch import along, distances_to_walk
from fasterce.search.project import carry_movement
from fasterce.search.task import Knowledge, Task

NEIGHBOURS = 6
DEEPEST = 20
TRIFLE = 0.02
SHORTLIST = 4
SHALLOW = 0.05
MOST_NAMED = 4


def walk(task: Task, direction: Floats) -> Candidates:
    """Walk from every row across the prediction hyperplane, decode, carry the movement over to the row."""
    after = task.knowledge.autoencoder.decode(steps_of_walk(task, direction)[1])
    return different(task, carry_movement(task.knowledge.codec, task.domain, task.decoded, after))


def steps_of_walk(task: Task, direction: Floats) -> tuple[Floats, Floats]:
    """How far each step of each row lies from its start (rows, K), and the points (rows, K, L)."""
    normals, offsets = task.prediction_planes
    slope = np.maximum((direction * task.toward_target).sum(axis=1), SHALLOW)
    distance = distances_to_walk(-height(task.latent, normals, offsets) / slope, task.step)
    return distance, along(task.latent, direction, distance)


def feature_walks(task: Task) -> Edits:
    """CE2's walks for the features the caller named: along each one's own direction, every other feature put back."""
    features = np.array(task.named[:MOST_NAMED], dtype=np.intp)
    values = [walk(task, own_direction(task, int(a))).codes[:, :, a] for a in features]
    rows, steps = len(task.domain.base), values[0].shape[1] if values else 0
    value = np.concatenate(values, axis=1) if values else np.zeros((rows, 0))
    feature = np.repeat(features, steps)
    return Edits(task.domain.base, feature, value, value != task.domain.base[:, feature])


def own_direction(task: Task, a: int) -> Floats:
    """Feature a's normal, orthogonal to every other feature's and turned toward the wanted class."""
    planes = task.feature_planes[0]
    direction = orthogonal_part(unit(planes[:, a]), np.delete(planes, a, axis=1))
    return turned(task, direction)


def turned(task: Task, direction: Floats) -> Floats:
    """The direction or its opposite, whichever leads toward the wanted class."""
    along_prediction = (direction * task.toward_target).sum(axis=1, keepdims=True)
    return direction * np.where(along_prediction < 0, -1.0, 1.0)


def keeping_frozen_still(task: Task) -> Floats:
    """CE3's direction: toward the wanted class, orthogonal only to the features that must not change."""
    frozen = ~task.domain.free
    if not frozen.any():
        return task.toward_target
    normals = task.feature_planes[0] * frozen[:, :, None]
    return orthogonal_part(task.toward_target, normals[:, frozen.any(axis=0)])


def nearest_examples(task: Task, most: int = NEIGHBOURS) -> Floats:
    """The examples of the wanted class nearest to each row: codes (rows, most, features).

    A class without examples, which `fit` never saw the model answer, leaves the row itself in their place.
    """
    codes = np.repeat(task.domain.base[:, None, :], most, axis=1)
    for part in task.goal.parts(task.knowledge):
        if part.examples.size:
            nearest = _nearest(task.knowledge, task.domain.base[part.rows], part.examples, most)
            codes[part.rows[:, None], np.arange(nearest.shape[1])] = task.knowledge.examples[nearest]
    return codes


def more_examples(task: Task) -> Floats:
    """More of the nearest examples, and those that lie deepest on the wanted side."""
    deep = np.repeat(task.domain.base[:, None, :], DEEPEST, axis=1)
    latent = task.knowledge.example_latent
    for part in task.goal.parts(task.knowledge):
        order = np.argsort(-height(latent[part.examples], *part.plane), kind="stable")[:DEEPEST]
        deep[part.rows, : len(order)] = task.knowledge.examples[part.examples[order]]
    return np.concatenate([nearest_examples(task, DEEPEST), deep], axis=1)


def latent_heights(task: Task, codes: Floats) -> Floats:
    """How far each candidate (rows, K, features) lies on the wanted side of the prediction hyperplane."""
    rows, count, features = codes.shape
    normals, offsets = task.prediction_planes
    matrix = task.knowledge.codec.encode(codes.reshape(rows * count, features))
    latent = task.knowledge.autoencoder.encode(matrix).reshape(rows, count, normals.shape[1])
    return np.round(height(latent, normals[:, None, :], offsets[:, None]), 9)


def latent_gains(task: Task, edits: Edits) -> Floats:
    """How much farther onto the wanted side each change goes by the prediction hyperplane: a guess free of questions."""
    normals, offsets = task.prediction_planes
    gain = np.full(edits.open.shape, -np.inf)
    rows, codes = edits.flat()
    latent = task.knowledge.autoencoder.encode(task.knowledge.codec.encode(codes))
    before = height(task.latent, normals, offsets)[rows]
    gain[edits.open] = np.round(height(latent, normals[rows], offsets[rows]) - before, 9)
    return gain


def neighbours(task: Task, examples: Floats) -> Candidates:
    """Examples made legal for the row. With nothing frozen they flip for certain."""
    return different(task, task.domain.project(examples))


def as_it_is(task: Task) -> Candidates:
    """The start of the search itself: to know how far it is from flipping, and because a row that had to be moved into
    a permitted range may flip by that alone."""
    return Candidates(task.domain.base[:, None, :], np.ones((len(task.domain.base), 1), dtype=bool))


def without_trifles(task: Task, candidates: Candidates) -> Candidates:
    """The same candidates with numeric changes too small to speak of taken back."""
    price = task.distance.parts(candidates.codes, task.domain.base[:, None, :])
    return different(task, np.where(price < TRIFLE, task.domain.base[:, None, :], candidates.codes))


def apart(task: Task, rows: Indices, codes: Floats) -> Floats:
    """How far answers (N, features) to `rows` (N,) are from the nearest example that has what the row wants, relative to
    how far such examples usually are from each other; NaN where that is nothing."""
    gap, known = np.full(len(codes), np.nan), task.knowledge
    for part in task.goal.parts(known):
        mine = np.flatnonzero(np.isin(rows, part.rows))
        if part.examples.size and mine.size:
            nearest = _nearest(known, codes[mine], part.examples, 1)[:, 0]
            gap[mine] = known.distance.total(known.examples[nearest], codes[mine])
    usual = known.typical[task.goal.target[rows]]
    return np.asarray(np.where(usual > 0, gap / np.where(usual > 0, usual, 1.0), np.nan))


def _nearest(known: Knowledge, codes: Floats, wanted: Indices, most: int) -> Indices:
    """Shortlisted by squared distance, a product of matrices, then sorted by the distance itself."""
    places = known.example_places[wanted]
    lengths, across = (places**2).sum(axis=1), np.ascontiguousarray(places.T)
    own = known.place(codes).astype(np.float32)
    count = min(SHORTLIST * most, len(wanted))
    short = np.empty((len(codes), count), dtype=np.intp)

    def shorten(start: int) -> None:
        part = slice(start, start + BLOCK_ROWS)
        block = np.zeros((BLOCK_ROWS, own.shape[1]), dtype=np.float32)
        block[: len(own[part])] = own[part]
        squared = (lengths - 2 * (block @ across))[: len(own[part])]
        short[part] = np.argpartition(squared, count - 1, axis=1)[:, :count]

    with on_one_thread():
        spread(shorten, range(0, len(codes), BLOCK_ROWS))
    short = wanted[np.sort(short, axis=1)]
    exact = known.distance.total(known.examples[short], codes[:, None, :])
    return np.take_along_axis(short, np.argsort(exact, axis=1, kind="stable")[:, :most], 1)


def different(task: Task, codes: Floats) -> Candidates:
    """Candidates, with those that change nothing closed."""
    return Candidates(codes, np.asarray((codes != task.domain.row[:, None, :]).any(axis=2)))
