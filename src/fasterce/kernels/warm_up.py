"""Compile all kernels, or read them from the cache on disk, before the first query: `python -m fasterce.kernels.warm_up`."""

from functools import cache

import numpy as np

from fasterce.kernels.arrays import IDENTITY, NETWORK, NO_NETWORK, NO_TREES, Effort, Found, Queries, Scorer, Space
from fasterce.kernels.correct import correct
from fasterce.kernels.edits import write_curve_costs
from fasterce.kernels.guided import LESS, keep_new, propose_block, propose_single_changes, write_nearer
from fasterce.kernels.links import CONSTRAINT, NO_LINKS, check_rows, complete_rows, set_targets
from fasterce.kernels.profile import Workspace, workspace
from fasterce.kernels.realism import Improved, Improvement, Known, count_sharing, improve_starts, scratch, write_away
from fasterce.kernels.score import NAMED, margin_table, outputs
from fasterce.kernels.search import search_block
from fasterce.kernels.state import Memory, memory
from fasterce.kernels.structs import as_struct


@cache
def warm_up() -> None:
    """Run the search once on a line with two features; every call after the first returns at once.

    A later search compiles nothing: the types of its arrays are the same for all models and tables.
    """
    codes = np.array([[0.0, 0.0]])
    scorer, space, queries = _scorer(), _space(), _queries(codes)
    effort, found = Effort(2, 2, 2, 1, 2, 1, 1, 2, 2, 2, 2, 2, 1), _found(codes)
    outputs(scorer, codes)
    write_curve_costs(codes, codes, space.curve_start, np.zeros(0), np.zeros(0), np.zeros(2), np.zeros((1, 2)))
    margin_table(scorer, np.zeros((1, 1)), NAMED, queries.label, queries.low, queries.high, queries.lowest)
    work, kept = workspace(scorer, space), memory(2, effort, 4, 64)
    block = (as_struct(scorer), as_struct(space), as_struct(queries), np.zeros((1, 0, 2)), 0, 1)
    correct(scorer, queries, np.zeros(1), np.zeros((1, 1, 2)), np.zeros((1, 1)), True)
    search_block(*block, as_struct(work), as_struct(kept), as_struct(effort), as_struct(found))
    _warm_up_guided(block[:3], as_struct(work), as_struct(kept), as_struct(effort))
    _warm_up_links()
    _warm_up_realism(scorer, space, queries)


def _warm_up_guided(inputs: tuple[Scorer, Space, Queries], work: Workspace, kept: Memory, effort: Effort) -> None:
    one, most, rows = np.zeros((1, 1)), np.ones(1, dtype=np.int64), np.zeros((1, 1, 2))
    propose_block(*inputs, 0, 1, work, kept, effort, one, 1 + most, np.zeros((1, 2, 2)))
    propose_single_changes(*inputs, 0, 1, work, kept, effort, np.ones(1), 1, rows)
    nearer = np.zeros((1, 2 + LESS, 2))
    write_nearer(*inputs[1:], np.zeros(1), rows, one, one, np.zeros(1, dtype=np.int64), np.zeros((3, 2)), nearer)
    keep_new(np.zeros((1, 2)), rows, np.ones((1, 1), dtype=np.bool_), nearer, np.zeros(1, dtype=np.int64))


def _warm_up_links() -> None:
    links = as_struct(NO_LINKS._replace(constraint=np.zeros(1, dtype=CONSTRAINT)))
    rows, codes, computed = np.zeros(0, dtype=np.int64), np.zeros((0, 2)), np.zeros(0)
    complete_rows(links, rows, codes)
    set_targets(links, 0, rows, codes, computed)
    check_rows(links, 0, rows, codes, computed, np.zeros(0, dtype=np.bool_))


def _warm_up_realism(scorer: Scorer, space: Space, queries: Queries) -> None:
    known, work, kept = as_struct(_known()), as_struct(workspace(scorer, space)), as_struct(scratch(2, 1, 1))
    starts, kind, limits = np.array([[[2.0, 2.0]]]), np.zeros(1, dtype=np.int64), as_struct(Improvement(1, 1, 1))
    improved = as_struct(Improved(np.zeros((1, 1, 2)), np.full((1, 1), -np.inf)))
    inputs = as_struct(scorer), as_struct(space), as_struct(queries), known
    improve_starts(*inputs, starts, kind, np.ones((1, 1), dtype=np.bool_), 0, 1, work, kept, limits, improved)
    write_away(known, starts, 0, 1, kept, np.zeros((1, 1)))
    count_sharing(known, queries.row, starts, 0, 1, np.zeros((1, 1), dtype=np.int64))


def _scorer() -> Scorer:
    network = NO_NETWORK._replace(
        knots=np.array([0.0, 1.0, 0.0, 1.0]),
        entries=np.array([[0.0], [1.0], [0.0], [1.0]]),
        start=np.array([0, 2, 4], dtype=np.int64),
        numeric=np.ones(2, dtype=np.bool_),
        nullable=np.zeros(2, dtype=np.bool_),
        extrapolate=True,
        bias=np.array([-1.0]),
        curvature=np.zeros(2),
    )
    return Scorer(NETWORK, NO_TREES, network, 1, IDENTITY, True, 0.0)


def _space() -> Space:
    none, starts, mask = np.zeros(0), np.zeros(3, dtype=np.int64), np.ones(2, dtype=np.bool_)
    return Space(
        numeric=mask,
        scale=np.ones(2),
        single=~mask,
        step=np.zeros(2),
        level_start=np.array([0, 1, 2], dtype=np.int64),
        level=np.array([2.0, 2.0]),
        level_side=np.zeros(2, dtype=np.int32),
        category_start=starts,
        cell_start=starts,
        tree_start=starts,
        tree=np.zeros(0, dtype=np.int32),
        words=1,
        weight=np.ones(2),
        flat=np.zeros(2),
        down=np.ones(2),
        up=np.ones(2),
        squared=~mask,
        curve_start=starts,
        curve_knots=none,
        curve_heights=none,
        curve_slope=np.zeros(2),
        gap=np.ones(2),
        usual=np.zeros(2),
        counted=mask,
        most_changes=2,
    )


def _queries(codes: np.ndarray) -> Queries:
    one, mask = np.zeros(1), np.ones((1, 2), dtype=np.bool_)
    return Queries(
        row=codes,
        base=codes.copy(),
        free=mask,
        lower=codes - 3.0,
        upper=codes + 3.0,
        anchor=np.zeros((1, 2)),
        open_categories=np.zeros((1, 0), dtype=np.bool_),
        may_be_missing=~mask,
        kind=NAMED,
        label=np.ones(1, dtype=np.int64),
        low=one,
        high=one,
        need=one,
        shift=one,
        correction=np.zeros((1, 2)),
        lowest=-1e300,
        links=NO_LINKS._replace(linked=np.zeros(2, dtype=np.bool_), leads=np.zeros(2, dtype=np.bool_)),
    )


def _known() -> Known:
    return Known(
        rows=np.array([[[2.0, 2.0]]]),
        legal=np.array([[[2.0, 2.0]]]),
        weight=np.ones(1),
        change=0.0,
        neighbours=1,
        numeric=np.ones(2, dtype=np.bool_),
        unit=np.ones(2),
        block=np.arange(2, dtype=np.int64),
        block_start=np.arange(3, dtype=np.int64),
    )


def _found(codes: np.ndarray) -> Found:
    return Found(
        codes=np.zeros((1, 2, 2)),
        cost=np.zeros((1, 2)),
        margin=np.zeros((1, 2)),
        known=np.zeros((1, 2), dtype=np.bool_),
        count=np.zeros(1, dtype=np.int64),
        complete=np.zeros(1, dtype=np.bool_),
        best_margin=np.zeros(1),
        scored=np.zeros(1, dtype=np.int64),
    )


if __name__ == "__main__":
    warm_up()
