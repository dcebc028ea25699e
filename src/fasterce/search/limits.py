"""Limits of a search: model rows per query, time, and the best candidates of a search that is stopped."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from fasterce.typing import Floats, Indices, Mask


@dataclass
class Clock:
    """Whether time ran out anywhere in a call: if it did not, the results are those of a call without a deadline."""

    ran_out: bool = False

    def past(self, until: float | None) -> bool:
        """Return whether it is later than `until`, and note it."""
        late = until is not None and perf_counter() > until
        self.ran_out |= late
        return late


@dataclass
class Limits:
    """Limits of the evaluation of candidates.

    left     model rows each query has left, None for any number
    until    when to stop
    stopped  queries that were stopped
    each     seconds per model row
    complete queries for which everything was tried: all pairs of values, or all candidates the surrogate proposed
    """

    left: Indices | None
    until: float | None
    stopped: Mask
    each: float = 0.0
    clock: Clock = field(default_factory=Clock)
    complete: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.complete = np.zeros_like(self.stopped)

    @property
    def over(self) -> bool:
        return self.clock.past(self.until)

    @classmethod
    def of(cls, rows: int, each: int | None = None, until: float | None = None) -> "Limits":
        return cls(None if each is None else np.full(rows, each, dtype=np.intp), until, np.zeros(rows, dtype=bool))

    def stop(self, rows: Indices | None = None) -> None:
        """Note that some queries, or all, were stopped."""
        self.stopped[slice(None) if rows is None else rows] = True

    def note_complete(self, rows: Indices, complete: bool) -> None:
        """Note whether everything was tried for some queries."""
        self.complete[rows] = complete

    def is_complete(self) -> Mask:
        """Return for which queries everything was tried."""
        return self.complete

    def allow(self, rows: Indices) -> Mask:
        """Return which candidates of the queries `rows` may be evaluated, the first of each query first, and count them."""
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
    """The cheapest candidate of each query so far, for a search that may be stopped."""

    codes: Floats
    cost: Floats
    distance: Callable[[Indices, Floats], Floats]

    def note(self, rows: Indices, codes: Floats, margin: Floats) -> None:
        reached = np.flatnonzero(margin > 0)
        if not reached.size:
            return
        cost = self.distance(rows[reached], codes[reached])
        cheapest_last = reached[np.argsort(-cost, kind="stable")]
        cost = np.sort(cost)[::-1]
        better = cost < self.cost[rows[cheapest_last]]
        self.codes[rows[cheapest_last[better]]] = codes[cheapest_last[better]]
        self.cost[rows[cheapest_last[better]]] = cost[better]


class PartialLimits(Limits):
    """The limits of some queries of a larger batch."""

    def __init__(self, whole: Limits, rows: Indices) -> None:
        self.whole = whole
        self.rows = rows
        self.until = whole.until
        self.clock = whole.clock

    def stop(self, rows: Indices | None = None) -> None:
        self.whole.stop(self.rows if rows is None else self.rows[rows])

    def note_complete(self, rows: Indices, complete: bool) -> None:
        self.whole.note_complete(self.rows[rows], complete)

    def is_complete(self) -> Mask:
        return self.whole.is_complete()[self.rows]

    def allow(self, rows: Indices) -> Mask:
        return self.whole.allow(self.rows[rows])


def _turn(rows: Indices) -> Indices:
    """Return for each candidate how many of its query come before it."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    turn = np.empty(len(rows), dtype=np.intp)
    turn[order] = np.arange(len(rows)) - np.searchsorted(ordered, ordered)
    return turn
