"""What is said beside the results: always on stderr, so that stdout can be piped."""

import sys
from typing import Any

from rich.console import Console

_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether only errors and warnings are said from now on."""
    global _quiet  # noqa: PLW0603 - one process runs one command
    _quiet = quiet


def is_quiet() -> bool:
    return _quiet


def say(*parts: Any, always: bool = False) -> None:
    """A line on stderr, unless the user wants quiet."""
    if always or not _quiet:
        Console(file=sys.stderr, soft_wrap=True, highlight=False).print(*parts)


def show(*parts: Any) -> None:
    """The result itself, on stdout."""
    Console(file=sys.stdout, highlight=False).print(*parts)


def in_terminal() -> bool:
    return sys.stdout.isatty()
