"""The engine "paper": Algorithms 1 to 3 of FASTER-CE. Decoded rows, the first that reaches the target, nothing refined.

docs/paper.md lists where this deviates from the text. Rows that break a constraint are returned to the caller as valid
candidates outside the domain: verification withholds and counts them.
"""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from fasterce.constraints.compile import CompiledConstraints
from fasterce.fitting.state import SearchState
from fasterce.latent.hyperplanes import fit_hyperplanes
from fasterce.latent.line_search import along, increments
from fasterce.latent.sampling import to_values
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, any_of
from fasterce.search.pool import LATENT, Pool
from fasterce.search.proposals.latent import combinations, frozen_aware_direction, on_boundary, own_directions
from fasterce.search.rounds import Search, for_rows, in_parallel
from fasterce.typing import Floats, Indices, Mask

# Points of a walk evaluated in its first round, in each following one twice as many, and at most.
FIRST_POINTS, MOST_POINTS = 20, 160
# Random values of a feature tried by Algorithm 2: a few first, the others where none of these reaches the target.
RANDOM_TRIES = (10, 90)
# Latent samples within the ranges of a call from which hyperplanes are fitted to these alone.
FEWEST_SAMPLES = 50


def closest(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 1: project on the prediction hyperplane, walk along its normal."""
    context = context.by_one_hyperplane()
    frozen = ~context.domain.free
    start = on_boundary(context, np.zeros_like(frozen))
    return (yield from _several(context, _line_search(context, PaperWalk.of(start, context.toward_target, frozen)), n))


def realistic(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 3: walk orthogonally to the features that must not change, from their own contours."""
    context = context.by_one_hyperplane()
    return (yield from _several(context, _orthogonal_walk(context, ~context.domain.free), n))


def sparse(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 2 for each feature: walk until the decoded row reaches the target, reset every other feature, and where
    that does not reach it any more, vary the feature alone."""
    context = context.by_one_hyperplane()
    features = np.array(context.named or np.flatnonzero(context.domain.free.any(axis=0)), dtype=np.intp)
    if features.size == 0:
        return Pool.nothing(context.domain.base)
    directions = own_directions(context)
    walks = [_feature_walk(context, int(a), directions[:, a]) for a in features]
    walked = yield from in_parallel([_line_search(context, walk) for walk in walks])
    first = [pool.best(1) for pool in walked]
    value = np.stack([pool.codes[:, 0, a] for pool, a in zip(first, features, strict=True)], axis=1)
    flipped = np.stack([pool.valid[:, 0] for pool in first], axis=1)
    settled = yield from _first_value(context, features, value[:, None], flipped[:, None])
    perturb = _random_values if context.paper.perturbation == "random" else _swept_values
    settled += yield from perturb(context, features, settled)
    return settled.best(max(2 * n, len(features))).from_origin(LATENT)


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def rows_at_once(state: SearchState) -> int:
    """Return how many queries can be searched together: those of each feature's walk and values are whole rows."""
    features, config = len(state.codec.schema), state.config.search
    model_rows = (MOST_POINTS + sum(RANDOM_TRIES)) * features + len(state.fine_levels[0])
    return max(1, config.max_cells // (model_rows * features))


def within_ranges(state: SearchState, constraints: CompiledConstraints) -> SearchState:
    """Return the state with hyperplanes fitted to the latent samples that decode to permitted values only."""
    latent, codec = state.samples.astype(np.float64), state.codec
    codes = to_values(codec.decode(state.autoencoder.decode(latent)), codec)
    domain, blocked = constraints.domain(codes)
    kept = (domain.base == domain.row).all(axis=1)
    kept[list(blocked)] = False
    labels = state.sample_classes[kept]
    if kept.all() or kept.sum() < FEWEST_SAMPLES or len(np.unique(labels)) < 2:
        return state
    matrix, numbers = codec.encode(codes[kept]), len(codec.numeric)
    classes, config = state.hyperplanes.classes, state.config.latent
    return replace(state, hyperplanes=fit_hyperplanes(latent[kept], matrix, numbers, labels, classes, config))


@dataclass(frozen=True)
class PaperWalk:
    """Starts and directions (rows, L), which features (rows, features) are reset in decoded rows (None: rows are taken as
    decoded, whatever the constraints), and how far along the first point lies that reaches the target."""

    start: Floats
    direction: Floats
    frozen: Mask | None
    first: Floats

    @classmethod
    def of(cls, start: Floats, direction: Floats, frozen: Mask | None) -> "PaperWalk":
        return cls(start, direction, frozen, np.full(len(start), np.inf))

    def take(self, rows: Indices) -> "PaperWalk":
        frozen = None if self.frozen is None else self.frozen[rows]
        return PaperWalk(self.start[rows], self.direction[rows], frozen, self.first[rows])


def _line_search(context: SearchContext, walk: PaperWalk, begin: int = 0) -> Search:
    """Return the first point that reaches the target, or the first at least `margin` beyond it, and those before it that
    reach the target but break a constraint. Rows without one walk on in the next round."""
    reach = increments(context.paper.step, context.paper.eps_max, context.paper.growth)
    end = min(begin + min(max(begin, FIRST_POINTS), MOST_POINTS), len(reach))
    distance = np.broadcast_to(reach[begin:end], (len(walk.start), end - begin))
    decoded = _decoded(context, along(walk.start, walk.direction, distance))
    (evaluation,) = yield [Candidates(decoded, _changed(context, decoded))]
    reset, valid = decoded, evaluation.valid
    if walk.frozen is not None:
        reset = context.domain.complete(np.where(walk.frozen[:, None, :], context.domain.base[:, None, :], decoded))
        again = valid & (reset != decoded).any(axis=2)
        (after,) = yield [Candidates(reset, again & _changed(context, reset))]
        valid = valid & (~again | after.valid)
    legal = valid if walk.frozen is None else valid & context.domain.contains(reset)
    first = np.minimum(walk.first, np.where(legal, distance, np.inf).min(axis=1, initial=np.inf))
    safe = legal & (distance >= (first + context.margin)[:, None] - 1e-9)
    pool = _found(context, reset, safe, valid & ~legal)
    stuck = np.flatnonzero(~any_of(safe))
    if end < len(reach) and stuck.size:
        onward = replace(walk, first=first).take(stuck)
        pool += yield from for_rows(stuck, context, lambda some: _line_search(some, onward, end))
    return pool


def _found(context: SearchContext, codes: Floats, safe: Mask, illegal: Mask) -> Pool:
    """Return the first safe point of each row, then the illegal ones before it."""
    step = np.where(any_of(safe), safe.argmax(axis=1), safe.shape[1])
    illegal = illegal & (np.arange(safe.shape[1]) < step[:, None])
    some = np.flatnonzero(illegal.any(axis=0))
    best = codes[np.arange(len(step)), np.minimum(step, safe.shape[1] - 1)][:, None]
    shown = np.concatenate([best, codes[:, some]], axis=1)
    valid = np.concatenate([any_of(safe)[:, None], illegal[:, some]], axis=1)
    return Pool.start(shown, valid, context.domain, context.distance, counted=False).from_origin(LATENT)


def _decoded(context: SearchContext, points: Floats) -> Floats:
    """Return what latent points (rows, K, L) decode to, at the precision and within the ranges of the schema."""
    codec = context.state.codec
    codes = codec.decode(context.state.autoencoder.decode(points))
    return to_values(codes.reshape(-1, codes.shape[2]), codec).reshape(codes.shape)


def _changed(context: SearchContext, codes: Floats) -> Mask:
    return np.asarray((codes != context.domain.row[:, None, :]).any(axis=2))


def _orthogonal_walk(context: SearchContext, frozen: Mask) -> Search:
    direction = frozen_aware_direction(context, frozen)
    return _line_search(context, PaperWalk.of(on_boundary(context, frozen), direction, frozen))


def _feature_walk(context: SearchContext, a: int, direction: Floats) -> PaperWalk:
    """Return the walk of Algorithm 2: from the intersection of the prediction hyperplane with the contour of `a`."""
    own = np.zeros(context.domain.free.shape, dtype=bool)
    own[:, a] = True
    return PaperWalk.of(on_boundary(context, own), direction, None)


def _several(context: SearchContext, search: Search, n: int) -> Search:
    """For more than one counterfactual, repeat Algorithm 3 over different combinations of features."""
    if n == 1:
        return (yield from search)
    others = [_orthogonal_walk(context, frozen) for frozen in combinations(context, 2 * n)]
    return reduce(Pool.__add__, (yield from in_parallel([search, *others])))


def _first_value(context: SearchContext, features: Indices, values: Floats, open_: Mask) -> Search:
    """Return rows with one feature changed: per feature the first of its values (rows, K, features) that is legal and
    reaches the target."""
    rows, count, width = values.shape
    feature = np.tile(features, count)
    flat = values.reshape(rows, count * width)
    different = flat != context.domain.base[:, feature]
    legal = open_.reshape(flat.shape) & different & context.domain.legal_values(feature, flat)
    codes = np.repeat(context.domain.base[:, None, :], flat.shape[1], axis=1)
    codes[:, np.arange(len(feature)), feature] = flat
    codes = context.domain.complete(codes)
    (evaluation,) = yield [Candidates(codes, legal)]
    valid = evaluation.valid.reshape(rows, count, width)
    pick = valid.argmax(axis=1) * width + np.arange(width)
    chosen = np.take_along_axis(codes, pick[:, :, None], 1)
    return Pool.start(chosen, np.asarray(valid.any(axis=1)), context.domain, context.distance, counted=False)


def _random_values(context: SearchContext, features: Indices, settled: Pool) -> Search:
    """Vary the features that are not settled by random values of their range, the same draws for every query."""
    rng = np.random.default_rng(0)
    done, found = settled.valid, Pool.nothing(context.domain.base)
    for count in RANDOM_TRIES:
        values = _draw(context, features, rng.random((count, len(features))))
        tried = yield from _first_value(context, features, values, np.broadcast_to(~done[:, None], values.shape))
        done, found = done | tried.valid, found + tried
    return found


def _draw(context: SearchContext, features: Indices, share: Floats) -> Floats:
    """Return values (rows, K, features) at shares (K, features) of each query's own range, or of the categories."""
    domain, codec = context.domain, context.state.codec
    values = np.empty((len(domain.base), *share.shape))
    for k, j in enumerate(map(int, features)):
        if j in codec.observed:
            seen = codec.observed[j]
            values[:, :, k] = seen[(share[:, k] * len(seen)).astype(np.intp)]
        else:
            low = np.maximum(domain.lower[:, j], codec.profile.low[j])[:, None]
            high = np.minimum(domain.upper[:, j], codec.profile.high[j])[:, None]
            drawn = low + np.maximum(high - low, 0.0) * share[:, k]
            values[:, :, k] = domain.round(drawn[:, :, None], np.array([j]))[:, :, 0]
    return values


def _swept_values(context: SearchContext, features: Indices, settled: Pool) -> Search:
    """Vary the features that are not settled over a list of values, those nearest to each query first."""
    feature, value = context.state.fine_levels
    levels = [value[feature == a] for a in features]
    most = max(len(each) for each in levels)
    padded = np.stack([np.pad(each, (0, most - len(each)), constant_values=np.nan) for each in levels], axis=1)
    own = context.domain.base[:, None, features]
    order = np.argsort(np.abs(padded - own), axis=1, kind="stable")
    values = np.take_along_axis(np.broadcast_to(padded, order.shape), order, 1)
    known = np.isfinite(values)
    values = np.where(known, values, own)
    return (yield from _first_value(context, features, values, known & ~settled.valid[:, None]))
