"""What docs/batch.md shows must run as it stands, with the columns that docs/files.md describes."""

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_runs_and_its_columns_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    page, files = ((DOCS / name).read_text(encoding="utf-8") for name in ("batch.md", "files.md"))
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/batch.md", "exec"), names)
    assert "200 rows in 1 shard," in capsys.readouterr().out
    assert "files.md#what-comes-out" in page
    table = files.split("## What comes out")[1].split("## What goes in")[0]
    documented = set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    )
    schema = pq.read_schema(Path(str(names["folder"])) / "answers" / "part-000000.parquet")
    assert {name for name in schema.names if not name.startswith("cf_")} == documented - {"cf_"}
