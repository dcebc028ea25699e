"""A progress bar for long work: on in a terminal, silent elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


class Progress:
    """`show=None` asks the terminal: bars go to stderr and only if a person is looking."""

    def __init__(self, show: bool | None = None) -> None:
        self.show = sys.stderr.isatty() if show is None else show

    def track(self, items: Iterable[Item], what: str) -> Iterator[Item]:
        if not self.show:
            yield from items
            return
        yield from track(items, description=what, console=Console(stderr=True), transient=True)
