"""Names of a module that are imported when they are first asked for (PEP 562)."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def attributes(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a module whose `homes` say where each name comes from; submodules count too."""

    def fetch(name: str) -> Any:
        if name in homes:
            found = getattr(import_module(homes[name]), name)
        elif not name.startswith("_") and _is_submodule(module, name):
            found = import_module(f"{module}.{name}")
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])
        setattr(sys.modules[module], name, found)
        return found

    def listing() -> list[str]:
        known = vars(sys.modules[module])
        return sorted({*known, *homes, *known.get("__all__", ())})

    return fetch, listing


def _is_submodule(module: str, name: str) -> bool:
    return hasattr(sys.modules[module], "__path__") and find_spec(f"{module}.{name}") is not None
