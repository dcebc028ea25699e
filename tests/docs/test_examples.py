"""The notebooks in examples/: executed, small, and on the site as they are. `make test-examples` runs them."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import examples

NOTEBOOKS = examples.notebooks([])


def test_there_are_eight() -> None:
    assert len(NOTEBOOKS) == 8


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_executed_small_and_on_the_site(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert cells[-1]["outputs"]
    assert path.stat().st_size < 30_000
    page = examples.PAGES / f"{path.stem}.md"
    assert page.read_text(encoding="utf-8") == examples.page(path), "run `python scripts/examples.py render`"
    assert f"examples/{path.stem}.md" in (examples.ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_output_is_what_a_cell_prints_and_its_last_value() -> None:
    (output,) = examples.output_of("print('one')\nx = 2\nx + 1", {})
    assert output["text"] == ["one\n", "3\n"]
    assert examples.output_of("x = 2", {}) == []
