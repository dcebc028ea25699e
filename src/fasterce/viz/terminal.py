"""Explanations in a terminal: a table a row, as wide as there is room for."""

import io
import shutil
import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from fasterce.display.views import SHARES, AnswerView, Cell, Grid, RowView, Sheet, row_views, tall, wide
from fasterce.display.wording import ARROW, counted, summary_lines, text
from fasterce.explanation import Explanation

WIDTH_WITHOUT_TERMINAL = 100
UNLIMITED = 100_000
INDENT = 2
CHANGED = "bold cyan"
QUIET = "dim"
ON_THE_RIGHT = {"Distance", *SHARES.values()}


def render(explanation: Explanation) -> str:
    """The explanation as text."""
    return written(tables(explanation))


def written(part: RenderableType) -> str:
    """Anything of ours as text: coloured if it goes to a terminal, plain otherwise."""
    in_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 0)).columns
    page = io.StringIO()
    console = Console(file=page, width=width, force_terminal=in_terminal, force_jupyter=False)
    console.print(part)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).rstrip()


def tables(explanation: Explanation, most: int = 5) -> RenderableType:
    """The first `most` rows as tables, then what holds for the whole batch, for `rich`'s print."""
    parts: list[RenderableType] = []
    for row in row_views(explanation, most):
        parts += [Text(row.heading, style="bold"), _body(row), Text()]
    left = len(explanation) - min(most, len(explanation))
    if left:
        parts += [Text(f"… and {counted(left, 'more row')}", style=QUIET), Text()]
    parts += [Text(line) for line in summary_lines(explanation)]
    parts += [Text(f"Note: {text(note)}", style="yellow") for note in explanation.notes]
    return Group(*parts)


def sheet(page: Sheet) -> RenderableType:
    """Grids with their captions, summary and notes, for `rich`'s print."""
    parts: list[RenderableType] = []
    for caption, grid in page.sections:
        parts += [Text(caption, style="bold"), _indented(_draw(grid)), Text()]
    parts += [Text(line) for line in page.summary]
    parts += [Text(note, style="yellow") for note in page.notes]
    return Group(*parts)


def _body(row: RowView) -> RenderableType:
    if not row.answers:
        return _indented(Text(row.verdict))
    return Group(_Fitted(row), _indented(Text(row.reason, style=QUIET))) if row.reason else _Fitted(row)


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, INDENT))


class _Fitted:
    """One row in the widest layout that fits; the room is known only while printing."""

    def __init__(self, row: RowView) -> None:
        self.row = row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        across = _draw(wide(self.row))
        if _fits(across, console, options):
            yield _indented(across)
        else:
            yield from self._tall(self.row.answers, console, options)

    def _tall(self, answers: tuple[AnswerView, ...], console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        down = _draw(tall(self.row, answers))
        if len(answers) == 1 or _fits(down, console, options):
            yield _indented(down)
            return
        half = (len(answers) + 1) // 2
        yield from self._tall(answers[:half], console, options)
        yield Text()
        yield from self._tall(answers[half:], console, options)


def _fits(drawn: RichTable, console: Console, options: ConsoleOptions) -> bool:
    return Measurement.get(console, options.update(width=UNLIMITED), drawn).maximum <= options.max_width - INDENT


def _draw(grid: Grid) -> RichTable:
    drawn = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), header_style="bold")
    for name in grid.header:
        drawn.add_column(Text(name), overflow="fold", justify="right" if name in ON_THE_RIGHT else "left")
    for line in grid.lines:
        drawn.add_row(*map(_cell, line))
    if grid.foot:
        drawn.add_section()
    for line in grid.foot:
        drawn.add_row(*map(_cell, line))
    return drawn


def _cell(cell: Cell) -> Text:
    if cell.after is None:
        return Text(cell.said, style=QUIET if cell.quiet else "")
    return Text.assemble(f"{cell.said} {ARROW} ", (cell.after, CHANGED))
