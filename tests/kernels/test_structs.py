"""Named tuples as structures of compiled functions."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from fasterce.kernels.jit import compiled
from fasterce.kernels.structs import arrays_of, as_struct


class Inner(NamedTuple):
    values: np.ndarray


class Outer(NamedTuple):
    inner: Inner
    factor: float
    length: int


@compiled
def scale(outer: Outer) -> float:
    total = 0.0
    for k in range(outer.length):
        outer.inner.values[k] *= outer.factor
        total += outer.inner.values[k]
    return total


def test_compiled_functions_read_fields_and_write_to_the_arrays_themselves() -> None:
    outer = Outer(Inner(np.array([1.0, 2.0, 4.0])), 3.0, 2)
    assert scale(as_struct(outer)) == 9.0
    assert outer.inner.values.tolist() == [3.0, 6.0, 4.0]
    assert scale(as_struct(outer._replace(factor=0.5, length=3))) == 6.5, "the type is made once, the values each time"


class Table(NamedTuple):
    cells: np.ndarray


class Turned(NamedTuple):
    cells: np.ndarray


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="without compilation there are no structures")
def test_an_array_in_another_layout_is_refused_not_compiled_for() -> None:
    cells = np.arange(6.0).reshape(2, 3)
    as_struct(Table(cells))
    with pytest.raises(TypeError, match=r"Table: cells is .*F.*, not .*C"):
        as_struct(Table(cells.T))
    with pytest.raises(TypeError, match=r"Turned: cells is .*F.*, not .*C"):
        as_struct(Turned(cells.T))
    as_struct(arrays_of(Turned(cells.T)))


def test_arrays_become_contiguous_and_writable() -> None:
    read_only = np.arange(6.0).reshape(2, 3).T
    read_only.flags.writeable = False
    made = arrays_of(Outer(Inner(read_only), 1.0, 2))
    assert made.inner.values.flags.c_contiguous
    assert made.inner.values.flags.writeable
    np.testing.assert_array_equal(made.inner.values, read_only)
