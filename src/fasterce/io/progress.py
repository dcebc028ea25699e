"""A progress bar for long work: on in a terminal and in a notebook, silent elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


class Progress:
    """`show=None` asks the terminal: bars go to stderr and only if a person is looking."""

    def __init__(self, show: bool | None = None) -> None:
        self.show = sys.stderr.isatty() or in_notebook() if show is None else show

    def track(self, items: Iterable[Item], what: str) -> Iterator[Item]:
        if not self.show:
            yield from items
            return
        # In a notebook the console draws a bar by itself, and ignores stderr.
        console = Console() if in_notebook() else Console(stderr=True)
        yield from track(items, description=what, console=console, transient=True)


def in_notebook() -> bool:
    """Return whether the code runs in a Jupyter kernel."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ in ("ZMQInteractiveShell", "GoogleShell", "Shell") if shell is not None else False
