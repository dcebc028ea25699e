"""What the pages in docs/ show must run as it stands."""

import re
from pathlib import Path

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
