"""Systems that go wrong are scored as what they are: nothing they do stops a run or is passed over."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from benchmarks import asking, venvs
from benchmarks.asking import ANSWERED, DIED, ERROR, NOT_TRIED, NOTHING, TIMEOUT, Limits, ask_all
from benchmarks.rivals.catalogue import Entry
from benchmarks.scoring import NOT_FLIPPED, Judge
from benchmarks.setting import FREE, FROZEN, Setting, prepare

ROWS = 3
LIMITS = Limits(setup=60, row=3, method=30, processes=2)
MODULE = "tests.bench.broken"
# What each does with three rows, which of them are valid, and what is said of the second.
EXPECTED = {
    "fine": ([ANSWERED] * 3, [1, 1, 1], ""),
    "no batch": ([ANSWERED] * 3, [1, 1, 1], ""),
    "input": ([ANSWERED] * 3, [0, 0, 0], NOT_FLIPPED),
    "none": ([NOTHING] * 3, [0, 0, 0], "no answer"),
    "empty": ([NOTHING] * 3, [0, 0, 0], "no answer"),
    "unknown category": ([ANSWERED] * 3, [0, 0, 0], "Column 'checking_status' must be one of"),
    "out of range": ([ANSWERED] * 3, [0, 0, 0], "Column 'duration' must be within [1, 72]; got 10000"),
    "missing values": ([ANSWERED] * 3, [0, 0, 0], "Column 'duration' must not be missing"),
    "columns": ([ANSWERED] * 3, [0, 0, 0], "wrong columns: duration"),
    "garbage": ([ERROR] * 3, [0, 0, 0], "not a row of the table: str"),
    "raises": ([ANSWERED, ERROR, ANSWERED], [1, 0, 1], "RuntimeError: lost my way"),
    "dies": ([ANSWERED, DIED, ANSWERED], [1, 0, 1], "died: code 3"),
    "hangs": ([ANSWERED, TIMEOUT, ANSWERED], [1, 0, 1], "no answer within 3 s"),
    "hangs always": ([TIMEOUT, TIMEOUT, NOT_TRIED], [0, 0, 0], "no answer within 3 s"),
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
def judge(setting: Setting) -> Judge:
    return Judge(setting)


@pytest.fixture(scope="module")
def told(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> dict[str, asking.Told]:
    """Everybody is asked, two at a time."""
    folder = tmp_path_factory.mktemp("problem") / "free"
    setting.dump(folder, FREE, batch=10)
    with ThreadPoolExecutor(2) as pool:
        asked = {variant: pool.submit(ask_all, entry(variant), folder, ROWS, LIMITS, batch=5) for variant in EXPECTED}
        return {variant: future.result() for variant, future in asked.items()}


@pytest.mark.parametrize("variant", EXPECTED)
def test_what_goes_wrong_is_written_down(variant: str, told: dict[str, asking.Told], judge: Judge) -> None:
    statuses, valid, why = EXPECTED[variant]
    lines = judge.lines(told[variant].records, FREE)
    assert lines["row"].tolist() == [0, 1, 2]
    assert lines["status"].tolist() == statuses
    assert lines["valid"].tolist() == valid
    assert lines["success"].tolist() == valid
    assert why in lines["reason"].iloc[1]
    assert (lines.loc[lines["valid"] == 1, "reason"] == "").all()
    assert lines.loc[lines["valid"] == 0, "gower_l1"].isna().all()


def test_a_hang_costs_its_time_out_and_the_next_row_has_a_fresh_process(told: dict[str, asking.Told]) -> None:
    assert told["hangs"].records[1]["seconds"] == LIMITS.row
    assert told["hangs"].records[2]["seconds"] < 1
    assert told["hangs"].failure == ""
    assert told["hangs always"].records[2]["reason"] == "given up after 2 processes"


def test_a_batch_is_timed_where_there_is_one_and_its_failure_is_no_failure_of_the_rows(told: dict[str, asking.Told]) -> None:
    assert len(told["fine"].batches) == 1
    assert told["no batch"].batches == []
    assert told["no batch"].notes == ["no batch: RuntimeError: one at a time, please"]
    assert told["no batch"].failure == ""


def test_valid_counterfactuals_are_measured(told: dict[str, asking.Told], judge: Judge) -> None:
    """The answer is a training row with the wanted prediction: real, far, and robust or not, but never negative."""
    lines = judge.lines(told["fine"].records, FREE)
    assert (lines["nn_ratio"] == 0).all()
    assert (lines["n_changed"] > 3).all()
    assert lines[["gower_l1", "l2", "linf", "proximity"]].gt(0).all(axis=None)
    assert lines[["robust", "recourse", "ynn"]].apply(lambda share: share.between(0, 1)).all(axis=None)
    assert lines["changed"].str.split("|").str.len().tolist() == lines["n_changed"].tolist()


def test_breaking_a_frozen_column_is_valid_but_no_success(told: dict[str, asking.Told], judge: Judge) -> None:
    lines = judge.lines(told["fine"].records, FROZEN)
    frozen = set(judge.setting.immutable)
    breaks = [bool(frozen & set(changed.split("|"))) for changed in lines["changed"]]
    assert any(breaks)
    assert lines["valid"].tolist() == [1, 1, 1]
    assert lines["success"].tolist() == [float(not broken) for broken in breaks]


def test_out_of_time_begins_no_row(setting: Setting, tmp_path: Path) -> None:
    setting.dump(tmp_path / "free", FREE, batch=10)
    found = ask_all(entry("hangs always"), tmp_path / "free", ROWS, Limits(setup=60, row=1, method=0.5, processes=3))
    assert [told["status"] for told in found.records] == [TIMEOUT, NOT_TRIED, NOT_TRIED]
    assert found.records[2]["reason"] == "out of 0.5 s"


def test_a_slow_system_explains_fewer_rows_and_a_fast_one_all(setting: Setting, tmp_path: Path) -> None:
    setting.dump(tmp_path / "free", FREE, batch=10)
    limits = Limits(setup=60, row=5, method=5, slow=0.05, processes=1)
    asked = {variant: ask_all(entry(variant), tmp_path / "free", ROWS, limits) for variant in ("slow", "fine")}
    assert [told["status"] for told in asked["slow"].records] == [ANSWERED]
    assert [told["status"] for told in asked["fine"].records] == [ANSWERED] * ROWS


def test_who_cannot_be_installed_says_so_for_every_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(rival: str) -> str:
        raise venvs.CannotInstall(f"no matching distribution for {rival}")

    monkeypatch.setattr(venvs, "python_of", refuse)
    found = ask_all(Entry("NICE", "nice", "sparsity"), tmp_path, ROWS, LIMITS)
    assert [told["status"] for told in found.records] == [NOT_TRIED] * ROWS
    assert found.failure == "cannot be installed: no matching distribution for nice"


def test_several_counterfactuals_of_one_row_are_kept_apart(judge: Judge) -> None:
    accepted = judge.setting.X_train[judge.setting.model.predict(judge.setting.X_train) == 1].iloc[:2]
    record: dict[str, Any] = {"position": 0, "status": ANSWERED, "reason": "", "answers": accepted.to_dict("records")}
    lines = judge.lines([record], FREE)
    assert lines["answers"].tolist() == [2]
    assert lines["diversity"].iloc[0] > 0
    assert pd.isna(judge.lines([{**record, "answers": record["answers"][:1]}], FREE)["diversity"].iloc[0])
