"""What docs/batch.md shows must run as it stands, and name the columns there are."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")


def test_the_page_runs_and_names_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/batch.md", "exec"), names)
    assert "200 rows in 1 shards" in capsys.readouterr().out
    table = PAGE.split("## What comes out")[1].split("## Shards")[0]
    told = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))))
    schema = pq.read_schema(Path(str(names["folder"])) / "answers" / "part-000000.parquet")
    assert {name for name in schema.names if not name.startswith("cf_")} == told - {"cf_"}
