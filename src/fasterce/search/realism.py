"""Realistic counterfactuals: near to the query and near to known rows of the target.

The objective of a candidate c of a query q is

    distance(q, c) + weight * (mean gower distance of c to the known rows of the target nearest to it + a little per change)

The weight grows with `realism`, from nothing at 0 to infinity at 1, where the nearest known row itself is returned. Features
that are tied together change together, and features the model does not read change only if a feature they are tied to does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fasterce.data.schema import MISSING
from fasterce.kernels.arrays import Found, Scorer
from fasterce.kernels.profile import workspace
from fasterce.kernels.realism import Improved, Improvement, Known, Scratch, count_sharing, improve_starts, scratch, write_away
from fasterce.kernels.score import outputs
from fasterce.kernels.structs import as_struct
from fasterce.latent.runtime import spread
from fasterce.search.context import SearchContext
from fasterce.search.pool import Pool
from fasterce.search.propose import exact_candidates, nearest_examples
from fasterce.search.query_targets import QueryTargets
from fasterce.search.space import BLOCK, CandidateSearch, make_queries, make_space, margins, tables_of
from fasterce.typing import Floats, Mask

# Larger than any objective: comes after everything else.
LAST = 1e6


@dataclass(frozen=True)
class Realism:
    """Known rows of the target near each query, by which the realism of its candidates is measured.

    scorer  what margins are computed with, exact or the surrogate; None for neither
    known   the rows (rows, M, features)
    legal   the same with values the query may not have, or that do not matter, replaced by its own
    """

    context: SearchContext
    scorer: Scorer | None
    known: Floats
    legal: Floats

    @classmethod
    def of(cls, context: SearchContext) -> "Realism":
        """Find the known rows near each query."""
        base, surrogate = context.domain.base[:, None, :], context.state.surrogate
        known = nearest_examples(context, context.config.realistic_examples)
        # Where there are fewer, the query itself was repeated.
        filler = (known == base).all(axis=2, keepdims=True)
        known = np.ascontiguousarray(np.where(filler, known[:, :1], known))
        legal = context.domain.project(np.where(context.state.relevant, known, base))
        scorer = context.scorer if context.searches_exactly else surrogate.scorer if surrogate is not None else None
        return cls(context, scorer, known, np.ascontiguousarray(legal))

    @cached_property
    def weight(self) -> Floats:
        """The weight of implausibility (rows,), which is in units of gower, in units of the distance asked for."""
        context, dial = self.context, self.context.realism
        if dial >= 1:
            # All candidates are known rows: the nearest is chosen.
            return np.zeros(len(context.domain.row))
        row = context.domain.row[:, None, :]
        priced = context.distance.total(self.legal, row).mean(axis=1)
        plain = context.state.distance.total(self.legal, row).mean(axis=1)
        unit = np.where(plain > 0, priced / np.where(plain > 0, plain, 1.0), 1.0)
        return np.asarray(np.round(context.config.realistic_weight * dial / (1.0 - dial) * unit, 9))

    @cached_property
    def arrays(self) -> Known:
        """The same as the compiled loops take it."""
        state, config = self.context.state, self.context.config
        return Known(
            rows=self.known,
            legal=self.legal,
            weight=self.weight,
            change=config.realistic_change,
            neighbours=min(config.realistic_neighbours, self.known.shape[1]),
            numeric=np.isin(np.arange(len(state.groups)), state.codec.numeric),
            unit=np.ascontiguousarray(state.distance.weight),
            block=np.argsort(state.groups, kind="stable").astype(np.int64),
            block_start=np.concatenate([[0], np.cumsum(np.bincount(state.groups))]).astype(np.int64),
        )

    def _scratch(self) -> Scratch:
        return scratch(self.known.shape[2], self.known.shape[1], self.arrays.neighbours)

    def implausibility(self, codes: Floats) -> Floats:
        """Return the implausibility (rows, R) of candidates (rows, R, features): the mean distance to the nearest known rows,
        and a little per change."""
        codes, away = np.ascontiguousarray(codes), np.zeros(codes.shape[:2])

        def measure(first: int) -> None:
            part = codes, first, min(first + BLOCK, len(codes))
            write_away(as_struct(self.arrays), *part, as_struct(self._scratch()), away)

        spread(measure, range(0, len(codes), BLOCK))
        changes = (codes != self.context.domain.row[:, None, :]).sum(axis=2)
        return np.asarray(away + self.context.config.realistic_change * changes)

    def rank(self, pool: Pool) -> Pool:
        """Return the pool with the objective as the cost, rounded so that ties break the same way in every batch; copies of
        known rows come last."""
        cost = self.context.distance.total(pool.codes, self.context.domain.row[:, None, :]) + self.weight[
            :, None
        ] * self.implausibility(pool.codes)
        cost = np.round(cost, 9) + LAST * self.copies(pool.codes)
        return replace(pool, cost=np.where(pool.valid, cost, np.inf))

    def copies(self, codes: Floats) -> Mask:
        """Return which candidates have, in all features they change, the values of known rows so few that these may be
        recognised."""
        if self.context.realism >= 1.0:
            return np.zeros(codes.shape[:2], dtype=bool)
        count = np.zeros(codes.shape[:2], dtype=np.int64)
        row = np.ascontiguousarray(self.context.domain.row)
        count_sharing(as_struct(self.arrays), row, np.ascontiguousarray(codes), 0, len(codes), count)
        return np.asarray((count > 0) & (count < self.context.config.min_shared_values))

    def moved_back(self, codes: Floats) -> Floats:
        """Return candidates (rows, R, features) with changed numbers moved a little toward the query."""
        domain, share = self.context.domain, self.context.config.retreat_share
        numeric = domain.numeric
        here, there = codes[..., numeric], domain.base[:, None, numeric]
        missing = (here == MISSING) | (there == MISSING)
        moved = codes.copy()
        moved[..., numeric] = np.where(missing, here, here + share * (there - here))
        return np.asarray(domain.project(moved))

    def matters_only(self, codes: Floats) -> Floats:
        """Return candidates without changes of features that the model does not read, unless a feature they are tied to
        changes as well."""
        state, base = self.context.state, self.context.domain.base[:, None, :]
        changed = (codes != base) & state.read
        tied = np.stack([changed[..., state.groups == group].any(axis=2) for group in state.groups], axis=2)
        return np.where(state.read | tied, codes, base)

    @property
    def tolerance(self) -> float:
        """The margin below which the scorer may be wrong by rounding."""
        return self.scorer.error if self.scorer is not None and self.scorer.exact else 0.0

    def margins(self, codes: Floats) -> Floats:
        """Return the margins (rows, R) of candidates (rows, R, features) by the scorer."""
        assert self.scorer is not None
        rows, count, features = codes.shape
        found = outputs(self.scorer, codes.reshape(rows * count, features))
        targets = self.context.targets.take(np.repeat(np.arange(rows), count))
        return margins(self.scorer, found, targets, self.context.evaluator.lowest).reshape(rows, count)

    @cached_property
    def shift(self) -> Floats:
        """What is added to the margins of the surrogate so that they are right for the query itself (rows,)."""
        assert self.scorer is not None
        context = self.context
        if self.scorer.exact or context.start is None or not context.evaluator.informative:
            return np.zeros(len(context.domain.row))
        return np.asarray(context.start - self.margins(context.domain.row[:, None, :])[:, 0])

    @cached_property
    def edits(self) -> Found:
        """The candidates of `closest` by the scorer, the same for any number of counterfactuals."""
        context = replace(self.context, wanted=2)
        assert self.scorer is not None
        if context.searches_exactly:
            return exact_candidates(context)
        search = CandidateSearch(self.scorer, context.distance, context.config, context.state.dense_levels)
        queries = make_queries(context.domain, context.targets, context.evaluator.lowest)._replace(shift=self.shift)
        return search.run_queries(context.domain, queries)

    def improve(self, starts: Sequence[Floats], need: float = 0.0) -> tuple[Floats, Floats]:
        """Return improved candidates and their margins by the scorer, -inf for none: one of each array of starts (rows, S,
        features), from the first that reaches the target with a margin of `need`."""
        assert self.scorer is not None
        scorer, domain, config = self.scorer, self.context.domain, self.context.config
        space = make_space(tables_of(scorer, domain, self.context.state.dense_levels), self.context.distance, domain)
        queries = make_queries(domain, self._demanding(need), self.context.evaluator.lowest)._replace(shift=self.shift)
        every = np.ascontiguousarray(np.concatenate(starts, axis=1))
        kind = np.repeat(np.arange(len(starts), dtype=np.int64), [part.shape[1] for part in starts])
        opened = (every != domain.row[:, None, :]).any(axis=2)
        improved = Improved(
            np.repeat(domain.base[:, None, :], len(starts), axis=1), np.full((len(every), len(starts)), -np.inf)
        )
        limits = Improvement(config.realistic_rounds, config.realistic_values, config.realistic_halvings)

        def improve(first: int) -> None:
            inputs = as_struct(scorer), as_struct(space), as_struct(queries), as_struct(self.arrays)
            kept = as_struct(workspace(scorer, space)), as_struct(self._scratch()), as_struct(limits), as_struct(improved)
            improve_starts(*inputs, every, kind, opened, first, min(first + BLOCK, len(every)), *kept)

        spread(improve, range(0, len(every), BLOCK))
        return self.matters_only(improved.codes), improved.margin

    def _demanding(self, need: float) -> QueryTargets:
        targets = self.context.targets
        if not need:
            return targets
        return targets.demanding(np.full(len(targets.target), need) + (0.0 if targets.need is None else targets.need))
