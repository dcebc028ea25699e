"""Constraints as the user states them: small frozen classes, independent of any table."""

import datetime
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Literal

import numpy as np
import pandas as pd

from fasterce.constraints.formula import Comparison, Node, parse_comparison, parse_formula
from fasterce.data.dtypes import plain
from fasterce.errors import SchemaError
from fasterce.typing import Category

Name = Hashable
# An end of a range: a number, or a date, time or duration, which is kept as its text.
End = float | str | datetime.date | datetime.timedelta
_NUMBER = re.compile(r"\s*[-+]?[\d.]*\s*")


@dataclass(frozen=True, kw_only=True)
class Constraint(ABC):
    """Base class of constraints: a condition that every counterfactual satisfies.

    `kind`, its name in JSON, is the name of the class in snake case. `column_fields` are the fields that hold a column.
    `str` returns a readable phrase.

    Parameters
    ----------
    name : str, optional
        Shown in messages; with `override`, a constraint of a call replaces that of the same name in the schema.
    """

    kind: ClassVar[str]
    column_fields: ClassVar[tuple[str, ...]] = ()
    name: str | None = None

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __post_init__(self) -> None:
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise SchemaError("constraints.bad_name", option="name", received=self.name)
        self._set(**{field: _column(getattr(self, field)) for field in self.column_fields})
        self._check()

    def _check(self) -> None:  # noqa: B027 - a constraint may have nothing to check
        """Check the fields, and store them as plain values."""

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns the constraint is about."""
        return tuple(getattr(self, field) for field in self.column_fields)

    @abstractmethod
    def __str__(self) -> str:
        """Return the constraint as a readable phrase."""

    @property
    def text(self) -> str:
        """The phrase, after the name if there is one."""
        return str(self) if self.name is None else f"{self.name}: {self}"


@dataclass(frozen=True, init=False)
class Listing(Constraint):
    """A constraint that applies to several columns separately."""

    wording: ClassVar[str] = ""
    features: tuple[Name, ...]

    def __init__(self, *features: Name, name: str | None = None) -> None:
        listed = features[0] if len(features) == 1 and isinstance(features[0], list) else features
        if not listed:
            raise SchemaError("constraints.no_features", option="features")
        self._set(features=tuple(dict.fromkeys(_column(feature) for feature in listed)), name=name)
        self.__post_init__()

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns the constraint is about."""
        return self.features

    def __str__(self) -> str:
        return f"{_listed(self.features)} {self.wording}"


class Frozen(Listing):
    """These columns may not change.

    Parameters
    ----------
    *features : str
        The columns, or one list of them.
    name : str, optional
        Shown in messages; `override` replaces by name.

    Examples
    --------
    >>> Frozen("sex", "native_country").text
    'sex, native_country may not change'
    """

    wording = "may not change"


class OnlyUp(Listing):
    """These columns may only go up from the value of the query.

    Parameters
    ----------
    *features : str
        Numeric columns, or categories with an `Order`; or one list of them.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    wording = "may only go up"


class OnlyDown(Listing):
    """These columns may only go down from the value of the query.

    Parameters
    ----------
    *features : str
        Numeric columns, or categories with an `Order`; or one list of them.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    wording = "may only go down"


@dataclass(frozen=True)
class _OnOneColumn(Constraint):
    column_fields = ("feature",)
    feature: Name


@dataclass(frozen=True)
class Between:
    """A range; None or an infinite number is an open end."""

    low: End | None
    high: End | None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise SchemaError("constraints.no_end")
        numbers = [end for end in (self.low, self.high) if isinstance(end, (int, float))]
        if len(numbers) == 2 and numbers[0] > numbers[1]:
            raise SchemaError("constraints.ends_reversed", received=(self.low, self.high))

    def __str__(self) -> str:
        if self.high is None or self.high == math.inf:
            return f"at least {_number_text(-math.inf if self.low is None else self.low)}"
        if self.low is None or self.low == -math.inf:
            return f"at most {_number_text(self.high)}"
        return f"within {_number_text(self.low)} to {_number_text(self.high)}"


@dataclass(frozen=True)
class Range(_OnOneColumn):
    """The value of the counterfactual lies within low and high; a query outside is moved in.

    The ends are numbers, or for a column of dates, times or durations such values or their text: "2024-01-31", "3 days".

    Parameters
    ----------
    feature : str
        The column.
    low, high : number or text, optional
        The ends, which are included; None for that of the column's range. At least one is needed.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    low: End | None = None
    high: End | None = None

    def _check(self) -> None:
        self._set(low=_end(self.low, "low"), high=_end(self.high, "high"))
        Between(self.low, self.high)  # raises if there is no end, or they are reversed

    def __str__(self) -> str:
        return f"{self.feature} {Between(self.low, self.high)}"


@dataclass(frozen=True)
class Near(_OnOneColumn):
    """The value stays near the one of the query: within a percentage of it, or by an amount either way, up or down.

    Parameters
    ----------
    feature : str
        The column.
    percent : float, optional
        Largest change in percent of the value of the query.
    up, down : float, optional
        Largest increase and decrease; 0 for none.
    by : float, optional
        Largest change either way.
    name : str, optional
        Shown in messages; `override` replaces by name.

    Examples
    --------
    >>> Near("duration", down=12).text
    'duration may change down by at most 12'
    """

    percent: float | None = None
    up: float | None = None
    down: float | None = None
    by: float | None = None

    def _check(self) -> None:
        for name in ("percent", "up", "down", "by"):
            value = _number(getattr(self, name), name)
            if value is not None and value < 0:
                raise SchemaError("constraints.negative", option=name, received=value)
            self._set(**{name: value})
        if (self.percent, self.up, self.down, self.by) == (None,) * 4:
            raise SchemaError("constraints.no_distance")

    def __str__(self) -> str:
        parts = [] if self.percent is None else [f"within {_number_text(self.percent)} % of its value"]
        parts += [] if self.by is None else [f"by at most {_number_text(self.by)} either way"]
        for way, most in (("up", self.up), ("down", self.down)):
            if most is not None:
                parts.append(f"{way} by at most {_number_text(most)}" if most else f"not {way}")
        return f"{self.feature} may change {' and '.join(parts)}"


@dataclass(frozen=True)
class Step(_OnOneColumn):
    """A changed value is a multiple of `size`, or with start="row" differs from the one of the query by a multiple.

    Parameters
    ----------
    feature : str
        The column.
    size : float
        The step, above 0.
    start : {"zero", "row"}, default "zero"
        Where steps are counted from.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    size: float
    start: Literal["zero", "row"] = "zero"

    def _check(self) -> None:
        size = _number(self.size, "size")
        if size is None or size <= 0:
            raise SchemaError("constraints.not_positive", option="size", received=self.size)
        self._set(size=size)
        _check_choice("start", self.start, ("zero", "row"))

    def __str__(self) -> str:
        return f"{self.feature} {'changes' if self.start == 'row' else 'only'} in steps of {_number_text(self.size)}"


@dataclass(frozen=True)
class _OfCategories(_OnOneColumn):
    categories: tuple[Category, ...]

    def _check(self) -> None:
        values: object = self.categories
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise SchemaError("constraints.not_categories", option="categories", received=values)
        listed = tuple(_scalar(value, "categories") for value in values)
        if not listed:
            raise SchemaError("constraints.no_categories", option="categories")
        if len(set(listed)) != len(listed):
            raise SchemaError("constraints.repeated_categories", option="categories", received=listed)
        self._set(categories=listed)


class Allowed(_OfCategories):
    """The category of the counterfactual is one of these; a query with another is moved to one of them.

    Parameters
    ----------
    feature : str
        The column.
    categories : sequence
        The permitted categories.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    def __str__(self) -> str:
        return f"{self.feature} must be {_choice(self.categories)}"


class Order(_OfCategories):
    """The order of a column's categories, lowest first; a category left out has no rank.

    Parameters
    ----------
    feature : str
        The column.
    categories : sequence
        The categories in order.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    def __str__(self) -> str:
        return f"{self.feature} is ordered: {' < '.join(str(category) for category in self.categories)}"


@dataclass(frozen=True)
class Forbidden(_OnOneColumn):
    """Changes from one category to another that are not allowed.

    Parameters
    ----------
    feature : str
        The column.
    transitions : sequence of (from, to)
        Pairs of categories.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    transitions: tuple[tuple[Category, Category], ...]

    def _check(self) -> None:
        given: object = self.transitions
        pairs = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
        if not pairs or any(isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 for pair in pairs):
            raise SchemaError("constraints.not_transitions", option="transitions", received=given)
        self._set(transitions=tuple((_scalar(a, "transitions"), _scalar(b, "transitions")) for a, b in pairs))

    def __str__(self) -> str:
        listed = [f"from {a} to {b}" for a, b in self.transitions]
        tail = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
        return f"{self.feature} may not go {', '.join(listed[:3])}{tail}"


@dataclass(frozen=True)
class AtMost(Constraint):
    """At most k columns differ from the query; derived ones do not count.

    Parameters
    ----------
    k : int
        Largest number of changed columns, at least 1.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    k: int

    def _check(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise SchemaError("options.not_a_count", option="k", expected=1, received=self.k)
        self._set(k=int(self.k))

    def __str__(self) -> str:
        return f"at most {self.k} {'features' if self.k > 1 else 'feature'} may change"


@dataclass(frozen=True)
class Require(Constraint):
    """A comparison between formulas over numeric columns that every counterfactual satisfies.

    Parameters
    ----------
    formula : str
        Two formulas with `<=`, `>=`, `<`, `>` or `==` between them. It is parsed, never executed.
    name : str, optional
        Shown in messages; `override` replaces by name.

    Examples
    --------
    >>> Require("payment <= 0.4 * income / 12").columns
    ('payment', 'income')
    """

    formula: str

    def _check(self) -> None:
        parse_comparison(self.formula)

    @property
    def comparison(self) -> Comparison:
        """The parsed formula."""
        return parse_comparison(self.formula)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns the constraint is about."""
        return self.comparison.columns

    def __str__(self) -> str:
        return " ".join(self.formula.split())


Condition = tuple[Category, ...] | Between
Clauses = tuple[tuple[Name, Condition], ...]


@dataclass(frozen=True, init=False)
class If(Constraint):
    """Where all of `when` hold, all of `then` must.

    Parameters
    ----------
    when, then : dict
        Conditions by column: a category, a list of categories, or a pair (low, high) for a number.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    when: Clauses
    then: Clauses

    def __init__(self, when: Mapping[Name, object], then: Mapping[Name, object], *, name: str | None = None) -> None:
        self._set(when=_clauses(when, "when"), then=_clauses(then, "then"), name=name)
        self.__post_init__()

    def _check(self) -> None:
        both = [column for column, _ in self.when if column in dict(self.then)]
        if both:
            raise SchemaError("constraints.column_in_both", received=both)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns the constraint is about."""
        return tuple(dict.fromkeys(column for column, _ in self.when + self.then))

    def __str__(self) -> str:
        return f"if {_clauses_text(self.when, 'is')}, then {_clauses_text(self.then, 'must be')}"


@dataclass(frozen=True)
class Together(Constraint):
    """When `leader` changes, `follower` changes too: `slope` times as much, or (None) in the same or opposite direction.

    Parameters
    ----------
    leader, follower : str
        The columns.
    slope : float, optional
        Change of the follower per unit of the leader.
    direction : {"same", "opposite"}, default "same"
        Without `slope`: the direction of the follower.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    column_fields = ("leader", "follower")
    leader: Name
    follower: Name
    slope: float | None = None
    direction: Literal["same", "opposite"] = "same"

    def _check(self) -> None:
        self._set(slope=_number(self.slope, "slope"))
        if self.leader == self.follower:
            raise SchemaError("constraints.follows_itself", received=self.leader)
        _check_choice("direction", self.direction, ("same", "opposite"))
        if self.slope is not None and self.direction != "same":
            raise SchemaError("constraints.slope_and_direction")

    def __str__(self) -> str:
        how = f"in the {self.direction} direction" if self.slope is None else f"{_number_text(self.slope)} times as much"
        return f"when {self.leader} changes, {self.follower} changes {how}"


@dataclass(frozen=True)
class Derived(Constraint):
    """A column computed from others by a formula, or by a function of a DataFrame with the columns `of`.

    Parameters
    ----------
    feature : str
        The column.
    formula : str or callable
        A formula over numeric columns, or a function of a DataFrame that returns one value per row. A function is called
        outside the compiled search and cannot be written to a file.
    of : sequence of str, optional
        The columns a function reads.
    name : str, optional
        Shown in messages; `override` replaces by name.
    """

    column_fields = ("feature",)
    feature: Name
    formula: str | Callable[[pd.DataFrame], Sequence[object]]
    of: tuple[Name, ...] | None = None

    def _check(self) -> None:
        if callable(self.formula):
            if isinstance(self.of, str) or not isinstance(self.of, Iterable) or not list(self.of):
                raise SchemaError("constraints.of_missing", option="of", received=self.of)
            self._set(of=tuple(_column(column) for column in self.of))
        elif self.of is not None:
            raise SchemaError("constraints.of_with_formula", option="of")
        elif not self.node.columns:
            raise SchemaError("constraints.formula_without_column", option="formula", received=self.formula)
        if self.feature in self.inputs:
            raise SchemaError("constraints.derived_from_itself", column=self.feature)

    @property
    def node(self) -> Node:
        """The parsed formula; SchemaError for a function."""
        if not isinstance(self.formula, str):
            raise SchemaError("constraints.not_a_formula", option="formula", received=self.formula)
        return parse_formula(self.formula)

    @property
    def inputs(self) -> tuple[Name, ...]:
        """The columns it is computed from."""
        return self.of if self.of is not None else self.node.columns

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns the constraint is about."""
        return self.feature, *self.inputs

    def __str__(self) -> str:
        if isinstance(self.formula, str):
            return f"{self.feature} = {' '.join(self.formula.split())}"
        return f"{self.feature} is computed from {_listed(self.inputs)}"


PER_FEATURE = (Frozen, OnlyUp, OnlyDown, Range, Near, Step, Allowed, Forbidden, Order)
KINDS: dict[str, type[Constraint]] = {
    constraint.kind: constraint for constraint in (*PER_FEATURE, AtMost, Require, If, Together, Derived)
}


def _number_text(value: End) -> str:
    return f"{value:.15g}" if isinstance(value, (int, float)) else str(value)


def _end(value: object, option: str) -> End | None:
    """Return the end of a range: a number, or the text of a date, time or duration."""
    if isinstance(value, (datetime.date, np.datetime64)):
        moment = pd.Timestamp(value)
        return str(moment.date()) if moment.tz is None and moment == moment.normalize() else str(moment)
    if isinstance(value, (datetime.timedelta, np.timedelta64, pd.Period)):
        return str(value if isinstance(value, pd.Period) else pd.Timedelta(value))
    return value if isinstance(value, str) and not _NUMBER.fullmatch(value) else _number(value, option)


def _check_choice(option: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise SchemaError("constraints.unknown_choice", option=option, expected=list(choices), received=value)


def _column(value: object) -> Name:
    value = tuple(value) if isinstance(value, list) else plain(value)
    if not isinstance(value, Hashable) or value is None or (isinstance(value, float) and math.isnan(value)):
        raise SchemaError("constraints.not_a_column_name", option="feature", received=value)
    return value


def _number(value: object, option: str) -> float | None:
    value = plain(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise SchemaError("constraints.not_finite", option=option, received=value)
    return value if isinstance(value, int) else float(value)


def _scalar(value: object, option: str) -> Category:
    value = plain(value)
    if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        raise SchemaError("constraints.not_a_value", option=option, received=value)
    return value


def _clauses(given: object, option: str) -> Clauses:
    if not isinstance(given, Mapping) or not given:
        raise SchemaError("constraints.not_clauses", option=option, received=given)
    return tuple((_column(column), _condition(value, option)) for column, value in given.items())


def _condition(value: object, option: str) -> Condition:
    """A pair of numbers in a tuple is a range; a list, or anything else, is values."""
    if isinstance(value, Between):
        return value
    if isinstance(value, tuple) and len(value) == 2 and not any(isinstance(end, (str, bool)) for end in value):
        return Between(_end(value[0], option), _end(value[1], option))
    if isinstance(value, (list, tuple, set, frozenset)):
        listed = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
        if not listed:
            raise SchemaError("constraints.no_values", option=option)
        return tuple(_scalar(one, option) for one in listed)
    return (_scalar(value, option),)


def _choice(values: Sequence[Category]) -> str:
    listed = [str(value) for value in values]
    tail = f" or {len(listed) - 6} more" if len(listed) > 6 else ""
    return " or ".join(listed[:6]) + tail


def _clauses_text(clauses: Clauses, verb: str) -> str:
    shown = [(column, one if isinstance(one, Between) else _choice(one)) for column, one in clauses]
    return " and ".join(f"{column} {verb} {condition}" for column, condition in shown)


def _listed(names: Iterable[Name]) -> str:
    return ", ".join(str(name) for name in names)
