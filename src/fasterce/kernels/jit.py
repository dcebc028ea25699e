"""The decorator of compiled functions."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def _cache_folder() -> str:
    """Return a folder for this state of the sources: a compiled function contains those it calls, but Numba notices changes
    of its own file only."""
    here = Path(__file__).parent
    digest = sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py")))).hexdigest()
    return str(Path(numba.config.CACHE_DIR or here / "__pycache__") / f"kernels-{digest[:12]}")


CACHE_FOLDER = _cache_folder()


def compiled(function: Function) -> Function:
    """Compile a function with Numba, without the interpreter lock, and keep the result on disk if there is a place for it.

    Floating-point operations keep their order (no `fastmath`), so results do not depend on the vector width of the
    processor. There is no `parallel=True`: its threads may not survive a fork.
    """
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, CACHE_FOLDER
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        # Neither the package nor the user's cache folder can be written to.
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
    finally:
        numba.config.CACHE_DIR = before
