"""The words a rule is said with: small frozen classes that know their own sense and nothing of any table."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from fasterce.constraints.formula import Comparison, Node, parse_comparison, parse_formula
from fasterce.errors import SchemaError, shorten

Name = Hashable


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """What every rule has: a kind, the columns it is about, an optional name and a phrase for people."""

    kind: ClassVar[str] = ""
    name: str | None = None

    @property
    @abstractmethod
    def about(self) -> tuple[Name, ...]: ...

    @property
    @abstractmethod
    def phrase(self) -> str: ...

    @property
    def text(self) -> str:
        return self.phrase if self.name is None else f"{self.name}: {self.phrase}"

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_name(self) -> None:
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise SchemaError(f"name must be a text that is not empty; got {self.name!r:.100}.")


@dataclass(frozen=True, init=False)
class Listing(Rule):
    features: tuple[Name, ...]

    def __init__(self, *features: Name, name: str | None = None) -> None:
        listed = features[0] if len(features) == 1 and isinstance(features[0], list) else features
        if not listed:
            raise SchemaError("features must name at least one column; got none.")
        self._set(features=tuple(dict.fromkeys(_column(feature) for feature in listed)), name=name)
        self._check_name()

    @property
    def about(self) -> tuple[Name, ...]:
        return self.features


@dataclass(frozen=True, init=False)
class Frozen(Listing):
    """These columns stay as they are."""

    kind: ClassVar[str] = "frozen"

    @property
    def phrase(self) -> str:
        return f"{_listed(self.features)} may not change"


@dataclass(frozen=True, init=False)
class OnlyUp(Listing):
    """These columns may only go up from the row's own value."""

    kind: ClassVar[str] = "only_up"

    @property
    def phrase(self) -> str:
        return f"{_listed(self.features)} may only go up"


@dataclass(frozen=True, init=False)
class OnlyDown(Listing):
    """These columns may only go down from the row's own value."""

    kind: ClassVar[str] = "only_down"

    @property
    def phrase(self) -> str:
        return f"{_listed(self.features)} may only go down"


@dataclass(frozen=True)
class _OnOne(Rule):
    feature: Name

    def __post_init__(self) -> None:
        self._set(feature=_column(self.feature))
        self._check_name()

    @property
    def about(self) -> tuple[Name, ...]:
        return (self.feature,)


@dataclass(frozen=True)
class Range(_OnOne):
    """The answer's value lies within low and high; a row outside is moved in."""

    kind: ClassVar[str] = "range"
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(low=_number(self.low, "low"), high=_number(self.high, "high"))
        if self.low is None and self.high is None:
            raise SchemaError("low or high must be given; got neither.")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise SchemaError(f"low must not be above high; got {shown(self.low)} and {shown(self.high)}.")

    @property
    def phrase(self) -> str:
        return f"{self.feature} {_within(self.low, self.high)}"


@dataclass(frozen=True)
class Near(_OnOne):
    """The answer's value stays near the row's own: by a percentage of it, or by an amount either way, up or down."""

    kind: ClassVar[str] = "near"
    percent: float | None = None
    up: float | None = None
    down: float | None = None
    by: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("percent", "up", "down", "by"):
            value = _number(getattr(self, name), name)
            if value is not None and value < 0:
                raise SchemaError(f"{name} must not be negative; got {shown(value)}.")
            self._set(**{name: value})
        if (self.percent, self.up, self.down, self.by) == (None,) * 4:
            raise SchemaError("percent, by, up or down must be given; got none.")

    @property
    def phrase(self) -> str:
        parts = [] if self.percent is None else [f"within {shown(self.percent)} % of its value"]
        parts += [] if self.by is None else [f"by at most {shown(self.by)} either way"]
        for way, most in (("up", self.up), ("down", self.down)):
            if most is not None:
                parts.append(f"{way} by at most {shown(most)}" if most else f"not {way}")
        return f"{self.feature} may change {' and '.join(parts)}"


@dataclass(frozen=True)
class Step(_OnOne):
    """A changed value is a multiple of `size`, or with start="row" differs from the row's own by a multiple."""

    kind: ClassVar[str] = "step"
    size: float
    start: Literal["zero", "row"] = "zero"

    def __post_init__(self) -> None:
        super().__post_init__()
        size = _number(self.size, "size")
        if size is None or size <= 0:
            raise SchemaError(f"size must be a number above zero; got {self.size!r:.100}.")
        self._set(size=size)
        if self.start not in ("zero", "row"):
            raise SchemaError(f"start must be 'zero' or 'row'; got {self.start!r:.100}.")

    @property
    def phrase(self) -> str:
        return f"{self.feature} {'changes' if self.start == 'row' else 'only'} in steps of {shown(self.size)}"


@dataclass(frozen=True)
class Allowed(_OnOne):
    """The answer's category is one of these; a row with another is moved to one of them."""

    kind: ClassVar[str] = "allowed"
    categories: tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(categories=_categories(self.categories))

    @property
    def phrase(self) -> str:
        return f"{self.feature} must be {_choice(self.categories)}"


@dataclass(frozen=True)
class Forbidden(_OnOne):
    """Changes from one category to another that may not be made."""

    kind: ClassVar[str] = "forbidden"
    transitions: tuple[tuple[Any, Any], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs: Any = self.transitions
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise SchemaError(f"transitions must be a list of (from, to); got {pairs!r:.100}.")
        pairs = list(pairs)
        if not pairs or any(isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 for pair in pairs):
            raise SchemaError(f"transitions must be a list of (from, to); got {pairs!r:.100}.")
        self._set(transitions=tuple((_scalar(a, "transitions"), _scalar(b, "transitions")) for a, b in pairs))

    @property
    def phrase(self) -> str:
        listed = [f"from {a} to {b}" for a, b in self.transitions]
        tail = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        return f"{self.feature} may not go {', '.join(listed[:3])}{tail}"


@dataclass(frozen=True)
class Order(_OnOne):
    """The order of a column's categories, lowest first; a category left out has no place and cannot be reached by order."""

    kind: ClassVar[str] = "order"
    categories: tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(categories=_categories(self.categories))

    @property
    def phrase(self) -> str:
        return f"{self.feature} is ordered: {' < '.join(str(category) for category in self.categories)}"


@dataclass(frozen=True)
class AtMost(Rule):
    """At most so many columns differ from the row; derived ones do not count."""

    kind: ClassVar[str] = "at_most"
    k: int

    def __post_init__(self) -> None:
        self._check_name()
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise SchemaError(f"k must be a whole number of at least 1; got {self.k!r:.100}.")
        self._set(k=int(self.k))

    @property
    def about(self) -> tuple[Name, ...]:
        return ()

    @property
    def phrase(self) -> str:
        return f"at most {self.k} {'features' if self.k > 1 else 'feature'} may change"


@dataclass(frozen=True)
class Require(Rule):
    """A comparison between formulas over numeric columns that every answer fulfils."""

    kind: ClassVar[str] = "require"
    formula: str

    def __post_init__(self) -> None:
        self._check_name()
        parse_comparison(self.formula)

    @property
    def comparison(self) -> Comparison:
        return parse_comparison(self.formula)

    @property
    def about(self) -> tuple[Name, ...]:
        return self.comparison.columns

    @property
    def phrase(self) -> str:
        return " ".join(self.formula.split())


@dataclass(frozen=True)
class Between:
    """A range inside an If; None is an open end."""

    low: float | None
    high: float | None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise SchemaError("a range must have a low or a high end; got neither.")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise SchemaError(f"a range must have low <= high; got ({shown(self.low)}, {shown(self.high)}).")


Wanted = tuple[Any, ...] | Between
Clauses = tuple[tuple[Name, Wanted], ...]


@dataclass(frozen=True, init=False)
class If(Rule):
    """Where all of `when` hold, all of `then` must."""

    kind: ClassVar[str] = "if"
    when: Clauses
    then: Clauses

    def __init__(self, when: Mapping[Name, Any], then: Mapping[Name, Any], *, name: str | None = None) -> None:
        self._set(when=_clauses(when, "when"), then=_clauses(then, "then"), name=name)
        self._check_name()
        both = [column for column, _ in self.when if column in dict(self.then)]
        if both:
            raise SchemaError(f"when and then must be about different columns; got {shorten(both)} in both.")

    @property
    def about(self) -> tuple[Name, ...]:
        return tuple(dict.fromkeys(column for column, _ in self.when + self.then))

    @property
    def phrase(self) -> str:
        return f"if {_clauses_text(self.when, 'is')}, then {_clauses_text(self.then, 'must be')}"


@dataclass(frozen=True)
class Together(Rule):
    """When `leader` changes `follower` changes too: by `slope` times as much, or (None) in the same or opposite direction."""

    kind: ClassVar[str] = "together"
    leader: Name
    follower: Name
    slope: float | None = None
    direction: Literal["same", "opposite"] = "same"

    def __post_init__(self) -> None:
        self._check_name()
        self._set(leader=_column(self.leader), follower=_column(self.follower), slope=_number(self.slope, "slope"))
        if self.leader == self.follower:
            raise SchemaError(f"leader and follower must be two columns; got {self.leader!r} twice.")
        if self.direction not in ("same", "opposite"):
            raise SchemaError(f"direction must be 'same' or 'opposite'; got {self.direction!r:.100}.")
        if self.slope is not None and self.direction != "same":
            raise SchemaError("slope and direction='opposite' must not be given together (a negative slope says it).")

    @property
    def about(self) -> tuple[Name, ...]:
        return self.leader, self.follower

    @property
    def phrase(self) -> str:
        how = f"{shown(self.slope)} times as much" if self.slope is not None else f"in the {self.direction} direction"
        return f"when {self.leader} changes, {self.follower} changes {how}"


@dataclass(frozen=True)
class Derived(Rule):
    """A column computed from others by a formula, or by a function of a DataFrame with the columns `of`."""

    kind: ClassVar[str] = "derived"
    feature: Name
    formula: str | Callable[[Any], Any]
    of: tuple[Name, ...] | None = None

    def __post_init__(self) -> None:
        self._check_name()
        self._set(feature=_column(self.feature))
        if callable(self.formula):
            if isinstance(self.of, str) or not isinstance(self.of, Iterable) or not list(self.of):
                raise SchemaError(f"of must be a list of the columns the function takes; got {self.of!r:.100}.")
            self._set(of=tuple(_column(column) for column in self.of))
        elif self.of is not None:
            raise SchemaError("of must be left out where a formula says its columns itself.")
        elif not self.node.columns:
            raise SchemaError(f"formula must use at least one column; got {self.formula!r:.100}.")
        if self.feature in self.inputs:
            raise SchemaError(f"{self.feature!r} must not be computed from itself.")

    @property
    def node(self) -> Node:
        if not isinstance(self.formula, str):
            raise SchemaError(f"formula must be text or a function; got {self.formula!r:.100}.")
        return parse_formula(self.formula)

    @property
    def inputs(self) -> tuple[Name, ...]:
        return self.of if self.of is not None else self.node.columns

    @property
    def about(self) -> tuple[Name, ...]:
        return self.feature, *self.inputs

    @property
    def phrase(self) -> str:
        how = " ".join(self.formula.split()) if isinstance(self.formula, str) else f"computed from {_listed(self.inputs)}"
        return f"{self.feature} = {how}" if isinstance(self.formula, str) else f"{self.feature} is {how}"


PER_FEATURE = (Frozen, OnlyUp, OnlyDown, Range, Near, Step, Allowed, Forbidden, Order)
KINDS: dict[str, type[Rule]] = {
    rule.kind: rule
    for rule in (
        Frozen, OnlyUp, OnlyDown, Range, Near, Step, Allowed, Forbidden, Order, AtMost, Require, If, Together, Derived,
    )
}  # fmt: skip


def shown(value: float) -> str:
    return f"{value:.15g}"


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _column(value: Any) -> Name:
    value = tuple(value) if isinstance(value, list) else plain(value)
    if not isinstance(value, Hashable) or value is None or (isinstance(value, float) and math.isnan(value)):
        raise SchemaError(f"feature must be a column name; got {value!r:.100}.")
    return value


def _number(value: Any, what: str) -> float | None:
    value = plain(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise SchemaError(f"{what} must be a finite number; got {value!r:.100}.")
    return value if isinstance(value, int) else float(value)


def _scalar(value: Any, what: str) -> Any:
    value = plain(value)
    if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        raise SchemaError(f"{what} must hold text, numbers or booleans; got {value!r:.100}.")
    return value


def _categories(values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise SchemaError(f"categories must be a list of categories; got {values!r:.100}.")
    listed = tuple(_scalar(value, "categories") for value in values)
    if not listed:
        raise SchemaError("categories must hold at least one category; got none.")
    if len(set(listed)) != len(listed):
        raise SchemaError(f"categories must be distinct; got {shorten(listed)}.")
    return listed


def _clauses(given: Any, what: str) -> Clauses:
    if not isinstance(given, Mapping) or not given:
        raise SchemaError(f"{what} must be a dictionary of columns and values; got {given!r:.100}.")
    return tuple((_column(column), _wanted(value, what)) for column, value in given.items())


def _wanted(value: Any, what: str) -> Wanted:
    """A pair of numbers in a tuple is a range; a list, or anything else, is values."""
    if isinstance(value, Between):
        return value
    if isinstance(value, tuple) and len(value) == 2 and not any(isinstance(end, (str, bool)) for end in value):
        return Between(_number(value[0], what), _number(value[1], what))
    if isinstance(value, (list, tuple, set, frozenset)):
        listed = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
        if not listed:
            raise SchemaError(f"{what} must list at least one value; got none.")
        return tuple(_scalar(one, what) for one in listed)
    return (_scalar(value, what),)


def _within(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"at least {shown(low)}" if low is not None else f"at most {shown(high or 0.0)}"
    return f"within {shown(low)} to {shown(high)}"


def _choice(values: Sequence[Any]) -> str:
    listed = [str(value) for value in values]
    tail = f" or {len(listed) - 6} more" if len(listed) > 6 else ""
    return " or ".join(listed[:6]) + tail


def _clauses_text(clauses: Clauses, verb: str) -> str:
    return " and ".join(
        f"{column} {verb} {_within(wanted.low, wanted.high) if isinstance(wanted, Between) else _choice(wanted)}"
        for column, wanted in clauses
    )


def _listed(names: Iterable[Name]) -> str:
    return ", ".join(str(name) for name in names)
