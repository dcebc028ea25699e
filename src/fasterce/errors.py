"""Exceptions, and `Problem`: what is wrong, as data.

A problem is made where something is found to be wrong and travels as data. Its text is rendered only where a person reads it
(an exception's message, a row's reason, a line of the command line, an HTTP error, a record) from `messages.toml`, a
catalogue of one sentence per code. No code reads a message to find something out.
"""

import os
import tomllib
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module, resources
from numbers import Integral
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError

MESSAGES_VARIABLE = "FASTERCE_MESSAGES"
LONGEST_VALUE = 100
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Problem:
    """Something wrong with the input.

    Parameters
    ----------
    code : str
        What is wrong: "section.name", a key of `messages.toml`.
    column : hashable, optional
        The column concerned.
    row : int, optional
        The position of the row concerned in the table that came in.
    expected, received : optional
        What was expected and what came, as plain data.
    option : str, optional
        The parameter concerned, by its Python name. The command line and HTTP render it by their own name for it.
    details : mapping, optional
        Other values the text mentions. `suggestion` adds "Did you mean ...?".
    """

    code: str
    column: Hashable | None = None
    row: int | None = None
    expected: Any = field(default=None, hash=False)
    received: Any = field(default=None, hash=False)
    option: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.text()

    def text(self, *, names: Mapping[str, str] | None = None, with_received: bool = True) -> str:
        """Render one sentence. A text that does not fit the problem never hides it: then the fields are shown.

        Parameters
        ----------
        names : mapping, optional
            The names of options where the text is shown, such as {"permitted_range": "--range"}.
        with_received : bool, default=True
            Whether the text repeats what came; an HTTP error does not.
        """
        try:
            return self.render(names or {}, with_received)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return f"{self.code}: {self.to_dict()}."

    def render(self, names: Mapping[str, str], with_received: bool) -> str:
        """Do what `text` does; raise where the text of the catalogue does not fit this problem."""
        messages = catalogue()
        sentence = messages["sentence"]

        def shown_as(value: object) -> _Shown:
            return _Shown(value, names, with_received)

        shown = {
            "column": shown_as(self.column),
            "row": self.row,
            "expected": shown_as(self.expected),
            "received": shown_as(self.received) if with_received else _Verbatim(sentence["withheld"]),
            "option": _Verbatim(names.get(self.option or "", self.option)),
            **{name: shown_as(value) for name, value in self.details.items()},
        }
        section, _, name = self.code.partition(".")
        template: str = messages[section][name]
        text = template.format_map(shown)
        if self.received is not None and with_received and "{received" not in template:
            text += sentence["received"].format_map(shown)
        if self.row is not None and "{row" not in template:
            text += sentence["row"].format_map(shown)
        text = text if text.endswith((".", "?", "!")) else f"{text}."
        if self.details.get("suggestion") is not None:
            text += " " + sentence["suggestion"].format_map(shown)
        return text

    def without_row(self) -> "Problem":
        """Return the same problem without the position of its row, which differs from one table to another."""
        return replace(self, row=None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; empty fields are left out."""
        values = {name: getattr(self, name) for name in ("code", "column", "row", "expected", "received", "option")}
        if self.details:
            values["details"] = dict(self.details)
        return {name: _plain(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Problem":
        """Return the problem `to_dict` describes; problems among its details are problems again."""
        return cls(**{name: _restored(value) for name, value in values.items()})


class FasterCEError(Exception):
    """Base class of every exception this library raises on purpose.

    Parameters
    ----------
    problem : Problem or str
        The problem, or its code.
    **fields
        With a code: fields of `Problem`; other keywords become its details.
    """

    def __init__(self, problem: Problem | str, **fields: object) -> None:
        self.problem = problem if isinstance(problem, Problem) else make_problem(problem, **fields)
        super().__init__(self.problem)

    def __str__(self) -> str:
        return self.problem.text()


class InputError(FasterCEError, ValueError):
    """A table, a column or an argument is not what was expected."""


class UnknownOptionError(InputError, TypeError):
    """A call has a parameter that does not exist."""


class SchemaError(InputError):
    """The schema contradicts itself or the data."""


class ModelError(FasterCEError, RuntimeError):
    """The user's model raised, or returned something that is not a prediction."""


class ArtifactError(FasterCEError):
    """A saved explainer is missing, damaged, foreign or too new."""


class MissingExtraError(FasterCEError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    package : str
        The package that is missing.
    extra : str
        The extra of fasterce that installs it.
    purpose : str
        What it is needed for.
    """

    def __init__(self, package: str | Problem, extra: str = "", purpose: str = "") -> None:
        if isinstance(package, Problem):
            super().__init__(package)
        else:
            super().__init__("errors.missing_extra", package=package, extra=extra, purpose=purpose)


def __getattr__(name: str) -> object:
    """`NotFittedError` is also scikit-learn's, which is imported only when the error is first used."""
    if name != "NotFittedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError  # noqa: PLC0415

    class NotFittedError(FasterCEError, SklearnNotFittedError):
        """The explainer was used before `fit`."""

    NotFittedError.__qualname__ = "NotFittedError"
    globals()["NotFittedError"] = NotFittedError
    return NotFittedError


if TYPE_CHECKING:

    class NotFittedError(FasterCEError, SklearnNotFittedError):
        """The explainer was used before `fit`."""


def import_extra(module: str, extra: str, purpose: str, package: str = "") -> ModuleType:
    """Import a module of an optional dependency; where it is not installed, the error names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package or module, extra, purpose) from error


def make_problem(code: str, **fields: Any) -> Problem:
    """Return a problem; keywords that are not fields of `Problem` become its details."""
    own = {name: fields.pop(name) for name in ("column", "row", "expected", "received", "option") if name in fields}
    return Problem(code, **own, details=fields)


def warn(code: str, stacklevel: int = 2, **fields: object) -> None:
    """Warn of a problem that does not prevent a result; `stacklevel` as in `warnings.warn`, counted from the caller."""
    warnings.warn(make_problem(code, **fields).text(), UserWarning, stacklevel=stacklevel + 1)


def problem_of(error: BaseException, code: str = "errors.exception") -> Problem:
    """Return the problem an exception carries; for one of another library, its type and text."""
    if isinstance(error, FasterCEError):
        return error.problem
    text = " ".join(str(error).split())[:LONGEST_TEXT].rstrip(". ")
    return make_problem(code, exception=type(error).__name__, text=text)


def suggestion(name: object, known: Iterable[object]) -> object | None:
    """Return the known name nearest to a misspelt one, or None."""
    listed = list(known)
    near = get_close_matches(str(name), [str(value) for value in listed], n=1)
    return next((value for value in listed if near and str(value) == near[0]), None)


def unknown(code: str, name: object, known: Iterable[object], **fields: Any) -> Problem:
    """Return the problem of a name that is not one of the known ones, with the nearest of them as a suggestion."""
    listed = list(known)
    return make_problem(code, received=name, expected=listed, suggestion=suggestion(name, listed), **fields)


def check_count(option: str, value: object, least: int = 1) -> None:
    """Raise unless a value is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError("options.not_a_count", option=option, expected=least, received=value)


def shorten(values: Iterable[object], most: int = 8) -> str:
    """Join values for a sentence, at most `most` of them."""
    items = [repr(v) if isinstance(v, str) else str(v) for v in values]
    tail = f", … ({len(items)} in all)" if len(items) > most else ""
    return ", ".join(items[:most]) + tail


@cache
def catalogue() -> Mapping[str, Any]:
    """Return the message texts by section and name; the file named by FASTERCE_MESSAGES replaces those it has."""
    texts = tomllib.loads(resources.files("fasterce").joinpath("messages.toml").read_text(encoding="utf-8"))
    other = os.environ.get(MESSAGES_VARIABLE)
    if other:
        for section, entries in tomllib.loads(Path(other).read_text(encoding="utf-8")).items():
            texts.setdefault(section, {}).update(entries)
    return texts


@dataclass(frozen=True)
class _Shown:
    """A value as a message shows it: text quoted and cut, lists shortened; `{name:plain}` shows text without quotes,
    `{name:whole}` a path without a cut, `{name:exact}` 2.0 as 2.0 and not as 2, and `{name[0]}` one item of a list."""

    value: Any
    names: Mapping[str, str] = field(default_factory=dict)
    with_received: bool = True

    def __getitem__(self, place: int) -> "_Shown":
        return replace(self, value=self.value[place])

    def __format__(self, how: str) -> str:
        value = _scalar(self.value)
        try:
            if isinstance(value, Problem):
                return value.text(names=self.names, with_received=self.with_received).rstrip(".")
            if how in ("plain", "whole"):
                return str(value)[: LONGEST_VALUE if how == "plain" else None]
            if isinstance(value, (list, tuple, set, frozenset, dict)):
                return shorten(value)
            if isinstance(value, float) and how != "exact":
                return f"{value:.15g}"
            return repr(value)[:LONGEST_VALUE]
        except ValueError:
            return str(catalogue()["sentence"]["too_large"])


class _Verbatim(str):
    """Text that a message shows as it is, whatever the format: the name of an option, or the place of a withheld value."""

    __slots__ = ()

    def __format__(self, how: str) -> str:
        return str(self)

    def __getitem__(self, place: object) -> "_Verbatim":
        return self


def _scalar(value: Any) -> Any:
    """Return a NumPy scalar as Python's own; NumPy itself is not imported here."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 else value


def _restored(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "code" in value and set(value) <= Problem.__dataclass_fields__.keys():
            return Problem.from_dict(value)
        return {name: _restored(one) for name, one in value.items()}
    return [_restored(one) for one in value] if isinstance(value, list) else value


def _plain(value: object) -> object:
    value = _scalar(value)
    if isinstance(value, Problem):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else f"{_Shown(value)}"
