"""Messages on stderr and results on stdout, so that results can be piped."""

import sys

from rich.console import Console

_quiet = False


def be_quiet(quiet: bool) -> None:
    """Print errors and warnings only, from now on."""
    global _quiet  # noqa: PLW0603 - one process runs one command
    _quiet = quiet


def is_quiet() -> bool:
    return _quiet


def say(*parts: object, always: bool = False) -> None:
    """Print a line on stderr, unless the user chose --quiet."""
    if always or not _quiet:
        Console(file=sys.stderr, soft_wrap=True, highlight=False).print(*parts)


def show(*parts: object) -> None:
    """Print a result on stdout."""
    Console(file=sys.stdout, highlight=False).print(*parts)
