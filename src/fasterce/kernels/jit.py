"""The decorator of compiled functions, and where their compiled form is kept on disk."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Self, TypeVar, cast

import numba
from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

Function = TypeVar("Function", bound=Callable[..., object])

SOURCES = Path(__file__).parent
OPTIONS = {"nogil": True, "error_model": "numpy"}


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


class _Library(JITCodeLibrary):
    """The code of a function for its callers, which link it in, optimise it with their own and translate all of it."""

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Do not translate: there is nothing to call."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> "_Library":
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Keep no environment: it is for Python objects and printed text, of which kernels have none."""


class _CalleeCompiler(Compiler):
    def define_pipelines(self) -> object:
        self.state.library = _Library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class Kernel(CPUDispatcher):
    """A compiled function. Compiled functions that call it contain its code; called from Python, it is compiled by itself.

    Numba optimises and translates every function together with all it calls, which takes minutes where calls are nested
    deeply. This does it for the functions that Python calls only.
    """

    def __init__(self, function: FunctionType) -> None:
        plain = {"nopython": True, "boundscheck": None, **OPTIONS}
        no_wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions={**plain, **no_wrappers}, pipeline_class=_CalleeCompiler)
        self.entry = numba.njit(**OPTIONS)(function)
        if CACHE_FOLDER is not None:
            self.entry._cache = _Cache(function)

    def __call__(self, *arguments: object) -> object:
        return self.entry(*arguments)

    def get_call_template(self, args: Sequence[types.Type], kws: object) -> object:
        """Return the function for these types; a number in the source is no type of its own."""
        return super().get_call_template(tuple(map(types.unliteral, args)), kws)


def compiled(function: Function) -> Function:
    """Compile a function with Numba, without the interpreter lock, and keep the result on disk if there is a place for it.

    Floating-point operations keep their order (no `fastmath`), so results do not depend on the vector width of the
    processor. There is no `parallel=True`: its threads may not survive a fork.
    """
    return function if numba.config.DISABLE_JIT else cast(Function, Kernel(cast(FunctionType, function)))
