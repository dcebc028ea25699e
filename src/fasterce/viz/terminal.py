"""Explanations in a terminal: one table per row, in the layout that fits its width."""

import io
import shutil
import sys
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from fasterce.explanation import Explanation
from fasterce.viz.formatting import ARROW, summary_lines, text
from fasterce.viz.grid import Grid, GridCell, Sheet
from fasterce.viz.views import MEASURES, RowView, first_rows, tall, wide

WIDTH_WITHOUT_TERMINAL = 100
UNLIMITED = 100_000
INDENT = 2
CHANGED = "bold cyan"
QUIET = "dim"
AGAINST_STYLE = "bold yellow"
RIGHT_ALIGNED = {"Distance", *MEASURES.values()}


def render(explanation: Explanation) -> str:
    """Return an explanation as text."""
    return to_text(tables(explanation))


def to_text(renderable: RenderableType) -> str:
    """Return what `rich` would print: coloured if it goes to a terminal, plain otherwise."""
    in_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 0)).columns
    buffer = io.StringIO()
    Console(file=buffer, width=width, force_terminal=in_terminal, force_jupyter=False).print(renderable)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).rstrip()


def tables(explanation: Explanation, most: int = 5) -> RenderableType:
    """Return the first `most` rows as tables and the summary of the batch, for `rich`'s print."""
    parts: list[RenderableType] = []
    rows, more = first_rows(explanation, most)
    for row in rows:
        parts += [Text(row.heading, style="bold"), _body(row), Text()]
    parts += [Text(more, style=QUIET), Text()] if more else []
    parts += [Text(line) for line in summary_lines(explanation)]
    parts += [Text(f"Note: {text(note)}", style="yellow") for note in explanation.notes]
    return Group(*parts)


def sheet(shown: Sheet) -> RenderableType:
    """Return the tables of a sheet with heading, summary and notes, for `rich`'s print."""
    parts: list[RenderableType] = [Text(shown.heading, style="bold")] if shown.heading else []
    for caption, grid in shown.sections:
        table = _draw(grid)
        parts += [Text(caption, style="bold"), _indented(table), Text()] if caption else [Text(), table, Text()]
    parts += [Text(line) for line in shown.summary]
    parts += [Text(note, style="yellow") for note in shown.notes]
    return Group(*parts)


def _body(row: RowView) -> RenderableType:
    if not row.methods:
        return _indented(Text(row.verdict))
    below = [_indented(Text(line, style=QUIET)) for line in (row.legend, row.reason) if line]
    return Group(_Fitted(row), *below)


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))


class _Fitted:
    """One row in the widest layout that fits; the width is known only while printing."""

    def __init__(self, row: RowView) -> None:
        self.row = row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        across = _draw(wide(self.row))
        if _fits(across, console, options):
            yield _indented(across)
        else:
            yield from self._tall(range(len(self.row.methods)), console, options)

    def _tall(self, shown: Sequence[int], console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        down = _draw(tall(self.row, shown))
        if len(shown) == 1 or _fits(down, console, options):
            yield _indented(down)
            return
        half = (len(shown) + 1) // 2
        yield from self._tall(shown[:half], console, options)
        yield Text()
        yield from self._tall(shown[half:], console, options)


def _fits(table: RichTable, console: Console, options: ConsoleOptions) -> bool:
    return Measurement.get(console, options.update(width=UNLIMITED), table).maximum <= options.max_width - INDENT


def _draw(grid: Grid) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in grid.header:
        table.add_column(Text(name), overflow="fold", justify="right" if name in RIGHT_ALIGNED else "left")
    for part in (grid.lines, grid.foot):
        for line in part:
            table.add_row(*map(_cell, line))
        table.add_section()
    return table


def _cell(cell: GridCell) -> Text:
    if cell.after is None:
        return Text(cell.text, style=QUIET if cell.quiet else "")
    return Text.assemble(f"{cell.text} {ARROW} ", (cell.after, CHANGED), (cell.mark, AGAINST_STYLE))
