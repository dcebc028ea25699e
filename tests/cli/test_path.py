"""The path a stranger walks: inspect, fit, explain, report, check, replay."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fasterce import load
from fasterce.data.schema_io import load_schema, save_schema

Run = Callable[..., Any]
ROWS = ("--artifact", "shop.fasterce", "--rows", "rows.csv")


def test_inspect_writes_a_schema_to_edit_and_does_not_write_over_it(shop: Path, run: Run) -> None:
    schema = load_schema("schema.yaml")
    assert schema.names == ("age", "pay", "debt", "job")
    assert not schema["age"].mutable
    done = run("inspect", "train.csv", "-o", "schema.yaml")
    assert done.exit_code == 3
    assert "--force" in done.stderr
    done = run("inspect", "train.csv", "-o", "schema.yaml", "--force")
    assert done.exit_code == 0
    assert "Column 'customer' looks like an id and is passed through" in done.stderr
    assert "Add: --drop outcome" in done.stderr
    assert "Add: --increasing age" in done.stderr
    assert "granted, refused" in done.stdout


def test_fit_without_a_schema_says_where_the_options_of_its_advice_belong(shop: Path, run: Run) -> None:
    done = run("fit", "--data", "train.csv", "--model", "model.skops", "--drop", "customer,outcome", "-o", "new.fasterce")
    assert done.exit_code == 0, done.stderr
    assert "Add: --increasing age" in done.stderr
    assert "fasterce inspect … -o schema.yaml; then fit with --schema schema.yaml" in done.stderr


def test_fit_with_a_schema_names_options_not_python_in_its_advice(shop: Path, run: Run) -> None:
    assert run("inspect", "train.csv", "--drop", "customer,outcome", "-o", "free.yaml").exit_code == 0
    done = run("fit", "--data", "train.csv", "--schema", "free.yaml", "--model", "model.skops", "-o", "new.fasterce")
    assert done.exit_code == 0, done.stderr
    assert "Add: --increasing age" in done.stderr
    assert "set the entries of the columns in free.yaml" in done.stderr.replace("\n", " ")
    assert "increasing=['age']" not in done.stderr


def test_several_columns_in_one_word(shop: Path, run: Run) -> None:
    words = ("--drop", "customer,outcome", "--categorical", "age", "--freeze", "age, job", "-o", "other.yaml")
    assert run("inspect", "train.csv", *words).exit_code == 0
    schema = load_schema("other.yaml")
    assert schema.names == ("age", "pay", "debt", "job")
    assert schema["age"].kind == "categorical"
    assert not schema["job"].mutable


def test_the_artifact_brings_its_model(shop: Path, run: Run) -> None:
    assert sorted(entry.name for entry in Path("shop.fasterce").iterdir()) == [
        "arrays.safetensors",
        "manifest.json",
        "model.skops",
    ]
    Path("model.skops").unlink()
    done = run("explain", *ROWS, "--target", "granted", "-f", "csv", "--id", "customer", "--keep", "job")
    assert done.exit_code == 0, done.stderr
    lines = pd.read_csv(pd.io.common.StringIO(done.stdout))
    assert len(lines) == 40
    assert list(lines["id"]) == list(pd.read_csv("rows.csv")["customer"])
    assert set(lines["status"]) == {"found", "already_target"}
    assert (
        lines.loc[lines["status"] == "found", "cf_age"] == pd.read_csv("rows.csv")["age"][lines["status"] == "found"]
    ).all()


def test_the_same_counterfactuals_in_python_and_in_every_format(shop: Path, run: Run) -> None:
    explainer = load("shop.fasterce")
    expected = explainer.explain(pd.read_csv("rows.csv")[["age", "pay", "debt", "job"]], target="granted").to_frame()
    for out in ("out.csv", "out.parquet"):
        assert run("explain", *ROWS, "--target", "granted", "-o", out, "-q", "--chunk", "7").exit_code == 0
    wide = pd.read_csv("out.csv"), pd.read_parquet("out.parquet")
    for lines in wide:
        found = lines[lines["status"] == "found"]
        for name in ("age", "pay", "debt", "job"):
            assert list(found[f"cf_{name}"]) == list(expected[name])
    assert run("explain", *ROWS, "--target", "granted", "-o", "out.jsonl").exit_code == 0
    records = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [record["status"] for record in records] == list(wide[0]["status"])
    assert (
        run("explain", "-a", "shop.fasterce", "-r", "rows.parquet", "--target", "granted", "-o", "other.csv").exit_code == 0
    )
    assert Path("other.csv").read_bytes() == Path("out.csv").read_bytes()


def test_a_table_and_pages_are_for_people(shop: Path, run: Run) -> None:
    table = run("explain", *ROWS, "--target", "granted", "-f", "table", "--id", "customer", "--limit", "3")
    assert table.exit_code == 0
    assert "c000" in table.stdout
    assert run("explain", *ROWS, "-o", "page.html").exit_code == 0
    assert "<!doctype html>" in Path("page.html").read_text()
    assert "All rows" in Path("page.html").read_text()
    done = run("report", *ROWS, "--target", "granted", "--freeze", "job", "--title", "Forty people", "-o", "report.html")
    assert done.exit_code == 0, done.stderr
    page = Path("report.html").read_text()
    assert "Forty people" in page
    assert "sha256:" in page
    assert "may not change" in page or "frozen" in page.lower()


def test_options_say_what_explain_says(shop: Path, run: Run) -> None:
    common = ("explain", *ROWS, "--target", "granted", "-f", "csv", "-q")
    only_pay = pd.read_csv(pd.io.common.StringIO(run(*common, "--vary", "pay", "--range", "pay=:60").stdout))
    found = only_pay[only_pay["status"] == "found"]
    assert len(found)
    assert (found["cf_pay"] <= 60).all()
    assert all({change["feature"] for change in json.loads(text)} == {"pay"} for text in found["changes"])
    several = pd.read_csv(pd.io.common.StringIO(run(*common, "--n", "2", "--freeze", "job,pay").stdout))
    assert several.groupby("row").size().max() <= 2
    assert not several["changes"].dropna().str.contains('"pay"|"job"').any()
    jobs = pd.read_csv(pd.io.common.StringIO(run(*common, "--vary", "job", "--range", "job=nurse,clerk").stdout))
    assert set(jobs.loc[jobs["status"] == "found", "cf_job"]) <= {"nurse", "clerk"}
    surer = pd.read_csv(pd.io.common.StringIO(run(*common, "--target-score", "0.8:").stdout))
    assert (surer.loc[surer["status"] == "found", "new_score"] >= 0.8).all()


def test_a_file_of_constraints(shop: Path, run: Run) -> None:
    Path("constraints.yaml").write_text(
        "- {constraint: require, formula: 'debt >= pay / 10'}\n- {constraint: frozen, features: [job]}\n"
    )
    done = run("explain", *ROWS, "--target", "granted", "-f", "csv", "--constraints", "constraints.yaml")
    lines = pd.read_csv(pd.io.common.StringIO(done.stdout))
    found = lines[lines["status"] == "found"]
    assert len(found)
    assert (found["cf_debt"] >= found["cf_pay"] / 10 - 1e-9).all()


def test_check_says_whether_model_and_data_are_still_the_same(shop: Path, run: Run) -> None:
    done = run("check", "-a", "shop.fasterce", "--data", "train.csv")
    assert done.exit_code == 0, done.stderr
    assert "No drift" in done.stdout
    assert "100.0%" in done.stderr
    pd.read_csv("train.csv").assign(pay=lambda frame: frame["pay"] + 40).to_csv("later.csv", index=False)
    done = run("check", "-a", "shop.fasterce", "--data", "later.csv")
    assert done.exit_code == 6
    assert "Drift" in done.stdout


def test_records_can_be_replayed(shop: Path, run: Run) -> None:
    assert run("explain", *ROWS, "--target", "granted", "-o", "records.jsonl").exit_code == 0
    again = run("replay", "--records", "records.jsonl", "-a", "shop.fasterce")
    assert again.exit_code == 0, again.stdout
    Path("records.jsonl").write_text(
        Path("records.jsonl").read_text().replace('"status": "found"', '"status": "none_found"', 1)
    )
    changed = run("replay", "--records", "records.jsonl", "-a", "shop.fasterce")
    assert changed.exit_code == 6


def test_names_for_the_classes_of_a_model_that_predicts_numbers(shop: Path, run: Run) -> None:
    words = ("--data", "train.csv", "--schema", "schema.yaml", "--model", "trees.json", "--classes", "refused,granted")
    done = run("fit", *words, "--out", "trees.fasterce", "-q")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    done = run("explain", "-a", "trees.fasterce", "-r", "rows.csv", "--target", "granted", "-f", "csv", "-q")
    assert done.exit_code == 0, done.stderr
    assert set(pd.read_csv(pd.io.common.StringIO(done.stdout))["prediction"]) <= {"refused", "granted"}


def test_fit_keeps_to_the_model_rows_it_is_given(shop: Path, run: Run) -> None:
    words = ("--data", "train.csv", "--schema", "schema.yaml", "--model", "model.skops", "--compile", "never")
    done = run("fit", *words, "--out", "small.fasterce", "--max-fit-rows", 2000)
    assert done.exit_code == 0, done.stderr
    assert "2000 model rows (max_fit_rows=2000)" in done.stderr
    assert load("small.fasterce").max_fit_rows == 2000
    done = run("fit", *words, "--out", "bad.fasterce", "--max-fit-rows", 20)
    assert done.exit_code == 3
    assert "--max-fit-rows must be a whole number of at least 1000; got 20." in done.stderr


def test_pipes(shop: Path) -> None:
    command = [sys.executable, "-m", "fasterce", "explain", "-a", "shop.fasterce", "-r", "-", "--target", "granted"]
    with Path("rows.csv").open("rb") as rows:
        done = subprocess.run(command, stdin=rows, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 41
    assert b"40 rows" in done.stderr
    rows_again = Path("rows.csv").read_text()
    Path("many.csv").write_text(rows_again + "".join(rows_again.splitlines(keepends=True)[1:]) * 50)
    ended = subprocess.run(
        f"{' '.join(command)} --chunk 20 < many.csv | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0
    assert b"Traceback" not in ended.stderr
    assert b"Error" not in ended.stderr


def test_help_and_version(run: Run) -> None:
    done = run("--help")
    assert done.exit_code == 0
    for command in ("inspect", "fit", "explain", "report", "check", "replay", "bench", "demo"):
        assert command in done.stdout
    assert "Exit codes" in done.stdout
    assert run("--version").stdout.startswith("fasterce ")
    assert run("explain", "--help").exit_code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete(shell: str) -> None:
    environment = {"_FASTERCE_COMPLETE": f"source_{shell}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([Path(sys.executable).parent / "fasterce"], env=environment, capture_output=True, check=False)
    assert b"_FASTERCE_COMPLETE" in done.stdout


def test_rows_and_data_mean_the_same_everywhere(shop: Path, run: Run) -> None:
    for flag in ("--rows", "--data"):
        assert run("inspect", flag, "train.csv").exit_code == 0
        assert run("explain", "--artifact", "shop.fasterce", flag, "rows.csv", "--limit", "2", "-f", "csv").exit_code == 0
        checked = run("check", "--artifact", "shop.fasterce", flag, "train.csv")
        assert checked.exit_code in (0, 6)
        assert "stored examples" in checked.stderr
    assert run("inspect").exit_code == 3
    assert run("inspect", "train.csv", "--data", "train.csv").exit_code == 3


def test_decimal_commas_and_thousands_are_read(shop: Path, run: Run) -> None:
    text = "age;pay;debt;job\n30;1.050,5;10,25;clerk\n40;20,0;5,0;nurse\n"
    Path("euro.csv").write_text(text)
    plain = text.replace("1.050,5", "1050.5").replace(",", ".").replace(";", ",")
    Path("plain.csv").write_text(plain)
    marks = ("--decimal", ",", "--thousands", ".")
    rows = ("explain", "--artifact", "shop.fasterce", "-f", "csv")
    europe = run(*rows, "--rows", "euro.csv", *marks)
    assert europe.exit_code == 0
    assert europe.stdout == run(*rows, "--rows", "plain.csv").stdout
    unread = run(*rows, "--rows", "euro.csv").stdout
    assert "invalid_input" in unread
    assert "a decimal comma, which --decimal , --thousands . reads" in unread
    assert "column reason" in run(*rows, "--rows", "euro.csv", "--out", "euro.out.csv").stderr
    assert "1050.5" in run("inspect", "euro.csv", *marks).stdout
    assert run(*rows, "--rows", "euro.csv", "--decimal", ";").exit_code == 3
    assert run(*rows, "--rows", "euro.csv", "--decimal", ",", "--thousands", ",").exit_code == 3


def test_json_is_one_document_and_can_be_replayed(shop: Path, run: Run) -> None:
    assert run("explain", *ROWS, "--limit", "7", "--chunk", "3", "--out", "all.json").exit_code == 0
    assert run("explain", *ROWS, "--limit", "7", "--out", "all.jsonl").exit_code == 0
    document, lines = json.loads(Path("all.json").read_text()), Path("all.jsonl").read_text().splitlines()
    assert [one["status"] for one in document] == [json.loads(line)["status"] for line in lines]
    assert len(document) == 7
    assert run("replay", "--records", "all.json", "--artifact", "shop.fasterce").exit_code == 0


def test_a_page_has_every_row_and_can_be_sorted(shop: Path, run: Run) -> None:
    assert run("explain", *ROWS, "--out", "all.html").exit_code == 0
    page = Path("all.html").read_text(encoding="utf-8")
    assert page.count("<tr data-status=") == 40
    assert 'data-fce="filter"' in page


def test_the_wanted_outcome_is_declared_once_and_used_everywhere(shop: Path, run: Run) -> None:
    done = run("inspect", "train.csv", "--drop", "customer,outcome", "--unwanted", "refused", "-o", "declared.yaml")
    assert done.exit_code == 0, done.stderr
    assert load_schema("declared.yaml").unwanted == ("refused",)
    fit = ("fit", "--data", "train.csv", "--model", "model.skops", "--drop", "customer,outcome")
    done = run(*fit, "--wanted", "granted", "-o", "wanted.fasterce")
    assert done.exit_code == 0, done.stderr
    assert load("wanted.fasterce").declared_target == "granted"
    done = run("explain", "--artifact", "wanted.fasterce", "--rows", "rows.csv", "-f", "csv")
    assert set(pd.read_csv(pd.io.common.StringIO(done.stdout))["status"]) == {"found", "already_target"}
    done = run(*fit, "--wanted", "splendid", "-o", "other.fasterce")
    assert done.exit_code != 0
    assert "must be a class of the model" in done.stderr
    assert not Path("other.fasterce").exists()


def test_changes_against_the_interest_are_flagged_in_the_output(shop: Path, run: Run) -> None:
    schema = load_schema("schema.yaml")
    save_schema(schema.declare({"debt": {"preferred": "higher"}}, target="granted"), "preferred.yaml")
    fit = ("fit", "--data", "train.csv", "--model", "model.skops", "--schema", "preferred.yaml", "-o", "preferred.fasterce")
    assert run(*fit).exit_code == 0
    done = run("explain", "--artifact", "preferred.fasterce", "--rows", "rows.csv", "--vary", "debt", "-o", "flagged.parquet")
    assert done.exit_code in (0, 1), done.stderr
    lines = pd.read_parquet("flagged.parquet")
    changes = [json.loads(text) for text in lines.loc[lines["status"] == "found", "changes"]]
    assert changes
    assert all(one["against"] for each in changes for one in each), "less debt, of which more is preferred here"
