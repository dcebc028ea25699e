"""How far a long command is: a bar on stderr, in a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fasterce.cli.console import is_quiet

if TYPE_CHECKING:
    from fasterce.batch import Standing

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


@contextmanager
def batch_bar(said: str, every: float = 30.0) -> Iterator[Callable[["Standing"], None]]:
    """The same for a batch; where nobody looks at a terminal, a line on stderr every half minute."""
    console = Console(file=sys.stderr, soft_wrap=True, highlight=False)
    if is_quiet():
        yield lambda standing: None
    elif console.is_terminal:
        columns = (TextColumn(said), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[told]}"))
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(said, total=None, told="")
            yield lambda standing: bar.update(task, completed=standing.done, total=standing.rows, told=in_words(standing))
    else:
        last = [time.monotonic()]

        def line(standing: "Standing") -> None:
            if time.monotonic() - last[0] >= every:
                last[0] = time.monotonic()
                console.print(f"{said}: {standing.done:,} of {standing.rows:,} rows, {in_words(standing)}")

        yield line


def in_words(standing: "Standing") -> str:
    """How fast it goes, when it will be done, and what was found."""
    fresh = standing.done - standing.done_before
    speed = fresh / standing.seconds if standing.seconds else 0.0
    explained = standing.done - standing.filtered
    parts = [
        f"{speed:,.0f} rows/s",
        f"{duration((standing.rows - standing.done) / speed)} left" if speed else "",
        f"{standing.found / explained:.0%} found" if explained else "",
        f"{standing.calls:,} calls",
        f"{standing.retried:,} tried again" if standing.retried else "",
        f"{standing.failed:,} shards failed" if standing.failed else "",
    ]
    return ", ".join(part for part in parts if part)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, as far as they matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
