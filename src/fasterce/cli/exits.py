"""What a command ends with: one exit code a kind of trouble, one sentence on stderr."""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import Any, TypeVar

import typer
from rich.markup import escape

from fasterce.cli.console import say
from fasterce.errors import ArtifactError, FasterCEError, MissingExtraError, ModelError

TRACEBACK = "FASTERCE_TRACEBACK"

Command = TypeVar("Command", bound=Callable[..., Any])


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


def code_of(error: BaseException) -> Exit:
    """Which exit code an error ends with; one told by another process says its kind by name."""
    kinds = ((MissingExtraError, Exit.MISSING_EXTRA), (ArtifactError, Exit.ARTIFACT), (ModelError, Exit.MODEL))
    for kind, code in kinds:
        if isinstance(error, kind) or getattr(error, "kind", "") == kind.__name__:
            return code
    return Exit.INPUT if isinstance(error, (FasterCEError, OSError)) else Exit.BUG


def guarded(command: Command) -> Command:
    """The command with errors told in one sentence and warnings in one line each."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            with _warnings_in_a_line():
                return command(*arguments, **options)
        except BrokenPipeError:
            _leave_quietly()
        except KeyboardInterrupt:
            say("[bold]Stopped.[/bold]", always=True)
            raise typer.Exit(Exit.INTERRUPTED) from None
        except (FasterCEError, OSError) as error:
            _tell(in_words_of_the_command_line(error))
            raise typer.Exit(code_of(error)) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK):
                raise
            _tell(f"{type(error).__name__}: {error} (not foreseen; set {TRACEBACK}=1 to see where).")
            raise typer.Exit(Exit.BUG) from None

    return run  # type: ignore[return-value]


# What Python calls one thing and the command line another.
WORDS = (
    (r"trust_pickle=True", "--trust-pickle"),
    (r"\bresume=False", "--fresh"),
    (r"\bencoding='?([\w-]+)'?", r"--encoding \1"),
    (r"\bkind='?(\w+)'?", r"a name that ends as \1 files do"),
    (r"\bfeatures_to_vary\b", "--vary"),
    (r"\bpermitted_range\b", "--range"),
    (r"\btarget_score\b", "--target-score"),
    (r"\btarget must be \(low, high\), None for an open end; got None", "--target must be LOW:HIGH; got none"),
    (r"\brules: Frozen\b", "--freeze"),
    (r"^X must\b", "The data must"),
    (r"^n must\b", "--n must"),
    (r"^(where|input|output|keep|workers|address|retries|limit)\b(?=:? |, in)", r"--\1"),
    (r"^(partition_by|shard_rows|batch_rows)\b", lambda found: f"--{found[1].replace('_', '-')}"),
    (r"^(robust|realism|budget|distance) must\b", r"--\1 must"),
)


def in_words_of_the_command_line(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, FasterCEError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    said = str(error)
    for python, command in WORDS:
        said = re.sub(python, command, said)
    return said


def _tell(sentence: str) -> None:
    say(f"[bold red]Error:[/bold red] {escape(' '.join(sentence.split()))}", always=True)


@contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: say(
            f"[yellow]Warning:[/yellow] {escape(' '.join(str(message).split()))}", always=True
        )
        yield


def _leave_quietly() -> None:
    """Whoever read our output has seen enough; nothing may be flushed into the closed pipe on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(Exit.DONE)
