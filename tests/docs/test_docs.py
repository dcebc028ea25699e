"""What the pages in docs/ show must run as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_about_change_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "change.md").read_text()
    names: dict[str, object] = {"__name__": "change"}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "change.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "rows look like those learned from" in shown or "Drift in 400 rows" in shown
    assert "400 new rows and a new model" in shown
    assert "counterfactuals still hold" in shown
    checked = names["checked"]
    assert len(checked) == 20  # type: ignore[arg-type]
    assert not checked.holds.all(), "the page shows repairs"  # type: ignore[attr-defined]


def test_the_page_about_answers_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "answers"}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "answers.md").read_text(), re.DOTALL):
        exec(compile(block, "answers.md", "exec"), names)
    surer, lower, options = names["surer"], names["lower"], names["options"]
    assert (surer.to_frame()["score"] >= 0.7).all()
    assert (names["amount"].predict(lower.counterfactuals.dropna()) <= 2_000).all()
    assert set(lower.status) <= {"found", "already_target"}
    assert options.to_frame().groupby("query").size().between(1, 4).all()
    assert (names["steady"].to_frame()["robust"] >= 0.95).all()
    assert (names["lasting"].to_frame()["survived"] >= 0.8).all()
    assert "'only telephone may change (features_to_vary)' stands in the way" in capsys.readouterr().out
