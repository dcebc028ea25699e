"""The algorithms of the paper: decode latent points, take the first that reaches the target, refine nothing.

The pseudo-code of the paper is corrected where it contains errors: the search continues while nothing valid was found, the
sign of a direction is a scalar that points to the target class, and the k-th step lies δ·k(k+1)/2 beyond the projection.
"""

import numpy as np

from fasterce.constraints.compile.domain import decode_plainly
from fasterce.fitting.state import SearchState
from fasterce.latent.directions import orthogonal_part, project_on, unit
from fasterce.latent.line_search import along, cumulative
from fasterce.search import sweep
from fasterce.search.context import SearchContext
from fasterce.search.judge import Candidates, Edits
from fasterce.search.pool import Pool
from fasterce.search.propose import different, frozen_aware_direction, own_direction, turned
from fasterce.search.rounds import Search
from fasterce.typing import Floats, Indices, Mask


def closest(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 1: project on the prediction hyperplane, walk along its normal."""
    context = context.by_one_hyperplane()
    normals, offsets = context.prediction_planes
    start = project_on(context.latent, normals[:, None, :], offsets[:, None])
    return (yield from _first_on_walk(context, start, context.toward_target))


def sparse(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 2 for each feature: walk, restore every other feature, else vary the feature alone."""
    context = context.by_one_hyperplane()
    features = np.array(context.named or np.flatnonzero(context.domain.free.any(axis=0)), dtype=np.intp)
    if features.size == 0:
        return Pool.nothing(context.domain.base)
    walked = [_walk_of_feature(context, int(a)) for a in features]
    on_walk = yield walked
    rows = np.arange(len(context.domain.base))
    flips = [verdict.valid.argmax(axis=1) for verdict in on_walk]
    value = np.stack([walk.codes[rows, k, a] for walk, k, a in zip(walked, flips, features, strict=True)], axis=1)
    flipped = np.stack([verdict.valid.any(axis=1) for verdict in on_walk], axis=1)
    own = context.domain.base[:, features]
    put_back = Edits(context.domain.base, features, value, flipped & (value != own) & context.domain.free[:, features])
    (alone,) = yield [put_back]
    varied = sweep.edits(context.domain, context.state.fine_levels)
    unsettled = _spread(features, ~alone.valid, len(context.state.codec.schema))
    varied = Edits(varied.base, varied.feature, varied.value, varied.open & unsettled[:, varied.feature])
    (of_varied,) = yield [varied]
    settled = sweep.cheapest(put_back, alone, context.domain, context.distance)
    rest = sweep.cheapest(varied, of_varied, context.domain, context.distance)
    return (_pool(context, settled, n) + _pool(context, rest, n)).best(2 * n)


def realistic(context: SearchContext, n: int = 1) -> Search:
    """Algorithm 3: walk orthogonally to the frozen features, from the intersection with the planes of the named ones."""
    context = context.by_one_hyperplane()
    normals, offsets = context.prediction_planes
    planes, shifts = context.feature_planes
    named = list(context.named)
    together = np.concatenate([normals[:, None, :], planes[:, named]], axis=1)
    start = project_on(context.latent, together, np.concatenate([offsets[:, None], shifts[:, named]], axis=1))
    direction = _toward_named(context, named) if named else frozen_aware_direction(context)
    return (yield from _first_on_walk(context, start, direction))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def rows_at_once(state: SearchState) -> int:
    """Return how many rows can be searched together: the walk and sweep of each feature are whole rows."""
    features, config = len(state.codec.schema), state.config.search
    model_rows = len(state.fine_levels[0]) + config.paper_steps * features
    return max(1, config.max_cells // (model_rows * features))


def _first_on_walk(context: SearchContext, start: Floats, direction: Floats) -> Search:
    """Return the first point that reaches the target, or the first at least `margin` beyond it."""
    reach = cumulative(context.step, context.config.paper_steps)
    walked = _walk(context, start, direction, reach)
    (verdict,) = yield [walked]
    first = reach[verdict.valid.argmax(axis=1)]
    safe = verdict.valid & (reach >= (first + context.margin)[:, None] - 1e-9)
    step = safe.argmax(axis=1)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, safe.any(axis=1)[:, None], context.domain, context.distance)


def _walk(context: SearchContext, start: Floats, direction: Floats, reach: Floats) -> Candidates:
    points = along(start, direction, np.broadcast_to(reach, (len(start), len(reach))))
    decoded = context.state.autoencoder.decode(points)
    return different(context, decode_plainly(context.state.codec, context.domain, decoded))


def _walk_of_feature(context: SearchContext, a: int) -> Candidates:
    normals, offsets = context.prediction_planes
    planes, shifts = context.feature_planes
    both = np.stack([normals, planes[:, a]], axis=1)
    start = project_on(context.latent, both, np.stack([offsets, shifts[:, a]], axis=1))
    return _walk(context, start, own_direction(context, a), cumulative(context.step, context.config.paper_steps // 2))


def _toward_named(context: SearchContext, named: list[int]) -> Floats:
    """Return the sum of the directions of the named features, each orthogonal to the others and toward the target."""
    planes = context.feature_planes[0]
    frozen = [j for j in range(planes.shape[1]) if j not in named]
    parts = [turned(context, orthogonal_part(unit(planes[:, a]), planes[:, frozen])) for a in named]
    return unit(np.sum(parts, axis=0))


def _spread(features: Indices, mask: Mask, width: int) -> Mask:
    spread = np.zeros((len(mask), width), dtype=bool)
    spread[:, features] = mask
    return spread


def _pool(context: SearchContext, singles: sweep.Singles, n: int) -> Pool:
    codes, floors, valid = singles.pool(context.domain.base, max(n, 2))
    return Pool.start(codes, valid, context.domain, context.distance, floors)
