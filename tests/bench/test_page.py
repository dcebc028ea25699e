"""A report's blocks as HTML and Markdown: nothing a system says can break the page."""

from pathlib import Path

from benchmarks.page import Grid, Picture, Text, as_html, as_markdown, marked

from fasterce.viz.canvas import message

NASTY = "<script>alert(1)</script> | a\nb"


def test_what_a_system_says_is_text_in_html() -> None:
    page = as_html("t", [("h", [Text(NASTY), Grid(["why"], [[NASTY, NASTY]])])])
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 3


def test_what_a_system_says_stays_in_its_cell_in_markdown(tmp_path: Path) -> None:
    text = as_markdown("t", [("h", [Grid(["a", "b"], [["x", NASTY]])])], tmp_path)
    assert text.splitlines()[-1] == "| x | <script>alert(1)</script> / a b |"


def test_marks() -> None:
    assert marked("**bold** and *said*, `a < b`, 2 * 3 * 4") == (
        "<b>bold</b> and <i>said</i>, <code>a &lt; b</code>, 2 * 3 * 4"
    )


def test_a_picture_is_inside_the_page_and_beside_the_markdown(tmp_path: Path) -> None:
    picture = Picture("empty", message("nothing", "There is nothing."), "Nothing")
    assert 'src="data:image/svg+xml;base64,' in as_html("t", [("h", [picture])])
    assert as_markdown("t", [("h", [picture])], tmp_path).strip().endswith("![Nothing](figures/empty.svg)")
    assert (tmp_path / "figures" / "empty.svg").read_text().startswith("<?xml")
