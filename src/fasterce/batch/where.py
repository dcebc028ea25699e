"""Evaluate a filter (`--where`) on Arrow columns. A comparison with a missing value is neither true nor false, as in SQL."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fasterce.constraints.filter import And, ColumnName, Compare, CompareFormulas, Condition, IsNull, Not, Or, leaves
from fasterce.errors import InputError, unknown
from fasterce.io import cells
from fasterce.typing import Floats, Mask

OPERATIONS = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
BOOLEANS = ("true", "false")

Column = Callable[[ColumnName], pa.Array]


def evaluate(condition: Condition, column: Column) -> pa.Array:
    """Return true, false or null for every row; `column` gives the values of a name."""
    match condition:
        case And(left, right):
            return pc.and_kleene(evaluate(left, column), evaluate(right, column))
        case Or(left, right):
            return pc.or_kleene(evaluate(left, column), evaluate(right, column))
        case Not(inner):
            return pc.invert(evaluate(inner, column))
        case IsNull(name):
            return pc.is_null(column(name), nan_is_null=True)
        case CompareFormulas():
            return _compare_formulas(condition, column)
        case Compare(name):
            return _compare(condition, cells.decoded(column(name)))


def check_types(condition: Condition, types: Mapping[str, pa.DataType], source: str) -> None:
    """Check that the columns of a filter exist in `source` and can be compared with what they are compared with."""
    for leaf in leaves(condition):
        names = [name for _, name in leaf.names] if isinstance(leaf, CompareFormulas) else [leaf.name]
        for name in names:
            if name.from_model:
                continue
            if name.text not in types:
                raise InputError(unknown("batch.where_unknown_column", name.text, types, option="where", source=source))
            if isinstance(leaf, Compare):
                _check_comparable(leaf, types[name.text])
            elif isinstance(leaf, CompareFormulas) and not _holds_numbers(types[name.text]):
                raise InputError("batch.where_not_numbers", option="where", column=name.text, received=str(types[name.text]))


def _holds_numbers(kind: pa.DataType) -> bool:
    """Return whether values of this type can be read as numbers; text can, cell by cell."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_number = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)
    return bool(is_number or cells.is_text(inner) or pa.types.is_null(inner))


def _check_comparable(leaf: Compare, kind: pa.DataType) -> None:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if cells.is_text(inner) or pa.types.is_null(inner):
        return
    is_boolean = isinstance(leaf.value, bool)
    column, value = leaf.name.text, leaf.value
    if pa.types.is_boolean(inner):
        if not is_boolean:
            raise InputError("batch.where_boolean_column", option="where", column=column, received=value)
    elif not _holds_numbers(kind):
        raise InputError("batch.where_unsupported_column", option="where", column=column, received=str(kind))
    elif is_boolean or not isinstance(value, (int, float)):
        raise InputError("batch.where_number_column", option="where", column=column, received=value)


def _compare(leaf: Compare, array: pa.Array) -> pa.Array:
    value, operation = leaf.value, OPERATIONS[leaf.op]
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.bool_())
    if isinstance(value, str):
        return operation(cells.as_text(array), value)
    if not cells.is_text(array.type):
        plain = array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array
        found = operation(plain, pa.scalar(value))
        return pc.if_else(pc.is_nan(plain), None, found) if pa.types.is_floating(plain.type) else found
    texts = cells.as_text(array)
    if isinstance(value, bool):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        known = pc.is_in(words, value_set=pa.array(BOOLEANS))
        return operation(pc.if_else(known, pc.equal(words, "true"), None), value)
    numbers, known = _numbers(array)
    return operation(pa.array(numbers, mask=~known), float(value))


def _compare_formulas(leaf: CompareFormulas, column: Column) -> pa.Array:
    """Return null where a value is missing or no number, or a formula has no finite value."""
    read = {alias: _numbers(cells.decoded(column(name))) for alias, name in leaf.names}
    columns = {alias: numbers for alias, (numbers, _) in read.items()}
    left, right = leaf.comparison.left.evaluate(columns), leaf.comparison.right.evaluate(columns)
    known = np.logical_and.reduce([known for _, known in read.values()]) & np.isfinite(left) & np.isfinite(right)
    left, right = (pa.array(np.broadcast_to(side, known.shape), mask=~known) for side in (left, right))
    return OPERATIONS[leaf.comparison.op](left, right)


def _numbers(array: pa.Array) -> tuple[Floats, Mask]:
    """Return values as numbers, and which of them are numbers."""
    if cells.is_text(array.type):
        numbers, known = cells.numbers_of(cells.as_text(array))
        return np.asarray(numbers, dtype=np.float64), np.asarray(known)
    numbers = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers, ~np.isnan(numbers)
