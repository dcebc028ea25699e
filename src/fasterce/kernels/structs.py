"""Named tuples as structures that compiled functions take by one pointer.

Numba passes a named tuple field by field, which makes functions with many arrays slow to compile and to call. Its own
structures count a reference whenever an array is read from them, which takes longer than most of our loops; here arrays are
read as borrowed: the structure holds them until the outermost call returns.
"""

from threading import local
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.experimental import structref
from numba.experimental.structref import new
from numba.extending import lower_getattr_generic

from fasterce.kernels.jit import compiled

Kind = TypeVar("Kind", bound=tuple[Any, ...])

# Structures that a thread keeps.
KEPT_STRUCTURES = 8


class Structure(types.StructRef):
    """The Numba type of a structure; its fields are part of the type."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


structref.register(Structure)


def _read_field(context: Any, builder: Any, structure: Any, value: Any, name: str) -> Any:
    """Read a field; an array has no owner to count references to."""
    kind = structure.field_dict[name]
    found = getattr(structref._Utils(context, builder, structure).get_data_struct(value), name)
    if not isinstance(kind, types.Array):
        return impl_ret_borrowed(context, builder, kind, found)
    array = context.make_array(kind)(context, builder, value=found)
    array.meminfo = array.meminfo.type(None)
    return array._getvalue()


# Of two readers of the same type Numba takes the last.
lower_getattr_generic(Structure)(_read_field)


class Pointer(structref.StructRefProxy):
    """A structure in Python; only compiled functions read its fields."""


structref.define_boxing(Structure, Pointer)

_makers: dict[type, tuple[Any, Any]] = {}


def as_struct(values: Kind) -> Kind:
    """Return a named tuple of arrays, numbers and such tuples as a structure for compiled functions.

    The arrays are shared, so that what a compiled function writes is seen in the tuple. Without compilation
    (`NUMBA_DISABLE_JIT=1`) the tuple itself is returned.

    Raises
    ------
    TypeError
        An array has another memory layout or type than in other tuples of this class. Without this error every function
        that takes the structure would be compiled again, which takes half a minute.
    """
    if numba.config.DISABLE_JIT:
        return values
    kind = type(values)
    parts = [as_struct(part) if isinstance(part, tuple) else part for part in values]
    if kind not in _makers:
        _makers[kind] = _maker(kind, [numba.typeof(part) for part in parts])
    make, structure = _makers[kind]
    try:
        found: Kind = make(*parts)
    except TypeError as error:
        raise TypeError(f"{kind.__name__}: {_differences(structure, parts)}") from error
    return found


def _differences(structure: Structure, parts: list[Any]) -> str:
    """Return which values have another type than the fields of a structure."""
    given = zip(structure.field_dict.items(), map(numba.typeof, parts), strict=True)
    return "; ".join(f"{name} is {other}, not {known}" for (name, known), other in given if other != known)


class _Kept(local):
    """The structures of a thread, by the identity of the tuple they were made of, which is kept with them."""

    def __init__(self) -> None:
        self.made: dict[int, tuple[Any, Any]] = {}


_kept = _Kept()


def kept_struct(values: Kind) -> Kind:
    """Return the structure of a tuple that is used in many calls; each thread keeps those it used last.

    Threads do not share them: those that count references to the same structure wait for each other.
    """
    known = _kept.made.pop(id(values), None)
    if known is None:
        known = values, as_struct(values)
        while len(_kept.made) >= KEPT_STRUCTURES:
            del _kept.made[next(iter(_kept.made))]
    _kept.made[id(values)] = known
    found: Kind = known[1]
    return found


def _maker(kind: Any, given: list[Any]) -> tuple[Any, Any]:
    """Return a compiled function from the fields to the structure, and the type of the structure.

    It is compiled as part of this file, so that Numba can keep it on disk; for these types only.
    """
    names, field_types = list(kind._fields), [_plain(one) for one in given]
    structure = Structure(list(zip(names, field_types, strict=True)))
    lines = [f"def make_{kind.__name__}({', '.join(names)}):", "    made = new(structure)"]
    lines += [f"    made.{name} = {name}" for name in names] + ["    return made"]
    scope: dict[str, Any] = {"new": new, "structure": structure}
    # The text consists of the field names of our own classes.
    exec(compile("\n".join(lines), __file__, "exec"), scope)  # nosec B102
    function = scope[f"make_{kind.__name__}"]
    function.__module__ = __name__
    make: Any = compiled(function).entry
    make.compile(tuple(field_types))
    make.disable_compile()
    return make, structure


def _plain(kind: Any) -> Any:
    """Return the type of a field; an array is contiguous and writable."""
    return kind.copy(layout="C", readonly=False) if isinstance(kind, types.Array) else kind


def arrays_of(values: Kind) -> Kind:
    """Return a named tuple with all arrays contiguous and writable, as the structures need them."""
    parts = [
        arrays_of(part)
        if isinstance(part, tuple)
        else np.require(part, requirements=["C", "W"])
        if isinstance(part, np.ndarray)
        else part
        for part in values
    ]
    return type(values)(*parts)
