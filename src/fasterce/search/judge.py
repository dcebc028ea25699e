"""Questions to the model, gathered: many candidates of many rows, one call."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.domain import Domain
from fasterce.models.predictions import Evaluate
from fasterce.search.query_targets import QueryTargets
from fasterce.surrogate.runtime import NO_LIMIT
from fasterce.typing import Floats, Indices, Mask


@dataclass(frozen=True)
class Candidates:
    """Candidates (rows, K, features) and which of them are worth asking about; `rows` places them in a larger batch."""

    codes: Floats
    open: Mask
    rows: Indices | None = None

    def of(self, rows: Indices) -> "Candidates":
        """The same, said of some rows of a larger batch."""
        return replace(self, rows=rows if self.rows is None else rows[self.rows])


@dataclass(frozen=True)
class Edits:
    """Candidates that differ from their row's base in one feature each: features (S,), values and open (rows, S)."""

    base: Floats
    feature: Indices
    value: Floats
    open: Mask
    rows: Indices | None = None

    def of(self, rows: Indices) -> "Edits":
        return replace(self, rows=rows if self.rows is None else rows[self.rows])

    def __add__(self, other: "Edits") -> "Edits":
        return Edits(
            self.base,
            np.concatenate([self.feature, other.feature]),
            np.concatenate([self.value, other.value], axis=1),
            np.concatenate([self.open, other.open], axis=1),
        )

    def take(self, rows: Indices) -> "Edits":
        return Edits(self.base[rows], self.feature, self.value[rows], self.open[rows])

    def flat(self) -> tuple[Indices, Floats]:
        rows, edits = np.nonzero(self.open)
        codes = self.base[rows]
        codes[np.arange(len(rows)), self.feature[edits]] = self.value[rows, edits]
        return rows, codes


@dataclass(frozen=True)
class Verdict:
    """For every candidate: does it flip, and by how much (-inf where it was not asked or the model failed)."""

    valid: Mask
    margin: Floats

    def take(self, rows: Indices) -> "Verdict":
        return Verdict(self.valid[rows], self.margin[rows])


@dataclass
class Clock:
    """Whether time ran out anywhere in a call: if it did not, the answers are those of a call without a deadline."""

    ran_out: bool = False

    def past(self, until: float | None) -> bool:
        """Whether it is later than `until`; noted if it is."""
        late = until is not None and perf_counter() > until
        self.ran_out |= late
        return late


@dataclass
class Limits:
    """How many questions each row has left (None: any number), when to stop asking, how long a question takes, and which
    rows were stopped."""

    left: Indices | None
    until: float | None
    stopped: Mask
    each: float = 0.0
    clock: Clock = field(default_factory=Clock)

    @property
    def over(self) -> bool:
        return self.clock.past(self.until)

    @classmethod
    def of(cls, rows: int, each: int | None = None, until: float | None = None) -> "Limits":
        return cls(None if each is None else np.full(rows, each, dtype=np.intp), until, np.zeros(rows, dtype=bool))

    def stop(self, rows: Indices | None = None) -> None:
        """Note that some rows, or all, were stopped."""
        self.stopped[slice(None) if rows is None else rows] = True

    def allow(self, rows: Indices) -> Mask:
        """Which questions about `rows` may be asked, every row's first ones first, and what that leaves."""
        allowed = np.ones(len(rows), dtype=bool)
        if self.left is not None:
            allowed = _turn(rows) < self.left[rows]
            self.left = self.left - np.bincount(rows[allowed], minlength=len(self.left))
        if self.until is not None:
            fitting = int(max(self.until - perf_counter(), 0.0) / max(self.each, 1e-9))
            if fitting < len(rows):
                order = np.lexsort((rows, _turn(rows)))
                allowed[order[fitting:]] = False
                self.clock.ran_out = True
        self.stopped[rows[~allowed]] = True
        return allowed


@dataclass
class Best:
    """The cheapest answer of every row so far, for a search that may be cut short."""

    codes: Floats
    cost: Floats
    price: Callable[[Indices, Floats], Floats]

    def note(self, rows: Indices, codes: Floats, margin: Floats) -> None:
        flips = np.flatnonzero(margin > 0)
        if not flips.size:
            return
        cost = self.price(rows[flips], codes[flips])
        cheapest_last = flips[np.argsort(-cost, kind="stable")]
        cost = np.sort(cost)[::-1]
        better = cost < self.cost[rows[cheapest_last]]
        self.codes[rows[cheapest_last[better]]] = codes[cheapest_last[better]]
        self.cost[rows[cheapest_last[better]]] = cost[better]


class Judge:
    """Knows what every row wants. `informative` tells margins that grade from mere labels (+1, -1)."""

    def __init__(
        self,
        evaluate: Evaluate,
        targets: QueryTargets,
        informative: bool,
        limits: Limits | None = None,
        lowest: float = NO_LIMIT,
        domain: Domain | None = None,
    ) -> None:
        self.domain = domain if domain is not None and domain.linked else None
        self.evaluate = evaluate
        self.lowest = lowest
        self.targets = targets
        self.informative = informative
        self.limits = limits or Limits.of(len(targets.target))
        self.best: Best | None = None
        self.note_margins: Callable[[Indices, Floats], None] | None = None

    @property
    def target(self) -> Indices:
        return self.targets.target

    def take(self, rows: Indices) -> "Judge":
        """The judge of some rows; what they use up, where they are stopped and what is said is seen here too."""
        limits, domain = _Part(self.limits, rows), _taken(self.domain, rows)
        part = Judge(self.evaluate, self.targets.take(rows), self.informative, limits, self.lowest, domain)
        noted = self.note_margins
        if noted is not None:
            part.note_margins = lambda some, margin: noted(rows[some], margin)
        return part

    def demanding(self, need: Floats) -> "Judge":
        """The same judge, satisfied only so far beyond the boundary."""
        more = Judge(self.evaluate, self.targets.demanding(need), self.informative, self.limits, self.lowest, self.domain)
        more.note_margins = self.note_margins
        return more

    def judge(self, *groups: Candidates | Edits) -> list[Verdict]:
        """One call for all groups; identical candidates are asked once, those that break a rule between features never.

        What follows from a change by such a rule is changed before asking.
        """
        flat = [_flatten(group) for group in groups]
        rows = np.concatenate([part[0] for part in flat])
        codes = np.concatenate([part[1] for part in flat])
        margin = self._margins(rows, codes) if self.domain is None else self._legal_margins(self.domain, rows, codes)
        verdicts, start = [], 0
        for group, (asked, _) in zip(groups, flat, strict=True):
            filled = np.full(group.open.shape, -np.inf)
            filled[group.open] = margin[start : start + len(asked)]
            verdicts.append(Verdict(filled > 0, filled))
            start += len(asked)
        return verdicts

    def _legal_margins(self, domain: Domain, rows: Indices, codes: Floats) -> Floats:
        codes = domain.complete_own(rows, codes)
        legal = domain.contains_own(rows, codes, counted=False)
        margin = np.full(len(rows), -np.inf)
        margin[legal] = self._margins(rows[legal], codes[legal])
        return margin

    def _margins(self, rows: Indices, codes: Floats) -> Floats:
        margin = self._allowed_margins(rows, codes)
        if self.note_margins is not None:
            self.note_margins(rows, margin)
        if self.best is not None:
            self.best.note(rows, codes, margin)
        return margin

    def _allowed_margins(self, rows: Indices, codes: Floats) -> Floats:
        if len(rows) == 0:
            return np.zeros(0)
        allowed = self.limits.allow(rows)
        if allowed.all():
            return self._asked(rows, codes)
        margin = np.full(len(rows), -np.inf)
        if allowed.any():
            margin[allowed] = self._asked(rows[allowed], codes[allowed])
        return margin

    def _asked(self, rows: Indices, codes: Floats) -> Floats:
        once, back = distinct(codes)
        if len(once) == len(codes):
            once = back = np.arange(len(codes))
        answers = self.evaluate(codes if len(once) == len(codes) else codes[once])
        return self.targets.margins(answers.take(back), rows, self.lowest)


class _Part(Limits):
    """The limits of some rows of a larger batch."""

    def __init__(self, whole: Limits, rows: Indices) -> None:
        self.whole = whole
        self.rows = rows
        self.until = whole.until
        self.clock = whole.clock

    def stop(self, rows: Indices | None = None) -> None:
        self.whole.stop(self.rows if rows is None else self.rows[rows])

    def allow(self, rows: Indices) -> Mask:
        return self.whole.allow(self.rows[rows])


def _taken(domain: Domain | None, rows: Indices) -> Domain | None:
    return None if domain is None else domain.take(rows)


def _turn(rows: Indices) -> Indices:
    """For every question the how-manieth about its row it is."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    turn = np.empty(len(rows), dtype=np.intp)
    turn[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return turn


def distinct(codes: Floats) -> tuple[Indices, Indices]:
    """Positions of distinct rows and the way back, by a 64-bit fingerprint of every row."""
    bits = (codes + 0.0).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * _weights(codes.shape[1])
    mark = (mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
    _, once, back = np.unique(mark, return_index=True, return_inverse=True)
    return once, back


@cache
def _weights(features: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(1, 2**63, size=features, dtype=np.uint64) | np.uint64(1)


def any_of(mask: Mask) -> Mask:
    """Which rows have at least one."""
    return np.asarray(mask.any(axis=1))


def _flatten(group: Candidates | Edits) -> tuple[Indices, Floats]:
    """The open candidates, each with the position of its row in the batch."""
    if isinstance(group, Edits):
        rows, codes = group.flat()
    else:
        rows, codes = np.nonzero(group.open)[0], group.codes[group.open]
    return rows if group.rows is None else group.rows[rows], codes
