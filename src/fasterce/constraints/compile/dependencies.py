"""Rules between features, compiled: which features follow from others, and which candidates keep every rule.

A link with an `out` feature completes candidates: it sets that feature from the others. One that `drives` is the only
source of the feature's value; the others put right only what is wrong. Everything is done candidate by candidate, so a
candidate comes out the same alone or among others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats

if TYPE_CHECKING:
    from fasterce.search.project import Domain

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

MOST_PASSES = 8


class Link(Protocol):
    """`inputs` and `out` are positions of features; candidates are flat, (N, features), with the row each belongs to."""

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def out(self) -> int | None: ...

    @property
    def drives(self) -> bool: ...

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """The value of `out` for every candidate."""

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        """Which candidates keep the rule."""


@dataclass(frozen=True)
class Links:
    """All links, in an order in which each finds its inputs done; `settles` says that one pass is enough."""

    links: tuple[Link, ...]
    settles: bool

    @classmethod
    def of(cls, links: tuple[Link, ...]) -> "Links":
        ordered, acyclic = in_order(links)
        outs = [link.out for link in links if link.out is not None]
        return cls(ordered, acyclic and len(set(outs)) == len(outs))

    @property
    def driven(self) -> tuple[int, ...]:
        return tuple(link.out for link in self.links if link.drives and link.out is not None)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Candidates that never come to rest, because rules chase each other, go back to the base."""
        done = self._pass(domain, rows, codes)
        if self.settles:
            return done
        for _ in range(MOST_PASSES):
            before, done = done, self._pass(domain, rows, done)
            restless = (before != done).any(axis=1)
            if not restless.any():
                return done
        return np.where(restless[:, None], domain.base[rows], done)

    def _pass(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        codes = codes.copy()
        for link in self.links:
            if link.out is not None:
                may = domain.may_move[rows, link.out]
                told = link.complete(domain, rows, codes)
                if domain.gaps is not None:
                    otherwise = domain.base[rows, link.out] if link.drives else codes[:, link.out]
                    told = np.where(_cannot_say(link, domain, rows, codes), otherwise, told)
                codes[:, link.out] = np.where(may, told, codes[:, link.out])
        return codes

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        every = np.ones(len(codes), dtype=bool)
        for link in self.links:
            every &= kept(link, domain, rows, codes)
        return every


def kept(link: Link, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
    """Which candidates keep a rule; of what is missing it says nothing, nor of a movement from there, but what it alone
    sets then stays as it was."""
    held = link.keeps(domain, rows, codes)
    if domain.gaps is None:
        return held
    features = about(link)
    silent = _any_missing(domain, codes, features)
    if isinstance(link, (Follower, Nudged)):
        silent |= _any_missing(domain, domain.row[rows], features)
    if link.drives and link.out is not None:
        silent &= codes[:, link.out] == domain.base[rows, link.out]
    return held | silent


def about(link: Link) -> list[int]:
    """The features a rule is about."""
    named = {*link.inputs, link.out, link.then.feature if isinstance(link, Consequence) else None}
    return sorted(j for j in named if j is not None)


def _cannot_say(link: Link, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
    """Where a rule cannot tell its feature's value: an input is missing, or the row has none and nothing is computed anew."""
    inputs, own = list(link.inputs), domain.row[rows]
    silent = _any_missing(domain, codes, inputs)
    gone = _any_missing(domain, own, about(link))
    if isinstance(link, (Recomputed, Compared)):
        gone &= (codes[:, inputs] == own[:, inputs]).all(axis=1)
    return silent | gone


def _any_missing(domain: "Domain", codes: Floats, features: list[int]) -> Mask:
    if domain.gaps is None:
        return np.zeros(len(codes), dtype=bool)
    return np.asarray((codes[:, features] == domain.gaps.code[features]).any(axis=1))


def in_order(links: tuple[Link, ...]) -> tuple[tuple[Link, ...], bool]:
    """Links so that whatever sets a feature comes before whatever reads it, and whether that is possible throughout."""
    waiting, ordered = list(links), list[Link]()
    while waiting:
        unset = {link.out for link in waiting}
        ready = next((link for link in waiting if not unset & set(link.inputs)), None)
        if ready is None:
            return tuple(ordered + waiting), False
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered), True


@dataclass(frozen=True, eq=False)
class Recomputed:
    """A derived feature: computed anew where one of its inputs changed, the row's own where none did."""

    out: int
    inputs: tuple[int, ...]
    compute: Callable[[Floats], Floats]
    drives: bool = True

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        value = self._value(domain, rows, codes)
        return np.where(np.isfinite(value), value, domain.row[rows, self.out])

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        return np.asarray(codes[:, self.out] == self._value(domain, rows, codes))

    def _value(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        columns = list(self.inputs)
        changed = np.flatnonzero((codes[:, columns] != domain.row[rows][:, columns]).any(axis=1))
        value: Floats = domain.row[rows, self.out]
        if changed.size:
            value[changed] = domain.at_precision(self.compute(codes[changed]), self.out)
        return value


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison of formulas; `solve`, where it is an equality, gives the value of `out` that makes it true."""

    inputs: tuple[int, ...]
    holds: Callable[[Floats], Mask]
    out: int | None = None
    solve: Callable[[Floats], Floats] | None = None

    @property
    def drives(self) -> bool:
        return self.out is not None

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """The row's own value where nothing else changed and it is right as it is."""
        if self.out is None or self.solve is None:
            raise ValueError("only an equality with a solved feature can be completed")
        own = domain.row[rows]
        columns = list(self.inputs)
        value = domain.at_precision(self.solve(codes), self.out)
        value = np.where(np.isfinite(value), value, own[:, self.out])
        as_given = (codes[:, columns] == own[:, columns]).all(axis=1) & self.holds(own)
        return np.where(as_given, own[:, self.out], value)

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        return self.holds(codes)


@dataclass(frozen=True, eq=False)
class Follower:
    """A number that moves `slope` times as much as its leader, whose categories count by their `level`."""

    leader: int
    out: int
    slope: float
    level: Floats | None
    drives: bool = True

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.leader,)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        value = self._value(domain, rows, codes)
        moved = (codes[:, self.leader] != domain.row[rows, self.leader]) & np.isfinite(value)
        return np.where(moved, value, domain.base[rows, self.out])

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        still = codes[:, self.leader] == domain.row[rows, self.leader]
        own = (codes[:, self.out] == domain.row[rows, self.out]) | (codes[:, self.out] == domain.base[rows, self.out])
        return np.asarray(np.where(still, own, codes[:, self.out] == self._value(domain, rows, codes)))

    def _value(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        change = _level(codes[:, self.leader], self.level) - _level(domain.row[rows, self.leader], self.level)
        return domain.at_precision(domain.row[rows, self.out] + self.slope * change, self.out)


@dataclass(frozen=True, eq=False)
class Nudged:
    """A feature that has to move in its leader's direction (`sign` 1) or the opposite (-1), however far."""

    leader: int
    out: int
    sign: float
    level: Floats | None
    out_level: Floats | None
    drives: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.leader,)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """One unit of its precision, one step or one category from the row's own value, where it went the wrong way."""
        way = self._way(domain, rows, codes)
        own = domain.row[rows, self.out]
        moved = self._next_number(domain, rows, way) if self.out_level is None else self._next_level(domain, rows, way)
        right = np.sign(_level(moved, self.out_level) - _level(own, self.out_level)) == way
        return np.where(self.keeps(domain, rows, codes) | ~right, codes[:, self.out], moved)

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        still = codes[:, self.leader] == domain.row[rows, self.leader]
        change = _level(codes[:, self.out], self.out_level) - _level(domain.row[rows, self.out], self.out_level)
        way = self._way(domain, rows, codes)
        return np.asarray(still | ((np.sign(change) == way) & (way != 0)))

    def _way(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        change = _level(codes[:, self.leader], self.level) - _level(domain.row[rows, self.leader], self.level)
        return np.asarray(self.sign * np.sign(change))

    def _next_number(self, domain: "Domain", rows: Indices, way: Floats) -> Floats:
        own = domain.row[rows, self.out]
        return domain.round_flat(np.asarray(own + np.nan_to_num(way) * domain.unit(self.out)), self.out, rows)

    def _next_level(self, domain: "Domain", rows: Indices, way: Floats) -> Floats:
        if self.out_level is None:
            raise ValueError("only categories have levels")
        own = _level(domain.row[rows, self.out], self.out_level)
        ahead = (self.out_level[None, :] - own[:, None]) * way[:, None]
        ahead = np.where((ahead > 0) & domain.open_to(self.out)[rows], ahead, np.inf)
        found = np.isfinite(ahead.min(axis=1))
        return np.asarray(np.where(found, ahead.argmin(axis=1), domain.row[rows, self.out]), dtype=np.float64)


@dataclass(frozen=True)
class Clause:
    """One feature within a range, or one of some values (for categories their codes, the most frequent first)."""

    feature: int
    low: float = -np.inf
    high: float = np.inf
    values: tuple[float, ...] | None = None

    def met(self, codes: Floats) -> Mask:
        value = codes[:, self.feature]
        if self.values is not None:
            return np.isin(value, self.values)
        return np.asarray((value >= self.low) & (value <= self.high))


@dataclass(frozen=True, eq=False)
class Consequence:
    """Where every condition is met, the consequence must be; `out` is its feature unless something else drives that."""

    when: tuple[Clause, ...]
    then: Clause
    out: int | None
    categorical: bool
    drives: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(clause.feature for clause in self.when)

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        asked = np.ones(len(codes), dtype=bool)
        for clause in self.when:
            asked &= clause.met(codes)
        return ~asked | self.then.met(codes)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        j = self.then.feature
        wrong = np.flatnonzero(~self.keeps(domain, rows, codes))
        value = codes[:, j].copy()
        if wrong.size:
            moved = self._legal(domain, rows[wrong], value[wrong])
            value[wrong] = np.where(np.isnan(moved), value[wrong], moved)
        return value

    def _legal(self, domain: "Domain", rows: Indices, value: Floats) -> Floats:
        """The nearest number; the row's own category where that is right, else the most frequent; NaN if there is none."""
        j, then = self.then.feature, self.then
        own = domain.row[rows, j]
        if then.values is None:
            low, high = np.maximum(domain.lower[rows, j], then.low), np.minimum(domain.upper[rows, j], then.high)
            moved = domain.round_flat(value, j, rows, low, np.maximum(low, high))
            return np.where((low <= high) & (moved >= then.low) & (moved <= then.high), moved, np.nan)
        listed = np.array(then.values)
        if self.categorical:
            open_ = domain.open_to(j)[rows][:, listed.astype(np.intp)]
            preferred = np.where(open_, -np.arange(len(listed), dtype=np.float64), -np.inf)
            preferred[open_ & (listed == own[:, None])] = 1.0
        else:
            open_ = (listed >= domain.lower[rows, j, None]) & (listed <= domain.upper[rows, j, None])
            preferred = np.where(open_, -np.abs(listed - value[:, None]), -np.inf)
        best = preferred.argmax(axis=1)
        return np.where(open_.any(axis=1), listed[best], np.nan)


def _level(codes: Floats, level: Floats | None) -> Floats:
    return codes if level is None else level[codes.astype(np.intp)]
