"""The page about records must run as it stands."""

import re
from pathlib import Path

import pytest

from fasterce import records
from tests.docs.pages import run_page

PAGE = Path(__file__).parents[2] / "docs" / "records.md"


def test_the_page_about_records_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("records.md")
    for record in names["kept"]:
        records.validate(record)
    assert names["again"].same
    shown = capsys.readouterr().out
    assert "5 of 5 records were reproduced, the same in all that is compared." in shown
    assert re.search(r"^If .* the decision would be Granted\.", shown)
    assert "lautete die Entscheidung positiv." in shown


def test_the_page_names_every_field() -> None:
    documented = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for line in documented for name in re.findall(r"`(\w+)`", line)}
    assert named == set(records.SCHEMA["properties"])
