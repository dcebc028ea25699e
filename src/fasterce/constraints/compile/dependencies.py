"""Constraints between features, compiled: which features follow from others, and which candidates satisfy them.

A dependency with an `out` feature completes candidates: it sets that feature from the others. One that `drives` is the only
source of the feature's value; the others correct only what is wrong. Each candidate is handled by itself, so it comes out the
same alone or among others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fasterce.typing import Floats, Indices, Mask

if TYPE_CHECKING:
    from fasterce.constraints.compile.domain import Domain


# Passes over dependencies that depend on each other before a candidate falls back to the base.
MOST_PASSES = 8


class Dependency(Protocol):
    """One constraint between features.

    `inputs` and `out` are positions of features; candidates are (N, features), `rows` the position of the query of each.
    """

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def out(self) -> int | None: ...

    @property
    def drives(self) -> bool: ...

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Return the value of `out` for every candidate."""

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        """Return which candidates satisfy the constraint."""


@dataclass(frozen=True)
class Dependencies:
    """All dependencies, each after those that set its inputs; `settles` says that one pass is enough."""

    dependencies: tuple[Dependency, ...]
    settles: bool

    @classmethod
    def of(cls, dependencies: tuple[Dependency, ...]) -> "Dependencies":
        ordered, acyclic = in_order(dependencies)
        outs = [dependency.out for dependency in dependencies if dependency.out is not None]
        return cls(ordered, acyclic and len(set(outs)) == len(outs))

    @property
    def driven(self) -> tuple[int, ...]:
        return tuple(dependency.out for dependency in self.dependencies if dependency.drives and dependency.out is not None)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Complete candidates; those that do not settle, because constraints depend on each other, go back to the base."""
        done = self._pass(domain, rows, codes)
        if self.settles:
            return done
        for _ in range(MOST_PASSES):
            before, done = done, self._pass(domain, rows, done)
            unsettled = (before != done).any(axis=1)
            if not unsettled.any():
                return done
        return np.where(unsettled[:, None], domain.base[rows], done)

    def _pass(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        codes = codes.copy()
        for dependency in self.dependencies:
            if dependency.out is not None:
                may = domain.may_move[rows, dependency.out]
                value = dependency.complete(domain, rows, codes)
                if domain.missing is not None:
                    otherwise = domain.base[rows, dependency.out] if dependency.drives else codes[:, dependency.out]
                    value = np.where(_undefined(dependency, domain, rows, codes), otherwise, value)
                codes[:, dependency.out] = np.where(may, value, codes[:, dependency.out])
        return codes

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        every = np.ones(len(codes), dtype=bool)
        for dependency in self.dependencies:
            every &= satisfied_by(dependency, domain, rows, codes)
        return every


def satisfied_by(dependency: Dependency, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
    """Return which candidates satisfy a constraint.

    It is undefined, and so satisfied, where a value it needs is missing; a feature that it alone sets then stays as it was.
    """
    satisfied = dependency.keeps(domain, rows, codes)
    if domain.missing is None:
        return satisfied
    features = features_of(dependency)
    undefined = _any_missing(domain, codes, features)
    if isinstance(dependency, (ProportionalFollower, DirectionFollower)):
        undefined |= _any_missing(domain, domain.row[rows], features)
    if dependency.drives and dependency.out is not None:
        undefined &= codes[:, dependency.out] == domain.base[rows, dependency.out]
    return satisfied | undefined


def features_of(dependency: Dependency) -> list[int]:
    """Return the features a constraint is about."""
    named = {*dependency.inputs, dependency.out, dependency.then.feature if isinstance(dependency, Implication) else None}
    return sorted(j for j in named if j is not None)


def _undefined(dependency: Dependency, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
    """Return where the value of `out` is undefined: an input is missing, or the query has none and no input changed."""
    inputs, own = list(dependency.inputs), domain.row[rows]
    undefined = _any_missing(domain, codes, inputs)
    no_start = _any_missing(domain, own, features_of(dependency))
    if isinstance(dependency, (DerivedFeature, FormulaComparison)):
        no_start &= (codes[:, inputs] == own[:, inputs]).all(axis=1)
    return undefined | no_start


def _any_missing(domain: "Domain", codes: Floats, features: list[int]) -> Mask:
    if domain.missing is None:
        return np.zeros(len(codes), dtype=bool)
    return np.asarray((codes[:, features] == domain.missing.code[features]).any(axis=1))


def in_order(dependencies: tuple[Dependency, ...]) -> tuple[tuple[Dependency, ...], bool]:
    """Return dependencies so that what sets a feature comes before what reads it, and whether that is possible."""
    waiting, ordered = list(dependencies), list[Dependency]()
    while waiting:
        unset = {dependency.out for dependency in waiting}
        ready = next((dependency for dependency in waiting if not unset & set(dependency.inputs)), None)
        if ready is None:
            return tuple(ordered + waiting), False
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered), True


@dataclass(frozen=True, eq=False)
class DerivedFeature:
    """A derived feature: computed where one of its inputs changed, the value of the query where none did."""

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
class FormulaComparison:
    """A comparison of formulas; for an equality, `solve` gives the value of `out` that makes it true."""

    inputs: tuple[int, ...]
    holds: Callable[[Floats], Mask]
    out: int | None = None
    solve: Callable[[Floats], Floats] | None = None

    @property
    def drives(self) -> bool:
        return self.out is not None

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Return the value of the query where no input changed and it satisfies the comparison."""
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
class ProportionalFollower:
    """A number that moves `slope` times as much as its leader; categories of the leader count by their `ranks`."""

    leader: int
    out: int
    slope: float
    ranks: Floats | None
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
        change = _rank(codes[:, self.leader], self.ranks) - _rank(domain.row[rows, self.leader], self.ranks)
        return domain.at_precision(domain.row[rows, self.out] + self.slope * change, self.out)


@dataclass(frozen=True, eq=False)
class DirectionFollower:
    """A feature that moves in its leader's direction (`sign` 1) or the opposite (-1), by any amount."""

    leader: int
    out: int
    sign: float
    ranks: Floats | None
    out_ranks: Floats | None
    drives: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.leader,)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Return the value of the query plus one unit, step or category where the feature moved in the wrong direction."""
        direction = self._direction(domain, rows, codes)
        own = domain.row[rows, self.out]
        moved = (
            self._next_number(domain, rows, direction) if self.out_ranks is None else self._next_rank(domain, rows, direction)
        )
        right = np.sign(_rank(moved, self.out_ranks) - _rank(own, self.out_ranks)) == direction
        return np.where(self.keeps(domain, rows, codes) | ~right, codes[:, self.out], moved)

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        still = codes[:, self.leader] == domain.row[rows, self.leader]
        change = _rank(codes[:, self.out], self.out_ranks) - _rank(domain.row[rows, self.out], self.out_ranks)
        direction = self._direction(domain, rows, codes)
        return np.asarray(still | ((np.sign(change) == direction) & (direction != 0)))

    def _direction(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        change = _rank(codes[:, self.leader], self.ranks) - _rank(domain.row[rows, self.leader], self.ranks)
        return np.asarray(self.sign * np.sign(change))

    def _next_number(self, domain: "Domain", rows: Indices, direction: Floats) -> Floats:
        own = domain.row[rows, self.out]
        return domain.round_flat(np.asarray(own + np.nan_to_num(direction) * domain.unit(self.out)), self.out, rows)

    def _next_rank(self, domain: "Domain", rows: Indices, direction: Floats) -> Floats:
        if self.out_ranks is None:
            raise ValueError("only categories have levels")
        own = _rank(domain.row[rows, self.out], self.out_ranks)
        ahead = (self.out_ranks[None, :] - own[:, None]) * direction[:, None]
        ahead = np.where((ahead > 0) & domain.open_to(self.out)[rows], ahead, np.inf)
        found = np.isfinite(ahead.min(axis=1))
        return np.asarray(np.where(found, ahead.argmin(axis=1), domain.row[rows, self.out]), dtype=np.float64)


@dataclass(frozen=True)
class Clause:
    """One feature within a range, or one of some values (for categories their codes, most frequent first)."""

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
class Implication:
    """If every condition is met, the consequence must be; `out` is its feature unless something else drives that."""

    when: tuple[Clause, ...]
    then: Clause
    out: int | None
    categorical: bool
    drives: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(clause.feature for clause in self.when)

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats) -> Mask:
        applies = np.ones(len(codes), dtype=bool)
        for clause in self.when:
            applies &= clause.met(codes)
        return ~applies | self.then.met(codes)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        j = self.then.feature
        wrong = np.flatnonzero(~self.keeps(domain, rows, codes))
        value = codes[:, j].copy()
        if wrong.size:
            moved = self._legal(domain, rows[wrong], value[wrong])
            value[wrong] = np.where(np.isnan(moved), value[wrong], moved)
        return value

    def _legal(self, domain: "Domain", rows: Indices, value: Floats) -> Floats:
        """Return the nearest number; the category of the query if allowed, else the most frequent; NaN if there is none."""
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


def _rank(codes: Floats, ranks: Floats | None) -> Floats:
    return codes if ranks is None else ranks[codes.astype(np.intp)]
