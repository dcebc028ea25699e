"""Progress of a long command: a bar on stderr, in a terminal only."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fasterce.cli.console import is_quiet
from fasterce.io.progress import duration

if TYPE_CHECKING:
    from fasterce.batch import BatchProgress

Advance = Callable[[int, int | None, int, float], None]


@contextmanager
def rows_bar(label: str) -> Iterator[Advance]:
    """Yield a function of the rows done, the rows in all (None if unknown), the rows with a counterfactual, and seconds."""
    console = Console(file=sys.stderr)
    if is_quiet() or not console.is_terminal:
        yield lambda done, total, found, seconds: None
        return
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, speed="")

        def advance(done: int, total: int | None, found: int, seconds: float) -> None:
            speed = f"{done / seconds:,.0f} rows/s, {found:,} found" if seconds else ""
            bar.update(task, completed=done, total=total, speed=speed)

        yield advance


@contextmanager
def batch_bar(label: str, every: float = 30.0) -> Iterator[Callable[["BatchProgress"], None]]:
    """Yield a function of the progress of a batch; without a terminal it prints a line every `every` seconds."""
    console = Console(file=sys.stderr, soft_wrap=True, highlight=False)
    if is_quiet():
        yield lambda standing: None
    elif console.is_terminal:
        columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(label, total=None, state="")
            yield lambda standing: bar.update(task, completed=standing.done, total=standing.rows, state=in_words(standing))
    else:
        last = [time.monotonic()]

        def line(standing: "BatchProgress") -> None:
            if time.monotonic() - last[0] >= every:
                last[0] = time.monotonic()
                console.print(f"{label}: {standing.done:,} of {standing.rows:,} rows, {in_words(standing)}")

        yield line


def in_words(standing: "BatchProgress") -> str:
    """Describe speed, remaining time and results."""
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
