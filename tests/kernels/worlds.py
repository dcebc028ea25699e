"""Small random worlds for the compiled search: columns of every kind, queries, distances, and scorers made of random numbers.

What the kernels compute is computed here again, slowly, in plain NumPy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_expit, logsumexp

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain, MissingValues
from fasterce.data.schema import MISSING
from fasterce.kernels.arrays import (
    CUBE,
    EXPONENTIAL,
    IDENTITY,
    LINEAR,
    LOG,
    LOG_SIGMOID,
    LOGISTIC,
    NETWORK,
    NO_NETWORK,
    NO_TREES,
    RELU,
    SQUARE,
    TANH,
    TREES,
    Found,
    Network,
    Queries,
    Scorer,
    Space,
    Trees,
)
from fasterce.kernels.score import outputs as compiled_outputs
from fasterce.search.distance import Curve, Distance
from fasterce.search.levels import Levels
from fasterce.search.query_targets import Named, Other, QueryTargets, Within
from fasterce.search.space import CandidateSearch, make_queries, make_space, tables_of
from fasterce.surrogate.runtime import NO_LIMIT
from tests.models.compiled.oracle import oracle

# A number may be whole, have one decimal, be stored in single precision, be missing, or lie on a grid.
ACTIVATIONS = {
    "relu": RELU,
    "tanh": TANH,
    "logistic": LOGISTIC,
    "identity": LINEAR,
    "exponential": EXPONENTIAL,
    "square": SQUARE,
    "cube": CUBE,
}
NUMBERS = ("whole", "decimal", "single", "nullable", "grid")
SIZES = {"few": 4, "many": 70}
DECIMALS = {"whole": 0, "decimal": 1, "single": 1, "nullable": 0, "grid": 1}
STEP = 0.3
TARGETS = ("named", "other", "within")
ROUNDING = 1e-9


@dataclass(frozen=True)
class World:
    kinds: tuple[str, ...]
    scorer: Scorer
    domain: Domain
    distance: Distance
    targets: QueryTargets
    levels: Levels

    @property
    def space(self) -> Space:
        return make_space(tables_of(self.scorer, self.domain, self.levels), self.distance, self.domain)

    @property
    def queries(self) -> Queries:
        return make_queries(self.domain, self.targets, NO_LIMIT)

    def take(self, rows: Any) -> "World":
        return replace(self, domain=self.domain.take(rows), targets=self.targets.take(rows))

    def search(self, config: SearchConfig | None = None, **options: Any) -> Found:
        found = CandidateSearch(self.scorer, self.distance, config or SearchConfig(), self.levels)
        return found.run(self.domain, self.targets, lowest=NO_LIMIT, **options)

    def margins(self, q: int, codes: np.ndarray) -> np.ndarray:
        """How far rows of codes are beyond the boundary of the target of query q."""
        return margins(self.scorer, self.targets, q, oracle(self.scorer, np.atleast_2d(codes)))

    def many_margins(self, q: int, codes: np.ndarray) -> np.ndarray:
        """The same for many rows, with outputs by the compiled loop that `test_score.py` compares with the oracle."""
        return margins(self.scorer, self.targets, q, compiled_outputs(self.scorer, codes))

    def values(self, q: int, j: int) -> np.ndarray:
        """Every value query q may give feature j, its own left out."""
        domain, kind = self.domain, self.kinds[j]
        if not domain.free[q, j]:
            return np.zeros(0)
        if kind in SIZES:
            found = np.flatnonzero(domain.open_to(j)[q]).astype(float)
        else:
            unit = 10.0 ** -DECIMALS[kind]
            low, high = np.floor(domain.lower[q, j] / unit), np.ceil(domain.upper[q, j] / unit)
            grid = np.arange(low, high + 1) * unit
            found = np.unique(domain.round(np.tile(grid, (len(domain.row), 1))[..., None], np.array([j]))[q, :, 0])
            found = found[found != MISSING]
            if domain.may_become_missing(np.array([j]))[q, 0]:
                found = np.append(found, MISSING)
        return found[found != domain.base[q, j]]

    def neighbours(self, q: int, codes: np.ndarray) -> Iterator[np.ndarray]:
        """A candidate with one change reverted, or one number one value nearer to the query."""
        base = self.domain.base[q]
        for j in np.flatnonzero(codes != base):
            fewer = codes.copy()
            fewer[j] = base[j]
            yield fewer
            if self.kinds[j] in NUMBERS and MISSING not in (codes[j], base[j]):
                values = self.values(q, int(j))
                between = values[(values > min(codes[j], base[j])) & (values < max(codes[j], base[j]))]
                if len(between):
                    nearer = codes.copy()
                    nearer[j] = between[np.abs(between - codes[j]).argmin()]
                    yield nearer

    def tried(self, q: int, j: int) -> np.ndarray:
        """The values of feature j that the search must try: all for trees, else the listed ones and the ends."""
        values = self.values(q, j)
        if self.scorer.kind == TREES or self.kinds[j] in SIZES or not len(values):
            return values
        feature, level = self.levels
        own = np.array([self.domain.lower[q, j], *level[feature == j], self.domain.upper[q, j]])
        listed = self.domain.round_flat(own, j, np.full(len(own), q))
        return values[np.isin(values, listed) | (values == MISSING)]

    def singles(self, q: int) -> np.ndarray:
        """Every row one edit away from query q."""
        rows = [self.domain.base[q]]
        for j in range(len(self.kinds)):
            for value in self.tried(q, j):
                rows.append(self.domain.base[q].copy())
                rows[-1][j] = value
        return np.array(rows[1:]) if len(rows) > 1 else np.zeros((0, len(self.kinds)))

    def pairs(self, q: int) -> np.ndarray:
        """Every row one or two edits away from query q."""
        singles, base = self.singles(q), self.domain.base[q]
        feature = (singles != base).argmax(axis=1)
        both = [
            np.where(np.arange(len(base)) == feature[k], singles[k], singles[feature > feature[k]])
            for k in range(len(singles))
        ]
        return np.concatenate([singles, *both])

    def cheapest(self, q: int, rows: np.ndarray) -> float:
        """The distance of the cheapest of some rows that reach the target, infinite for none."""
        good = rows[self.many_margins(q, rows) > self.scorer.error + ROUNDING] if len(rows) else rows
        good = good[self.domain.count_kept(np.repeat(good[None], len(self.domain.row), axis=0))[q]]
        return float(self.distance.total(good, self.domain.row[q]).min(initial=np.inf))


def margins(scorer: Scorer, targets: QueryTargets, q: int, outputs: np.ndarray) -> np.ndarray:
    """Margins from outputs (rows, outputs), by what `QueryTargets` says of them."""
    if scorer.outputs == 1:
        lead = outputs[:, 0]
        if scorer.link == LOG:
            chance = np.clip(lead, 1e-12, None), np.clip(1 - lead, 1e-12, None)
            lead = np.log(chance[0]) - np.log(chance[1])
        scores = np.stack([-lead / 2, lead / 2], axis=1)
    else:
        links = {IDENTITY: lambda z: z, LOG: lambda p: np.log(np.clip(p, 1e-12, None)), LOG_SIGMOID: log_expit}
        scores = links[scorer.link](outputs)
    own = int(
        targets.of[q] if isinstance(targets, Within) else targets.own[q] if isinstance(targets, Other) else targets.target[q]
    )
    others = np.delete(scores, own, axis=1)
    if isinstance(targets, Within):
        odds = scores[:, own] - logsumexp(others, axis=1)
        found = np.minimum(odds - targets.low[q], targets.high[q] - odds)
    else:
        found = scores[:, own] - others.max(axis=1)
        found = -found if isinstance(targets, Other) else found
    return found if targets.need is None else found - targets.need[q]


# -- random worlds ---------------------------------------------------------------------------------------------------------


def draw(
    seed: int,
    *,
    kinds: Sequence[str] | None = None,
    scorer: str = "trees",
    outputs: int = 1,
    target: str = "named",
    distance: str = "gower",
    rows: int = 3,
    frozen: Sequence[int] = (),
    most_changes: int | None = None,
    moved: bool = False,
    **options: Any,
) -> World:
    """A world of random columns, queries and models. Every query has a target it does not reach.

    `moved`: the first number of every query is outside its permitted range.
    """
    rng = np.random.default_rng(seed)
    kinds = tuple(kinds or map(str, rng.choice([*NUMBERS, *SIZES], size=int(rng.integers(2, 6)))))
    domain = make_domain(rng, kinds, rows, frozen, most_changes, moved)
    made = (
        random_trees(rng, kinds, outputs, **options) if scorer == "trees" else random_network(rng, kinds, outputs, **options)
    )
    targets = make_targets(rng, made, target, domain.base)
    return World(kinds, made, domain, make_distance(rng, kinds, distance), targets, make_levels(rng, kinds))


def make_domain(
    rng: np.random.Generator, kinds: Sequence[str], rows: int, frozen: Sequence[int], most_changes: int | None, moved: bool
) -> Domain:
    features = len(kinds)
    decimals = np.array([DECIMALS.get(kind, 0) for kind in kinds], dtype=np.int64)
    row = np.column_stack([column(rng, kind, rows) for kind in kinds])
    numeric = np.array([j for j, kind in enumerate(kinds) if kind in NUMBERS], dtype=np.intp)
    lower = np.zeros(row.shape)
    upper = np.tile([10.0 if kind in NUMBERS else SIZES[kind] - 1.0 for kind in kinds], (rows, 1))
    base = row.copy()
    if moved and len(numeric):
        j = numeric[0]
        row[:, j], lower[:, j] = 1.0, 3.0
        base = row.copy()
        base[:, j] = 3.0
    grid = np.array([kind == "grid" for kind in kinds])
    free = np.ones(row.shape, dtype=bool)
    free[:, list(frozen)] = False
    gappy = np.array([kind == "nullable" for kind in kinds])
    return Domain(
        row=row,
        base=base,
        free=free,
        lower=lower,
        upper=upper,
        allowed={j: rng.random(SIZES[kind]) < 0.8 for j, kind in enumerate(kinds) if kind in SIZES},
        decimals=decimals,
        integer=np.array([kind in ("whole", "nullable") for kind in kinds]),
        single=np.array([kind == "single" for kind in kinds]),
        numeric=numeric,
        step=np.where(grid, STEP, 0.0) if grid.any() else None,
        anchor=np.where(grid & (np.arange(features) % 2 == 0), np.where(base == MISSING, 0.0, base), 0.0)
        if grid.any()
        else None,
        most_changes=most_changes,
        missing=MissingValues(np.where(gappy, MISSING, np.nan), gappy & (rng.random(features) < 0.7))
        if gappy.any()
        else None,
        row_legal=np.zeros(row.shape, dtype=bool) if moved else None,
    )


def column(rng: np.random.Generator, kind: str, rows: int) -> np.ndarray:
    if kind in SIZES:
        return rng.integers(SIZES[kind], size=rows).astype(float)
    values = np.round(rng.uniform(0, 10, rows), DECIMALS[kind])
    if kind == "single":
        return values.astype(np.float32).astype(float)
    return np.where(rng.random(rows) < 0.3, MISSING, values) if kind == "nullable" else values


def make_distance(rng: np.random.Generator, kinds: Sequence[str], name: str) -> Distance:
    numeric = np.array([j for j, kind in enumerate(kinds) if kind in NUMBERS], dtype=np.intp)
    gappy = np.array([j for j, kind in enumerate(kinds) if kind == "nullable"], dtype=np.intp)
    spread = rng.uniform(1, 5, len(kinds))
    if name == "percentile":
        curves = tuple(random_curve(rng, int(j)) for j in numeric)
        found = replace(Distance.gower(spread, numeric, gappy), weight=np.zeros(len(kinds)), curves=curves)
    else:
        found = {"gower": Distance.gower, "mad": Distance.mad, "euclidean": Distance.euclidean}[name](spread, numeric, gappy)
    return found.filling_with(rng.uniform(0, 10, len(kinds)))


def random_curve(rng: np.random.Generator, j: int) -> Curve:
    knots = np.sort(rng.uniform(1, 9, 5))
    return Curve(j, knots, np.sort(rng.random(5)), float(rng.uniform(0.05, 0.2)))


def make_targets(rng: np.random.Generator, scorer: Scorer, target: str, base: np.ndarray) -> QueryTargets:
    """Targets that no query reaches yet."""
    classes, rows = max(scorer.outputs, 2), len(base)
    outputs = oracle(scorer, base)
    if scorer.outputs == 1:
        label = (outputs[:, 0] > (0.5 if scorer.link == LOG else 0.0)).astype(np.intp)
    else:
        label = outputs.argmax(axis=1)
    other = (label + 1 + rng.integers(classes - 1, size=rows)) % classes
    if target == "named":
        return Named(other)
    if target == "other":
        return Other(other, own=label)
    none = np.full(rows, -1e9)
    odds = np.array(
        [margins(scorer, Within(other, of=other, low=none, high=np.full(rows, 2e9)), q, outputs[[q]])[0] for q in range(rows)]
    )
    low = odds - 1e9 + rng.uniform(0.3, 0.8, rows)
    return Within(other, of=other, low=low, high=low + rng.uniform(0.5, 2.0, rows))


def make_levels(rng: np.random.Generator, kinds: Sequence[str]) -> Levels:
    """Values at the precision of each number, for scorers without edges."""
    feature, value = [], []
    for j, kind in enumerate(kinds):
        if kind in NUMBERS:
            some = np.unique(np.round(rng.uniform(0, 10, 8), DECIMALS[kind]))
            some = some.astype(np.float32).astype(float) if kind == "single" else some
            feature += [j] * len(some)
            value += list(some)
    return np.array(feature, dtype=np.intp), np.array(value)


def random_trees(
    rng: np.random.Generator, kinds: Sequence[str], outputs: int, link: int = IDENTITY, trees: int = 6, depth: int = 4
) -> Scorer:
    """A sum of random trees; about a fifth of all nodes above the last level are leaves."""
    edges = [
        np.unique(rng.uniform(0, 10, 6).round(int(rng.integers(1, 4)))) if kind in NUMBERS else np.zeros(0) for kind in kinds
    ]
    start = np.concatenate([[0], np.cumsum([len(some) for some in edges])]).astype(np.int64)
    nodes: list[dict[str, Any]] = []
    words: list[np.uint64] = []

    def grow(level: int) -> int:
        place = len(nodes)
        nodes.append({"feature": -1, "cell": 0, "categories": -1, "missing_left": False, "left": -1, "right": -1})
        nodes[place]["value"] = (
            rng.dirichlet(np.ones(max(outputs, 2)))[-outputs:] / trees if link == LOG else rng.normal(size=outputs)
        )
        if level == depth or (level > 0 and rng.random() < 0.2):
            return place
        j = int(rng.integers(len(kinds)))
        split = {
            "feature": j,
            "cell": int(rng.integers(len(edges[j]))) if len(edges[j]) else 0,
            "missing_left": bool(rng.random() < 0.5),
        }
        if kinds[j] in SIZES:
            split["categories"] = len(words)
            words.extend(rng.integers(0, 2**64, size=-(-SIZES[kinds[j]] // 64), dtype=np.uint64))
        nodes[place].update(split)
        nodes[place]["left"], nodes[place]["right"] = grow(level + 1), grow(level + 1)
        return place

    roots = [grow(0) for _ in range(trees)]

    def integers(name: str) -> Any:
        return np.array([node[name] for node in nodes], dtype=np.int32)

    made = Trees(
        edges=np.concatenate(edges),
        edge_start=start,
        numeric=np.array([kind in NUMBERS for kind in kinds]),
        root=np.array(roots, dtype=np.int32),
        feature=integers("feature"),
        cell=integers("cell"),
        categories=integers("categories"),
        left_categories=np.array(words, dtype=np.uint64),
        missing_left=np.array([node["missing_left"] for node in nodes]),
        left=integers("left"),
        right=integers("right"),
        value=np.array([node["value"] for node in nodes]),
        base=np.zeros(outputs) if link == LOG else rng.normal(size=outputs),
        depth=depth,
    )
    return Scorer(TREES, made, NO_NETWORK, outputs, link, True, 1e-9)


def random_network(
    rng: np.random.Generator,
    kinds: Sequence[str],
    outputs: int,
    hidden: Sequence[int] = (8,),
    activation: int = RELU,
    link: int = IDENTITY,
    extrapolate: bool = True,
) -> Scorer:
    """A network with a table per feature and random weights; without hidden layers it is a linear model."""
    first = hidden[0] if hidden else outputs
    knots, entries = [], []
    for kind in kinds:
        if kind in SIZES:
            some = np.arange(SIZES[kind], dtype=float)
            table = rng.normal(size=(len(some), first)) / 2
        else:
            some = np.array([0.0, 2.5, 4.0, 7.0, 10.0])
            table = rng.normal(size=first) * (some[:, None] - 5) / 5 + rng.normal(size=(5, first)) / 4
        if kind == "nullable":
            some, table = np.append(MISSING, some), np.concatenate([rng.normal(size=(1, first)), table])
        knots.append(some)
        entries.append(table)
    width = [*hidden[1:], outputs] if hidden else []
    shapes = list(zip([*hidden[:1], *width[:-1]], width, strict=True))
    made = Network(
        knots=np.concatenate(knots),
        entries=np.concatenate(entries),
        start=np.concatenate([[0], np.cumsum([len(some) for some in knots])]).astype(np.int64),
        numeric=np.array([kind in NUMBERS for kind in kinds]),
        nullable=np.array([kind == "nullable" for kind in kinds]),
        extrapolate=extrapolate,
        bias=rng.normal(size=first) / 2,
        curvature=np.full(len(kinds), -0.02 if activation in (EXPONENTIAL, SQUARE, CUBE) else 0.0),
        activation=activation,
        width=np.array(width, dtype=np.int64),
        weights=np.concatenate([np.zeros(0), *(rng.normal(size=a * b) * 2 / np.sqrt(a) for a, b in shapes)]),
        offsets=rng.normal(size=sum(width)) / 2,
    )
    return Scorer(NETWORK, NO_TREES, made, outputs, link, True, 1e-9)
