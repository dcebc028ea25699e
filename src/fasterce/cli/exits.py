"""How a command ends: one exit code per kind of error, one sentence on stderr."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import TypeVar

import typer
from rich.markup import escape

from fasterce.cli.console import say
from fasterce.cli.options import flags_of
from fasterce.errors import FasterCEError

TRACEBACK = "FASTERCE_TRACEBACK"
# Names of Python parameters that no command has, and what commands call them.
FLAGS = {"resume=False": "--fresh", "trust_pickle=True": "--trust-pickle", "X": "--data"}

Command = TypeVar("Command", bound=Callable[..., None])


class Exit(IntEnum):
    """The documented exit codes."""

    DONE = 0
    BUG = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    ARTIFACT = 5
    DISAGREES = 6
    MISSING_EXTRA = 7
    INTERRUPTED = 130


EXITS = {
    "MissingExtraError": Exit.MISSING_EXTRA,
    "ArtifactError": Exit.ARTIFACT,
    "ModelError": Exit.MODEL,
    "InputError": Exit.INPUT,
    "SchemaError": Exit.INPUT,
}


def exit_of(error: BaseException) -> Exit:
    """Return the exit code for an error; one of another process carries the name of its class as `kind`."""
    names = [getattr(error, "kind", ""), *(kind.__name__ for kind in type(error).__mro__)]
    expected = Exit.INPUT if isinstance(error, (FasterCEError, OSError)) else Exit.BUG
    return next((EXITS[name] for name in names if name in EXITS), expected)


def guarded(command: Command) -> Command:
    """Return the command with errors shown as one sentence and warnings as one line each."""

    @wraps(command)
    def run(**options: object) -> None:
        try:
            with _warnings_in_one_line():
                command(**options)
        except BrokenPipeError:
            # The reader of stdout has closed it; nothing may be flushed into the closed pipe.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(Exit.DONE) from None
        except KeyboardInterrupt:
            say("[bold]Stopped.[/bold]", always=True)
            raise typer.Exit(Exit.INTERRUPTED) from None
        except (FasterCEError, OSError) as error:
            show_error(sentence_of(error, {**flags_of(command), **FLAGS}))
            raise typer.Exit(exit_of(error)) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            show_error(f"{type(error).__name__}: {error} (unexpected; set {TRACEBACK}=1 for a traceback).")
            raise typer.Exit(Exit.BUG) from None

    return run  # type: ignore[return-value]


def sentence_of(error: Exception, flags: Mapping[str, str]) -> str:
    """Return one sentence that calls options by their flags."""
    if isinstance(error, FasterCEError):
        return error.problem.text(names=flags)
    where = getattr(error, "filename", None)
    return f"{getattr(error, 'strerror', None) or error}{f': {where}' if where else ''}."


def show_error(sentence: str) -> None:
    say(f"[bold red]Error:[/bold red] {escape(' '.join(sentence.split()))}", always=True)


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: say(
            f"[yellow]Warning:[/yellow] {escape(' '.join(str(message).split()))}", always=True
        )
        yield
