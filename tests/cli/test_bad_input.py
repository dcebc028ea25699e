"""What goes wrong: one sentence, an exit code, nothing half-written, nothing run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROWS = ("--artifact", "shop.fasterce", "--rows", "rows.csv")


def one_sentence(done: Any, code: int, message: str) -> None:
    assert done.exit_code == code, (done.exit_code, done.stderr)
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, done.stderr
    assert message in errors[0]
    assert "Traceback" not in done.stderr
    assert "not foreseen" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("inspect", "nothing.csv"), 3, "nothing.csv"),
        (("inspect", "train.csv", "--drop", "outcom"), 3, "Did you mean 'outcome'?"),
        (("inspect", "train.csv", "-o", "schema.txt"), 3, "that ends in"),
        (("explain", "-a", "shop.fasterce", "-r", "nothing.csv"), 3, "nothing.csv"),
        (("explain", "-a", "nothing.fasterce", "-r", "rows.csv"), 5, "nothing.fasterce"),
        (("explain", *ROWS, "--vary", "dept"), 3, "Did you mean 'debt'?"),
        (("explain", *ROWS, "--freeze", "ag"), 3, "Did you mean 'age'?"),
        (("explain", *ROWS, "--range", "pay"), 3, "COLUMN=LOW:HIGH"),
        (("explain", *ROWS, "--range", "pay=a:b"), 3, "LOW:HIGH in numbers"),
        (("explain", *ROWS, "--range", "job=nurce"), 3, "Did you mean 'nurse'?"),
        (("explain", *ROWS, "--target", "grantd"), 3, "Did you mean 'granted'?"),
        (("explain", *ROWS, "--target-score", "high"), 3, "LOW:HIGH in numbers"),
        (("explain", *ROWS, "--constraints", "constraints.yaml"), 3, "constraints.yaml"),
        (("explain", *ROWS, "--id", "custmer"), 3, "Did you mean 'customer'?"),
        (("explain", *ROWS, "-o", "out.xlsx"), 3, "--format"),
        (("explain", *ROWS, "-f", "parquet"), 3, "stdout"),
        (("explain", *ROWS, "-o", "no/folder/out.csv"), 3, "folder"),
        (("explain", *ROWS, "--n", "0"), 3, "--n must be a whole number from 1 to 100"),
        (("explain", *ROWS, "--n", "100000"), 3, "from 1 to 100"),
        (("explain", *ROWS, "-o", "shop.fasterce"), 3, "--out must be a file"),
        (("report", *ROWS, "-o", "shop.fasterce"), 3, "--out must be a file"),
        (("explain", *ROWS, "--vary", "age"), 3, "--vary must name columns that may change"),
        (("explain", *ROWS, "--robust", "2"), 3, "robust"),
        (("explain", *ROWS, "--model", "nothing.onnx"), 4, "nothing.onnx"),
        (("explain", *ROWS, "--model", "model.pkl"), 4, "--trust-pickle"),
        (("explain", *ROWS, "--model", "model.skop"), 4, "Did you mean"),
        (("explain", *ROWS, "--model", "no_such_module:model"), 4, "no_such_module"),
        (("explain", *ROWS, "--trust-pickle"), 3, "--model"),
        (("explain", *ROWS, "--encoding", "latin-7000"), 3, "latin-7000"),
        (("check", "-a", "shop.fasterce", "--data", "schema.yaml"), 3, "schema.yaml"),
        (("replay", "-a", "shop.fasterce", "--records", "rows.csv"), 3, "rows.csv"),
        (("fit", "--data", "train.csv", "--model", "model.pkl", "--out", "new.fasterce"), 4, "pickle"),
        (("fit", "--data", "train.csv", "--model", "model.skops", "--out", "train.csv"), 5, "train.csv"),
        (("fit", "--data", "train.csv", "--model", "model.skops", "--classes", "a", "--out", "new.fasterce"), 3, "--classes"),
    ],
)
def test_bad_words(words: tuple[str, ...], code: int, message: str, shop: Path, run: Run) -> None:
    before = {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()}
    one_sentence(run(*words), code, message)
    assert {path: path.read_bytes() for path in shop.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"age;pay;debt;job\n30;50;10;clerk\n", None),
        (b"age,pay,debt\n30,50,10\n", "job"),
        (b"age,pay,dept,job\n30,50,10,clerk\n", "debt"),
        ("age,pay,debt,job\n30,50,10,cl\u00e9rk\n".encode("latin-1"), "encoding"),
        (b"", "rows.csv"),
        (b"\x00\x01\x02", "rows.csv"),
        (b"PAR1 and no more", "Parquet"),
    ],
)
def test_bad_files_of_rows(content: bytes, message: str | None, shop: Path, run: Run) -> None:
    Path("rows.csv").write_bytes(content)
    done = run("explain", *ROWS, "-o", "out.csv")
    if message is None:
        assert done.exit_code == 0, done.stderr
        return
    one_sentence(done, 3, message)
    assert not Path("out.csv").exists()


def test_only_files_are_replaced_and_links_are_followed(shop: Path, run: Run) -> None:
    os.mkfifo("pipe.csv")
    one_sentence(run("explain", *ROWS, "-o", "pipe.csv"), 3, "--out must be a file")
    assert Path("pipe.csv").is_fifo()
    Path("kept.csv").write_text("old")
    Path("link.csv").symlink_to("kept.csv")
    assert run("explain", *ROWS, "-o", "link.csv", "-q").exit_code == 0
    assert Path("link.csv").is_symlink()
    assert Path("kept.csv").read_text().startswith("row,")


def test_a_closed_standard_output_is_reported(shop: Path) -> None:
    command = f"{sys.executable} -m fasterce explain {' '.join(ROWS)} -f csv >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("Error: There is no standard output")


def test_a_wrong_separator_is_reported(shop: Path, run: Run) -> None:
    one_sentence(run("explain", *ROWS, "--separator", ";"), 3, ",")


def test_bad_cells_are_statuses_and_nothing_is_lost(shop: Path, run: Run) -> None:
    Path("rows.csv").write_text("age,pay,debt,job\nold,50,10,clerk\n30,50,10,pilot\n30,,10,clerk\n30,20,10,clerk\n")
    done = run("explain", *ROWS, "-f", "jsonl", "--target", "granted")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["status"] for one in json.loads(run("explain", *ROWS, "-f", "json", "--target", "granted").stdout)] == [
        record["status"] for record in records
    ]
    assert [record["status"] for record in records] == ["invalid_input"] * 3 + ["found"]
    assert "'old'" in records[0]["reason"]
    assert "'pilot'" in records[1]["reason"]


def test_a_pickle_is_run_only_by_word(shop: Path, run: Run) -> None:
    fit = ("fit", "--data", "train.csv", "--schema", "schema.yaml", "--model", "model.pkl", "--out", "new.fasterce")
    one_sentence(run(*fit), 4, "pickle")
    assert not Path("touched").exists()
    trusting = run(*fit, "--trust-pickle")
    assert trusting.exit_code == 4  # what it holds is no model
    assert Path("touched").exists()
    assert "runs the code in it" in trusting.stderr
    assert not Path("new.fasterce").exists()


def test_a_model_for_other_columns_is_reported(shop: Path, run: Run) -> None:
    Path("schema.yaml").write_text(Path("schema.yaml").read_text().replace("  debt:\n", "  dept:\n"))
    Path("train.csv").write_text(Path("train.csv").read_text().replace("debt", "dept", 1))
    fit = ("fit", "--data", "train.csv", "--schema", "schema.yaml", "--model", "model.skops", "--out", "new.fasterce")
    one_sentence(run(*fit), 4, "debt")
    assert not Path("new.fasterce").exists()


def damaged(name: str, change: Callable[[bytes], bytes]) -> None:
    path = Path("shop.fasterce") / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("manifest.json", lambda content: content[: len(content) // 2]),
        ("manifest.json", lambda content: content.replace(b"model.skops", b"../../secret.skops")),
        ("manifest.json", lambda content: content.replace(b'"seed": 0', b'"seed": 1').replace(b"granted", b"refused", 1)),
        ("arrays.safetensors", lambda content: content[:-10]),
        ("arrays.safetensors", lambda content: (2**62).to_bytes(8, "little") + content[8:]),
        ("model.skops", lambda content: content[:-10]),
        ("model.skops", lambda content: b"PK\x03\x04" + content[4:] + b"x"),
    ],
)
def test_a_damaged_or_hostile_artifact_is_reported(name: str, change: Callable[[bytes], bytes], shop: Path, run: Run) -> None:
    damaged(name, change)
    one_sentence(run("explain", *ROWS, "-o", "out.csv"), 5, "shop.fasterce")
    assert not Path("out.csv").exists()


def test_a_manifest_that_points_elsewhere_is_not_followed(shop: Path, run: Run) -> None:
    """Even where the digest is made to fit."""
    from fasterce.artifact.manifest import json_digest

    path = Path("shop.fasterce/manifest.json")
    content = json.loads(path.read_text())
    content.pop("sha256")
    for file, kind in (
        ("../model.pkl", "skops"),
        ("/etc/passwd", "onnx"),
        ("model.pkl", "pickle"),
        ("model.skops", "pickle"),
    ):
        content["model"] |= {"file": file, "kind": kind}
        path.write_text(json.dumps(content | {"sha256": json_digest(content)}))
        one_sentence(run("explain", *ROWS), 5, "model")


def test_an_artifact_without_a_model_says_that_one_is_needed(shop: Path, run: Run) -> None:
    fit = ("fit", "--data", "train.csv", "--schema", "schema.yaml", "--model", "model.skops", "--out", "bare.fasterce")
    assert run(*fit, "--no-bundle", "-q").exit_code == 0
    one_sentence(run("explain", "-a", "bare.fasterce", "-r", "rows.csv"), 5, "--model")
    assert run("explain", "-a", "bare.fasterce", "-r", "rows.csv", "--model", "model.skops", "-f", "csv").exit_code == 0
