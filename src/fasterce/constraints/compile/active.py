"""Collect the constraints of one call, from the schema, `features_to_vary`, `permitted_range` and `constraints`."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from fasterce.constraints.objects import (
    PER_FEATURE,
    Allowed,
    AtMost,
    Constraint,
    Derived,
    Frozen,
    Listing,
    OnlyDown,
    OnlyUp,
    Order,
    shown,
)
from fasterce.constraints.validate import as_constraints, check_constraints, find
from fasterce.data.schema import Feature, Schema
from fasterce.errors import InputError

PermittedRange = Mapping[Hashable, Sequence[Any]]
Origin = Literal["schema", "features_to_vary", "permitted_range", "constraints"]


@dataclass(frozen=True)
class DeclaredRange(Constraint):
    """A range with both ends stated; an infinite end is open."""

    kind: ClassVar[str] = "span"
    feature: Hashable
    low: float
    high: float

    @property
    def columns(self) -> tuple[Hashable, ...]:
        return (self.feature,)

    @property
    def phrase(self) -> str:
        if math.isinf(self.high):
            return f"{self.feature} at least {shown(self.low)}"
        if math.isinf(self.low):
            return f"{self.feature} at most {shown(self.high)}"
        return f"{self.feature} within {shown(self.low)} to {shown(self.high)}"


@dataclass(frozen=True)
class ActiveConstraint:
    """A constraint of one call that could be lifted.

    Parameters
    ----------
    constraint : Constraint
    origin : {"schema", "features_to_vary", "permitted_range", "constraints"}
        Where the constraint was stated.
    columns : tuple
        The columns it is about.
    label : str, optional
        A text in place of the constraint's own.
    """

    constraint: Constraint
    origin: Origin
    columns: tuple[Hashable, ...]
    label: str | None = None

    @property
    def text(self) -> str:
        """The constraint as a readable phrase, with its origin unless that is `constraints`."""
        text = self.label or self.constraint.text
        return text if self.origin == "constraints" else f"{text} ({self.origin})"


def collect(
    schema: Schema,
    vary: Sequence[Hashable] | None,
    permitted: PermittedRange | None,
    constraints: object,
    override: bool,
) -> tuple[tuple[ActiveConstraint, ...], tuple[Constraint, ...]]:
    """Return the constraints of the schema and of one call, and the derived columns and orders, which cannot be lifted."""
    called = as_constraints(constraints)
    replaced = _Replaced.by(called, permitted or {}) if override else _Replaced()
    own = tuple(constraint for constraint in schema.constraints if not replaced.definition(constraint))
    check_constraints(own + called, schema.features)
    definitions = tuple(constraint for constraint in own + called if isinstance(constraint, (Derived, Order)))
    active = [one for one in _of_schema(schema) if not replaced.active(one)] + _permitted(schema, permitted or {}, override)
    active += [one for constraint in called for one in _of_constraint(constraint, "constraints", schema.names)]
    active += _vary(schema, vary, active, definitions)
    return tuple(dict.fromkeys(active)), definitions


@dataclass(frozen=True)
class _Replaced:
    """What `override` replaces: all constraints of some features, named constraints, the number of changes."""

    features: frozenset[Hashable] = frozenset()
    names: frozenset[str] = frozenset()
    ordered: frozenset[Hashable] = frozenset()
    derived: frozenset[Hashable] = frozenset()
    count: bool = False

    @classmethod
    def by(cls, constraints: Sequence[Constraint], permitted: PermittedRange) -> "_Replaced":
        features = [name for constraint in constraints if isinstance(constraint, PER_FEATURE) for name in constraint.columns]
        return cls(
            frozenset(features) | frozenset(permitted if isinstance(permitted, Mapping) else ()),
            frozenset(
                constraint.name
                for constraint in constraints
                if constraint.name is not None and not isinstance(constraint, PER_FEATURE)
            ),
            frozenset(constraint.feature for constraint in constraints if isinstance(constraint, Order)),
            frozenset(constraint.feature for constraint in constraints if isinstance(constraint, Derived)),
            any(isinstance(constraint, AtMost) for constraint in constraints),
        )

    def definition(self, constraint: Constraint) -> bool:
        if isinstance(constraint, Order):
            return constraint.feature in self.ordered
        return isinstance(constraint, Derived) and (constraint.feature in self.derived or constraint.name in self.names)

    def active(self, one: ActiveConstraint) -> bool:
        if isinstance(one.constraint, (*PER_FEATURE, DeclaredRange)):
            return one.columns[0] in self.features
        return one.constraint.name in self.names or (self.count and isinstance(one.constraint, AtMost))


def _of_schema(schema: Schema) -> list[ActiveConstraint]:
    found = [ActiveConstraint(constraint, "schema", (f.name,)) for f in schema.features for constraint in _of_feature(f)]
    return found + [one for constraint in schema.constraints for one in _of_constraint(constraint, "schema", schema.names)]


def _of_feature(feature: Feature) -> list[Constraint]:
    constraints: list[Constraint] = [] if feature.mutable else [Frozen(feature.name)]
    if feature.direction != "any":
        constraints.append(OnlyUp(feature.name) if feature.direction == "up" else OnlyDown(feature.name))
    if feature.declared and feature.numeric:
        constraints.append(DeclaredRange(feature.name, feature.lower, feature.upper))
    return constraints


def _of_constraint(constraint: Constraint, origin: Origin, names: Sequence[Hashable]) -> list[ActiveConstraint]:
    """Return one entry per column for a constraint about each of several columns by itself."""
    if isinstance(constraint, (Derived, Order)):
        return []
    if isinstance(constraint, Listing):
        return [
            ActiveConstraint(type(constraint)(feature, name=constraint.name), origin, (feature,))
            for feature in constraint.features
        ]
    return [ActiveConstraint(constraint, origin, tuple(find(name, names) for name in constraint.columns))]


def _vary(
    schema: Schema, names: object, active: Sequence[ActiveConstraint], definitions: Sequence[Constraint]
) -> list[ActiveConstraint]:
    if names is None or (isinstance(names, str) and names == "all"):
        return []
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError("constraints.vary_not_a_list", option="features_to_vary", received=names)
    named = [schema.names[j] for j in schema.positions(names)]
    if not named:
        raise InputError("constraints.vary_empty", option="features_to_vary")
    for origin in ("schema", "constraints"):
        frozen = {one.columns[0] for one in active if isinstance(one.constraint, Frozen) and one.origin == origin}
        stuck = [name for name in named if name in frozen]
        if stuck:
            raise InputError(f"constraints.vary_frozen_by_{origin}", option="features_to_vary", frozen=stuck)
    derived = {constraint.feature for constraint in definitions if isinstance(constraint, Derived)}
    others = tuple(name for name in schema.names if name not in named and name not in derived)
    if not others:
        return []
    label = f"only {', '.join(str(name) for name in named)} may change"
    return [ActiveConstraint(Frozen(*others), "features_to_vary", others, label)]


def _permitted(schema: Schema, ranges: PermittedRange, override: bool) -> list[ActiveConstraint]:
    if not isinstance(ranges, Mapping):
        raise InputError("constraints.permitted_not_a_dictionary", option="permitted_range", received=ranges)
    found = []
    for name, given in ranges.items():
        feature = replace(schema[name], declared=False) if override else schema[name]
        constraint = _permitted_numbers(feature, given) if feature.numeric else _permitted_categories(feature, given)
        found.append(ActiveConstraint(constraint, "permitted_range", (feature.name,)))
    return found


def _permitted_numbers(feature: Feature, limits: Sequence[Any]) -> DeclaredRange:
    where = {"option": "permitted_range", "column": feature.name, "received": limits}
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise InputError("constraints.permitted_not_a_pair", **where) from None
    if feature.declared:
        low, high = max(low, feature.lower), min(high, feature.upper)
    if not low <= high or (feature.integer and np.ceil(low) > np.floor(high)):
        kind = "whole" if feature.integer else "value"
        if feature.declared:
            raise InputError(f"constraints.permitted_no_{kind}_in_schema", expected=(feature.lower, feature.upper), **where)
        raise InputError(f"constraints.permitted_no_{kind}", **where)
    return DeclaredRange(feature.name, low, high)


def _permitted_categories(feature: Feature, values: Sequence[Any]) -> Allowed:
    where = {"option": "permitted_range", "column": feature.name}
    if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
        raise InputError("constraints.permitted_not_categories", received=values, **where)
    positions = pd.Index(feature.categories, dtype=object).get_indexer(pd.Index(list(values), dtype=object))
    unknown = [value for value, position in zip(values, positions, strict=True) if position < 0]
    if unknown:
        raise InputError("constraints.permitted_unknown_category", expected=feature.categories, received=unknown, **where)
    return Allowed(feature.name, tuple(feature.categories[position] for position in dict.fromkeys(positions)))
