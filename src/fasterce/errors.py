"""One tree of errors. Every message is one sentence: what, where, what was expected, what came."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fasterce.lazily import attributes

if TYPE_CHECKING:
    from fasterce.unfitted import NotFittedError
else:
    __getattr__, __dir__ = attributes(__name__, {"NotFittedError": "fasterce.unfitted"})

__all__ = [
    "ArtifactError",
    "FasterCEError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "NotFittedError",
    "SchemaError",
    "shorten",
    "unknown_name",
]


class FasterCEError(Exception):
    """Anything this library raises on purpose."""


class InputError(FasterCEError, ValueError):
    """A table, a column or an argument is not what was expected."""


class SchemaError(InputError):
    """The schema contradicts itself or the data."""


class ModelError(FasterCEError, RuntimeError):
    """The user's model raised, or answered something that cannot be a prediction."""


class ArtifactError(FasterCEError):
    """A saved explainer is missing, damaged, foreign or too new."""


class MissingExtraError(FasterCEError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f'{purpose} needs {package}, which is not installed; expected: pip install "fasterce[{extra}]".')


def unknown_name(what: str, name: object, known: Iterable[object]) -> str:
    """A sentence for a misspelt name, with the nearest known one."""
    listed = list(known)
    near = get_close_matches(str(name), [str(value) for value in listed], n=1)
    meant = next((value for value in listed if near and str(value) == near[0]), None)
    hint = f" Did you mean {meant!r}?" if near else ""
    return f"Unknown {what} {name!r:.100}; expected one of {shorten(listed)}.{hint}"


def shorten(values: Iterable[object], most: int = 8) -> str:
    """A list for a sentence, cut where it would run on."""
    items = [repr(v) if isinstance(v, str) else str(v) for v in values]
    tail = f", … ({len(items)} in all)" if len(items) > most else ""
    return ", ".join(items[:most]) + tail
