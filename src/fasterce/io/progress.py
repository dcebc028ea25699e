"""A progress bar for long work: on in a terminal and in a notebook, silent elsewhere."""

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")
# What IPython calls its shell in Jupyter and in Google Colab.
NOTEBOOK_SHELLS = ("ZMQInteractiveShell", "Shell")


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
    """Return whether the code runs in a Jupyter kernel that can draw a bar, which needs ipywidgets."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ in NOTEBOOK_SHELLS and find_spec("ipywidgets") is not None
