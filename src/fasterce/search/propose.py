"""Candidates from known examples of the target, and estimates by the prediction hyperplane."""

from collections.abc import Sequence

import numpy as np

from fasterce.fitting.state import SearchState
from fasterce.kernels.arrays import Found
from fasterce.latent.directions import height
from fasterce.latent.runtime import BLOCK_ROWS, on_one_thread, spread
from fasterce.search.context import SearchContext
from fasterce.search.evaluator import Candidates, Evaluation
from fasterce.search.pool import EDITS, Pool
from fasterce.typing import Floats, Indices


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


def neighbours(context: SearchContext, examples: Floats) -> Candidates:
    """Return examples projected on the domain of the row. With nothing frozen they reach the target for certain."""
    return different(context, context.domain.project(examples))


def exact_candidates(context: SearchContext) -> Found:
    """Return the candidates of each query by the exact scorer; the same for every method and number of counterfactuals.

    The margin of a network may fall before it rises, which edits do not cross: its candidates come from known rows, too.
    """
    if context.shared.found is None:
        assert context.scorer is not None
        starts = None
        if len(context.scorer.network.width):
            starts = neighbours(context, nearest_examples(context, context.config.known_starts)).codes
        context.shared.found = context.search_exactly(starts)
    return context.shared.found


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


def flipping(
    context: SearchContext,
    group: Candidates,
    evaluation: Evaluation,
    most: int | None = None,
    origin: int | Sequence[int] | Indices = EDITS,
) -> Pool:
    """Return the cheapest candidates of a group that reach the target; `origin` is one for all, or one per column."""
    valid = evaluation.valid & different(context, group.codes).open
    found = Pool.start(group.codes, valid, context.domain, context.distance, lead=evaluation.margin).from_origin(origin)
    return found.best(context.config.kept_candidates if most is None else most)


def different(context: SearchContext, codes: Floats) -> Candidates:
    """Return candidates; those that change nothing are closed."""
    return Candidates(codes, np.asarray((codes != context.domain.row[:, None, :]).any(axis=2)))
