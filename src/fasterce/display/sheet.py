"""A verdict, a table and a few lines, in a terminal and as HTML: for reports that are not explanations."""

import io
import shutil
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from fasterce.display import style
from fasterce.display.wording import counted, cut, measure, text

WIDTH_WITHOUT_TERMINAL = 100
MOST_LINES = 30


class Shown(ABC):
    """A report that can be looked at: as text, in a terminal, in a notebook."""

    @abstractmethod
    def _sheet(self) -> "Sheet": ...

    def __str__(self) -> str:
        return render(self._sheet())

    def __rich__(self) -> Any:
        return renderable(self._sheet())

    def _repr_html_(self) -> str:
        return html(self._sheet())


@dataclass(frozen=True)
class Sheet:
    """`frame` is shown with its index first, and only its first lines."""

    heading: str
    frame: pd.DataFrame
    lines: tuple[str, ...] = ()

    @property
    def header(self) -> list[str]:
        return [text(name) for name in (self.frame.index.name or "", *self.frame.columns)]

    @property
    def body(self) -> list[list[str]]:
        return [[said(value) for value in line] for line in self.frame.head(MOST_LINES).itertuples()]

    @property
    def closing(self) -> list[str]:
        left = len(self.frame) - MOST_LINES
        return [*([f"… and {counted(left, 'more line')}"] if left > 0 else []), *map(text, self.lines)]


def said(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else ""
    if isinstance(value, (list, tuple)):
        return ", ".join(cut(one) for one in value)
    return measure(float(value)) if isinstance(value, (float, np.floating)) and not np.isnan(value) else cut(value)


def render(sheet: Sheet) -> str:
    """The sheet as text: coloured if it goes to a terminal, plain otherwise."""
    in_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 0)).columns
    page = io.StringIO()
    Console(file=page, width=width, force_terminal=in_terminal, force_jupyter=False).print(renderable(sheet))
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).rstrip()


def renderable(sheet: Sheet) -> RenderableType:
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in sheet.header:
        drawn.add_column(Text(name), overflow="fold")
    for line in sheet.body:
        drawn.add_row(*map(Text, line))
    body: list[RenderableType] = [Text(), drawn, Text()] if len(sheet.frame) else []
    return Group(Text(text(sheet.heading), style="bold"), *body, *map(Text, sheet.closing))


def html(sheet: Sheet) -> str:
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in sheet.header)
    body = "".join(
        f'<tr><th scope="row">{escape(line[0])}</th>'
        + "".join(f'<td class="fce-plain">{escape(cell)}</td>' for cell in line[1:])
        + "</tr>"
        for line in sheet.body
    )
    closing = "".join(f'<p class="fce-summary">{escape(line)}</p>' for line in sheet.closing)
    return (
        f'<div class="fce-box"><style>{style.FRAGMENT}</style><p class="fce-heading">{escape(text(sheet.heading))}</p>'
        f'<div class="fce-scroll" tabindex="0"><table class="fce-table"><thead><tr>{header}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{closing}</div>"
    )
