"""What the README shows must run as it stands."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fasterce

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


def test_every_file_of_the_map_exists() -> None:
    text = README.read_text()
    block = text[text.index("schema.py   ") : text.index("Around them")]
    files = re.findall(r"[\w/]+\.py", block) + re.findall(r"`(\w+\.py)`", text)
    root = Path(fasterce.__file__).parent
    assert len(files) > 20
    assert [name for name in files if not any(root.rglob(Path(name).name))] == []
