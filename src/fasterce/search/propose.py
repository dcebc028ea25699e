"""Candidates from the latent space: walks across the prediction hyperplane, and known examples of the target."""

import numpy as np

from fasterce.constraints.compile.domain import carry_movement
from fasterce.fitting.state import SearchState
from fasterce.latent.directions import height, orthogonal_part, unit
from fasterce.latent.line_search import along, distances_to_walk
from fasterce.latent.runtime import BLOCK_ROWS, on_one_thread, spread
from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Edits
from fasterce.typing import Floats, Indices


def walk(context: SearchContext, direction: Floats) -> Candidates:
    """Walk from every row across the prediction hyperplane, decode, and apply the movement to the row."""
    after = context.state.autoencoder.decode(steps_of_walk(context, direction)[1])
    return different(context, carry_movement(context.state.codec, context.domain, context.decoded, after))


def steps_of_walk(context: SearchContext, direction: Floats) -> tuple[Floats, Floats]:
    """Return the distance of each step from the start (rows, K), and the latent points (rows, K, L)."""
    normals, offsets = context.prediction_planes
    slope = np.maximum((direction * context.toward_target).sum(axis=1), context.config.min_slope)
    distance = distances_to_walk(-height(context.latent, normals, offsets) / slope, context.step)
    return distance, along(context.latent, direction, distance)


def feature_walks(context: SearchContext) -> Edits:
    """Return the walks of CE2 for the named features: along the direction of each, every other feature restored."""
    features = np.array(context.named[: context.config.max_walked_features], dtype=np.intp)
    values = [walk(context, own_direction(context, int(a))).codes[:, :, a] for a in features]
    rows, steps = len(context.domain.base), values[0].shape[1] if values else 0
    value = np.concatenate(values, axis=1) if values else np.zeros((rows, 0))
    feature = np.repeat(features, steps)
    return Edits(context.domain.base, feature, value, value != context.domain.base[:, feature])


def own_direction(context: SearchContext, a: int) -> Floats:
    """Return the normal of feature a, orthogonal to those of every other feature and toward the target."""
    planes = context.feature_planes[0]
    direction = orthogonal_part(unit(planes[:, a]), np.delete(planes, a, axis=1))
    return turned(context, direction)


def turned(context: SearchContext, direction: Floats) -> Floats:
    """Return the direction or its opposite, whichever leads toward the target."""
    along_prediction = (direction * context.toward_target).sum(axis=1, keepdims=True)
    return direction * np.where(along_prediction < 0, -1.0, 1.0)


def frozen_aware_direction(context: SearchContext) -> Floats:
    """Return the direction of CE3: toward the target, orthogonal to the frozen features only."""
    frozen = ~context.domain.free
    if not frozen.any():
        return context.toward_target
    normals = context.feature_planes[0] * frozen[:, :, None]
    return orthogonal_part(context.toward_target, normals[:, frozen.any(axis=0)])


def nearest_examples(context: SearchContext, most: int | None = None) -> Floats:
    """Return the examples of the target nearest to each row: codes (rows, most, features).

    Where a class has no examples, because the model never predicted it in `fit`, the row itself is returned.
    """
    most = context.config.nearest_examples if most is None else most
    codes = np.repeat(context.domain.base[:, None, :], most, axis=1)
    for part in context.targets.parts(context.state):
        if part.examples.size:
            nearest = _nearest(context.state, context.domain.base[part.rows], part.examples, most)
            codes[part.rows[:, None], np.arange(nearest.shape[1])] = context.state.examples[nearest]
    return codes


def more_examples(context: SearchContext) -> Floats:
    """Return more of the nearest examples, and those farthest beyond the prediction hyperplane."""
    count = context.config.more_examples
    deep = np.repeat(context.domain.base[:, None, :], count, axis=1)
    latent = context.state.example_latent
    for part in context.targets.parts(context.state):
        order = np.argsort(-height(latent[part.examples], *part.plane), kind="stable")[:count]
        deep[part.rows, : len(order)] = context.state.examples[part.examples[order]]
    return np.concatenate([nearest_examples(context, count), deep], axis=1)


def latent_heights(context: SearchContext, codes: Floats) -> Floats:
    """Return how far each candidate (rows, K, features) lies beyond the prediction hyperplane."""
    rows, count, features = codes.shape
    normals, offsets = context.prediction_planes
    matrix = context.state.codec.encode(codes.reshape(rows * count, features))
    latent = context.state.autoencoder.encode(matrix).reshape(rows, count, normals.shape[1])
    return np.round(height(latent, normals[:, None, :], offsets[:, None]), 9)


def latent_gains(context: SearchContext, edits: Edits) -> Floats:
    """Return how much each edit moves toward the target by the prediction hyperplane: an estimate without model rows."""
    normals, offsets = context.prediction_planes
    gain = np.full(edits.open.shape, -np.inf)
    rows, codes = edits.flat()
    latent = context.state.autoencoder.encode(context.state.codec.encode(codes))
    before = height(context.latent, normals, offsets)[rows]
    gain[edits.open] = np.round(height(latent, normals[rows], offsets[rows]) - before, 9)
    return gain


def neighbours(context: SearchContext, examples: Floats) -> Candidates:
    """Return examples projected on the domain of the row. With nothing frozen they reach the target for certain."""
    return different(context, context.domain.project(examples))


def as_it_is(context: SearchContext) -> Candidates:
    """Return the start of the search: its margin is needed, and a row that was moved into a permitted range may reach the
    target by that alone."""
    return Candidates(context.domain.base[:, None, :], np.ones((len(context.domain.base), 1), dtype=bool))


def without_trifles(context: SearchContext, candidates: Candidates) -> Candidates:
    """Return the candidates with tiny numeric changes undone."""
    price = context.distance.parts(candidates.codes, context.domain.base[:, None, :])
    return different(context, np.where(price < context.config.min_cost, context.domain.base[:, None, :], candidates.codes))


def apart(context: SearchContext, rows: Indices, codes: Floats) -> Floats:
    """Return the distance of counterfactuals (N, features) of `rows` (N,) to the nearest example of the target, relative to
    the usual distance between such examples; NaN where that is zero."""
    gap, known = np.full(len(codes), np.nan), context.state
    for part in context.targets.parts(known):
        mine = np.flatnonzero(np.isin(rows, part.rows))
        if part.examples.size and mine.size:
            nearest = _nearest(known, codes[mine], part.examples, 1)[:, 0]
            gap[mine] = known.distance.total(known.examples[nearest], codes[mine])
    usual = known.typical[context.targets.target[rows]]
    return np.asarray(np.where(usual > 0, gap / np.where(usual > 0, usual, 1.0), np.nan))


def _nearest(known: SearchState, codes: Floats, wanted: Indices, most: int) -> Indices:
    """Return the nearest examples: the best by squared distance (a matrix product), sorted by the distance itself."""
    places = known.example_places[wanted]
    lengths, across = (places**2).sum(axis=1), np.ascontiguousarray(places.T)
    own = known.place(codes).astype(np.float32)
    count = min(known.config.search.example_shortlist * most, len(wanted))
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


def different(context: SearchContext, codes: Floats) -> Candidates:
    """Return candidates; those that change nothing are closed."""
    return Candidates(codes, np.asarray((codes != context.domain.row[:, None, :]).any(axis=2)))
