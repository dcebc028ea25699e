"""Progress of long work with the time left: bars in a terminal, a line of text in a notebook, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from time import monotonic
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import Progress as RichProgress

Item = TypeVar("Item")
ShowDone = Callable[[int], None]

# Seconds of history behind the time left: a call of a slow model takes longer than rich's 30.
SPEED_PERIOD = 600.0
# Seconds between two changes of the line in a notebook.
NOTEBOOK_PERIOD = 0.5


class Progress:
    """Show the progress of long work in a terminal or a notebook.

    Parameters
    ----------
    show : bool, optional
        Whether to show anything; by default in a terminal (on stderr) or a notebook only.

    Notes
    -----
    Tasks started within `with progress:` share one display; `track` opens one by itself where there is none.
    """

    def __init__(self, show: bool | None = None) -> None:
        self.show = sys.stderr.isatty() or notebook_kernel() is not None if show is None else show
        self._depth = 0
        self._display: _Display | None = None

    def __enter__(self) -> "Progress":
        self._depth += 1
        if self.show and self._display is None:
            self._display = _NotebookLine() if notebook_kernel() is not None else _terminal_bars()
            self._display.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._depth -= 1
        if self._display is not None and not self._depth:
            self._display.stop()
            self._display = None

    def task(self, what: str, total: int | None) -> ShowDone:
        """Return a function that shows how much of `total` is done."""
        display = self._display
        if display is None:
            return lambda done: None
        number = display.add_task(what, total=total)
        return lambda done: display.update(number, completed=done)

    def track(self, items: Iterable[Item], what: str) -> Iterator[Item]:
        """Yield the items; each counts as done when the next one is requested."""
        with self:
            show_done = self.task(what, len(items) if isinstance(items, Sized) else None)
            for done, item in enumerate(items, start=1):
                yield item
                show_done(done)


class _Display(Protocol):
    """The methods of rich's `Progress` that are used."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def add_task(self, description: str, *, total: float | None) -> Any: ...
    def update(self, task_id: Any, *, completed: float) -> None: ...


def _terminal_bars() -> RichProgress:
    # Output of the user's model stays on stdout.
    console = Console(stderr=True)
    return RichProgress(console=console, transient=True, redirect_stdout=False, speed_estimate_period=SPEED_PERIOD)


class _NotebookLine:
    """A line of text with the last task that changed; rich needs ipywidgets in a notebook, this does not."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, float | None, float]] = []
        self.shown_at = 0.0

    def start(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - there in a notebook only

        self.handle = display({"text/plain": ""}, raw=True, display_id=True)

    def stop(self) -> None:
        self._show("")

    def add_task(self, description: str, *, total: float | None) -> int:
        self.tasks.append((description, total, monotonic()))
        self._show(f"{description} …")
        return len(self.tasks) - 1

    def update(self, task_id: int, *, completed: float) -> None:
        if monotonic() - self.shown_at >= NOTEBOOK_PERIOD:
            self._show(in_words(*self.tasks[task_id][:2], completed, monotonic() - self.tasks[task_id][2]))

    def _show(self, text: str) -> None:
        self.shown_at = monotonic()
        self.handle.update({"text/plain": text}, raw=True)


def notebook_kernel() -> object | None:
    """Return the kernel of the notebook this runs in, None elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None)


def in_words(what: str, total: float | None, done: float, seconds: float) -> str:
    """Describe how much of a task is done and the time left."""
    if total is None:
        return f"{what}: {done:,.0f}"
    left = f", {duration(seconds / done * max(0.0, total - done))} left" if done else ""
    return f"{what}: {done:,.0f} of {total:,.0f}{left}"


def duration(seconds: float) -> str:
    """Format seconds as hours and minutes, minutes and seconds, or seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
