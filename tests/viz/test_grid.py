"""Reports as text and HTML: whole, escaped, and cut where they run on."""

import pandas as pd

from fasterce.viz import html, terminal
from fasterce.viz.grid import MOST_LINES, Sheet


def sheet(rows: int = 2) -> Sheet:
    frame = pd.DataFrame({"value": [0.12345] * rows, "drifted": [True, False] * (rows // 2), "names": [["a", "b"]] * rows})
    return Sheet.from_frame("<b>verdict</b>", frame.rename_axis("feature"), ("a line & more",))


def test_text_has_the_heading_the_cells_and_the_lines() -> None:
    shown = terminal.to_text(terminal.sheet(sheet()))
    for part in ("<b>verdict</b>", "feature", "0.123", "yes", "a, b", "a line & more"):
        assert part in shown


def test_html_is_escaped() -> None:
    shown = html.sheet(sheet())
    assert "&lt;b&gt;verdict&lt;/b&gt;" in shown
    assert "a line &amp; more" in shown
    assert "<b>" not in shown


def test_long_tables_are_cut_and_say_so() -> None:
    for shown in (terminal.to_text(terminal.sheet(sheet(MOST_LINES + 4))), html.sheet(sheet(MOST_LINES + 4))):
        assert "… and 4 more lines" in shown
    assert "more line" not in terminal.to_text(terminal.sheet(sheet(MOST_LINES)))


def test_a_sheet_without_lines_has_no_table() -> None:
    nothing = Sheet.from_frame("All is well.", pd.DataFrame({"field": []}, dtype=object), ("A note.",))
    assert terminal.to_text(terminal.sheet(nothing)) == "All is well.\nA note."
