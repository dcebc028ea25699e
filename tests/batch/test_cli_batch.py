"""`fasterce batch` as it is typed."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fasterce.batch import BatchProgress
from fasterce.cli.app import app
from fasterce.cli.exits import Exit
from fasterce.cli.progress import batch_bar, in_words
from fasterce.io.progress import duration
from tests.batch.conftest import MODEL, whole
from tests.batch.models import TRAP


@pytest.fixture
def run(artifact: Path, rows_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def typed(*words: str, model: str = MODEL, source: str = "c.parquet") -> Any:
        files = ["--input", str(rows_folder / source), "--output", str(tmp_path / "out")]
        return CliRunner().invoke(app, ["batch", str(artifact), "--model", model, *files, "--workers", "0", *words])

    return typed


def test_files_are_explained_into_a_folder(run: Any, tmp_path: Path) -> None:
    words = ["--where", "prediction = 'refused'", "--id", "customer", "--keep", "age", "--group", "job", "--shard-rows", "30"]
    done = run(*words, "--freeze", "debt", "--partition-by", "status", "--batch-rows", "9")
    assert done.exit_code == 0, done.stderr
    assert re.search(r"50 rows in 2 shards, .* \d+ filtered out", done.stderr)
    lines = whole(tmp_path / "out")
    assert {"id", "age", "status"} <= set(lines.columns)
    assert not lines["changes"].dropna().str.contains("debt").any()
    report = json.loads((tmp_path / "out" / "_report.json").read_text())
    assert report["filtered"] + report["explained"] == 50
    again = run(*words, "--freeze", "debt", "--partition-by", "status")
    assert "2 shards were there already" in again.stderr
    other = run(*words)
    assert other.exit_code == Exit.INPUT
    assert "--fresh" in other.stderr
    assert run(*words, "--fresh").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--where", "prediction = bad"], "--where: a prediction .* class in quotes"),
        (["--where", "ages > 3"], "Unknown column 'ages'.* Did you mean 'age'"),
        (["--partition-by", "nope"], "--partition-by: unknown column of the output 'nope'"),
        (["--backend", "local", "--address", "auto"], "--address is for"),
        (["--freeze", "nope"], "--freeze: unknown column 'nope'"),
    ],
)
def test_wrong_options_are_rejected(run: Any, words: list[str], message: str) -> None:
    done = run(*words)
    assert done.exit_code == Exit.INPUT
    assert re.search(message, " ".join(done.stderr.split()))
    assert "Traceback" not in done.stderr


def test_failed_shards_set_the_exit_code(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRAP, "x")
    monkeypatch.setattr("tests.batch.models.Trapped.predict_proba", _broken)
    done = run("--retries", "0", model="tests.batch.models:trapped")
    assert done.exit_code == Exit.MODEL
    assert "1 shard could not be explained; the same command tries them again" in " ".join(done.stderr.split())
    assert not (tmp_path / "out" / "_SUCCESS").exists()


CALLS = [0]


def _broken(model: Any, frame: Any) -> Any:
    """Good while it is loaded, out of order after."""
    if len(frame) <= 64 and CALLS[0] < 2:
        CALLS[0] += 1
        return super(type(model), model).predict_proba(frame)
    raise RuntimeError("out of order")


def test_progress_lines_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    standing = BatchProgress(5000, 20_000, 1000, 3000, 77, 1, 4, 0, 2, 10.0, 0)
    with batch_bar("Explaining", every=0.0) as advance:
        advance(standing)
    assert capsys.readouterr().err == (
        "Explaining: 5,000 of 20,000 rows, 500 rows/s, 30 s left, 75% found, 77 calls, 2 tried again\n"
    )
    with batch_bar("Explaining", every=30.0) as advance:
        advance(standing)
    assert capsys.readouterr().err == ""


def test_rows_of_an_earlier_run_do_not_count_as_speed() -> None:
    assert (
        in_words(BatchProgress(5000, 6000, 0, 0, 0, 1, 2, 1, 0, 10.0, 4000))
        == "100 rows/s, 10 s left, 0% found, 0 calls, 1 shards failed"
    )


@pytest.mark.parametrize(("seconds", "message"), [(5, "5 s"), (65, "1 min 05 s"), (7260, "2 h 01 min")])
def test_durations(seconds: float, message: str) -> None:
    assert duration(seconds) == message
