"""Do rules fit the columns they speak of? Every answer no is one sentence that names the rule."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

from fasterce.constraints.vocabulary import (
    Allowed,
    Between,
    Derived,
    Forbidden,
    If,
    Near,
    OnlyDown,
    OnlyUp,
    Order,
    Range,
    Require,
    Rule,
    Step,
    Together,
    shown,
)
from fasterce.errors import SchemaError, shorten, unknown_name


class Column(Protocol):
    """What a rule has to know of a column; `fasterce.schema.Feature` is one."""

    @property
    def name(self) -> Hashable: ...

    @property
    def categories(self) -> tuple[Any, ...]: ...

    @property
    def ordered(self) -> bool: ...

    @property
    def integer(self) -> bool: ...

    @property
    def numeric(self) -> bool: ...


def as_rules(given: Any) -> tuple[Rule, ...]:
    """A list of rules as a tuple, or one clear sentence."""
    if given is None:
        return ()
    if isinstance(given, (Rule, str)) or not isinstance(given, Iterable):
        raise SchemaError(f"rules must be a list of rules from fasterce.constraints; got {given!r:.100}.")
    listed = tuple(given)
    for rule in listed:
        if not isinstance(rule, Rule):
            raise SchemaError(f"rules must be made of rules from fasterce.constraints; got {rule!r:.100}.")
    return listed


def find(name: Hashable, names: Sequence[Hashable]) -> Hashable | None:
    """The column meant; a formula names columns by their text."""
    if name in names:
        return name
    return next((known for known in names if isinstance(name, str) and str(known) == name), None)


def check_rules(rules: Sequence[Rule], columns: Sequence[Column]) -> None:
    """Every rule about known columns of the right kind and known categories; derived columns computed once, in no circle."""
    known = {column.name: column for column in columns}
    ordered = {column.name for column in columns if column.ordered} | {r.feature for r in rules if isinstance(r, Order)}
    for rule in rules:
        for name in rule.about:
            if find(name, list(known)) is None:
                raise _wrong(rule, f"names no column of the table: {unknown_name('column', name, known)}")
        problem = _problem(rule, {name: known[find(name, list(known))] for name in rule.about}, ordered)
        if problem:
            raise _wrong(rule, problem)
    _check_derived([rule for rule in rules if isinstance(rule, Derived)])
    _check_orders([rule for rule in rules if isinstance(rule, Order)])


def _wrong(rule: Rule, problem: str) -> SchemaError:
    return SchemaError(f"The rule {rule.text!r:.120} {problem}{'' if problem.endswith(('.', '?')) else '.'}")


def _problem(rule: Rule, columns: dict[Hashable, Column], ordered: set[Hashable]) -> str | None:  # noqa: PLR0911 - one line a kind
    match rule:
        case OnlyUp() | OnlyDown():
            loose = [name for name, column in columns.items() if not column.numeric and name not in ordered]
            return f"needs an order, and {loose[0]!r} has none (give an Order rule)" if loose else None
        case Range() | Near() | Step():
            return _number_problem(rule, columns[rule.feature])
        case Allowed(categories=named) | Order(categories=named):
            return _category_problem(columns[rule.feature], named)
        case Forbidden(transitions=pairs):
            return _category_problem(columns[rule.feature], [category for pair in pairs for category in pair])
        case If(when=when, then=then):
            return next(filter(None, (_clause_problem(columns[name], wanted) for name, wanted in when + then)), None)
        case Together():
            return _together_problem(rule, columns, ordered)
        case Require():
            return _not_numbers(columns.values())
        case Derived(formula=str()):
            return _not_numbers(columns.values())
    return None


def _number_problem(rule: Range | Near | Step, column: Column) -> str | None:
    if not column.numeric:
        return f"must be about a numeric column; {column.name!r} is categorical"
    if isinstance(rule, Step) and column.integer and rule.size != round(rule.size):
        return f"must have a whole step because {column.name!r} holds whole numbers; got {shown(rule.size)}"
    return None


def _category_problem(column: Column, named: Sequence[Any]) -> str | None:
    if column.numeric:
        return f"must be about a categorical column; {column.name!r} is numeric"
    strange = [category for category in named if category not in column.categories]
    if strange:
        return f"must name known categories: {unknown_name('category', strange[0], column.categories)}"
    return None


def _clause_problem(column: Column, wanted: Any) -> str | None:
    if not column.numeric:
        if isinstance(wanted, Between):
            return f"must list categories for {column.name!r}, which is categorical; got a range"
        return _category_problem(column, wanted)
    if not isinstance(wanted, Between) and any(isinstance(value, (str, bool)) for value in wanted):
        return f"must give numbers for {column.name!r}, which is numeric; got {shorten(wanted)}"
    return None


def _together_problem(rule: Together, columns: dict[Hashable, Column], ordered: set[Hashable]) -> str | None:
    for name in rule.about:
        if not columns[name].numeric and name not in ordered:
            return f"needs an order, and {name!r} has none (give an Order rule)"
    if rule.slope is not None and not columns[rule.follower].numeric:
        return f"must have a numeric follower to have a slope; {rule.follower!r} is categorical"
    return None


def _not_numbers(columns: Iterable[Column]) -> str | None:
    text = [column.name for column in columns if not column.numeric]
    return f"must be about numeric columns only; {shorten(text)} is categorical" if text else None


def _check_derived(derived: Sequence[Derived]) -> None:
    inputs: dict[Hashable, tuple[Hashable, ...]] = {}
    for rule in derived:
        if rule.feature in inputs:
            raise _wrong(rule, f"computes {rule.feature!r} a second time; expected one Derived for a column")
        inputs[rule.feature] = rule.inputs
    for rule in derived:
        seen, waiting = set[Hashable](), list(rule.inputs)
        while waiting:
            name = waiting.pop()
            if name == rule.feature:
                raise _wrong(rule, f"must not lead back to {rule.feature!r} itself through other derived columns")
            if name not in seen:
                seen.add(name)
                waiting += inputs.get(name, ())


def _check_orders(orders: Sequence[Order]) -> None:
    seen: dict[Hashable, Order] = {}
    for rule in orders:
        if rule.feature in seen and seen[rule.feature].categories != rule.categories:
            raise _wrong(rule, f"orders {rule.feature!r} in a second way; expected one Order for a column")
        seen[rule.feature] = rule
