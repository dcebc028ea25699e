"""The decorator of compiled functions."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile a function with Numba, without the interpreter lock, and keep the result on disk if there is a place for it.

    Floating-point operations keep their order (no `fastmath`), so results do not depend on the vector width of the
    processor. There is no `parallel=True`: its threads may not survive a fork.
    """
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        # Neither the package nor the user's cache folder can be written to.
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
