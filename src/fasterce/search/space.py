"""From domain, distance and targets to the arrays of the compiled search, and back to candidates."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain
from fasterce.constraints.compile.program import no_links
from fasterce.kernels.approximate import SHARES
from fasterce.kernels.arrays import TREES, Effort, Found, Queries, Scorer, Space
from fasterce.kernels.guided import propose_block, propose_single_changes
from fasterce.kernels.links import NO_LIMITS, Links
from fasterce.kernels.profile import workspace
from fasterce.kernels.score import NAMED, OTHER, WITHIN, margin_table
from fasterce.kernels.search import search_block
from fasterce.kernels.state import memory
from fasterce.kernels.structs import arrays_of, as_struct, kept_struct
from fasterce.latent.runtime import spread
from fasterce.search.distance import Distance
from fasterce.search.levels import Levels
from fasterce.search.query_targets import Other, QueryTargets, Within
from fasterce.typing import Floats, Indices, Mask

# Queries per block of work of a thread.
BLOCK = 32
# Scorers whose tables are kept, and spaces of these.
KEPT_TABLES = 8
KEPT_SPACES = 16
# Searches whose memory a thread keeps.
KEPT_MEMORY = 2
# Segments of the cost estimate per feature.
SEGMENTS_PER_FEATURE = 8


# What a kernel reads, and the workspace, memory and effort of a thread, as structures.
Inputs = tuple[Scorer, Space, Queries]
Kept = tuple[Any, Any, Any]

_lock = Lock()
_tables: dict[tuple[int, int, int, bytes], tuple["ScorerTables", Scorer, Levels]] = {}
_spaces: dict[tuple[Any, ...], tuple[Space, "ScorerTables", Distance]] = {}


class _Memory(local):
    """The memory of a thread's last searches as structures: each search begins by clearing what it uses."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, scorer: Scorer, space: Space, effort: Effort) -> Kept:
        """Return workspace, memory and effort."""
        key = id(scorer), id(space), effort
        if key not in self.kept:
            while len(self.kept) >= KEPT_MEMORY:
                del self.kept[next(iter(self.kept))]
            features = len(space.numeric)
            work = workspace(scorer, space)
            points = (1 + len(SHARES)) * len(work.edits.value) + len(space.curve_knots) + 2 * features
            made = work, memory(features, effort, SEGMENTS_PER_FEATURE * features, points), effort
            # Scorer and space are kept as well, so that no other object can have the same identity.
            self.kept[key] = *map(as_struct, made), scorer, space
        return self.kept[key][:3]


_memory = _Memory()


@dataclass(frozen=True)
class CandidateSearch:
    """The compiled search with one scorer. `levels` are candidate values where the scorer has no edges."""

    scorer: Scorer
    distance: Distance
    config: SearchConfig
    levels: Levels

    def run(
        self,
        domain: Domain,
        targets: QueryTargets,
        *,
        lowest: float,
        starts: Floats | None = None,
        wanted: int = 2,
    ) -> Found:
        """Return the candidates of each query; `starts` (queries, S, features) are rows to improve where one change is not
        enough.

        Where fewer than `wanted` are found all pairs of values are tried. If one is wanted, only the cheapest and those with
        the fewest changes are certain to need each of their changes.
        """
        return self.run_queries(domain, make_queries(domain, targets, lowest), starts, wanted)

    def run_queries(self, domain: Domain, queries: Queries, starts: Floats | None = None, wanted: int = 2) -> Found:
        """The same for queries as arrays."""
        rows, features = domain.base.shape
        effort = self._effort(wanted)
        found = empty(rows, effort.pool, features)
        starts = np.zeros((rows, 0, features)) if starts is None else np.ascontiguousarray(starts)

        def search(inputs: Inputs, first: int, end: int, memory: Kept) -> None:
            search_block(*inputs, starts, first, end, *memory, as_struct(found))

        self._in_blocks(search, domain, queries, effort)
        return found

    def propose(self, domain: Domain, queries: Queries, need: Floats, most: Indices) -> Floats:
        """Return candidates for the model to evaluate: so `most` (margins,) by an inexact scorer at each margin `need`
        (queries, margins); the base of each query where there are fewer."""
        out = np.repeat(domain.base[:, None, :], int(most.sum()), axis=1)

        def propose(inputs: Inputs, first: int, end: int, memory: Kept) -> None:
            propose_block(*inputs, first, end, *memory, need, most, out)

        self._in_blocks(propose, domain, queries, self._effort(wanted=1))
        return out

    def propose_singles(self, domain: Domain, queries: Queries, most_cost: Floats, each: int, count: int) -> Floats:
        """Return the `count` most promising single changes that cost less than `most_cost` (queries,), `each` per feature at
        most; the base of each query where there are fewer."""
        out = np.repeat(domain.base[:, None, :], count, axis=1)

        def propose(inputs: Inputs, first: int, end: int, memory: Kept) -> None:
            propose_single_changes(*inputs, first, end, *memory, most_cost, each, out)

        if count:
            self._in_blocks(propose, domain, queries, self._effort(wanted=1))
        return out

    def space(self, domain: Domain) -> Space:
        """Return what may be changed and what it costs."""
        return make_space(tables_of(self.scorer, domain, self.levels), self.distance, domain)

    def _effort(self, wanted: int) -> Effort:
        config = self.config
        return Effort(
            config.expansions,
            config.open_sets,
            config.pool,
            config.improved,
            config.improvements,
            config.tighten_rounds,
            config.improved,
            config.pool if wanted > 1 else config.improved + 1,
            config.max_expanded,
            config.patience if self.scorer.kind == TREES else config.smooth_patience,
            config.wide_expansions,
            config.combinations,
            wanted,
        )

    def _in_blocks(
        self,
        kernel: Callable[[Inputs, int, int, Kept], None],
        domain: Domain,
        queries: Queries,
        effort: Effort,
    ) -> None:
        """Run a kernel on blocks of queries, each with structures of its own: threads that count references to the same ones
        wait for each other."""
        space, rows = self.space(domain), len(queries.row)

        def run(first: int) -> None:
            links = kept_struct(queries.links) if queries.links.limits is NO_LIMITS else queries.links
            inputs = kept_struct(self.scorer), kept_struct(space), as_struct(queries._replace(links=links))
            kernel(inputs, first, min(first + BLOCK, rows), _memory.of(self.scorer, space, effort))

        spread(run, range(0, rows, BLOCK))


def empty(rows: int, pool: int, features: int) -> Found:
    """Return room for the candidates of queries."""
    return Found(
        codes=np.zeros((rows, pool, features)),
        cost=np.full((rows, pool), np.inf),
        margin=np.zeros((rows, pool)),
        known=np.zeros((rows, pool), dtype=np.bool_),
        count=np.zeros(rows, dtype=np.int64),
        complete=np.zeros(rows, dtype=np.bool_),
        best_margin=np.full(rows, -np.inf),
        scored=np.zeros(rows, dtype=np.int64),
    )


class ScorerTables(NamedTuple):
    """What the search needs to know of a scorer and of the types of its features, the same for every call."""

    numeric: Mask
    scale: Floats
    single: Mask
    level_start: Any
    level: Floats
    level_side: Any
    category_start: Any
    cell_start: Any
    tree_start: Any
    tree: Any
    words: int


def tables_of(scorer: Scorer, domain: Domain, levels: Levels) -> ScorerTables:
    """Return the tables of a scorer; those of the last few scorers are kept."""
    linked = _links(domain).linked
    key = (id(scorer.trees.root), id(scorer.network.bias), id(levels[1]), linked.tobytes())
    with _lock:
        if key not in _tables:
            while len(_tables) >= KEPT_TABLES:
                _tables.pop(next(iter(_tables)))
            # The arrays are kept with their tables, so that no other array can have the same identity.
            _tables[key] = (_make_tables(scorer, domain, levels), scorer, levels)
        return _tables[key][0]


def _make_tables(scorer: Scorer, domain: Domain, levels: Levels) -> ScorerTables:
    features = domain.base.shape[1]
    numeric = np.zeros(features, dtype=np.bool_)
    numeric[domain.numeric] = True
    categories = np.array([len(domain.allowed[j]) if j in domain.allowed else 0 for j in range(features)])
    edges = np.diff(scorer.trees.edge_start) if scorer.kind == TREES else np.zeros(features, dtype=np.int64)
    start, level, side = _listed(levels, numeric)
    if scorer.kind == TREES:
        start, level, side = _merged((start, level, side), _tree_levels(scorer, domain, numeric), _links(domain).linked)
    return ScorerTables(
        numeric,
        10.0 ** np.where(domain.integer, 0, domain.decimals),
        np.ascontiguousarray(domain.single),
        start,
        level,
        side,
        _starts(categories),
        _starts(np.where(numeric, edges + 3, categories)),
        *_trees_by_feature(scorer, features),
        int(-(-categories.max(initial=1) // 64)),
    )


def make_space(tables: ScorerTables, distance: Distance, domain: Domain) -> Space:
    """Return what may be changed and what it costs; the last few are kept."""
    of_domain = (domain.step, domain.counted)
    key = id(tables), id(distance), *(None if one is None else one.tobytes() for one in of_domain), domain.most_changes
    found = _spaces.get(key)
    if found is None:
        # Tables and distance are kept with the space, so that no other object can have the same identity.
        found = _new_space(tables, distance, domain), tables, distance
        with _lock:
            while len(_spaces) >= KEPT_SPACES:
                _spaces.pop(next(iter(_spaces)))
            _spaces[key] = found
    return found[0]


def _new_space(tables: ScorerTables, distance: Distance, domain: Domain) -> Space:
    features = domain.base.shape[1]
    curve_start, knots, heights, slope = distance.curve_arrays
    down, up = np.ones((2, features)) if distance.factors is None else distance.factors
    found = Space(
        numeric=tables.numeric,
        scale=tables.scale,
        single=tables.single,
        step=np.zeros(features) if domain.step is None else domain.step,
        level_start=tables.level_start,
        level=tables.level,
        level_side=tables.level_side,
        category_start=tables.category_start,
        cell_start=tables.cell_start,
        tree_start=tables.tree_start,
        tree=tables.tree,
        words=tables.words,
        weight=distance.weight,
        flat=distance.flat,
        down=down,
        up=up,
        squared=np.zeros(features, dtype=np.bool_) if distance.squared is None else distance.squared,
        curve_start=curve_start,
        curve_knots=knots,
        curve_heights=heights,
        curve_slope=slope,
        gap=np.ones(features) if distance.gap is None else distance.gap,
        usual=np.zeros(features) if distance.usual is None else distance.usual,
        counted=np.ones(features, dtype=np.bool_) if domain.counted is None else domain.counted,
        most_changes=features if domain.most_changes is None else domain.most_changes,
    )
    return arrays_of(found)


def make_queries(domain: Domain, targets: QueryTargets, lowest: float) -> Queries:
    rows, features = domain.base.shape
    missing = domain.may_become_missing(np.arange(features))
    kind, label, low, high = _targets(targets, rows)
    return Queries(
        row=np.ascontiguousarray(domain.row),
        base=np.ascontiguousarray(domain.base),
        free=np.ascontiguousarray(domain.free),
        lower=np.ascontiguousarray(domain.lower),
        upper=np.ascontiguousarray(domain.upper),
        anchor=np.zeros((rows, features)) if domain.anchor is None else np.ascontiguousarray(domain.anchor),
        open_categories=domain.open_categories(),
        may_be_missing=np.ascontiguousarray(missing),
        kind=kind,
        label=label.astype(np.int64),
        low=low,
        high=high,
        need=np.zeros(rows) if targets.need is None else targets.need,
        shift=np.zeros(rows),
        correction=np.zeros((rows, features)),
        lowest=lowest,
        links=_links(domain),
    )


def _links(domain: Domain) -> Links:
    """Return the constraints the search keeps by itself; candidates are completed afterwards where these call functions."""
    return no_links(domain.base.shape[1]) if domain.calls_functions else domain.links


def _targets(targets: QueryTargets, rows: int) -> tuple[int, Indices, Floats, Floats]:
    none = np.zeros(rows)
    if isinstance(targets, Within):
        return WITHIN, targets.of, targets.low, targets.high
    if isinstance(targets, Other):
        return OTHER, targets.own, none, none
    return NAMED, targets.target, none, none


def _starts(counts: Any) -> Any:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _listed(levels: Levels, numeric: Any) -> tuple[Any, Floats, Any]:
    feature, value = levels
    kept = numeric[feature] & (np.abs(value) < 1e29)
    order = np.lexsort((value[kept], feature[kept]))
    counts = np.bincount(feature[kept], minlength=len(numeric))
    return _starts(counts), value[kept][order], np.zeros(int(kept.sum()), dtype=np.int32)


def _merged(listed: Any, edges: Any, linked: Mask) -> tuple[Any, Floats, Any]:
    """Return the values at the edges of each feature; for linked features, which others may follow, listed values too."""
    parts = []
    for j in range(len(linked)):
        both = [edges, listed] if linked[j] else [edges]
        value = np.concatenate([level[start[j] : start[j + 1]] for start, level, _ in both])
        side = np.concatenate([side[start[j] : start[j + 1]] for start, _, side in both])
        order = np.lexsort((side, value))
        parts.append((value[order], side[order]))
    values, sides = zip(*parts, strict=True)
    return _starts([len(value) for value in values]), np.concatenate(values), np.concatenate(sides)


def _tree_levels(scorer: Scorer, domain: Domain, numeric: Any) -> tuple[Any, Floats, Any]:
    """Return both sides of every edge: the nearest values a number may take that are in the cell below and above it."""
    start, values, sides = [0], [], []
    for j in range(len(numeric)):
        edges = scorer.trees.edges[scorer.trees.edge_start[j] : scorer.trees.edge_start[j + 1]]
        if numeric[j] and len(edges):
            stored = _stored(domain, j)
            scale = 1.0 if domain.integer[j] else 10.0 ** float(domain.decimals[j])
            below, above = _beside(edges, scale, stored, -1), _beside(edges, scale, stored, 1)
            value = np.concatenate([below, above])
            side = np.repeat(np.array([-1, 1], dtype=np.int32), len(edges))
            order = np.lexsort((side, value))
            values.append(value[order])
            sides.append(side[order])
        start.append(sum(map(len, values)))
    none = np.zeros(0, dtype=np.int32)
    return np.array(start, dtype=np.int64), np.concatenate([np.zeros(0), *values]), np.concatenate([none, *sides])


def _trees_by_feature(scorer: Scorer, features: int) -> tuple[Any, Any]:
    """Return for each feature the trees that split on it."""
    trees = scorer.trees
    split = np.flatnonzero(trees.feature >= 0)
    tree = np.searchsorted(np.sort(trees.root), split, side="right") - 1
    order = np.argsort(trees.root, kind="stable")
    pairs = np.unique(np.stack([trees.feature[split], order[tree]], axis=1), axis=0)
    return _starts(np.bincount(pairs[:, 0], minlength=features)), pairs[:, 1].astype(np.int32)


def tree_levels(scorer: Scorer, domain: Domain) -> list[Floats]:
    """Return for each number the values on both sides of its edges."""
    numeric = np.zeros(domain.base.shape[1], dtype=np.bool_)
    numeric[domain.numeric] = True
    start, values, _ = _tree_levels(scorer, domain, numeric)
    return [np.unique(part) for part in np.split(values, start[1:-1])]


def margins(scorer: Scorer, found: Floats, targets: QueryTargets, lowest: float) -> Floats:
    """Return the margins of outputs (N, outputs), one target each."""
    kind, label, low, high = _targets(targets, len(found))
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    margin = margin_table(scorer, found, kind, label.astype(np.int64), low, high, lowest)
    return margin if targets.need is None else margin - targets.need


def _stored(domain: Domain, j: int) -> Callable[[Floats], Floats]:
    if domain.single[j]:
        return lambda values: values.astype(np.float32).astype(np.float64)
    return lambda values: values + 0.0


def _beside(edges: Floats, scale: float, stored: Callable[[Floats], Floats], side: int) -> Floats:
    """Return the value of a number's precision next to each edge: the largest up to it, or the smallest above it."""
    count = np.floor(edges * scale)
    count = count + 1 if side > 0 else count
    value = stored(count / scale)
    for _ in range(2):
        wrong = value <= edges if side > 0 else value > edges
        if not wrong.any():
            break
        count = np.where(wrong, count + side, count)
        value = stored(count / scale)
    nearer = stored((count - side) / scale)
    return np.where(nearer > edges if side > 0 else nearer <= edges, nearer, value)
