"""What docs/files.md shows must run as it stands."""

import re
from pathlib import Path

import pytest

from fasterce.io import schema
from tests.docs.pages import run_page

PAGE = Path(__file__).parents[2] / "docs" / "files.md"


def test_the_page_about_files_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text()
    names = run_page("files.md")
    lines = names["answers"]
    assert lines["row"].nunique() == len(names["training"]) == sum(names["sizes"]) == 60
    assert lines["id"].tolist() == (lines["row"] + 1000).tolist()
    assert "60 rows in" in capsys.readouterr().out
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    ours = {name for name in schema(names["explainer"]).names if not name.startswith("cf_")}
    assert ours <= documented, "every column is described"
