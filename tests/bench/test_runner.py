"""Every way a system can fail is recorded, and none stops a run."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from benchmarks import runner, venvs
from benchmarks.rivals.catalogue import Entry
from benchmarks.runner import CRASHED, ERROR, FOUND, NONE_FOUND, NOT_TRIED, TIMEOUT, Limits, run_system
from benchmarks.scoring import NOT_FLIPPED, Scorer
from benchmarks.setting import FREE, FROZEN, Setting, prepare

ROWS = 3
LIMITS = Limits(setup=60, row=3, method=30, processes=2)
MODULE = "tests.bench.broken"
# The statuses of three rows, which of them are valid, and the reason of the second.
EXPECTED = {
    "fine": ([FOUND] * 3, [1, 1, 1], ""),
    "no batch": ([FOUND] * 3, [1, 1, 1], ""),
    "input": ([FOUND] * 3, [0, 0, 0], NOT_FLIPPED),
    "none": ([NONE_FOUND] * 3, [0, 0, 0], "no counterfactual"),
    "empty": ([NONE_FOUND] * 3, [0, 0, 0], "no counterfactual"),
    "unknown category": ([FOUND] * 3, [0, 0, 0], "Column 'checking_status' must be one of"),
    "out of range": ([FOUND] * 3, [0, 0, 0], "Column 'duration' must be within [1, 72]; got 10000"),
    "missing values": ([FOUND] * 3, [0, 0, 0], "Column 'duration' must not be missing"),
    "columns": ([FOUND] * 3, [0, 0, 0], "wrong columns: duration"),
    "garbage": ([ERROR] * 3, [0, 0, 0], "not a row of the table: str"),
    "raises": ([FOUND, ERROR, FOUND], [1, 0, 1], "RuntimeError: lost my way"),
    "dies": ([FOUND, CRASHED, FOUND], [1, 0, 1], "crashed: code 3"),
    "hangs": ([FOUND, TIMEOUT, FOUND], [1, 0, 1], "no result within 3 s"),
    "hangs always": ([TIMEOUT, TIMEOUT, NOT_TRIED], [0, 0, 0], "no result within 3 s"),
    "fails at set-up": ([NOT_TRIED] * 3, [0, 0, 0], "ValueError: no such model"),
    "at import": ([NOT_TRIED] * 3, [0, 0, 0], "ImportError: a library that is not there"),
}


def entry(variant: str) -> Entry:
    module = "tests.bench.broken_at_import" if variant == "at import" else MODULE
    return Entry(variant, module, variant)


@pytest.fixture(scope="module")
def setting() -> Setting:
    return prepare("german_credit", "logistic", seed=0, train_rows=200)


@pytest.fixture(scope="module")
def scorer(setting: Setting) -> Scorer:
    return Scorer(setting)


@pytest.fixture(scope="module")
def results(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> dict[str, runner.SystemResult]:
    """Run all systems, two at a time."""
    folder = tmp_path_factory.mktemp("problem") / "free"
    setting.dump(folder, FREE, batch=10)
    with ThreadPoolExecutor(2) as pool:
        runs = {variant: pool.submit(run_system, entry(variant), folder, ROWS, LIMITS, batch=5) for variant in EXPECTED}
        return {variant: future.result() for variant, future in runs.items()}


@pytest.mark.parametrize("variant", EXPECTED)
def test_failures_are_recorded(variant: str, results: dict[str, runner.SystemResult], scorer: Scorer) -> None:
    statuses, valid, why = EXPECTED[variant]
    lines = scorer.score(results[variant].records, FREE)
    assert lines["row"].tolist() == [0, 1, 2]
    assert lines["status"].tolist() == statuses
    assert lines["valid"].tolist() == valid
    assert lines["success"].tolist() == valid
    assert why in lines["reason"].iloc[1]
    assert (lines.loc[lines["valid"] == 1, "reason"] == "").all()
    assert lines.loc[lines["valid"] == 0, "gower_l1"].isna().all()


def test_a_hang_is_killed_and_the_next_row_has_a_new_process(results: dict[str, runner.SystemResult]) -> None:
    assert results["hangs"].records[1]["seconds"] == LIMITS.row
    assert results["hangs"].records[2]["seconds"] < 1
    assert results["hangs"].failure == ""
    assert results["hangs always"].records[2]["reason"] == "given up after 2 processes"


def test_a_failed_batch_does_not_fail_the_rows(
    results: dict[str, runner.SystemResult],
) -> None:
    assert len(results["fine"].batches) == 1
    assert results["no batch"].batches == []
    assert results["no batch"].notes == ["no batch: RuntimeError: one at a time, please"]
    assert results["no batch"].failure == ""


def test_valid_counterfactuals_are_measured(results: dict[str, runner.SystemResult], scorer: Scorer) -> None:
    """The counterfactual is a training row with the target class, so it is realistic and far away."""
    lines = scorer.score(results["fine"].records, FREE)
    assert (lines["nn_ratio"] == 0).all()
    assert (lines["n_changed"] > 3).all()
    assert lines[["gower_l1", "l2", "linf", "proximity"]].gt(0).all(axis=None)
    assert lines[["robust", "recourse", "ynn"]].apply(lambda share: share.between(0, 1)).all(axis=None)
    assert lines["changed"].str.split("|").str.len().tolist() == lines["n_changed"].tolist()


def test_breaking_a_frozen_column_is_valid_but_no_success(results: dict[str, runner.SystemResult], scorer: Scorer) -> None:
    lines = scorer.score(results["fine"].records, FROZEN)
    frozen = set(scorer.setting.immutable)
    breaks = [bool(frozen & set(changed.split("|"))) for changed in lines["changed"]]
    assert any(breaks)
    assert lines["valid"].tolist() == [1, 1, 1]
    assert lines["success"].tolist() == [float(not broken) for broken in breaks]


def test_no_row_is_started_after_the_time_limit(setting: Setting, tmp_path: Path) -> None:
    setting.dump(tmp_path / "free", FREE, batch=10)
    result = run_system(entry("hangs always"), tmp_path / "free", ROWS, Limits(setup=60, row=1, method=0.5, processes=3))
    assert [record["status"] for record in result.records] == [TIMEOUT, NOT_TRIED, NOT_TRIED]
    assert result.records[2]["reason"] == "out of 0.5 s"


def test_a_slow_system_explains_fewer_rows_and_a_fast_one_all(setting: Setting, tmp_path: Path) -> None:
    setting.dump(tmp_path / "free", FREE, batch=10)
    limits = Limits(setup=60, row=5, method=5, slow=0.05, processes=1)
    runs = {variant: run_system(entry(variant), tmp_path / "free", ROWS, limits) for variant in ("slow", "fine")}
    assert [record["status"] for record in runs["slow"].records] == [FOUND]
    assert [record["status"] for record in runs["fine"].records] == [FOUND] * ROWS


def test_a_system_that_cannot_be_installed_says_so_for_every_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(rival: str) -> str:
        raise venvs.CannotInstall(f"no matching distribution for {rival}")

    monkeypatch.setattr(venvs, "python_of", refuse)
    result = run_system(Entry("NICE", "nice", "sparsity"), tmp_path, ROWS, LIMITS)
    assert [record["status"] for record in result.records] == [NOT_TRIED] * ROWS
    assert result.failure == "cannot be installed: no matching distribution for nice"


def test_several_counterfactuals_of_one_row_are_kept_apart(scorer: Scorer) -> None:
    accepted = scorer.setting.X_train[scorer.setting.model.predict(scorer.setting.X_train) == 1].iloc[:2]
    record: dict[str, Any] = {"position": 0, "status": FOUND, "reason": "", "counterfactuals": accepted.to_dict("records")}
    lines = scorer.score([record], FREE)
    assert lines["returned"].tolist() == [2]
    assert lines["diversity"].iloc[0] > 0
    assert pd.isna(scorer.score([{**record, "counterfactuals": record["counterfactuals"][:1]}], FREE)["diversity"].iloc[0])
