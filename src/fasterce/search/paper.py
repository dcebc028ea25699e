"""The plain reading of the paper: decode the latent point itself, take the first one that flips, refine nothing.

Where its pseudo-code slips, what is meant is done: the search goes on while nothing valid was found, a direction's sign
is one scalar that points to the wanted class, and the k-th step lies δ·k(k+1)/2 beyond the projection.
"""

import numpy as np

from fasterce.profile import Floats
from fasterce.search import sweep
from fasterce.search.dialogue import Search
from fasterce.search.directions import orthogonal_part, project_on, unit
from fasterce.search.goal import Indices, Mask
from fasterce.search.judge import Candidates, Edits
from fasterce.search.linesearch import along, cumulative
from fasterce.search.pool import Pool
from fasterce.search.project import decode_plainly
from fasterce.search.propose import different, keeping_frozen_still, own_direction, turned
from fasterce.search.task import MOST_CELLS, Knowledge, Task

STEPS = 40


def closest(task: Task, n: int = 1) -> Search:
    """Algorithm 1: project on the prediction hyperplane, walk along its normal."""
    task = task.by_one_hyperplane()
    normals, offsets = task.prediction_planes
    start = project_on(task.latent, normals[:, None, :], offsets[:, None])
    return (yield from _first_on_walk(task, start, task.toward_target))


def sparse(task: Task, n: int = 1) -> Search:
    """Algorithm 2 for each feature that may be tried: walk, put every other feature back, else vary it alone."""
    task = task.by_one_hyperplane()
    features = np.array(task.named or np.flatnonzero(task.domain.free.any(axis=0)), dtype=np.intp)
    if features.size == 0:
        return Pool.nothing(task.domain.base)
    walked = [_walk_of_feature(task, int(a)) for a in features]
    on_walk = yield walked
    rows = np.arange(len(task.domain.base))
    flips = [verdict.valid.argmax(axis=1) for verdict in on_walk]
    value = np.stack([walk.codes[rows, k, a] for walk, k, a in zip(walked, flips, features, strict=True)], axis=1)
    flipped = np.stack([verdict.valid.any(axis=1) for verdict in on_walk], axis=1)
    own = task.domain.base[:, features]
    put_back = Edits(task.domain.base, features, value, flipped & (value != own) & task.domain.free[:, features])
    (alone,) = yield [put_back]
    varied = sweep.edits(task.domain, task.knowledge.fine_levels)
    unsettled = _spread(features, ~alone.valid, len(task.knowledge.codec.schema))
    varied = Edits(varied.base, varied.feature, varied.value, varied.open & unsettled[:, varied.feature])
    (of_varied,) = yield [varied]
    settled = sweep.cheapest(put_back, alone, task.domain, task.distance)
    rest = sweep.cheapest(varied, of_varied, task.domain, task.distance)
    return (_pool(task, settled, n) + _pool(task, rest, n)).best(2 * n)


def realistic(task: Task, n: int = 1) -> Search:
    """Algorithm 3: orthogonal only to what must not change; from the intersection with the named features' planes."""
    task = task.by_one_hyperplane()
    normals, offsets = task.prediction_planes
    planes, shifts = task.feature_planes
    named = list(task.named)
    together = np.concatenate([normals[:, None, :], planes[:, named]], axis=1)
    start = project_on(task.latent, together, np.concatenate([offsets[:, None], shifts[:, named]], axis=1))
    direction = _toward_named(task, named) if named else keeping_frozen_still(task)
    return (yield from _first_on_walk(task, start, direction))


VARIANTS = {"closest": closest, "sparse": sparse, "realistic": realistic}


def rows_at_once(knowledge: Knowledge) -> int:
    """How many rows can be searched together: each feature's walk and sweep are whole rows."""
    features = len(knowledge.codec.schema)
    return max(1, MOST_CELLS // ((len(knowledge.fine_levels[0]) + STEPS * features) * features))


def _first_on_walk(task: Task, start: Floats, direction: Floats) -> Search:
    """The first point that flips, or the first that does so `margin` farther on."""
    reach = cumulative(task.step, STEPS)
    walked = _walk(task, start, direction, reach)
    (verdict,) = yield [walked]
    first = reach[verdict.valid.argmax(axis=1)]
    safe = verdict.valid & (reach >= (first + task.margin)[:, None] - 1e-9)
    step = safe.argmax(axis=1)
    codes = walked.codes[np.arange(len(step)), step][:, None]
    return Pool.start(codes, safe.any(axis=1)[:, None], task.domain, task.distance)


def _walk(task: Task, start: Floats, direction: Floats, reach: Floats) -> Candidates:
    points = along(start, direction, np.broadcast_to(reach, (len(start), len(reach))))
    decoded = task.knowledge.autoencoder.decode(points)
    return different(task, decode_plainly(task.knowledge.codec, task.domain, decoded))


def _walk_of_feature(task: Task, a: int) -> Candidates:
    normals, offsets = task.prediction_planes
    planes, shifts = task.feature_planes
    both = np.stack([normals, planes[:, a]], axis=1)
    start = project_on(task.latent, both, np.stack([offsets, shifts[:, a]], axis=1))
    return _walk(task, start, own_direction(task, a), cumulative(task.step, STEPS // 2))


def _toward_named(task: Task, named: list[int]) -> Floats:
    """The named features' own directions, each kept off the frozen ones and turned to the wanted class, together."""
    planes = task.feature_planes[0]
    frozen = [j for j in range(planes.shape[1]) if j not in named]
    parts = [turned(task, orthogonal_part(unit(planes[:, a]), planes[:, frozen])) for a in named]
    return unit(np.sum(parts, axis=0))


def _spread(features: Indices, mask: Mask, width: int) -> Mask:
    spread = np.zeros((len(mask), width), dtype=bool)
    spread[:, features] = mask
    return spread


def _pool(task: Task, singles: sweep.Singles, n: int) -> Pool:
    codes, floors, valid = singles.pool(task.domain.base, max(n, 2))
    return Pool.start(codes, valid, task.domain, task.distance, floors)
