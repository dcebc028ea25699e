"""Find the row groups of a Parquet file that cannot hold a row of the filter, by their statistics."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pyarrow.parquet as pq

from fasterce.constraints.filter import And, Compare, Condition, Or

# The lowest and highest value of a column in a row group, None if not known.
Bounds = Callable[[str], tuple[Any, Any] | None]


def unwanted_groups(metadata: pq.FileMetaData, condition: Condition) -> set[int]:
    """Return the row groups in which the filter, on columns of the input only, holds for no row."""
    columns = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    return {
        group
        for group in range(metadata.num_row_groups)
        if not _possible(condition, partial(_bounds, metadata.row_group(group), columns))
    }


def _bounds(group: pq.RowGroupMetaData, columns: Mapping[str, int], name: str) -> tuple[Any, Any] | None:
    position = columns.get(name)
    statistics = None if position is None else group.column(position).statistics
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None


def _possible(condition: Condition, bounds: Bounds) -> bool:
    """Return whether the filter may hold for some row; true where nothing is known."""
    if isinstance(condition, And):
        return _possible(condition.left, bounds) and _possible(condition.right, bounds)
    if isinstance(condition, Or):
        return _possible(condition.left, bounds) or _possible(condition.right, bounds)
    if not isinstance(condition, Compare):
        return True
    known = bounds(condition.name.text)
    return True if known is None else _within(condition, *known)


def _within(leaf: Compare, low: Any, high: Any) -> bool:
    value: Any = leaf.value
    # A bound and a value of different kinds (text that is read as a number) cannot be compared.
    if isinstance(value, str) != isinstance(low, str) or isinstance(value, bool) != isinstance(low, bool):
        return True
    try:
        possible = {
            "==": low <= value <= high,
            # Bounds of long texts may be cut short: equal bounds do not mean that all values are equal.
            "!=": True,
            "<": low < value,
            "<=": low <= value,
            ">": high > value,
            ">=": high >= value,
        }
    except TypeError:
        return True
    return bool(possible[leaf.op])
