"""The whole command on tiny data, with a real rival in its own virtual environment."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from benchmarks import bench, parallel, venvs
from benchmarks.store import Store

TINY = ["--datasets", "german_credit", "--models", "logistic", "--tasks", "free", "frozen", "--seeds", "0"]
TINY += ["--train-rows", "150", "--rows", "5", "--batch", "6", "--no-progress"]
TINY += ["--methods", "ours-closest", "nice-sparsity", "tests.bench.broken:raises"]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        venvs.python_of("nice")
    except venvs.CannotInstall as error:
        pytest.skip(f"NICE cannot be installed here: {error}")
    folder = tmp_path_factory.mktemp("bench")
    assert bench.main([*TINY, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def lines(out: Path) -> pd.DataFrame:
    return pd.read_parquet(out / "results.parquet")


def test_every_row_of_every_cell_has_its_line(lines: pd.DataFrame) -> None:
    assert len(lines) == 3 * 2 * 5
    assert lines.groupby(["method", "task"]).size().eq(5).all()


def test_ours_and_the_rival_explain_and_the_broken_one_fails_in_one_row(lines: pd.DataFrame) -> None:
    valid = lines[lines["task"] == "free"].groupby("method")["valid"].sum()
    assert valid["ours-closest"] == 5
    assert valid["nice-sparsity"] == 5
    assert valid["tests.bench.broken-raises"] == 4


def test_ours_keeps_columns_frozen_and_evaluates_few_rows(lines: pd.DataFrame) -> None:
    ours = lines[lines["method"] == "ours-closest"]
    assert ours["success"].eq(1).all()
    assert ours["calls"].gt(0).all()
    assert ours["seconds"].between(0, 5).all()


def test_the_page_is_self_contained_and_names_every_system(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    for name in ("fasterce closest", "NICE sparsity", "broken raises", "RuntimeError: lost my way"):
        assert name in page


def test_the_report_is_also_markdown_with_figures(out: Path) -> None:
    text = (out / "report.md").read_text(encoding="utf-8")
    assert "| NICE sparsity | 1 | 100 | 100 |" in text
    assert "rows of a compiled model that agrees" in text
    pictures = [part.split(")")[0] for part in text.split("](")[1:]]
    assert pictures
    assert all((out / picture).exists() for picture in pictures)


def test_one_table_shows_all_systems_on_all_models(out: Path) -> None:
    text = (out / "report.md").read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith("| system |"))
    lines = {line.split(" | ")[0]: line for line in text.partition(head)[2].partition("\n\n")[0].splitlines()}
    columns = head.count("|") - 2
    assert columns >= 1
    assert re.fullmatch(r"\| fasterce closest( \| \d\.\d{3} / [\d.,]+( \(\d+ %\))?)+ \|", lines["| fasterce closest"])


def test_machine_versions_and_load_are_recorded(out: Path) -> None:
    assert json.loads((out / "manifest.json").read_text())["cells"] == 6
    about = json.loads((out / "results.json").read_text())
    assert about["machine"]["versions"]["numpy"]
    assert set(about["load"]) == {"before", "after"}
    nice = next(cell for cell in about["cells"] if cell["method"] == "nice-sparsity")
    assert nice["versions"] == {"NICEx": "0.2.3"}
    assert nice["setup"] >= 0
    assert next(cell for cell in about["cells"] if cell["method"] == "ours-closest")["batches"]


def test_a_stopped_run_resumes_and_computes_nothing_twice(out: Path) -> None:
    cells = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    lost = next(path for path in cells if "broken-raises" in path.name and "free" in path.name)
    lost.unlink()
    assert bench.main([*TINY, "--out", str(out)]) == 0
    again = {path: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert set(again) == set(cells)
    assert [path for path in cells if again[path] != cells[path]] == [lost]


def test_cells_of_another_plan_are_not_mixed_in(out: Path) -> None:
    run = bench.Run(bench.plan_of(bench.parse([*TINY, "--rows", "4", "--out", str(out)])), Store(out), quiet=True)
    assert len(run.outdated) == 6
    assert run.known_cells() == []


def test_sigterm_ends_the_rivals_and_keeps_finished_cells(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.bench", *TINY, "--out", str(tmp_path)]
    command[command.index("--methods") + 1 :] = [
        "tests.bench.broken:none",
        "tests.bench.broken:hangs always",
        "--out",
        str(tmp_path),
    ]
    running = subprocess.Popen([*command, "--row-seconds", "600", "--tasks", "free"], cwd=bench.HERE.parent)
    log = tmp_path / "problems" / "german_credit-logistic-0-free" / "tests_bench_broken-hangs always.lines"
    wait_for(lambda: log.exists() and '"ready"' in log.read_text())
    running.terminate()
    assert running.wait(20) == 130
    assert [path.name.split("--")[3] for path in (tmp_path / "cells").iterdir()] == ["tests.bench.broken-none"]
    wait_for(lambda: not any("hangs always" in line and str(tmp_path) in line for line in command_lines()), 10)


def wait_for(happened: Callable[[], bool], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.1)


def command_lines() -> list[str]:
    """Return the command lines of all processes; empty where there is no /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_text().replace("\0", " "))
    return found


def test_two_workers_share_the_models_and_compute_the_same_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("computed by the parent process, not by a worker")

    plan = ["--datasets", "german_credit", "--models", "logistic", "mlp", "--tasks", "free", "--seeds", "0"]
    plan += ["--rows", "2", "--batch", "0", "--train-rows", "150", "--no-progress"]
    plan += ["--methods", "tests.bench.broken:raises"]
    with monkeypatch.context() as workers_only:
        workers_only.setattr(bench.Comparison, "cell", fail)
        assert bench.main([*plan, "--jobs", "2", "--out", str(tmp_path / "two")]) == 0
    assert "--claims" not in (tmp_path / "two" / "manifest.json").read_text()
    assert bench.main([*plan, "--out", str(tmp_path / "one")]) == 0
    results = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two")]
    cells = [[(cell["model"], cell["fingerprint"], cell["black_box"]) for cell in some["cells"]] for some in results]
    assert cells[0] == cells[1]
    assert [model for model, _, _ in cells[0]] == ["logistic", "mlp"]


def test_a_model_is_claimed_once(tmp_path: Path) -> None:
    assert parallel.claim(tmp_path, "adult-mlp-0")
    assert not parallel.claim(tmp_path, "adult-mlp-0")
    assert parallel.claim(tmp_path, "adult-mlp-1")


def test_nothing_to_report_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--quick", "--report-only", "--out", str(tmp_path)]) == 1
    assert "nothing to report" in capsys.readouterr().err


def test_an_unknown_system_is_named() -> None:
    with pytest.raises(SystemExit, match="No system is called 'nicer'"):
        bench.main(["--methods", "nicer"])


def test_the_list_names_every_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--list"]) == 0
    assert "nice-sparsity" in capsys.readouterr().out
