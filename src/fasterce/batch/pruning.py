"""Row groups of a Parquet file that cannot hold a wanted row, told by their statistics and not read."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fasterce.batch.where import Both, Compare, Either, Node

Bounds = Callable[[str], tuple[Any, Any] | None]


def unwanted_groups(metadata: Any, node: Node) -> set[int]:
    """The row groups in which no row can be one the condition holds for; columns of the input only."""
    columns = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    return {
        group
        for group in range(metadata.num_row_groups)
        if not _possible(node, partial(_bounds, metadata.row_group(group), columns))
    }


def _bounds(group: Any, columns: Mapping[str, int], name: str) -> tuple[Any, Any] | None:
    place = columns.get(name)
    statistics = None if place is None else group.column(place).statistics
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None


def _possible(node: Node, bounds: Bounds) -> bool:
    """Whether some row may be wanted; where nothing is known, yes."""
    if isinstance(node, Both):
        return _possible(node.left, bounds) and _possible(node.right, bounds)
    if isinstance(node, Either):
        return _possible(node.left, bounds) or _possible(node.right, bounds)
    if not isinstance(node, Compare):
        return True
    known = bounds(node.name.text)
    return True if known is None else _within(node, *known)


def _within(node: Compare, low: Any, high: Any) -> bool:
    value = node.value
    # A bound and a value of different kinds (text that is read as a number) say nothing of each other.
    if isinstance(value, str) != isinstance(low, str) or isinstance(value, bool) != isinstance(low, bool):
        return True
    try:
        possible = {
            "=": low <= value <= high,
            # Bounds of long texts may be cut short: equal ones do not say that all values are.
            "!=": True,
            "<": low < value,
            "<=": low <= value,
            ">": high > value,
            ">=": high >= value,
        }
    except TypeError:
        return True
    return bool(possible[node.sign])
