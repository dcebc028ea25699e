"""The constraints of one call, compiled for the rows at hand, and the domain of queries they leave."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.constraints.compile.active import ActiveConstraint, PermittedRange, collect
from fasterce.constraints.compile.binding import bind, repaired
from fasterce.constraints.compile.bounds import BoundArrays, FeatureBounds, feature_bounds
from fasterce.constraints.compile.dependencies import Dependencies, Dependency
from fasterce.constraints.compile.domain import Domain, MissingValues
from fasterce.constraints.objects import AtMost, Constraint, Derived, Require
from fasterce.constraints.validate import find
from fasterce.data.codec import Codec
from fasterce.data.dtypes import is_single
from fasterce.data.schema import Feature
from fasterce.data.table import Table
from fasterce.errors import InputError, Problem
from fasterce.typing import Floats, Mask

# Tables whose compiled constraints are kept for the next call.
KEPT_TABLES = 8

_lock = Lock()
_kept: dict[tuple[int, int], "CompiledConstraints"] = {}


@dataclass(frozen=True)
class CompiledConstraints:
    """The constraints of one call.

    Parameters
    ----------
    table : Table
    codec : Codec
    active : tuple of ActiveConstraint
        Every constraint that could be lifted.
    definitions : tuple of Constraint
        Derived columns and orders, which cannot.
    """

    table: Table
    codec: Codec
    active: tuple[ActiveConstraint, ...]
    definitions: tuple[Constraint, ...] = ()

    @classmethod
    def compile(
        cls,
        table: Table,
        codec: Codec,
        features_to_vary: Sequence[Hashable] | None,
        permitted_range: PermittedRange | None,
        constraints: Sequence[Constraint] | None = (),
        override: bool = False,
    ) -> "CompiledConstraints":
        """Compile the constraints of the schema and of a call; with `override` those of the call replace the schema's."""
        if features_to_vary is None and permitted_range is None and not constraints:
            return _of_schema(table, codec)
        return cls._compile(table, codec, features_to_vary, permitted_range, constraints, override)

    @classmethod
    def _compile(cls, table: Table, codec: Codec, *of_call: Any) -> "CompiledConstraints":
        found = cls(table, codec, *collect(table.schema, *of_call))
        _ = found.dependencies  # raises if constraints contradict each other
        return found

    @cached_property
    def vary(self) -> Mask:
        """Which features `features_to_vary` lets change."""
        vary = np.ones(len(self.table.schema), dtype=bool)
        for one in self.active:
            if one.origin == "features_to_vary":
                vary[self.table.schema.positions(one.columns)] = False
        return vary

    @property
    def named(self) -> tuple[int, ...]:
        """Positions of the features that `features_to_vary` names; empty if it names none."""
        return () if self.vary.all() else tuple(int(j) for j in np.flatnonzero(self.vary) if j not in self.derived)

    def without(self, one: ActiveConstraint) -> "CompiledConstraints":
        """Return the same constraints with one of them lifted."""
        if one not in self.active:
            raise InputError("constraints.not_active", received=one.text)
        return replace(self, active=tuple(other for other in self.active if other != one))

    def broken(self, one: ActiveConstraint, row_codes: Floats, codes: Floats) -> Mask:
        """Return which candidates (N, features) violate this constraint, each for its query (N, features)."""
        alone = replace(self, active=(one,))
        domain, _ = DomainBuilder(alone, row_codes, only_active=True).build()
        return ~domain.contains_own(np.arange(len(codes)), codes)

    def domain(self, codes: Floats) -> tuple[Domain, dict[int, Problem]]:
        """Return the domain of each query, and the problem of each query that cannot satisfy the constraints, by position."""
        return DomainBuilder(self, codes).build()

    @cached_property
    def bounds(self) -> list[FeatureBounds]:
        """The constraints on each feature by itself."""
        return feature_bounds(self.table, self.active, self.definitions)

    def arrays(self, only_active: bool = False) -> BoundArrays:
        """Return the constraints on each feature as arrays; with `only_active` without the range of the data."""
        return self._arrays_of_active if only_active else self._arrays

    @cached_property
    def _arrays(self) -> BoundArrays:
        return BoundArrays(self.bounds, [self._seen(j, one.feature) for j, one in enumerate(self.bounds)])

    @cached_property
    def _arrays_of_active(self) -> BoundArrays:
        unbounded = (-np.inf, np.inf)
        return BoundArrays(self.bounds, [unbounded if b.feature.numeric else self._seen(0, b.feature) for b in self.bounds])

    def _seen(self, j: int, feature: Feature) -> tuple[float, float]:
        """Return the range of the data; a declared range replaces it in the schema."""
        if not feature.numeric:
            return 0.0, float(len(feature.categories) - 1)
        if feature.declared:
            return float(self.codec.profile.low[j]), float(self.codec.profile.high[j])
        return feature.lower, feature.upper

    @cached_property
    def decimals(self) -> NDArray[np.int64]:
        """The decimals of each feature."""
        return np.array([feature.decimals for feature in self.table.schema.features], dtype=np.int64)

    @cached_property
    def single(self) -> Mask:
        """Which columns hold 32-bit floats."""
        return np.array([is_single(dtype) for dtype in self.table.dtypes])

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All constraints as text."""
        return (*(one.text for one in self.active), *(one.text for one in self.definitions))

    @cached_property
    def dependencies(self) -> tuple[tuple[Dependency, ActiveConstraint | None], ...]:
        """The constraints between features; None stands for a derived column."""
        return bind(self)

    @cached_property
    def derived(self) -> frozenset[int]:
        """Positions of the derived features."""
        schema = self.table.schema
        return frozenset(schema.position(one.feature) for one in self.definitions if isinstance(one, Derived))


def _of_schema(table: Table, codec: Codec) -> CompiledConstraints:
    """Return the constraints of the schema alone; those of the last few tables are kept."""
    key = id(table), id(codec)
    found = _kept.get(key)
    if found is None:
        found = CompiledConstraints._compile(table, codec, None, None, (), False)
        with _lock:
            while len(_kept) >= KEPT_TABLES:
                _kept.pop(next(iter(_kept)))
            # It keeps table and codec alive, so that no other object can have the same id.
            _kept[key] = found
    return found


class DomainBuilder:
    """Builds the domain of some queries.

    `only_active` leaves out what cannot be lifted: precision, the range of the data, derived columns.
    """

    def __init__(self, constraints: CompiledConstraints, codes: Floats, only_active: bool = False) -> None:
        self.constraints, self.codes, self.only_active = constraints, codes, only_active
        self.schema = constraints.table.schema
        self.dependencies = [pair for pair in constraints.dependencies if pair[1] is not None or not only_active]
        self.blocked: dict[int, Problem] = {}

    def build(self) -> tuple[Domain, dict[int, Problem]]:
        """Return the domain, and the problem of each query that cannot satisfy the constraints, by position."""
        domain = self._with_bounds()
        if self.dependencies:
            dependencies = Dependencies.of(tuple(dependency for dependency, _ in self.dependencies))
            domain = self._settled(replace(domain, dependencies=dependencies))
            self._block_broken(domain)
        self._block_too_many_changes(domain)
        return domain, self.blocked

    def _with_bounds(self) -> Domain:
        """Bound every feature by itself, and move the query within its bounds."""
        codes, arrays = self.codes, self.constraints.arrays(self.only_active)
        base, outside = codes.copy(), np.zeros(codes.shape, dtype=bool)
        driven = {dependency.out for dependency, _ in self.dependencies if dependency.drives}
        lower, upper = arrays.of(codes)
        anchor, free = arrays.anchors(codes, self.constraints.single), np.broadcast_to(~arrays.frozen, codes.shape).copy()
        if not self.only_active:
            free &= arrays.possible(lower, upper, anchor)
        domain = self._domain(base, free, lower, upper, anchor)
        for j in arrays.required:
            bounds = arrays.each[j]
            moved, out, possible = self._moved(domain, j, bounds)
            out &= ~bounds.is_missing(codes[:, j])
            # A feature that follows from others is moved by them.
            stuck = out & bounds.frozen if j in driven else out & ~(possible & (not bounds.frozen))
            outside[:, j] = out
            base[:, j] = np.where(out & ~stuck & (j not in driven), moved, base[:, j])
            for row in map(int, np.flatnonzero(stuck)):
                fields = {"column": bounds.feature.name, "received": self.constraints.table.value(j, codes[row, j])}
                self.blocked.setdefault(row, Problem("constraints.outside_permitted_range", **fields))
        row_legal = None if not outside.any() else ~outside
        return replace(domain, row_legal=row_legal, base_legal=None if row_legal is None else row_legal | (base != codes))

    def _domain(self, base: Floats, free: Mask, lower: Floats, upper: Floats, anchor: Floats) -> Domain:
        arrays, constraints = self.constraints.arrays(self.only_active), self.constraints
        counts = [one.constraint.k for one in constraints.active if isinstance(one.constraint, AtMost)]
        gridded = bool(arrays.step.any())
        driven = [dependency.out for dependency, _ in self.dependencies if dependency.drives and dependency.out is not None]
        editable = free.copy()
        editable[:, driven] = False
        return Domain(
            row=self.codes,
            base=base,
            free=editable,
            lower=lower,
            upper=upper,
            allowed=arrays.allowed,
            decimals=constraints.decimals,
            integer=arrays.integer & (not self.only_active),
            single=constraints.single,
            numeric=constraints.codec.numeric,
            step=arrays.step if gridded else None,
            anchor=anchor if gridded else None,
            transitions=arrays.transitions,
            movable=free if driven else None,
            most_changes=min(counts) if counts else None,
            counted=~np.isin(np.arange(base.shape[1]), list(constraints.derived)) if counts else None,
            missing=self._missing_values(),
        )

    def _missing_values(self) -> MissingValues | None:
        """Return where values may become missing; not where a constraint on other features needs the value."""
        if not any(feature.nullable for feature in self.schema.features):
            return None
        needed = {j for dependency, _ in self.dependencies for j in dependency.features}
        code = np.array([feature.missing_code if feature.nullable else np.nan for feature in self.schema.features])
        may_appear = [bounds.may_become_missing and j not in needed for j, bounds in enumerate(self.constraints.bounds)]
        return MissingValues(code, np.array(may_appear))

    def _moved(self, domain: Domain, j: int, bounds: FeatureBounds) -> tuple[Floats, Mask, Mask]:
        """Return where each query would be moved, whether it has to be, and whether it can."""
        value, low, high = self.codes[:, j], domain.lower[:, j], domain.upper[:, j]
        if not bounds.feature.numeric:
            open_ = domain.open_to(j)
            gap = np.where(open_, np.abs(np.arange(open_.shape[1]) - value[:, None]), np.inf)
            outside = ~bounds.allowed[value.astype(np.intp)]
            return gap.argmin(axis=1).astype(np.float64), outside, np.asarray(open_.any(axis=1))
        anchor = np.zeros(len(value)) if domain.anchor is None else domain.anchor[:, j]
        possible = bounds.possible(low, high, anchor)
        if bounds.feature.integer and not self.only_active:
            low, high = np.ceil(low), np.floor(high)
        moved = np.clip(value, low, high)
        if bounds.step:
            moved = domain.round_flat(value, j, np.arange(len(value)))
        return moved, (value < low) | (value > high), possible

    def _settled(self, domain: Domain) -> Domain:
        """Complete the base and, where it violates an inequality, move one column to satisfy it if that can be done."""
        rows = np.arange(len(self.codes))
        domain = replace(domain, free=self._without_stuck_leaders(domain))
        base = domain.complete_own(rows, domain.base)
        for dependency, one in self.dependencies:
            if one is not None and isinstance(one.constraint, Require):
                base = self._repaired(domain, dependency, one.constraint, base)
        row_legal = np.ones(base.shape, dtype=bool) if domain.row_legal is None else domain.row_legal
        alone = np.stack([self._legal_alone(domain, base, j) for j in range(base.shape[1])], axis=1)
        return replace(domain, base=base, base_legal=np.where(base == domain.row, row_legal, alone), row_legal=row_legal)

    def _legal_alone(self, domain: Domain, base: Floats, j: int) -> Mask:
        """Return whether the base's value of one feature, if it is not that of the query, is legal by itself."""
        rows = np.arange(len(base))
        legal = (base[:, j] >= domain.lower[:, j]) & (base[:, j] <= domain.upper[:, j])
        if j in domain.allowed:
            legal &= domain.open_to(j)[rows, base[:, j].astype(np.intp)]
        elif domain.step is not None and domain.step[j] > 0:
            legal &= base[:, j] == domain.round_flat(base[:, j], j, rows)
        return np.asarray(legal)

    def _without_stuck_leaders(self, domain: Domain) -> Mask:
        """Freeze leaders whose follower may not move."""
        free = domain.free.copy()
        for dependency, _ in self.dependencies:
            if dependency.follows:
                free[:, dependency.inputs[0]] &= domain.may_move[:, dependency.target]
        return free

    def _repaired(self, domain: Domain, dependency: Dependency, constraint: Require, base: Floats) -> Floats:
        rows, names = np.arange(len(base)), self.schema.names
        positions = {name: self.schema.position(find(name, names)) for name in constraint.columns}
        for name, j in positions.items():
            broken = ~domain.satisfied(dependency, rows, base)
            if not broken.any():
                break
            value = repaired(constraint.comparison, positions, base, str(name), domain.unit(j))
            if value is not None:
                tried = base.copy()
                tried[:, j] = domain.round_flat(value, j, rows)
                tried = domain.complete_own(rows, tried)
                better = broken & domain.free[:, j] & domain.each_legal(rows, tried)
                better &= domain.satisfied(dependency, rows, tried)
                for other, _ in self.dependencies:
                    better &= domain.satisfied(other, rows, tried) | ~domain.satisfied(other, rows, base)
                base = np.where(better[:, None], tried, base)
        return base

    def _block_broken(self, domain: Domain) -> None:
        """Block queries that violate a constraint on features of which none may change."""
        rows = np.arange(len(self.codes))
        for dependency, one in self.dependencies:
            if one is None:
                continue
            positions = [*dependency.inputs, *([] if dependency.out is None else [dependency.out])]
            if isinstance(one.constraint, Require):
                positions = self.schema.positions(one.columns)
            stuck = ~domain.satisfied(dependency, rows, domain.base) & ~domain.may_move[:, positions].any(axis=1)
            names = [self.schema.names[j] for j in positions]
            for row in map(int, np.flatnonzero(stuck)):
                details = {"constraint": one.text, "columns": names}
                self.blocked.setdefault(row, Problem("constraints.violated_by_frozen_columns", details=details))

    def _block_too_many_changes(self, domain: Domain) -> None:
        if domain.row_legal is None or domain.counted is None:
            return
        must_change = ~domain.row_legal & domain.counted
        for row in map(int, np.flatnonzero(must_change.sum(axis=1) > domain.most_changes)):
            names = [name for name, changes in zip(self.schema.names, must_change[row], strict=True) if changes]
            problem = Problem("constraints.too_many_changes", expected=domain.most_changes, details={"columns": names})
            self.blocked.setdefault(row, problem)
