"""How far a long command is: a bar on stderr, in a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fasterce.cli.console import is_quiet

Advance = Callable[[int, int | None, int, float], None]


@contextmanager
def rows_bar(said: str) -> Iterator[Advance]:
    """Hands out a function of rows done, rows in all (None if unknown) and answers found."""
    columns = (TextColumn(said), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]}"))
    console = Console(file=sys.stderr)
    shown = not is_quiet() and console.is_terminal
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not shown, transient=True
    ) as bar:
        task = bar.add_task(said, total=None, speed="")

        def advance(done: int, total: int | None, found: int, seconds: float) -> None:
            speed = f"{done / seconds:,.0f} rows/s, {found:,} found" if seconds else ""
            bar.update(task, completed=done, total=total, speed=speed)

        yield advance
