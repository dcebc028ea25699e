"""The decorator of compiled functions, and where their compiled form is kept on disk."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Self, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

Function = TypeVar("Function", bound=Callable[..., object])

SOURCES = Path(__file__).parent


class _Locator:
    """Names the folder of compiled functions; it may be one that can only be read.

    Numba calls these methods. Its own locators have other names in other versions.
    """

    def __init__(self, function: FunctionType, file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> Self:
        return cls(py_func, py_file)

    def get_cache_path(self) -> str:
        return str(CACHE_FOLDER)

    def ensure_cache_path(self) -> None:
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    def get_source_stamp(self) -> bytes:
        return sha256(Path(self._py_file).read_bytes()).digest()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(CompileResultCacheImpl):
    # No others: Numba's own folders do not tell states of the sources apart.
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):
    """Keeps compiled functions where there is a place for them, and only reads where files are read-only."""

    _impl_class = _Files

    def save_overload(self, sig: object, data: object) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def _cache_name() -> str:
    """Return a name for this state of the sources and this Numba.

    A compiled function contains those it calls, but Numba notices changes of its own file only. Environments with different
    versions of Numba that share the sources would overwrite each other's files.
    """
    sources = b"".join(path.read_bytes() for path in sorted(SOURCES.glob("*.py")))
    return f"kernels-{sha256(numba.__version__.encode() + sources).hexdigest()[:12]}"


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def find_cache(places: Sequence[Path]) -> Path | None:
    """Return the folder of compiled functions, or None if there is no place for it.

    A place that has compiled functions is used even if nothing can be added to it, as in an image whose files are read-only.

    Parameters
    ----------
    places : sequence of Path
        Folders for caches, the first preferred.
    """
    name = _cache_name()
    folders = [place / name for place in places]
    return next((one for one in folders if _is_filled(one) or _is_writable(one)), None)


def _is_filled(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _places() -> list[Path]:
    """Return the folder `NUMBA_CACHE_DIR` names, or the one beside the sources and the user's."""
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR)]
    own = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return [SOURCES / "__pycache__", *([own / "fasterce"] if own.is_absolute() else [])]


CACHE_FOLDER = find_cache(_places())


def compiled(function: Function) -> Function:
    """Compile a function with Numba, without the interpreter lock, and keep the result on disk if there is a place for it.

    Floating-point operations keep their order (no `fastmath`), so results do not depend on the vector width of the
    processor. There is no `parallel=True`: its threads may not survive a fork.
    """
    made = numba.njit(nogil=True, error_model="numpy")(function)
    if CACHE_FOLDER is not None:
        made._cache = _Cache(function)
    return cast(Function, made)
