"""The engine "latent": FASTER-CE made practical. Walks in the latent space propose all candidates.

Differences to the engine "paper": the movement of the decoder is carried over to the query, candidates are projected on the
constraints, and what reaches the target is refined: changes that are not needed are dropped, numbers moved back toward the
query. Neither the surrogate nor known rows are used, and features are varied on their own only where Algorithm 2 does it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from fasterce.fitting.state import SearchState
from fasterce.latent.directions import unit
from fasterce.latent.line_search import along, cumulative, distances_to_walk
from fasterce.search.context import SearchContext
from fasterce.search.distance import filled_or_emptied
from fasterce.search.diversity import chosen
from fasterce.search.evaluator import Candidates, Evaluation, any_of
from fasterce.search.margin import beyond
from fasterce.search.pool import LATENT, Pool
from fasterce.search.proposals.latent import combinations, decoded_movement, frozen_aware_direction, own_directions, walk
from fasterce.search.propose import different
from fasterce.search.rounds import Search, for_rows, in_parallel
from fasterce.typing import Floats, Indices, Mask

# Steps of the walk of one feature, of the paper's twenty: the first ones, and some farther ones.
FEATURE_STEPS = (0, 2, 4, 6, 8, 11, 14, 19)
# Prototypes of the target each query walks toward, and the shares of the way at which the model is evaluated.
PROTOTYPES, FARTHER_PROTOTYPES = 2, 8
PROTOTYPE_SHARES = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.2])
# Steps of the long walk for queries without a candidate, beyond the prediction hyperplane.
LONG_STEPS = 40
# Most features whose best single changes are made together, for the same queries.
MOST_TOGETHER = 8
# Combinations of features walked along together by Algorithm 3.
COMBINATIONS = 6
# Candidates per query that are refined, beside those wanted.
REFINED = 3
DEEPEST = 2
# Rounds that undo single changes after the least needed were dropped; rounds that move one number back, and into how many
# parts the way is divided.
UNDO_ROUNDS = 2
SHRINK_ROUNDS = 6
SECTIONS = 8
# Added to the cost of a change when the gain per cost is compared, so that tiny changes do not always come first.
LEAST_COST = 0.05

Price = Callable[[SearchContext, Floats], Floats]


def closest(context: SearchContext, n: int = 1) -> Search:
    """CE1, CE2 and CE3 together: of all walks, the cheapest change that reaches the target."""
    pool = yield from _every_walk(context)
    return (yield from _finished(context, pool, n, _distance))


def sparse(context: SearchContext, n: int = 1) -> Search:
    """CE2: the cheapest change of one feature; where none suffices, as few features as the other walks need."""
    pool = yield from _one_feature(context)
    more = np.flatnonzero(pool.valid.sum(axis=1) < n)
    pool += yield from for_rows(more, context, _every_walk)
    return (yield from _finished(context, pool, n, _distance, fewest=True))


def realistic(context: SearchContext, n: int = 1) -> Search:
    """CE3: walk orthogonally to what must not change and toward prototypes of the target, so that what belongs together
    changes together; of what reaches the target, what the autoencoder reconstructs well counts as realistic."""
    if context.realism == 0:
        return (yield from closest(context, n))
    pool = yield from _walks(context, n)
    stuck = np.flatnonzero(~any_of(pool.valid))
    pool += yield from for_rows(stuck, context, _every_walk)
    return (yield from _finished(context, pool, n, _implausibility))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def rows_at_once(state: SearchState) -> int:
    """Return how many queries can be searched together: each has the walks of all features, then a few candidates without
    each of their changes, as whole rows."""
    features = len(state.codec.schema)
    return max(1, state.config.search.max_cells // ((len(FEATURE_STEPS) + 3 * REFINED) * features * features))


def _every_walk(context: SearchContext) -> Search:
    """Return what reaches the target on the walks of CE1, CE2 (with its post-processing) and CE3; on longer ones for
    queries without."""
    singles = _of_features(context)
    groups = [*_straight(context), *_of_combinations(context, COMBINATIONS), singles]
    evaluations = yield groups
    pool = _reaching(context, groups, evaluations)
    stuck = np.flatnonzero(~any_of(pool.valid))
    not_alone = np.flatnonzero(any_of(pool.valid) & ~any_of(evaluations[-1].valid))
    codes, margin = singles.codes[stuck], evaluations[-1].margin[stuck]
    more = [
        for_rows(not_alone, context, _varied),
        for_rows(stuck, context, lambda some: _farther(some, codes, margin)),
    ]
    return reduce(Pool.__add__, (yield from in_parallel(more)), pool)


def _walks(context: SearchContext, n: int) -> Search:
    groups = [*_straight(context), *_of_combinations(context, COMBINATIONS if n > 1 else 0)]
    return _reaching(context, groups, (yield groups))


def _one_feature(context: SearchContext) -> Search:
    """CE2: the walks of single features; for queries without a candidate, CE2's post-processing: vary each alone."""
    groups = [_of_features(context)]
    pool = _reaching(context, groups, (yield groups))
    stuck = np.flatnonzero(~any_of(pool.valid))
    return pool + (yield from for_rows(stuck, context, _varied))


def _varied(context: SearchContext) -> Search:
    groups = [_of_levels(context)]
    return _reaching(context, groups, (yield groups))


def _of_levels(context: SearchContext) -> Candidates:
    """Return the post-processing of Algorithm 2: each feature varied alone over a few values."""
    feature, value = context.state.coarse_levels
    values = np.repeat(value[None], len(context.domain.base), axis=0)
    numeric = np.isin(feature, context.domain.numeric)
    values[:, numeric] = context.domain.round(values[:, numeric], feature[numeric])
    return _single_changes(context, feature, values)


def _farther(context: SearchContext, singles: Floats, margin: Floats) -> Search:
    """Walk far beyond the hyperplane and to more prototypes, as movement carried over and as decoded rows, and vary each
    feature alone; where that is not enough, make the best changes of single features (rows, S, features), by their margins
    (rows, S), together."""
    distance = np.broadcast_to(cumulative(context.paper.step, LONG_STEPS), (len(context.domain.base), LONG_STEPS + 1))
    long = along(context.latent, frozen_aware_direction(context), distance)
    points = np.concatenate([long, *_prototype_points(context, FARTHER_PROTOTYPES)], axis=1)
    state = context.state
    decoded = context.domain.project(state.codec.decode(state.autoencoder.decode(points)))
    varied = _of_levels(context)
    groups = [decoded_movement(context, points), different(context, decoded), varied]
    evaluations = yield groups
    pool = _reaching(context, groups, evaluations)
    stuck = np.flatnonzero(~any_of(pool.valid))
    codes = np.concatenate([singles, varied.codes], axis=1)[stuck]
    margins = np.concatenate([margin, evaluations[-1].margin], axis=1)[stuck]
    return pool + (yield from for_rows(stuck, context, lambda some: _combined(some, codes, margins)))


def _combined(context: SearchContext, singles: Floats, margin: Floats) -> Search:
    groups = [_together(context, singles, margin)]
    return _reaching(context, groups, (yield groups))


def _together(context: SearchContext, singles: Floats, margin: Floats) -> Candidates:
    """Return the best change of each feature, made together for the k features that gain most, for every k."""
    base, gain = context.domain.base, np.full(context.domain.base.shape, -np.inf)
    value = base.copy()
    for j in range(base.shape[1]):
        mine = np.where(singles[:, :, j] != base[:, j : j + 1], margin, -np.inf)
        if mine.shape[1]:
            best = mine.argmax(axis=1)[:, None]
            gain[:, j] = np.take_along_axis(mine, best, 1)[:, 0]
            value[:, j] = np.take_along_axis(singles[:, :, j], best, 1)[:, 0]
    rank = np.argsort(np.argsort(-gain, axis=1, kind="stable"), axis=1)
    sizes = np.arange(2, min(MOST_TOGETHER, base.shape[1]) + 1)[:, None]
    chosen = (rank[:, None, :] < sizes) & np.isfinite(gain)[:, None, :]
    return different(context, np.where(chosen, value[:, None, :], base[:, None, :]))


def _straight(context: SearchContext) -> list[Candidates]:
    """Return the walks along the normal of the prediction hyperplane, of the region and of all, and toward prototypes."""
    walks = [walk(context, frozen_aware_direction(context))]
    if len(context.state.regions) > 1:
        whole = context.by_one_hyperplane()
        walks.append(walk(whole, frozen_aware_direction(whole)))
    return [*walks, *(decoded_movement(context, points) for points in _prototype_points(context, PROTOTYPES))]


def _prototype_points(context: SearchContext, count: int) -> list[Floats]:
    """Return points (rows, K, L) on the way to each of the nearest prototypes of the target."""
    centres = context.state.prototypes
    away = np.round(np.linalg.norm(centres - context.latent[:, None, :], axis=2), 9)
    away = np.where(context.targets.welcome(context.state.prototype_classes), away, np.inf)
    order = np.argsort(away, axis=1, kind="stable")
    walks = []
    for k in range(min(count, len(centres))):
        distance = np.take_along_axis(away, order[:, k : k + 1], 1)
        toward = unit(centres[order[:, k]] - context.latent)
        reach = np.where(np.isfinite(distance), distance, 0.0) * PROTOTYPE_SHARES
        walks.append(along(context.latent, toward, reach))
    return walks


def _of_combinations(context: SearchContext, count: int) -> list[Candidates]:
    """Return the walks of Algorithm 3 with only a few features free; all others are put back."""
    base, walks = context.domain.base[:, None, :], []
    for frozen in combinations(context, count):
        moved = walk(context, frozen_aware_direction(context, frozen)).codes
        walks.append(different(context, np.where(frozen[:, None, :], base, moved)))
    return walks


def _of_features(context: SearchContext) -> Candidates:
    """Return the walks of Algorithm 2 for every feature, all other features put back."""
    features = np.flatnonzero(context.domain.free.any(axis=0))
    directions, steps = own_directions(context), list(FEATURE_STEPS)
    distance = distances_to_walk(np.zeros(len(context.latent)), context.paper.step)[:, steps]
    values = [
        decoded_movement(context, along(context.latent, directions[:, a], sign * distance)).codes[:, :, a]
        for a in features
        for sign in (1.0, -1.0)
    ]
    feature = np.repeat(features, 2 * len(steps))
    value = np.concatenate(values, axis=1) if values else np.zeros((len(context.latent), 0))
    return _single_changes(context, feature, value)


def _single_changes(context: SearchContext, feature: Indices, value: Floats) -> Candidates:
    """Return candidates that change one feature (S,) to a value (rows, S) each; those not permitted are closed."""
    codes = np.repeat(context.domain.base[:, None, :], len(feature), axis=1)
    codes[:, np.arange(len(feature)), feature] = value
    changed = value != context.domain.base[:, feature]
    return Candidates(codes, changed & context.domain.legal_values(feature, value))


def _reaching(context: SearchContext, groups: list[Candidates], evaluations: list[Evaluation]) -> Pool:
    """Return the candidates that reach the target, of each group the cheapest ones, and the one farthest beyond the
    boundary: it can do without most of its changes."""
    pools = []
    for group, evaluation in zip(groups, evaluations, strict=True):
        pool = Pool.start(group.codes, evaluation.valid, context.domain, context.distance, lead=evaluation.margin)
        deepest = np.argsort(-np.where(pool.valid, pool.lead, -np.inf), axis=1, kind="stable")[:, :1]
        pools += [pool.best(2 * REFINED), pool.take(deepest)]
    return reduce(Pool.__add__, pools).from_origin(LATENT)


def _finished(context: SearchContext, pool: Pool, n: int, price: Price, fewest: bool = False) -> Search:
    """Refine the best candidates of each query, choose `n` that differ, and move on by the margin wanted."""
    pool = _priced(context, pool, price)
    deepest = np.argsort(-np.where(pool.valid, pool.lead, -np.inf), axis=1, kind="stable")[:, :DEEPEST]
    pool = pool.distinct(context.domain.base).best(REFINED + 2 * (n - 1)) + pool.take(deepest)
    pool = yield from _without_unneeded(context, pool, price)
    for _ in range(UNDO_ROUNDS):
        pool = yield from _without_one(context, pool, price)
    pool = yield from _nearer(context, pool, price)
    spare = n + context.config.verification_attempts
    pool = chosen(pool, context.domain.row, spare, context.diversity if n > 1 else 0.0, fewest, context.config)
    return (yield from beyond(context, pool.from_origin(LATENT)))


def _priced(context: SearchContext, pool: Pool, price: Price) -> Pool:
    return replace(pool, cost=np.where(pool.valid, price(context, pool.codes), np.inf))


def _distance(context: SearchContext, codes: Floats) -> Floats:
    """Price of `closest` and `sparse`: the distance to the query."""
    return context.distance.total(codes, context.domain.row[:, None, :])


def _implausibility(context: SearchContext, codes: Floats) -> Floats:
    """Price of `realistic`: the distance to the query, and by the weight `realism` how badly the autoencoder reconstructs
    the row: it has learned which values go together."""
    codec, autoencoder = context.state.codec, context.state.autoencoder
    matrix = codec.encode(codes.reshape(-1, codes.shape[2]))
    error = np.abs(autoencoder.decode(autoencoder.encode(matrix)) - matrix)
    loss = np.round(error.sum(axis=1) / 2, 9).reshape(codes.shape[:2])
    return np.asarray((1 - context.realism) * _distance(context, codes) + context.realism * loss)


def _without_unneeded(context: SearchContext, pool: Pool, price: Price) -> Search:
    """Undo each change alone to learn how much it is needed, then keep the most needed ones only: the cheapest candidate
    that still reaches the target is taken."""
    feature, used = _changes(context, pool)
    tried = _undone(context, pool, feature, used)
    (evaluation,) = yield [tried]
    need = np.where(used, pool.lead[..., None] - np.maximum(evaluation.margin.reshape(used.shape), -1e3), -np.inf)
    cost = np.take_along_axis(context.distance.parts(pool.codes, context.domain.row[:, None, :]), feature, 2)
    worth = np.where(need > 0, need / (LEAST_COST + cost), need)
    kept = [_most_needed(context, pool, feature, used, order) for order in (need, worth)]
    evaluations = yield kept
    groups = [(group.codes, one.valid) for group, one in zip([tried, *kept], [evaluation, *evaluations], strict=True)]
    return reduce(partial(_cheaper, context, price), groups, pool)


def _without_one(context: SearchContext, pool: Pool, price: Price) -> Search:
    """Undo the change that saves most of those that are not needed."""
    tried = _undone(context, pool, *_changes(context, pool))
    (evaluation,) = yield [tried]
    return _cheaper(context, price, pool, (tried.codes, evaluation.valid))


def _changes(context: SearchContext, pool: Pool) -> tuple[Indices, Mask]:
    """Return the changed features of each candidate (rows, R, m), padded; `used` is False for padding and for candidates
    with one change."""
    changed = (pool.codes != context.domain.base[:, None, :]) & pool.valid[:, :, None]
    changed &= changed.sum(axis=2, keepdims=True) > 1
    most = int(changed.sum(axis=2).max(initial=0))
    feature = np.argsort(~changed, axis=2, kind="stable")[:, :, :most]
    return feature, np.take_along_axis(changed, feature, 2)


def _undone(context: SearchContext, pool: Pool, feature: Indices, used: Mask) -> Candidates:
    """Return each candidate without each of its changes, R * m per query."""
    codes = np.repeat(pool.codes[:, :, None, :], feature.shape[2], axis=2)
    own = np.take_along_axis(np.broadcast_to(context.domain.base[:, None, :], pool.codes.shape), feature, 2)
    np.put_along_axis(codes, feature[..., None], own[..., None], axis=3)
    return _flat(codes, used)


def _most_needed(context: SearchContext, pool: Pool, feature: Indices, used: Mask, need: Floats) -> Candidates:
    """Return each candidate with only the k changes that are needed most, for every k."""
    order = np.argsort(-need, axis=2, kind="stable")
    feature, used = np.take_along_axis(feature, order, 2), np.take_along_axis(used, order, 2)
    rows, count, most = feature.shape
    rank = np.full(pool.codes.shape, most)
    np.put_along_axis(rank, feature, np.where(used, np.arange(most), most), axis=2)
    shown = rank[:, :, None, :] <= np.arange(most)[:, None]
    codes = np.where(shown, pool.codes[:, :, None, :], context.domain.base[:, None, None, :])
    shorter = np.arange(1, most + 1) < used.sum(axis=2, keepdims=True)
    return _flat(codes, np.broadcast_to(shorter, (rows, count, most)))


def _flat(codes: Floats, open_: Mask) -> Candidates:
    rows, count, each, features = codes.shape
    return Candidates(codes.reshape(rows, count * each, features), open_.reshape(rows, count * each))


def _cheaper(context: SearchContext, price: Price, pool: Pool, tried: tuple[Floats, Mask]) -> Pool:
    """Return each candidate, or the cheapest of those tried in its place (rows, R * m) that is valid and cheaper."""
    codes, valid = tried
    rows, count, features = pool.codes.shape
    if codes[..., 0].size == 0:
        return pool
    made = _priced(context, Pool.start(codes, valid, context.domain, context.distance), price)
    cost = made.cost.reshape(rows, count, -1)
    pick = cost.argmin(axis=2)[..., None]
    best = np.take_along_axis(cost, pick, 2)[..., 0]
    chosen_codes = np.take_along_axis(made.codes.reshape(rows, count, -1, features), pick[..., None], 2)[:, :, 0]
    better = best < pool.cost
    return replace(
        pool,
        codes=np.where(better[..., None], chosen_codes, pool.codes),
        cost=np.where(better, best, pool.cost),
    )


def _nearer(context: SearchContext, pool: Pool, price: Price) -> Search:
    """Move numbers back toward the query, in each round the one whose change costs most."""
    floor = np.broadcast_to(context.domain.base[:, None, :], pool.codes.shape).copy()
    share = np.arange(1, SECTIONS) / SECTIONS
    for _ in range(SHRINK_ROUNDS):
        width = context.distance.shrinkable(pool.codes, floor) * context.domain.free[:, None, :]
        feature = width.argmax(axis=2)[..., None]
        here, low = np.take_along_axis(pool.codes, feature, 2), np.take_along_axis(floor, feature, 2)
        value = context.domain.round_own(low + (here - low) * share, feature[..., 0])
        inside = (np.minimum(here, low) < value) & (value < np.maximum(here, low)) & ~filled_or_emptied(here, low)
        inside &= pool.valid[..., None] & (np.take_along_axis(width, feature, 2) > 0)
        codes = np.repeat(pool.codes[:, :, None, :], len(share), axis=2)
        np.put_along_axis(codes, np.broadcast_to(feature[:, :, None], (*value.shape, 1)), value[..., None], axis=3)
        tried = _flat(codes, inside)
        (evaluation,) = yield [tried]
        valid = evaluation.valid.reshape(value.shape)
        failed = np.where(inside & ~valid & (np.cumsum(valid, axis=2) == 0), np.arange(len(share)), -1).max(axis=2)
        last = np.take_along_axis(value, np.maximum(failed, 0)[..., None], 2)
        settled = np.where(inside.any(axis=2, keepdims=True), np.where(failed[..., None] >= 0, last, low), here)
        np.put_along_axis(floor, feature, settled, axis=2)
        pool = _cheaper(context, price, pool, (tried.codes, evaluation.valid))
    return pool
