"""Small loops that compile faster than their NumPy counterparts."""

from typing import Any

import numpy as np

from fasterce.kernels.jit import compiled
from fasterce.typing import Floats


@compiled
def copy_to(target: Any, source: Any) -> None:
    for k in range(len(source)):
        target[k] = source[k]


@compiled
def fill(target: Any, value: Any) -> None:
    for k in range(len(target)):
        target[k] = value


@compiled
def lowest(values: Floats, count: int) -> int:
    """Return the position of the smallest of the first `count` values, the first of several."""
    best = 0
    for k in range(1, count):
        if values[k] < values[best]:
            best = k
    return best


@compiled
def highest(values: Floats, count: int) -> int:
    """Return the position of the largest of the first `count` values, the first of several."""
    best = 0
    for k in range(1, count):
        if values[k] > values[best]:
            best = k
    return best


@compiled
def sort_order(values: Floats, count: int, order: Any) -> None:
    """Write the positions of the first `count` values in increasing order, equal values by position (insertion sort)."""
    for k in range(count):
        place = k
        while place > 0 and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


@compiled
def tidy(value: float) -> float:
    """Remove rounding noise: 0.30000000000000004 becomes 0.3."""
    short = np.rint(value * 1e9) / 1e9
    return short if abs(short - value) <= 1e-12 * max(1.0, abs(value)) else value
