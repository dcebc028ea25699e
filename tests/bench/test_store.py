"""Cells are written completely or not at all, and cells of other code are not used."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.store import CELLS, Cell, Key, Store, digest, fingerprint, gather, write

KEY = Key("adult", "mlp", "free", "nice-sparsity", 0)
LINES = pd.DataFrame({"row": [0, 1], "status": ["found", "timeout"], "reason": ["", "late"], "gower_l1": [0.1 + 0.2, np.nan]})
CELL = Cell(KEY, "abc", {"setup": 1.5}, LINES)


def test_a_cell_comes_back_as_it_was(tmp_path: Path) -> None:
    Store(tmp_path).put(CELL)
    found = Store(tmp_path).get(KEY, "abc")
    assert found is not None
    pd.testing.assert_frame_equal(found.lines, LINES, check_dtype=False)
    assert found.about == CELL.about


def test_a_cell_with_another_fingerprint_is_not_used_and_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(CELL)
    assert store.get(KEY, "other") is None
    assert store.outdated({KEY: "other", replace(KEY, seed=1): "other"}) == [KEY]
    assert store.outdated({KEY: "abc"}) == []


def test_an_incomplete_cell_is_not_used(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(CELL)
    file = tmp_path / CELLS / KEY.file
    file.write_text(file.read_text()[:-20])
    assert store.get(KEY, "abc") is None


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.md"
    write(file, "old")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write(file, "new")
    assert file.read_text() == "old"


def test_fingerprints_tell_plans_and_sources_apart(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("1")
    first = digest([source])
    source.write_text("2")
    assert digest([source]) != first
    assert fingerprint(20, first) != fingerprint(21, first)
    assert fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})


def test_all_lines_carry_their_cell(tmp_path: Path) -> None:
    both = gather([CELL, replace(CELL, key=replace(KEY, seed=1))])
    assert both["seed"].tolist() == [0, 0, 1, 1]
    assert list(both.columns[:5]) == ["data", "model", "task", "method", "seed"]
    assert not len(gather([]))
