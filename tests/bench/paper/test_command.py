"""`python -m benchmarks.paper` on tiny data: cells, resuming, the report."""

import json
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.paper import __main__ as command
from benchmarks.paper.plan import ROBUSTNESS, PaperPlan
from benchmarks.paper.tables import Tables
from benchmarks.store import Cell

from tests.bench.paper.conftest import TINY


@pytest.fixture(scope="module")
def cells(out: Path) -> list[Cell]:
    return [Cell.from_json(path.read_text()) for path in sorted((out / "cells").glob("*.json"))]


@pytest.fixture(scope="module")
def lines(out: Path) -> pd.DataFrame:
    return pd.read_parquet(out / "results.parquet")


def test_both_targets_are_explained(lines: pd.DataFrame) -> None:
    assert lines[lines["method"] == "ce1"].groupby("task").size().to_dict() == {"favourable": 3, "unfavourable": 3}


def test_ce2_changes_one_feature_and_every_feature_has_its_turn(lines: pd.DataFrame) -> None:
    own = lines[lines["method"] == "ce2"]
    assert own["feature"].nunique() == 48
    valid = own[own["valid"] == 1]
    assert 0 < len(valid) < len(own)
    assert (valid["changed"] == valid["feature"]).all()


def test_ce3_keeps_frozen_columns(lines: pd.DataFrame) -> None:
    own = lines[(lines["method"] == "ce3") & (lines["valid"] == 1)]
    assert len(own)
    assert not any({"state", "grade", "tax_liens"} & set(changed.split("|")) for changed in own["changed"])


def test_a_rival_out_of_time_counts_only_the_queries_it_tried(cells: list[Cell]) -> None:
    runs = Tables(cells).runs
    certifai = runs[runs["method"] == "certifai-genetic"]
    assert certifai["tried"].between(1, 6).all()
    assert certifai["valid"].gt(0).all()


def test_a_margin_is_farther_and_at_least_as_robust(cells: list[Cell]) -> None:
    mean = Tables(cells).robustness.set_index("method")
    assert mean.loc["ce1-step-1-margin-2", "undivided"] > mean.loc["ce1-step-1-margin-0", "undivided"]
    assert mean.loc["ce1-step-1-margin-2", "recourse_large"] >= mean.loc["ce1-step-1-margin-0", "recourse_large"]


def test_the_perturbed_input_is_explained_again_by_ours_and_the_rival(cells: list[Cell]) -> None:
    reexplained = Tables(cells).reexplained.set_index("method")
    assert {"ce1-step-0.1-margin-0", "closest", "certifai-genetic"} <= set(reexplained.index)
    assert reexplained["valid"].dropna().between(0, 100).all()
    assert reexplained.loc["closest", "near_again"] > 0


def test_a_stopped_run_resumes_and_makes_nothing_twice(out: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    lost = next(path for path in before if "lending_club--mlp--examples" in path.name)
    lost.unlink()
    assert command.main([*TINY, "--out", str(out)]) == 0
    after = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert [path for path in before if after[path] != before[path]] == [lost]


def test_the_report_has_every_part_and_its_pictures(out: Path) -> None:
    text, page = ((out / f"report.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
    for heading in ("Table 1", "Figure 3", "Total time", "Table 5", "Examples", "What the paper says", "Ablation", "capped"):
        assert heading in text
        assert heading in page
    assert "balanced weights" in text
    pictures = [part.split(")")[0] for part in text.split("](")[1:]]
    assert len(pictures) == 3
    assert all((out / picture).exists() for picture in pictures)


def test_every_statement_is_counted_once(out: Path) -> None:
    kept = json.loads((out / "results.json").read_text())["statements"]
    names = [one["name"] for one in kept]
    assert len(names) == len(set(names)) > 10
    assert {one["subject"] for one in kept} == {"FASTER-CE", "CERTIFAI"}


def test_parts_and_slow_rivals_are_planned_as_requested() -> None:
    plan = PaperPlan(parts=("table-1",))
    assert {key.task for key in plan.cells()} == {"grid", "table-1"}
    full = list(PaperPlan().cells())
    assert {key.task for key in full if key.method == "alibi-proto"} == {"favourable"}
    assert full[-1].method == "alibi-proto"
    assert {key.data for key in full if key.task == ROBUSTNESS} == {"lending_club"}
    assert len(full) == len(set(full))


def test_nothing_to_report_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--quick", "--report-only", "--out", str(tmp_path)]) == 1
    assert "nothing to report" in capsys.readouterr().err
