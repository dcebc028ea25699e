"""Explanations as self-contained HTML: fragments for notebooks and whole pages."""

import base64
import io
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from markupsafe import Markup

from fasterce.explanation import Explanation
from fasterce.viz import templates
from fasterce.viz.formatting import summary_lines, text
from fasterce.viz.grid import Grid, Sheet
from fasterce.viz.views import RowView, first_rows, row_view, tall, wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS = 5  # More features than this are listed one below the other.


def fragment(explanation: Explanation, most: int = 10) -> Markup:
    """Return the first `most` rows as tables, and the summary of the batch, to stand inside any page."""
    rows, more = first_rows(explanation, most)
    notes = [f"Note: {text(note)}" for note in explanation.notes]
    return _fragment(rows, more=more, summary=summary_lines(explanation), notes=notes)


def rows(explanation: Explanation, positions: Iterable[int]) -> Markup:
    """Return the rows at some positions as tables, to stand inside any page."""
    return _fragment(row_view(explanation, position) for position in positions)


def sheet(shown: Sheet) -> Markup:
    """Return the tables of a sheet with heading, summary and notes, to stand inside any page."""
    return _fragment(heading=shown.heading, sections=shown.sections, summary=shown.summary, notes=shown.notes)


def page(title: str, sections: Iterable[tuple[str, str]], meta: str = "") -> Markup:
    """Return a whole document.

    Parameters
    ----------
    title : str
        Escaped, as are the headings.
    sections : iterable of (heading, html)
        The HTML of each section is taken as it is.
    meta : str, default=""
        A line below the title, such as the model and the date.
    """
    shown = [(text(heading) if heading else "", Markup(content)) for heading, content in sections]
    return templates.render("page.html.j2", title=text(title), sections=shown, meta=text(meta) if meta else "")


def figure(drawn: "Figure", alt: str = "") -> Markup:
    """Return a matplotlib figure as an inline picture; `alt` is its description, by default its title."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Matplotlib draws a box for a letter its font lacks; the tables beside the figure have it right.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    # As an <img>, several pictures of one page cannot mix up the ids inside their SVG.
    source = f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return templates.part("figure", source, text(alt or drawn.get_suptitle() or "Figure"))


def _fragment(rows: Iterable[RowView] = (), **content: object) -> Markup:
    """Render rows and the rest of the content; the template knows what may be left out."""
    return templates.render("fragment.html.j2", rows=[(row, _grid(row)) for row in rows], **content)


def _grid(row: RowView) -> Grid | None:
    if not row.methods:
        return None
    return wide(row) if len(row.features) <= MOST_COLUMNS else tall(row, range(len(row.methods)))
