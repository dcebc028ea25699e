"""Explanations as HTML that needs nothing else: a fragment for notebooks, a page to send to someone."""

import base64
import io
import warnings
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from fasterce.display import style
from fasterce.display.views import Cell, Grid, Line, RowView, Sheet, row_view, row_views, tall, wide
from fasterce.display.wording import ARROW, counted, summary_lines, text
from fasterce.explanation import Explanation

MOST_FEATURES_ACROSS = 5
SECTIONS_WORTH_A_LIST = 3


def fragment(explanation: Explanation, most: int = 10) -> str:
    """The first `most` rows as tables and what holds for the whole batch, to stand inside any page."""
    parts = [_row(row) for row in row_views(explanation, most)]
    left = len(explanation) - min(most, len(explanation))
    if left:
        parts.append(_paragraph("verdict", f"… and {counted(left, 'more row')}"))
    parts += [_paragraph("summary", line) for line in summary_lines(explanation)]
    parts += [_paragraph("note", f"Note: {text(note)}") for note in explanation.notes]
    return _box(parts)


def rows(explanation: Explanation, positions: Iterable[int]) -> str:
    """Some rows as tables, to stand inside any page."""
    return _box(_row(row_view(explanation, position)) for position in positions)


def sheet(page: Sheet) -> str:
    """Grids with their captions, summary and notes, to stand inside any page."""
    parts = [f'<div class="fce-scroll" tabindex="0">{_table(grid, caption)}</div>' for caption, grid in page.sections]
    parts += [_paragraph("summary", line) for line in page.summary]
    parts += [_paragraph("note", note) for note in page.notes]
    return _box(parts)


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A whole document from (heading, html) sections; headings are escaped, the html is taken as it is."""
    name = escape(text(title))
    body = "".join(
        f'<section id="section-{k}">{_heading(heading)}{html}</section>'
        for k, (heading, html) in enumerate(sections, start=1)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{style.PAGE}</style></head>"
        f"<body><main><h1>{name}</h1>{_contents(sections)}{body}</main></body></html>"
    )


def _heading(said: str) -> str:
    return f"<h2>{escape(text(said))}</h2>" if said else ""


def figure(fig: Any, alt: str = "") -> str:
    """A matplotlib figure as an inline picture; `alt` says what it shows (its title, if nothing is said)."""
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        # A letter matplotlib's font lacks is drawn as a box; the tables beside have it right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        fig.savefig(drawn, format="svg", metadata={"Date": None})
    # As an <img>, several pictures on a page cannot mix up the ids inside their SVG.
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode()}"
    said = escape(text(alt or fig.get_suptitle() or "Figure"))
    return f'<figure class="fce-figure"><img style="max-width:100%;height:auto" src="{source}" alt="{said}"></figure>'


def _box(parts: Iterable[str]) -> str:
    return f'<div class="fce-box"><style>{style.FRAGMENT}</style>{"".join(parts)}</div>'


def _contents(sections: Sequence[tuple[str, str]]) -> str:
    if len(sections) < SECTIONS_WORTH_A_LIST:
        return ""
    links = "".join(
        f'<li><a href="#section-{k}">{escape(text(heading))}</a></li>' for k, (heading, _) in enumerate(sections, start=1)
    )
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _row(row: RowView) -> str:
    if not row.answers:
        status = f'<span class="fce-status">{escape(row.status)}</span>'
        verdict = f'<p class="fce-verdict">{status}{escape(row.reason)}</p>'
        return _paragraph("heading", row.heading) + verdict
    grid = wide(row) if len(row.features) <= MOST_FEATURES_ACROSS else tall(row, row.answers)
    remark = _paragraph("summary", row.reason) if row.reason else ""
    return f'<div class="fce-scroll" tabindex="0">{_table(grid, row.heading)}</div>{remark}'


def _table(grid: Grid, caption: str) -> str:
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.header)
    foot = f"<tfoot>{_lines(grid.foot)}</tfoot>" if grid.foot else ""
    return (
        f'<table class="fce-table"><caption>{escape(caption)}</caption><thead><tr>{header}</tr></thead>'
        f"<tbody>{_lines(grid.lines)}</tbody>{foot}</table>"
    )


def _lines(lines: Iterable[Line]) -> str:
    return "".join(
        f'<tr><th scope="row">{_cell(line[0])}</th>{"".join(_data(cell) for cell in line[1:])}</tr>' for line in lines
    )


def _data(cell: Cell) -> str:
    kind = "changed" if cell.after is not None else "quiet" if cell.quiet else "plain"
    return f'<td class="fce-{kind}">{_cell(cell)}</td>'


def _cell(cell: Cell) -> str:
    if cell.after is None:
        return escape(cell.said)
    return f'{escape(cell.said)} {ARROW} <mark class="fce-to">{escape(cell.after)}</mark>'


def _paragraph(kind: str, said: str) -> str:
    return f'<p class="fce-{kind}">{escape(said)}</p>'
