"""Everything that limits an answer, from wherever it comes, as one list of limits that could be lifted one by one."""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fasterce.constraints.check import as_rules, check_rules, find
from fasterce.constraints.vocabulary import (
    PER_FEATURE,
    Allowed,
    AtMost,
    Derived,
    Frozen,
    Listing,
    OnlyDown,
    OnlyUp,
    Order,
    Rule,
    shown,
)
from fasterce.errors import InputError, shorten
from fasterce.schema import Feature, Schema

Permitted = Mapping[Hashable, Sequence[Any]]
Facts = tuple[Rule, ...]

SCHEMA, VARY, PERMITTED, CALL = "schema", "features_to_vary", "permitted_range", ""


@dataclass(frozen=True)
class Span(Rule):
    """A range with both ends stated, an infinite one meaning that there is no end at all."""

    kind: ClassVar[str] = "span"
    feature: Hashable
    low: float
    high: float

    @property
    def about(self) -> tuple[Hashable, ...]:
        return (self.feature,)

    @property
    def phrase(self) -> str:
        if math.isinf(self.low) or math.isinf(self.high):
            ends = f"at least {shown(self.low)}" if math.isinf(self.high) else f"at most {shown(self.high)}"
            return f"{self.feature} {ends}"
        return f"{self.feature} within {shown(self.low)} to {shown(self.high)}"


@dataclass(frozen=True)
class Limit:
    """One thing an answer may not do: what it says, what it is about, and where it comes from."""

    rule: Rule
    source: str
    features: tuple[Hashable, ...]
    said: str | None = None

    @property
    def text(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.said or self.rule.text}{where}"


def collect(
    schema: Schema, vary: Sequence[Hashable] | None, permitted: Permitted | None, rules: Any, override: bool
) -> tuple[tuple[Limit, ...], Facts]:
    """The limits of the schema and of one call, and the facts (derived columns, orders) that no one can lift."""
    called = as_rules(rules)
    replaced = _Replaced.by(called, permitted or {}) if override else _Replaced()
    own_rules = tuple(rule for rule in schema.rules if not replaced.fact(rule))
    check_rules(own_rules + called, schema.features)
    facts = tuple(rule for rule in own_rules + called if isinstance(rule, (Derived, Order)))
    of_schema = [limit for limit in _of_schema(schema) if not replaced.limit(limit)]
    limits = of_schema + _permitted(schema, permitted or {}, override)
    limits += [limit for rule in called for limit in _of_rule(rule, CALL, schema.names)]
    limits += _vary(schema, vary, limits, facts)
    return tuple(dict.fromkeys(limits)), facts


@dataclass(frozen=True)
class _Replaced:
    """What a call that overrides takes the place of: all limits of some features, named rules, the number of changes."""

    features: frozenset[Hashable] = frozenset()
    names: frozenset[str] = frozenset()
    ordered: frozenset[Hashable] = frozenset()
    derived: frozenset[Hashable] = frozenset()
    count: bool = False

    @classmethod
    def by(cls, rules: Sequence[Rule], permitted: Permitted) -> "_Replaced":
        features = [name for rule in rules if isinstance(rule, PER_FEATURE) for name in rule.about]
        return cls(
            frozenset(features) | frozenset(permitted if isinstance(permitted, Mapping) else ()),
            frozenset(rule.name for rule in rules if rule.name is not None and not isinstance(rule, PER_FEATURE)),
            frozenset(rule.feature for rule in rules if isinstance(rule, Order)),
            frozenset(rule.feature for rule in rules if isinstance(rule, Derived)),
            any(isinstance(rule, AtMost) for rule in rules),
        )

    def fact(self, rule: Rule) -> bool:
        if isinstance(rule, Order):
            return rule.feature in self.ordered
        return isinstance(rule, Derived) and (rule.feature in self.derived or rule.name in self.names)

    def limit(self, limit: Limit) -> bool:
        if isinstance(limit.rule, (*PER_FEATURE, Span)):
            return limit.features[0] in self.features
        return limit.rule.name in self.names or (self.count and isinstance(limit.rule, AtMost))


def _of_schema(schema: Schema) -> list[Limit]:
    limits = [Limit(rule, SCHEMA, (f.name,)) for f in schema.features for rule in _of_feature(f)]
    return limits + [limit for rule in schema.rules for limit in _of_rule(rule, SCHEMA, schema.names)]


def _of_feature(feature: Feature) -> list[Rule]:
    rules: list[Rule] = [] if feature.mutable else [Frozen(feature.name)]
    if feature.direction != "any":
        rules.append(OnlyUp(feature.name) if feature.direction == "up" else OnlyDown(feature.name))
    if feature.declared and feature.numeric:
        rules.append(Span(feature.name, feature.lower, feature.upper))
    return rules


def _of_rule(rule: Rule, source: str, names: Sequence[Hashable]) -> list[Limit]:
    """A rule about several columns, each by itself, becomes one limit a column."""
    if isinstance(rule, (Derived, Order)):
        return []
    if isinstance(rule, Listing):
        return [Limit(type(rule)(feature, name=rule.name), source, (feature,)) for feature in rule.features]
    return [Limit(rule, source, tuple(find(name, names) for name in rule.about))]


def _vary(schema: Schema, names: Any, limits: Sequence[Limit], facts: Facts) -> list[Limit]:
    if names is None or (isinstance(names, str) and names == "all"):
        return []
    if isinstance(names, str):
        raise InputError(f"features_to_vary must be a list of column names; got the text {names!r}.")
    if not isinstance(names, Iterable):
        raise InputError(f"features_to_vary must be a list of column names; got {names!r}.")
    positions = schema.positions(names)
    if not positions:
        raise InputError("features_to_vary must name at least one column; got an empty list.")
    named = [schema.names[j] for j in positions]
    for source, why in ((SCHEMA, "schema: immutable"), (CALL, "rules: Frozen")):
        frozen = {limit.features[0] for limit in limits if isinstance(limit.rule, Frozen) and limit.source == source}
        stuck = [name for name in named if name in frozen]
        if stuck:
            raise InputError(f"features_to_vary must name columns that may change; {shorten(stuck)} cannot ({why}).")
    derived = {rule.feature for rule in facts if isinstance(rule, Derived)}
    others = tuple(name for name in schema.names if name not in named and name not in derived)
    if not others:
        return []
    return [Limit(Frozen(*others), VARY, others, f"only {', '.join(str(name) for name in named)} may change")]


def _permitted(schema: Schema, ranges: Permitted, override: bool) -> list[Limit]:
    if not isinstance(ranges, Mapping):
        raise InputError(f"permitted_range must be a dictionary of column names; got {ranges!r}.")
    limits = []
    for name, given in ranges.items():
        feature = schema[name]
        if override:
            feature = replace(feature, declared=False)
        rule = _permitted_numbers(feature, given) if feature.numeric else _permitted_categories(feature, given)
        limits.append(Limit(rule, PERMITTED, (feature.name,)))
    return limits


def _permitted_numbers(feature: Feature, limits: Sequence[Any]) -> Span:
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise InputError(f"permitted_range of {feature.name!r} must be (low, high); got {limits!r}.") from None
    if feature.declared:
        low, high = max(low, feature.lower), min(high, feature.upper)
    if not low <= high or (feature.integer and np.ceil(low) > np.floor(high)):
        rule = f" inside the schema's [{feature.lower:.15g}, {feature.upper:.15g}]" if feature.declared else ""
        kind = "a whole number" if feature.integer else "at least one value"
        raise InputError(f"permitted_range of {feature.name!r} must hold {kind}{rule}; got {limits!r}.")
    return Span(feature.name, low, high)


def _permitted_categories(feature: Feature, values: Sequence[Any]) -> Allowed:
    if isinstance(values, str) or not isinstance(values, Collection) or not len(values):
        raise InputError(f"permitted_range of {feature.name!r} must be a list of categories; got {values!r}.")
    positions = pd.Index(feature.categories, dtype=object).get_indexer(pd.Index(list(values), dtype=object))
    strange = [value for value, position in zip(values, positions, strict=True) if position < 0]
    if strange:
        raise InputError(
            f"permitted_range of {feature.name!r} must name known categories, of {shorten(feature.categories)}; "
            f"got {shorten(strange)}."
        )
    return Allowed(feature.name, tuple(feature.categories[position] for position in dict.fromkeys(positions)))
