"""The constraints of one call, compiled for the rows at hand."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fasterce.constraints.compile.active import ActiveConstraint, PermittedRange, collect
from fasterce.constraints.compile.binding import bind
from fasterce.constraints.compile.bounds import FeatureBounds, feature_bounds
from fasterce.constraints.compile.build import DomainBuilder
from fasterce.constraints.compile.dependencies import Dependency
from fasterce.constraints.compile.domain import Domain
from fasterce.constraints.objects import Constraint, Derived
from fasterce.data.codec import Codec
from fasterce.data.table import Table
from fasterce.errors import InputError, Problem
from fasterce.typing import Floats, Mask


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
        found = cls(table, codec, *collect(table.schema, features_to_vary, permitted_range, constraints, override))
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
        """Return what each query may become, and by position why a query cannot satisfy the constraints."""
        return DomainBuilder(self, codes).build()

    @cached_property
    def bounds(self) -> list[FeatureBounds]:
        """The constraints on each feature by itself."""
        return feature_bounds(self.table, self.active, self.definitions)

    @cached_property
    def dependencies(self) -> tuple[tuple[Dependency, ActiveConstraint | None], ...]:
        """The constraints between features; None stands for a derived column."""
        return bind(self.table, self.codec, self.active, self.definitions, self.bounds)

    @cached_property
    def derived(self) -> frozenset[int]:
        """Positions of the derived features."""
        schema = self.table.schema
        return frozenset(schema.position(one.feature) for one in self.definitions if isinstance(one, Derived))
