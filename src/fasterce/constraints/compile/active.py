"""Collect the constraints of one call, from the schema, `features_to_vary`, `permitted_range` and `constraints`."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fasterce.constraints import objects
from fasterce.constraints.objects import PER_FEATURE, Constraint, Derived, Order
from fasterce.constraints.validate import as_constraints, check_constraints, find
from fasterce.data.schema import Feature, Schema
from fasterce.errors import InputError

PermittedRange = Mapping[Hashable, Sequence[Any]]
Origin = Literal["schema", "features_to_vary", "permitted_range", "constraints"]


@dataclass(frozen=True)
class DeclaredRange(objects.Range):
    """A range with both ends stated as numbers; an infinite end is open. `shown` are the ends as text if they are dates."""

    low: float = -np.inf
    high: float = np.inf
    shown: tuple[str, str] | None = None

    def __str__(self) -> str:
        if self.shown is None:
            return super().__str__()
        low, high = (None if np.isinf(end) else text for end, text in zip((self.low, self.high), self.shown, strict=True))
        return f"{self.feature} {objects.Between(low, high)}"

    def _check(self) -> None:
        """Take the ends as they are: the schema or `permitted_range` has checked them."""


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
    called, permitted = as_constraints(constraints), permitted or {}
    if not isinstance(permitted, Mapping):
        raise InputError("constraints.permitted_not_a_dictionary", option="permitted_range", received=permitted)

    def kept(constraint: Constraint, columns: Sequence[Hashable]) -> bool:
        return not (override and _is_replaced(constraint, columns, called, permitted))

    own = tuple(constraint for constraint in schema.constraints if not _defines(constraint) or kept(constraint, ()))
    check_constraints(own + called, schema.features)
    definitions = tuple(constraint for constraint in own + called if _defines(constraint))
    active = [one for one in _of_schema(schema) if kept(one.constraint, one.columns)]
    active += _permitted(schema, permitted, override)
    active += [one for constraint in called for one in _of_constraint(constraint, "constraints", schema.names)]
    active += _vary(schema, vary, active, definitions)
    return tuple(dict.fromkeys(active)), definitions


def _defines(constraint: Constraint) -> bool:
    return isinstance(constraint, (Derived, Order))


def _is_replaced(
    constraint: Constraint, columns: Sequence[Hashable], called: Sequence[Constraint], permitted: PermittedRange
) -> bool:
    """Return whether `override` replaces a constraint of the schema.

    Constraints on one feature are replaced by any on that feature; others by one of the same name, definitions also by one of
    the same feature, and the number of changes by another number.
    """
    same_kind = [one for one in called if type(one) is type(constraint)]
    names = {one.name for one in called if one.name is not None and not isinstance(one, PER_FEATURE)}
    match constraint:
        case Order(feature=feature):
            return feature in [one.columns[0] for one in same_kind]
        case Derived(feature=feature):
            return feature in [one.columns[0] for one in same_kind] or constraint.name in names
        case objects.AtMost() if same_kind:
            return True
    if isinstance(constraint, PER_FEATURE):
        replaced = {name for one in called if isinstance(one, PER_FEATURE) for name in one.columns}
        return columns[0] in replaced | set(permitted)
    return constraint.name in names


def _of_schema(schema: Schema) -> list[ActiveConstraint]:
    found = [ActiveConstraint(constraint, "schema", (f.name,)) for f in schema.features for constraint in _of_feature(f)]
    return found + [one for constraint in schema.constraints for one in _of_constraint(constraint, "schema", schema.names)]


def _of_feature(feature: Feature) -> list[Constraint]:
    constraints: list[Constraint] = [] if feature.mutable else [objects.Frozen(feature.name)]
    if feature.direction != "any":
        constraints.append(objects.OnlyUp(feature.name) if feature.direction == "up" else objects.OnlyDown(feature.name))
    if feature.declared and feature.numeric:
        constraints.append(_declared_range(feature, feature.lower, feature.upper))
    return constraints


def _of_constraint(constraint: Constraint, origin: Origin, names: Sequence[Hashable]) -> list[ActiveConstraint]:
    """Return one entry per column for a constraint that applies to several columns separately."""
    if _defines(constraint):
        return []
    if isinstance(constraint, objects.Listing):
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
        frozen = {one.columns[0] for one in active if isinstance(one.constraint, objects.Frozen) and one.origin == origin}
        stuck = [name for name in named if name in frozen]
        if stuck:
            raise InputError(f"constraints.vary_frozen_by_{origin}", option="features_to_vary", frozen=stuck)
    derived = {constraint.feature for constraint in definitions if isinstance(constraint, Derived)}
    others = tuple(name for name in schema.names if name not in named and name not in derived)
    if not others:
        return []
    label = f"only {', '.join(str(name) for name in named)} may change"
    return [ActiveConstraint(objects.Frozen(*others), "features_to_vary", others, label)]


def _permitted(schema: Schema, ranges: PermittedRange, override: bool) -> list[ActiveConstraint]:
    found = []
    for name, given in ranges.items():
        feature = replace(schema[name], declared=False) if override else schema[name]
        constraint = _permitted_numbers(feature, given) if feature.numeric else _permitted_categories(feature, given)
        found.append(ActiveConstraint(constraint, "permitted_range", (feature.name,)))
    return found


def _permitted_numbers(feature: Feature, limits: Sequence[object]) -> DeclaredRange:
    where = {"option": "permitted_range", "column": feature.name, "received": limits}
    try:
        low, high = (feature.number(limit) for limit in limits)
    except (TypeError, ValueError):
        raise InputError("constraints.permitted_not_a_pair", **where) from None
    if any(np.isnan(number) and not isinstance(limit, float) for number, limit in zip((low, high), limits, strict=True)):
        raise InputError("constraints.permitted_not_a_pair", **where)
    if feature.declared:
        low, high = max(low, feature.lower), min(high, feature.upper)
    if not low <= high or (feature.integer and np.ceil(low) > np.floor(high)):
        kind = "whole" if feature.integer else "value"
        if feature.declared:
            raise InputError(f"constraints.permitted_no_{kind}_in_schema", expected=(feature.lower, feature.upper), **where)
        raise InputError(f"constraints.permitted_no_{kind}", **where)
    return _declared_range(feature, low, high)


def _declared_range(feature: Feature, low: float, high: float) -> DeclaredRange:
    """Return a range in numbers whose text shows dates and times as such."""
    return DeclaredRange(feature.name, low, high, shown=(feature.text(low), feature.text(high)) if feature.is_time else None)


def _permitted_categories(feature: Feature, values: Sequence[object]) -> objects.Allowed:
    where = {"option": "permitted_range", "column": feature.name}
    if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
        raise InputError("constraints.permitted_not_categories", received=values, **where)
    positions = pd.Index(feature.categories, dtype=object).get_indexer(pd.Index(list(values), dtype=object))
    unknown = [value for value, position in zip(values, positions, strict=True) if position < 0]
    if unknown:
        raise InputError("constraints.permitted_unknown_category", expected=feature.categories, received=unknown, **where)
    return objects.Allowed(feature.name, tuple(feature.categories[position] for position in dict.fromkeys(positions)))
