"""Evaluation of the candidates of many queries by the model, in one call."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.domain import Domain
from fasterce.models.predictions import Evaluate
from fasterce.search.limits import Best, Limits, PartialLimits
from fasterce.search.query_targets import QueryTargets
from fasterce.surrogate.runtime import NO_LIMIT
from fasterce.typing import Floats, Indices, Mask


@dataclass(frozen=True)
class Candidates:
    """Candidates (queries, K, features), which of them to evaluate, and the positions of the queries in a larger batch."""

    codes: Floats
    open: Mask
    rows: Indices | None = None

    def of(self, rows: Indices) -> "Candidates":
        """Return the same candidates as those of some queries of a larger batch."""
        return replace(self, rows=rows if self.rows is None else rows[self.rows])


@dataclass(frozen=True)
class Evaluation:
    """Whether each candidate reaches the target, its margin, and its lead (see `QueryTargets.leads`); -inf where it was not
    evaluated or the model failed."""

    valid: Mask
    margin: Floats
    lead: Floats

    def take(self, rows: Indices) -> "Evaluation":
        return Evaluation(self.valid[rows], self.margin[rows], self.lead[rows])


class Evaluator:
    """Evaluates candidates and compares the predictions with the target of each query.

    informative   whether margins are graded; they are +1 and -1 where only labels are known
    best          the cheapest candidate of each query so far, None if it is not kept
    note_margins  called with every margin, None for nothing
    kept_scores   the fingerprints and scores of candidates that reach the target, None if they are not kept
    """

    def __init__(
        self,
        predict: Evaluate,
        targets: QueryTargets,
        informative: bool,
        limits: Limits | None = None,
        lowest: float = NO_LIMIT,
        domain: Domain | None = None,
    ) -> None:
        self.domain = domain if domain is not None and domain.linked else None
        self.predict = predict
        self.lowest = lowest
        self.targets = targets
        self.informative = informative
        self.limits = limits or Limits.of(len(targets.target))
        self.best: Best | None = None
        self.note_margins: Callable[[Indices, Floats], None] | None = None
        self.kept_scores: list[tuple[NDArray[np.uint64], Floats]] | None = None

    @property
    def target(self) -> Indices:
        return self.targets.target

    def take(self, rows: Indices) -> "Evaluator":
        """Return the evaluator of some queries, which counts against the limits of all and notes margins for all."""
        limits, domain = PartialLimits(self.limits, rows), _taken(self.domain, rows)
        part = Evaluator(self.predict, self.targets.take(rows), self.informative, limits, self.lowest, domain)
        noted = self.note_margins
        if noted is not None:
            part.note_margins = lambda some, margin: noted(rows[some], margin)
        part.kept_scores = self.kept_scores
        return part

    def demanding(self, need: Floats) -> "Evaluator":
        """Return the same evaluator with targets that are reached only so far beyond the decision boundary."""
        more = Evaluator(self.predict, self.targets.demanding(need), self.informative, self.limits, self.lowest, self.domain)
        more.note_margins, more.kept_scores = self.note_margins, self.kept_scores
        return more

    def pop_scores(self, codes: Floats) -> Floats | None:
        """Return the scores of candidates (N, features) as they were evaluated, None unless all are kept; forget them all."""
        if not self.kept_scores or not len(codes):
            return None
        keys, scores = (np.concatenate(parts) for parts in zip(*self.kept_scores, strict=True))
        self.kept_scores.clear()
        if not len(keys):
            return None
        order = np.argsort(keys, kind="stable")
        wanted = fingerprints(codes)
        place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
        return np.asarray(scores[place]) if (keys[place] == wanted).all() else None

    def evaluate(self, *groups: Candidates) -> list[Evaluation]:
        """Evaluate all groups in one call; identical candidates once, those that break a constraint between features never.

        What such a constraint derives from a change is set before.
        """
        if not groups:
            return []
        flat = [_flatten(group) for group in groups]
        rows = np.concatenate([part[0] for part in flat])
        codes = np.concatenate([part[1] for part in flat])
        found = self._found(rows, codes) if self.domain is None else self._legal(self.domain, rows, codes)
        evaluations, start = [], 0
        for group, (evaluated, _) in zip(groups, flat, strict=True):
            margin, lead = np.full((2, *group.open.shape), -np.inf)
            margin[group.open], lead[group.open] = found[:, start : start + len(evaluated)]
            evaluations.append(Evaluation(margin > 0, margin, lead))
            start += len(evaluated)
        return evaluations

    def _legal(self, domain: Domain, rows: Indices, codes: Floats) -> Floats:
        codes = domain.complete_own(rows, codes)
        legal = domain.contains_own(rows, codes, counted=False)
        found = np.full((2, len(rows)), -np.inf)
        found[:, legal] = self._found(rows[legal], codes[legal])
        return found

    def _found(self, rows: Indices, codes: Floats) -> Floats:
        """Return margins and leads (2, N)."""
        found = np.full((2, len(rows)), -np.inf)
        allowed = self.limits.allow(rows) if len(rows) else np.zeros(0, dtype=bool)
        if allowed.any():
            found[:, allowed] = self._evaluated(rows[allowed], codes[allowed])
        if self.note_margins is not None:
            self.note_margins(rows, found[0])
        if self.best is not None:
            self.best.note(rows, codes, found[0])
        return found

    def _evaluated(self, rows: Indices, codes: Floats) -> Floats:
        once, back = distinct(codes)
        if len(once) == len(codes):
            once = back = np.arange(len(codes))
        predictions = self.predict(codes if len(once) == len(codes) else codes[once]).take(back)
        margin = self.targets.margins(predictions, rows, self.lowest)
        if self.kept_scores is not None and predictions.scores is not None:
            reached = margin > 0
            self.kept_scores.append((fingerprints(codes[reached]), predictions.scores[reached]))
        return np.stack([margin, self.targets.leads(predictions, rows, self.lowest)])


def _taken(domain: Domain | None, rows: Indices) -> Domain | None:
    return None if domain is None else domain.take(rows)


def distinct(codes: Floats) -> tuple[Indices, Indices]:
    """Return positions of distinct rows, and for each row that of its equal among these."""
    _, once, back = np.unique(fingerprints(codes), return_index=True, return_inverse=True)
    return once, back


def fingerprints(codes: Floats) -> NDArray[np.uint64]:
    """Return a 64-bit number per row (..., features) that is the same for equal rows."""
    bits = (codes + 0.0).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * _weights(codes.shape[-1])
    return np.asarray((mixed ^ (mixed >> np.uint64(32))).sum(axis=-1, dtype=np.uint64))


@cache
def _weights(features: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(1, 2**63, size=features, dtype=np.uint64) | np.uint64(1)


def any_of(mask: Mask) -> Mask:
    """Return which rows have at least one."""
    return np.asarray(mask.any(axis=1))


def _flatten(group: Candidates) -> tuple[Indices, Floats]:
    """Return the query of each candidate to evaluate, as its position in the batch, and the candidates."""
    rows, codes = np.nonzero(group.open)[0], group.codes[group.open]
    return rows if group.rows is None else group.rows[rows], codes
