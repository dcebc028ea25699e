"""Constraints between features, compiled: which features follow from others, and which candidates satisfy them.

A dependency with an `out` feature completes candidates: it sets that feature from the others. One that `drives` is the only
source of the feature's value; the others correct only what is wrong. Each candidate is handled by itself, so it comes out the
same alone or among others. What each kind does is in `kernels/links.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fasterce.constraints.compile.program import Program, links_of
from fasterce.kernels.links import (
    COMPARISON,
    DERIVED,
    DIRECTION,
    IMPLICATION,
    MOST_PASSES,
    PROPORTION,
    Links,
    check_rows,
    complete_rows,
    set_targets,
)
from fasterce.kernels.structs import as_struct
from fasterce.typing import Floats, Indices, Mask

if TYPE_CHECKING:
    from fasterce.constraints.compile.domain import Domain


@dataclass(frozen=True)
class Clause:
    """One feature within a range, or one of some values (for categories their codes, most frequent first)."""

    feature: int
    low: float = -np.inf
    high: float = np.inf
    values: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class Dependency:
    """One constraint between features; `inputs`, `target` and `out` are positions of features.

    Parameters
    ----------
    kind : int
        One of the kinds of `kernels/links.py`.
    inputs : tuple of int
        Features that are read.
    target : int, optional
        The feature that is set or, by an implication, restricted.
    out : int, optional
        The target, if candidates are completed.
    drives : bool
        Whether this is the only source of the target's value.
    programs : tuple of programs
        Both sides of a comparison, and the value of the target.
    comparison, tolerance : str and float
        The relation of both sides, and the tolerance of an equality.
    slope : float
        Change of the target per change of the leader; for a direction 1 or -1.
    ranks : tuple of arrays
        Ranks of the categories of the leader and of the target, None for numbers.
    clauses : tuple of Clause
        The conditions of an implication, then its consequence.
    function : callable, optional
        Computes a derived feature from candidates (N, features) in place of a program.
    """

    kind: int
    inputs: tuple[int, ...]
    target: int | None = None
    out: int | None = None
    drives: bool = False
    programs: tuple[Program, Program, Program] = ((), (), ())
    comparison: str = "=="
    tolerance: float = 0.0
    slope: float = 0.0
    ranks: tuple[Floats | None, Floats | None] = (None, None)
    clauses: tuple[Clause, ...] = ()
    function: Callable[[Floats], Floats] | None = None

    @property
    def features(self) -> list[int]:
        """The features the constraint is about."""
        return sorted({*self.inputs, *([] if self.target is None else [self.target])})

    @property
    def follows(self) -> bool:
        """Whether the target follows a leader, the only input."""
        return self.kind in (PROPORTION, DIRECTION)


def derived_feature(out: int, inputs: tuple[int, ...], how: Program | Callable[[Floats], Floats]) -> Dependency:
    """Return a derived feature: computed where one of its inputs changed, the value of the query where none did."""
    if callable(how):
        return Dependency(DERIVED, inputs, out, out, True, function=how)
    return Dependency(DERIVED, inputs, out, out, True, programs=((), (), how))


def formula_comparison(
    inputs: tuple[int, ...],
    sides: tuple[Program, str, Program],
    tolerance: float = 0.0,
    out: int | None = None,
    solution: Program = (),
) -> Dependency:
    """Return a comparison of formulas; for an equality, `solution` gives the value of `out` that makes it true."""
    left, relation, right = sides
    programs = left, right, solution
    return Dependency(COMPARISON, inputs, out, out, out is not None, programs, relation, tolerance)


def proportional_follower(leader: int, out: int, slope: float, ranks: Floats | None = None) -> Dependency:
    """Return a number that moves `slope` times as much as its leader; categories of the leader count by their `ranks`."""
    return Dependency(PROPORTION, (leader,), out, out, True, slope=slope, ranks=(ranks, None))


def direction_follower(
    leader: int, out: int, sign: float, ranks: Floats | None = None, out_ranks: Floats | None = None
) -> Dependency:
    """Return a feature that moves in its leader's direction (`sign` 1) or the opposite (-1), by any amount."""
    return Dependency(DIRECTION, (leader,), out, out, slope=sign, ranks=(ranks, out_ranks))


def implication(when: tuple[Clause, ...], then: Clause, completes: bool = True) -> Dependency:
    """Return a consequence of conditions; it completes unless something else drives its feature."""
    inputs = tuple(clause.feature for clause in when)
    out = then.feature if completes else None
    return Dependency(IMPLICATION, inputs, then.feature, out, clauses=(*when, then))


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

    @cached_property
    def links(self) -> Links:
        """The dependencies as arrays for the compiled loops."""
        return links_of(self.dependencies, self.settles)

    @property
    def functions(self) -> bool:
        """Whether a feature is computed by a Python function, which compiled loops cannot call."""
        return any(dependency.function is not None for dependency in self.dependencies)

    def complete(self, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
        """Complete candidates (N, features) of the queries at `rows`; those that do not settle go back to the base."""
        links, rows, codes = as_struct(domain.links), np.ascontiguousarray(rows), np.array(codes, order="C")
        if not self.functions:
            complete_rows(links, rows, codes)
            return codes
        self._set_targets(links, domain, rows, codes)
        if self.settles:
            return codes
        for _ in range(MOST_PASSES):
            before = codes.copy()
            self._set_targets(links, domain, rows, codes)
            unsettled = (before != codes).any(axis=1)
            if not unsettled.any():
                return codes
        return np.where(unsettled[:, None], domain.base[rows], codes)

    def _set_targets(self, links: Links, domain: "Domain", rows: Indices, codes: Floats) -> None:
        for d, dependency in enumerate(self.dependencies):
            set_targets(links, d, rows, codes, _computed(dependency, domain, rows, codes))

    def keeps(self, domain: "Domain", rows: Indices, codes: Floats, which: tuple[Dependency, ...] | None = None) -> Mask:
        """Return which candidates satisfy all constraints, or these."""
        links, rows, codes = as_struct(domain.links), np.ascontiguousarray(rows), np.ascontiguousarray(codes)
        holds = np.ones(len(codes), dtype=np.bool_)
        for dependency in self.dependencies if which is None else which:
            d = self.dependencies.index(dependency)
            check_rows(links, d, rows, codes, _computed(dependency, domain, rows, codes), holds)
        return holds


def _computed(dependency: Dependency, domain: "Domain", rows: Indices, codes: Floats) -> Floats:
    """Return the values of a dependency's function where one of its inputs changed, else NaN."""
    value = np.full(len(codes), np.nan)
    if dependency.function is not None:
        columns = list(dependency.inputs)
        changed = np.flatnonzero((codes[:, columns] != domain.row[rows][:, columns]).any(axis=1))
        if changed.size:
            value[changed] = dependency.function(codes[changed])
    return value


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
