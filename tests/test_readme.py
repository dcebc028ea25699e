"""What the README shows must run as it stands."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import fasterce
from fasterce.cli.app import app

README = Path(__file__).parents[1] / "README.md"


def test_the_twenty_lines_run_and_keep_their_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    first, rules = ([block for block in blocks if word in block] for word in ("load(", "Require("))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for example in (*first, *rules):
        exec(compile(example, str(README), "exec"), names)
    result, again, refused, model = names["result"], names["again"], names["refused"], names["model"]
    assert (result.status == "found").all()
    assert (model.predict(result.counterfactuals) == "good").all()
    pd.testing.assert_frame_equal(result.counterfactuals, again.counterfactuals)
    assert result.counterfactuals.dtypes.equals(refused.dtypes)
    shown = capsys.readouterr().out
    assert "→" in shown
    assert "stands in the way: without it" in shown
    assert (names["options"].to_frame()["robust"] >= 0.95).all()
    assert (model.predict_proba(names["surer"].counterfactuals.dropna())[:, 1] >= 0.7).all()


@pytest.fixture(scope="module")
def shown() -> str:
    return README.read_text()


def test_the_commands_run_and_write_what_they_say(shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", shown, re.DOTALL)
    names: dict[str, Any] = {}
    training = next(block for block in blocks if "load(" in block).split("explainer =")[0]
    for example in (training, next(block for block in blocks if "skops" in block)):
        exec(compile(example, str(README), "exec"), names)
    (block,) = re.findall(r"```sh\n(.*?)```", shown, re.DOTALL)
    commands = re.findall(r"^fasterce ([^#\n]*)", block, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["inspect", "fit", *["explain"] * 3, "replay", "report"]
    for command in commands:
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, (command, done.output)
    refused = pd.read_csv("refused.csv")
    answers = pd.read_parquet("answers.parquet")
    assert list(answers["id"].unique()) == [str(customer) for customer in refused["customer"]]
    assert (answers["status"] == "found").all()
    assert len(Path("records.jsonl").read_text().splitlines()) == len(refused)
    assert "<!doctype html>" in Path("report.html").read_text()


def test_every_file_of_the_map_exists() -> None:
    text = README.read_text()
    block = text[text.index("schema.py   ") : text.index("Around them")]
    files = re.findall(r"[\w/]+\.py", block) + re.findall(r"`(\w+\.py)`", text)
    root = Path(fasterce.__file__).parent
    assert len(files) > 20
    assert [name for name in files if not any(root.rglob(Path(name).name))] == []
