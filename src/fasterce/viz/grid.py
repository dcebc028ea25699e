"""Tables of text as data, drawn by `terminal` and `html`; and the base class of reports that can be displayed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fasterce.viz.formatting import change, counted, cut, measure, text

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_LINES = 30
# The mark after a change against the person's interest, and its meaning.
AGAINST, AGAINST_LEGEND = "!", "! not in the person's interest"


@dataclass(frozen=True)
class GridCell:
    """The text of a cell, and the text it changes to, if it does; `quiet` cells are drawn in grey.

    `against` marks a change against the person's interest.
    """

    text: str
    after: str | None = None
    quiet: bool = False
    against: bool = False

    def __str__(self) -> str:
        return self.text if self.after is None else f"{change(self.text, self.after)}{self.mark}"

    @property
    def mark(self) -> str:
        return f" {AGAINST}" if self.against else ""


GridLine = tuple[GridCell, ...]


@dataclass(frozen=True)
class Grid:
    """A header, lines, and lines that sum up; the first cell of every line is its name."""

    header: tuple[str, ...]
    lines: tuple[GridLine, ...]
    foot: tuple[GridLine, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A heading, grids with their captions, lines of summary, and notes that a reader must not miss."""

    sections: tuple[tuple[str, Grid], ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...] = ()
    heading: str = ""

    @classmethod
    def from_frame(cls, heading: str, frame: pd.DataFrame, lines: tuple[str, ...] = ()) -> "Sheet":
        """Show a table, its index first, and only its first lines."""
        header = tuple(text(name) for name in (frame.index.name or "", *frame.columns))
        body = tuple(tuple(GridCell(_value(value)) for value in line) for line in frame.head(MOST_LINES).itertuples())
        left = len(frame) - MOST_LINES
        more = [f"… and {counted(left, 'more line')}"] if left > 0 else []
        sections = (("", Grid(header, body)),) if len(frame) else ()
        return cls(sections, (*more, *map(text, lines)), heading=text(heading))


class Displayable(ABC):
    """A report that can be displayed: as text, in a terminal, in a notebook."""

    @abstractmethod
    def _sheet(self) -> Sheet: ...

    def __str__(self) -> str:
        from fasterce.viz import terminal  # noqa: PLC0415 - imported only to display

        return terminal.to_text(terminal.sheet(self._sheet()))

    def __rich__(self) -> "RenderableType":
        from fasterce.viz import terminal  # noqa: PLC0415

        return terminal.sheet(self._sheet())

    def _repr_html_(self) -> str:
        from fasterce.viz import html  # noqa: PLC0415

        return html.sheet(self._sheet())


def _value(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else ""
    if isinstance(value, (list, tuple)):
        return ", ".join(cut(one) for one in value)
    return measure(float(value)) if isinstance(value, (float, np.floating)) and not np.isnan(value) else cut(value)
