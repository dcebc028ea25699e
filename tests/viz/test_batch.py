"""The page about a batch: figures that are right, every row without an answer accounted for, nothing unescaped."""

from collections.abc import Callable

import pandas as pd

from fasterce.explanation import Explanation
from fasterce.viz import batch

ROWS = pd.DataFrame({"hours": [20, 30, 40, 50], "housing": ["own", "rent", "own", "<b>rent</b>"]})
Build = Callable[..., Explanation]


def test_the_page_shows_what_was_found_and_what_was_not(build: Build) -> None:
    explanation = build(
        ROWS,
        [(0, "closest", {"hours": 40}, 0.5), (3, "closest", {"housing": "own", "hours": 20}, 1.5)],
        verdicts={1: ("already_target", ""), 2: ("none_found", "Nothing did. <script>")},
    )
    page = batch.page(explanation, title="A <batch>", about={"model": "sha256:abc"}, fit_report="fine & well")
    assert "A &lt;batch&gt;" in page
    assert "67 %" in page  # two of the three that wanted an answer
    assert "Nothing did. &lt;script&gt;" in page
    assert page.count("<script>") == 1  # our own, which sorts the table
    assert "<b>rent" not in page
    assert "sha256:abc" in page
    assert "fine &amp; well" in page
    assert page.count("<img") == 3
    assert "Row 1:" not in page  # a row that has what it wants is not shown one by one


def test_a_page_without_any_counterfactual_needs_no_pictures(build: Build) -> None:
    explanation = build(ROWS, verdicts=dict.fromkeys(range(4), ("model_error", "It broke.")))
    page = batch.page(explanation)
    assert "<img" not in page
    assert "0 %" in page
    assert "It broke." in page


def test_an_empty_batch_has_a_page_too(build: Build) -> None:
    page = batch.page(build(ROWS.head(0), training=ROWS))
    assert "At a glance" in page


def test_only_the_first_rows_are_shown_one_by_one(build: Build) -> None:
    rows = pd.concat([ROWS] * 10, ignore_index=True)
    counterfactuals = [(k, "closest", {"hours": 45}, 0.5) for k in range(len(rows))]
    page = batch.page(build(rows, counterfactuals), most=3)
    assert "The first 3 rows of 40, one by one" in page
    assert "Row 3:" not in page
