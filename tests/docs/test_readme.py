"""What the README shows must run as it stands."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from typer.testing import CliRunner

from fasterce import load
from fasterce.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the Python examples in a folder of their own."""
    folder = tmp_path_factory.mktemp("readme")
    found: dict[str, Any] = {"folder": folder, "printed": []}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        found["print"] = found["printed"].append
        for block in BLOCKS:
            exec(compile(block, "README.md", "exec"), found)
    return found


def test_the_examples_print_what_is_shown(names: dict[str, Any]) -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert names["printed"] == [shown.rstrip("\n")]


def test_the_examples_keep_the_guarantees(names: dict[str, Any]) -> None:
    result, model, refused = names["result"], names["model"], names["refused"].head(2)
    assert (result.status == "found").all()
    assert (model.predict(result.counterfactuals) == "good").all()
    assert result.counterfactuals.dtypes.equals(refused.dtypes)
    options = names["options"].to_frame().set_index("query")
    given = refused.loc[options.index]
    assert (options["age"] == given["age"]).all()
    assert (options["credit_amount"] <= given["credit_amount"]).all()
    assert options["duration"].between(6, 48).all()
    assert (names["robust"].to_frame()["robust"] >= 0.95).all()
    assert (names["sparse"].to_frame()["n_changed"] <= result.to_frame()["n_changed"]).all()
    again = load(names["folder"] / "german.fasterce", model).explain(refused)
    pd.testing.assert_frame_equal(result.counterfactuals, again.counterfactuals)


def test_the_commands_run(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(names["folder"])
    skops.io.dump(names["model"], "model.skops")
    names["refused"].head(5).to_csv("refused.csv", index=False)
    (block,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    explain, serve = (line.split()[1:] for line in block.splitlines())
    done = CliRunner().invoke(app, explain)
    assert done.exit_code == 0, done.output
    found = pd.read_parquet("counterfactuals.parquet")
    assert (found["status"] == "found").all()
    assert len(found) == 5
    # `serve` does not return: that its options exist is what can be checked here.
    offered = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert all(option in offered for option in serve if option.startswith("--"))


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.split()) <= 900
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if not link.startswith("http")]
    assert [link for link in links if not (ROOT / link).exists()] == []
