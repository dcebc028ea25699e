"""Check that constraints fit the columns they are about."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from fasterce.constraints import objects
from fasterce.constraints.objects import Constraint
from fasterce.errors import SchemaError, unknown
from fasterce.typing import Category

if TYPE_CHECKING:
    from fasterce.data.schema import Feature


def as_constraints(given: object) -> tuple[Constraint, ...]:
    """Return a list of constraints as a tuple, an empty one for None."""
    if given is None:
        return ()
    listed = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (Constraint, str)) else (None,)
    for constraint in listed:
        if not isinstance(constraint, Constraint):
            received = given if constraint is None else constraint
            raise SchemaError("constraints.not_constraints", option="constraints", received=received)
    return listed


def find(name: Hashable, names: Iterable[Hashable]) -> Hashable | None:
    """Return the column with this name; a formula names columns by their text."""
    listed = list(names)
    if name in listed:
        return name
    return next((known for known in listed if isinstance(name, str) and str(known) == name), None)


def check_constraints(constraints: Sequence[Constraint], columns: "Sequence[Feature]") -> None:
    """Check that constraints are about known columns of the right kind and known categories.

    Raises
    ------
    SchemaError
        Also if a derived column is computed twice or from itself, or a column ordered in two ways.
    """
    known = {column.name: column for column in columns}
    ordered = {column.name for column in columns if column.ordered}
    ordered |= {constraint.feature for constraint in constraints if isinstance(constraint, objects.Order)}
    for constraint in constraints:
        for name in constraint.columns:
            if find(name, known) is None:
                raise SchemaError(unknown("constraints.unknown_column", name, known, constraint=constraint.text))
        _check_kinds(constraint, {name: known[find(name, known)] for name in constraint.columns}, ordered)
    _check_derived([constraint for constraint in constraints if isinstance(constraint, objects.Derived)])
    _check_orders([constraint for constraint in constraints if isinstance(constraint, objects.Order)])


def wrong(constraint: Constraint, code: str, **fields: object) -> SchemaError:
    """Return the error of a constraint that does not fit its columns."""
    return SchemaError(f"constraints.{code}", constraint=constraint.text, **fields)


def _check_kinds(constraint: Constraint, columns: "Mapping[Hashable, Feature]", ordered: set[Hashable]) -> None:
    match constraint:
        case objects.OnlyUp() | objects.OnlyDown():
            _check_ordered(constraint, columns, ordered)
        case objects.Range() | objects.Near() | objects.Step():
            column = columns[constraint.feature]
            if not column.numeric:
                raise wrong(constraint, "needs_number", column=column.name)
            _check_ends(
                constraint, column, (constraint.low, constraint.high) if isinstance(constraint, objects.Range) else ()
            )
            if isinstance(constraint, objects.Step) and column.integer and constraint.size != round(constraint.size):
                raise wrong(constraint, "step_not_whole", column=column.name, received=constraint.size)
        case objects.Allowed(categories=named) | objects.Order(categories=named):
            _check_categories(constraint, columns[constraint.feature], named)
        case objects.Forbidden(transitions=pairs):
            _check_categories(constraint, columns[constraint.feature], [category for pair in pairs for category in pair])
        case objects.If(when=when, then=then):
            for name, condition in when + then:
                _check_condition(constraint, columns[name], condition)
        case objects.Together():
            _check_ordered(constraint, columns, ordered)
            if constraint.slope is not None and not columns[constraint.follower].numeric:
                raise wrong(constraint, "slope_of_categories", column=constraint.follower)
        case objects.Require() | objects.Derived(formula=str()):
            categorical = [column.name for column in columns.values() if not (column.numeric or column.is_flag)]
            if categorical:
                raise wrong(constraint, "formula_of_categories", received=categorical)


def _check_ends(constraint: Constraint, column: "Feature", ends: tuple[objects.End | None, ...]) -> None:
    """Check that an end that is not a number is a date, time or duration of the column, and that the ends are in order."""
    given = [end for end in ends if end is not None]
    numbers = [column.bound(end) for end in given]
    for end, number in zip(given, numbers, strict=True):
        if math.isnan(number):
            raise wrong(constraint, "end_of_another_type", column=column.name, expected=column.value_type, received=end)
    if len(numbers) == 2 and numbers[0] > numbers[1]:
        raise wrong(constraint, "ends_reversed", column=column.name, received=tuple(given))


def _check_ordered(constraint: Constraint, columns: "Mapping[Hashable, Feature]", ordered: set[Hashable]) -> None:
    for name, column in columns.items():
        if not column.numeric and name not in ordered:
            raise wrong(constraint, "needs_order", column=name)


def _check_categories(constraint: Constraint, column: "Feature", named: Sequence[Category]) -> None:
    if column.numeric:
        raise wrong(constraint, "needs_categories", column=column.name)
    for category in named:
        if category not in column.categories:
            fields = {"constraint": constraint.text, "column": column.name}
            raise SchemaError(unknown("constraints.unknown_category", category, column.categories, **fields))


def _check_condition(constraint: Constraint, column: "Feature", condition: objects.Condition) -> None:
    if not column.numeric:
        if isinstance(condition, objects.Between):
            raise wrong(constraint, "range_of_categories", column=column.name)
        _check_categories(constraint, column, condition)
    elif isinstance(condition, objects.Between):
        _check_ends(constraint, column, (condition.low, condition.high))
    elif any(isinstance(value, (str, bool)) for value in condition):
        raise wrong(constraint, "values_not_numbers", column=column.name, received=condition)


def _check_derived(derived: Sequence[objects.Derived]) -> None:
    inputs: dict[Hashable, tuple[Hashable, ...]] = {}
    for constraint in derived:
        if constraint.feature in inputs:
            raise wrong(constraint, "derived_twice", column=constraint.feature)
        inputs[constraint.feature] = constraint.inputs
    try:
        TopologicalSorter(inputs).prepare()
    except CycleError as error:
        looping = next(constraint for constraint in derived if constraint.feature in error.args[1])
        raise wrong(looping, "derived_cycle", column=looping.feature) from None


def _check_orders(orders: Sequence[objects.Order]) -> None:
    seen: dict[Hashable, objects.Order] = {}
    for constraint in orders:
        if constraint.feature in seen and seen[constraint.feature].categories != constraint.categories:
            raise wrong(constraint, "ordered_twice", column=constraint.feature)
        seen[constraint.feature] = constraint
