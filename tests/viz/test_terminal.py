"""What a person sees after print(explanation)."""

import os
import re
import sys

import pandas as pd
import pytest
from rich.console import Console

from fasterce.viz.formatting import number
from fasterce.viz.terminal import render, tables

ESCAPE = "\x1b"


@pytest.fixture(autouse=True)
def _wide_and_piped(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def at_width(monkeypatch, explanation, width):
    monkeypatch.setenv("COLUMNS", str(width))
    return render(explanation)


def block(text, heading):
    """The lines of one row, from its heading to the next blank line."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(heading))
    end = next((k for k in range(start, len(lines)) if not lines[k]), len(lines))
    return lines[start:end]


def columns(line):
    return re.split(r"\s{2,}", line.strip())


def test_a_row_is_a_table_of_what_changes(loans):
    heading, header, _, start, first, second = block(render(loans), "Row ann")
    assert heading == "Row ann: refused → granted"
    assert columns(header) == ["Method", "income", "rate", "job", "Prediction", "Distance"]
    assert columns(start) == ["Input", "9,000", "0.5", "clerk", "refused"]
    assert columns(first) == ["line", "9,000 → 52,000", "0.5 → 1.75", "clerk", "granted", "0.312"]
    assert columns(second) == ["tree", "9,000", "0.5", "clerk → nurse", "granted", "0.5"]


def test_features_that_stay_are_not_shown(loans):
    assert "city" not in render(loans)
    assert "income" not in "\n".join(block(render(loans), "Row bob"))


def test_a_row_without_counterfactual_says_why(loans):
    assert block(render(loans), "Row cat")[1].strip() == "none_found: No way led to granted within 500 rows."


def test_the_summary_of_the_batch_and_notes_are_shown(loans):
    shown = render(loans)
    assert "3 rows: 2 found, 1 none_found · 7 model calls" in shown
    assert "1.5 features changed" in shown
    assert "90 model rows" in shown
    assert "4 ms" in shown
    assert "Note: The model gave no scores." in shown


def test_rows_beyond_the_first_are_counted(build, people):
    many = build(pd.concat([people] * 3, ignore_index=True))
    assert "… and 4 more rows" in render(many)
    assert "Row 4" in render(many)
    assert "Row 5" not in render(many)


def test_most_sets_how_many_rows_are_shown(loans):
    console = Console(width=100)
    with console.capture() as shown:
        console.print(tables(loans, most=1))
    assert "Row ann" in shown.get()
    assert "Row bob" not in shown.get()
    assert "… and 2 more rows" in shown.get()


def test_no_more_rows_are_claimed_when_all_are_shown(loans):
    assert "more row" not in render(loans)


@pytest.fixture
def twelve_changes(build):
    before = {f"balance_of_account_{k}": [k, 50_000 + k] for k in range(12)}
    after = {name: values[1] for name, values in before.items()}
    return build(pd.DataFrame(before), [(0, "line", after, 1.5), (0, "tree", after, 2.5)])


@pytest.mark.parametrize("width", [80, 60])
def test_many_changes_stay_readable_in_a_narrow_terminal(monkeypatch, twelve_changes, width):
    lines = at_width(monkeypatch, twelve_changes, width).splitlines()
    assert max(map(len, lines)) <= width
    for k in range(12):
        written = next(line for line in lines if re.search(rf"\bbalance_of_account_{k}\b", line))
        assert f"{k} → {50_000 + k:,}" in written


def test_methods_that_do_not_fit_beside_each_other_go_below(monkeypatch, build):
    before, after = "a rather long description of the trade", "another rather long description of it"
    rows = pd.DataFrame({"trade": [before, after]})
    methods = ["line", "tree", "walk"]
    lines = at_width(monkeypatch, build(rows, [(0, m, {"trade": after}, 1.0) for m in methods]), 95).splitlines()
    assert sum(f"{before} → {after}" in line for line in lines) == 3


def test_a_wide_terminal_keeps_one_line_a_method(monkeypatch, twelve_changes):
    lines = at_width(monkeypatch, twelve_changes, 400).splitlines()
    assert sum(line.strip().startswith(("line", "tree")) for line in lines) == 2


def test_text_is_plain_when_stdout_is_no_terminal(monkeypatch, loans):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESCAPE not in str(loans)


def test_changes_are_highlighted_in_a_terminal(monkeypatch, loans):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    marked = re.findall(r"\x1b\[1[;\d]*m([^\x1b]*)", render(loans))
    assert "52,000" in [text.strip() for text in marked]
    assert "9,000" not in [text.strip() for text in marked]


def test_without_a_terminal_a_hundred_columns_are_used(monkeypatch, build):
    def no_terminal(*_):
        raise OSError

    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    written = render(build(pd.DataFrame({"x": [1]}), verdicts={0: ("model_error", "word " * 60)}))
    assert 95 <= max(map(len, written.splitlines())) <= 100


def test_an_empty_explanation_prints(build, people):
    shown = render(build(people.iloc[:0], training=people))
    assert shown.startswith("0 rows · ")
    assert "nan" not in shown


def test_names_cannot_steer_the_terminal_or_use_markup(build):
    rows = pd.DataFrame({"[red]pay[/red]": ["\x1b[2Jlow\n", "[bold]high"]})
    shown = render(build(rows, [(0, "line", {"[red]pay[/red]": "[bold]high"}, 1.0)]))
    assert ESCAPE not in shown
    assert "[red]pay[/red]" in shown
    assert r"\x1b[2Jlow  → [bold]high" in shown


def test_a_change_too_small_for_the_usual_decimals_is_still_seen(build):
    training = pd.DataFrame({"rate": [0.5, 2.25]})
    shown = render(build(pd.DataFrame({"rate": [0.5004]}), [(0, "line", {"rate": 0.5}, 0.1)], training=training))
    assert "0.5004 → 0.5" in shown


def test_a_missing_prediction_is_left_out(build, people):
    verdict = {0: ("invalid_input", "Column 'age' must not be missing.")}
    shown = render(build(people.iloc[:1], prediction=None, verdicts=verdict))
    assert block(shown, "Row ann")[0] == "Row ann: granted"


def test_a_row_already_there_names_its_class_once(build, people):
    shown = render(build(people.iloc[:1], prediction="granted", verdicts={0: ("already_target", "")}))
    assert block(shown, "Row ann") == ["Row ann: granted", "  already_target"]


@pytest.mark.parametrize(
    ("value", "decimals", "expected"),
    [
        (9999, 0, "9,999"),
        (10_000, 0, "10,000"),
        (-1234567.5, 2, "-1,234,567.5"),
        (2.50, 2, "2.5"),
        (3.0, 4, "3"),
        (100, 0, "100"),
        (-0.001, 2, "0"),
        (9999.999, 2, "10,000"),
        (1.23456, 3, "1.235"),
    ],
)
def test_numbers_read_like_numbers(value, decimals, expected):
    assert number(value, decimals) == expected
