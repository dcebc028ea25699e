"""What a person sees in a notebook or on a page, and that nobody's data can run there."""

import base64
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from fasterce.viz import html

HOSTILE = "<script>alert('x')</script>"


class Outline(HTMLParser):
    """Tags opened, whether they close in order, and the text of every table cell."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if any(tag in self.open for tag in ("td", "th", "caption")):
            self.cells[-1] += data

    def count(self, tag, **attrs):
        return sum(name == tag and attrs.items() <= given.items() for name, given in self.tags)


def test_changes_are_shown_and_marked(loans):
    outline = Outline(html.fragment(loans))
    assert {"9,000 → 52,000", "0.5 → 1.75", "clerk → nurse", "45 → 47"} <= set(outline.cells)
    assert outline.count("mark") == 4
    assert outline.open == []


def test_features_that_stay_are_not_shown(loans):
    assert "city" not in Outline(html.fragment(loans)).cells


def test_tables_can_be_read_aloud(loans):
    outline = Outline(html.fragment(loans))
    assert "Row ann: refused → granted" in outline.cells
    assert outline.count("table") == outline.count("caption") == 2
    assert outline.count("th", scope="col") + outline.count("th", scope="row") == outline.count("th")
    assert outline.count("th", scope="row") == 5


def test_reasons_summary_and_notes_are_shown(loans):
    shown = html.fragment(loans)
    assert "none_found" in shown
    assert "No way led to granted within 500 rows." in shown
    assert "3 rows: 2 found, 1 none_found" in shown
    assert "Note: The model gave no scores." in shown


def test_rows_beyond_the_first_are_counted(loans):
    shown = html.fragment(loans, most=1)
    assert "… and 2 more rows" in shown
    assert "Row bob" not in shown
    assert "more row" not in html.fragment(loans)


def test_many_changes_are_listed_one_below_the_other(build):
    rows = pd.DataFrame({f"f{k}": [k, k + 50] for k in range(12)})
    outline = Outline(html.fragment(build(rows, [(0, "line", {f"f{k}": k + 50 for k in range(12)}, 1.0)])))
    assert outline.count("th", scope="col") == 2
    assert {f"{k} → {k + 50}" for k in range(12)} <= set(outline.cells)


@pytest.mark.parametrize("features", [1, 8])
def test_nothing_a_user_names_becomes_html(build, features):
    names = [f"{HOSTILE}{k}" for k in range(features)]
    rows = pd.DataFrame({name: [f"{HOSTILE}a", f"{HOSTILE}b"] for name in names}, index=[HOSTILE, "other"])
    explanation = build(
        rows,
        [(0, HOSTILE, dict.fromkeys(names, f"{HOSTILE}b"), 1.0)],
        prediction=HOSTILE,
        target=f"{HOSTILE}!",
        verdicts={1: (HOSTILE, HOSTILE)},
        notes=(HOSTILE,),
    )
    outline = Outline(html.page(HOSTILE, [(HOSTILE, html.fragment(explanation))] * 3))
    assert outline.count("script") == 0
    assert f"{HOSTILE}a → {HOSTILE}b" in outline.cells
    assert f"{HOSTILE}0" in outline.cells


def test_the_style_touches_only_our_own_classes(loans):
    style = re.search(r"<style>(.*?)</style>", html.fragment(loans), re.DOTALL)
    assert style is not None
    sheet = style.group(1)
    selectors = [part.strip() for part in re.findall(r"([^{}]+)\{", sheet) if not part.strip().startswith("@media")]
    assert selectors
    assert all(one.strip().startswith(".fce-box") for selector in selectors for one in selector.split(","))
    assert "prefers-color-scheme: dark" in sheet


def test_an_empty_explanation_is_shown(build, people):
    shown = html.fragment(build(people.iloc[:0], training=people))
    assert "0 rows" in shown
    assert "<table" not in shown


def test_a_notebook_gets_the_fragment(loans):
    assert loans._repr_html_() == html.fragment(loans)


def test_a_page_is_whole_and_needs_nothing_else():
    shown = html.page("Loans", [("First", "<p>one</p>"), ("Second", "<p>two</p>")])
    outline = Outline(shown)
    assert shown.startswith("<!doctype html>")
    assert outline.open == []
    assert outline.count("meta", charset="utf-8") == outline.count("meta", name="viewport") == 1
    assert shown.index("First") < shown.index("<p>one</p>") < shown.index("Second") < shown.index("<p>two</p>")
    assert "http" not in shown
    assert "url(" not in shown


def test_a_long_page_links_to_its_sections():
    outline = Outline(html.page("Loans", [("A", ""), ("B", ""), ("C", "")]))
    targets = [given["href"].removeprefix("#") for tag, given in outline.tags if tag == "a"]
    assert targets == [given["id"] for tag, given in outline.tags if tag == "section"]
    assert len(targets) == 3


def test_a_figure_is_inline_with_words_for_those_who_cannot_see_it():
    figures = pytest.importorskip("matplotlib.figure")
    drawn = figures.Figure()
    drawn.suptitle("The title")
    (image,) = [given for tag, given in Outline(html.figure(drawn, 'says "so"')).tags if tag == "img"]
    kind, data = image["src"].split(",", 1)
    assert image["alt"] == 'says "so"'
    assert kind == "data:image/svg+xml;base64"
    assert b"<svg" in base64.b64decode(data)
    assert 'alt="The title"' in html.figure(drawn)
