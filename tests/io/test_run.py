"""A file in, a file out: the same whatever the chunks, whoever kills it, and nothing half-written."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fasterce import FasterCE
from fasterce.errors import InputError
from fasterce.io import Summary, atomic, lines, run

FORMATS = ("csv", "jsonl", "parquet")


def content(path: Path, by_group: bool = True) -> Any:
    """The bytes of text; of Parquet the table and the rows of each row group."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        return file.read().to_pylist(), file.schema_arrow, groups if by_group else []


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory, some_people: Callable[..., pd.DataFrame]) -> Path:
    """Sixty rows, of which some cannot be read."""
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    rows = some_people(60, seed=1).assign(who=[f"p{k}" for k in range(60)]).astype({"age": object, "code": object})
    rows.loc[[5, 40], "age"] = "abc"
    rows.loc[17, "code"] = 9
    text = rows.to_csv(index=False)
    lines = text.splitlines(keepends=True)
    path.write_text("".join([*lines[:30], "1,2\n", *lines[30:]]))
    return path


@pytest.mark.parametrize(("form", "sizes"), [("csv", (61, 1, 7, 64)), ("jsonl", (61, 16)), ("parquet", (61, 16))])
def test_lines_do_not_depend_on_the_chunks(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, form: str, sizes: tuple[int, ...]
) -> None:
    target = tmp_path / f"out.{form}"
    seen = []
    for chunk_rows in sizes:
        summary = run(explainer, rows_file, target, format=form, chunk_rows=chunk_rows, id_column="who", options={"n": 2})
        seen.append(content(target, by_group=False))
        assert summary.rows == 61
        assert summary.statuses["invalid_input"] == 4
    assert all(one == seen[0] for one in seen)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_every_row_has_one_status(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    summary = run(explainer, rows_file, tmp_path / "out.csv", format="csv", chunk_rows=16, id_column="who", keep=["zip"])
    found = pd.read_csv(tmp_path / "out.csv", dtype={"zip": str})
    assert found["row"].tolist() == list(range(61))
    assert found["id"].isna().sum() == 1
    assert "line 31 with 2 cells where the header has 8" in found["reason"][29]
    assert found["zip"].dropna().isin(["01", "02", "1"]).all()
    assert found["status"].value_counts().to_dict() == dict(summary.statuses)
    assert summary.found == (found["rank"] == 0).sum()
    most = next(iter(summary.changed))
    assert summary.changed[most] == found["changes"].fillna("").str.contains(f'"{most}"').sum()
    assert (summary.chunks, summary.resumed, summary.complete) == (4, 0, True)
    assert summary.calls > 0 < summary.model_rows


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_no_rows_in_no_rows_out(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, form: str, kind: str) -> None:
    source, target = tmp_path / f"rows.{kind}", tmp_path / f"out.{form}"
    people.iloc[:0].to_csv(source, index=False) if kind == "csv" else people.iloc[:0].to_parquet(source)
    assert run(explainer, source, target, format=form) == Summary()
    if form == "jsonl":
        assert target.read_bytes() == b""
    else:
        found = pd.read_csv(target) if form == "csv" else pd.read_parquet(target)
        assert len(found) == 0
        assert found.columns[0] == "row"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("out.csv", b"row,status"),
        ("out.CSV", b"row,status"),
        ("out.parquet", b"PAR1"),
        ("out.pq", b"PAR1"),
        ("out.jsonl", b'{"row": 0'),
        ("out.ndjson", b'{"row": 0'),
        ("out.json", b'[\n{"row": 0'),
    ],
)
def test_the_suffix_of_the_target_chooses_the_format(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, name: str, begins: bytes
) -> None:
    people.head(2).to_csv(tmp_path / "rows.csv", index=False)
    run(explainer, str(tmp_path / "rows.csv"), str(tmp_path / name), options={"diagnose": False})
    assert (tmp_path / name).read_bytes().startswith(begins)
    run(explainer, tmp_path / "rows.csv", tmp_path / name, format="csv", options={"diagnose": False})
    assert (tmp_path / name).read_bytes().startswith(b"row,status"), "an explicit format wins"


@pytest.mark.parametrize(
    ("target", "got"), [("-", "'-'"), ("out", "out'"), ("out.xlsx", "out.xlsx'"), ("out.csv.gz", "out.csv.gz'")]
)
def test_an_unknown_suffix_is_rejected(explainer: FasterCE, rows_file: Path, tmp_path: Path, target: str, got: str) -> None:
    with pytest.raises(
        InputError, match=r"format must be one of 'parquet', 'csv', 'jsonl', 'json' where .* got None for"
    ) as error:
        run(explainer, rows_file, target if target == "-" else tmp_path / target)
    assert got in str(error.value)
    assert not list(tmp_path.iterdir())


class Killed(BaseException):
    """Stands for the end of a process."""


def faults(patched: pytest.MonkeyPatch, at: int) -> Iterator[int]:
    """Makes the `at`-th step that touches the disk fail, before or in the middle of what it does."""
    step = 0
    for name in ("replace", "fsync", "unlink", "rmdir"):
        original = getattr(os, name)

        def failing(*given: Any, original: Any = original, **more: Any) -> Any:
            nonlocal step
            step += 1
            if step == at:
                raise Killed
            return original(*given, **more)

        patched.setattr(os, name, failing)
    yield step


def remembered(explain: Any) -> Any:
    """Explaining the same rows again takes no time: it is the disk that is tried here."""
    known: dict[str, Any] = {}

    def found(explainer: FasterCE, frame: pd.DataFrame, options: Any) -> Any:
        if frame.to_json() not in known:
            known[frame.to_json()] = explain(explainer, frame, options)
        return known[frame.to_json()]

    return found


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_run_killed_at_any_step_is_resumed(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "rows.csv", tmp_path / f"out.{form}"
    people.iloc[:6].to_csv(source, index=False)
    how: dict[str, Any] = {"format": form, "chunk_rows": 4, "options": {"diagnose": False}}
    how |= {"records": tmp_path / "records.jsonl", "record_maker": lambda _, found, ids: [{"id": one} for one in ids]}
    monkeypatch.setattr(lines, "explain", remembered(lines.explain))
    whole = run(explainer, source, target, **how)
    expected = content(target), (tmp_path / "records.jsonl").read_text()
    target.unlink()
    ended = 0
    for at in range(1, 200):
        with pytest.MonkeyPatch.context() as patched:
            list(faults(patched, at))
            try:
                run(explainer, source, target, **how)
            except Killed:
                ended += 1
            else:
                break
        if target.exists():
            assert content(target) == expected[0], "a target that is there is whole"
        again = run(explainer, source, target, **how)
        assert (content(target), (tmp_path / "records.jsonl").read_text()) == expected
        assert (again.rows, again.statuses, again.changed) == (whole.rows, whole.statuses, whole.changed)
        assert not list(tmp_path.glob(".*"))
        target.unlink()
    assert ended > 20


def test_damaged_parts_are_written_again(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    how: dict[str, Any] = {"format": "csv", "chunk_rows": 10, "options": {"diagnose": False}}
    run(explainer, rows_file, target, **how)
    expected = target.read_bytes()
    stop_after(explainer, rows_file, target, 4, **how)
    (tmp_path / ".out.csv.parts" / "part-000002.csv").write_bytes(b"cut")
    summary = run(explainer, rows_file, target, **how)
    assert target.read_bytes() == expected
    assert (summary.chunks, summary.resumed) == (7, 2)


def test_numpy_integers_are_accepted_as_counts(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    summary = run(explainer, rows_file, tmp_path / "out.csv", chunk_rows=np.int64(10), limit=np.int32(15))  # type: ignore[arg-type]
    assert (summary.rows, summary.chunks) == (15, 2)


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def swap(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new, 1))


def spoil_the_count(path: Path) -> None:
    about = json.loads(path.read_text())["about"]
    rewrite(path, about=about | {"rows": 9})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{}"),
        lambda path: path.write_text('{"files": 5}'),
        lambda path: path.write_text('{"files": {}, "rows": 10}'),
        lambda path: path.write_text("[" * 100_000 + "]" * 100_000),
        lambda path: path.write_text('{"a":' * 50_000 + "1" + "}" * 50_000),
        lambda path: path.write_bytes(b"\xff\x00"),
        lambda path: rewrite(path, files={}),
        lambda path: path.write_bytes(path.with_name("000000.json").read_bytes()),
        lambda path: swap(path.parents[1] / "part-000001.csv", b"no", b"on"),
        spoil_the_count,
    ],
)
def test_a_changed_part_is_written_again(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, spoil: Callable[[Path], Any]
) -> None:
    target, once = tmp_path / "out.csv", tmp_path / "once.csv"
    how: dict[str, Any] = {"chunk_rows": 20, "options": {"diagnose": False}}
    whole = run(explainer, rows_file, once, **how)
    stop_after(explainer, rows_file, target, 2, **how)
    spoil(tmp_path / ".out.csv.parts" / "_shards" / "000001.json")
    summary = run(explainer, rows_file, target, **how)
    assert target.read_bytes() == once.read_bytes()
    assert (summary.rows, summary.statuses, summary.resumed) == (61, whole.statuses, 1)


@pytest.mark.parametrize("content", ["{}", '{"version": 3}', '{"version": 3, "token": "../x", "job": {}}', "[" * 100_000])
def test_a_run_whose_manifest_is_damaged_starts_again(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, content: str
) -> None:
    target = tmp_path / "out.csv"
    how: dict[str, Any] = {"chunk_rows": 20, "options": {"diagnose": False}}
    stop_after(explainer, rows_file, target, 1, **how)
    (tmp_path / ".out.csv.parts" / "_run.json").write_text(content)
    assert run(explainer, rows_file, target, **how).resumed == 0
    assert len(pd.read_csv(target)) == 61
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_parts_that_hold_fewer_rows_than_the_source_are_not_joined(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path, kind: str
) -> None:
    source, target = tmp_path / f"rows.{kind}", tmp_path / "out.csv"
    people.to_csv(source, index=False) if kind == "csv" else people.to_parquet(source)
    how: dict[str, Any] = {"chunk_rows": 20, "options": {"diagnose": False}}
    stop_after(explainer, source, target, 2, **how)
    described = tmp_path / ".out.csv.parts" / "_shards" / "000001.json"
    content = json.loads(described.read_text())
    del content["sha256"]
    content["about"]["rows"] = 19
    with described.open("wb") as file:
        atomic.write_json(file, content)
    with pytest.raises(InputError, match="must hold the first 40 rows of the source; got 39: start again with resume=False"):
        run(explainer, source, target, **how)
    assert not target.exists()


def test_nothing_is_written_through_a_link(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    """Names that can be foreseen are a door for whoever may write in the same folder."""
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    mine.mkdir()
    shared.mkdir()
    precious = mine / "precious"
    precious.write_text("mine")
    target, folder = shared / "out.csv", shared / ".out.csv.parts"
    how: dict[str, Any] = {"chunk_rows": 61, "options": {"diagnose": False}}
    (shared / ".out.csv.tmp").symlink_to(precious)
    target.symlink_to(precious)
    (folder / "_shards").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    for name in ("_run.json", "part-000000.csv", "_shards/000000.json"):
        (folder / name).symlink_to(precious)
        (folder / "_temporary" / f"{Path(name).name}.tmp").symlink_to(precious)
    run(explainer, rows_file, target, **how)
    assert precious.read_text() == "mine"
    assert not target.is_symlink()
    folder.symlink_to(mine)
    with pytest.raises(InputError, match=r"must be a new folder or that of an earlier run; got a file or a link\."):
        run(explainer, rows_file, target, **how)
    folder.unlink()
    folder.mkdir()
    (folder / "_lock").symlink_to(mine / "new")
    with pytest.raises(InputError, match="expected a place that can be written"):
        run(explainer, rows_file, target, **how)
    assert [path.name for path in mine.iterdir()] == ["precious"]


def stop_after(explainer: FasterCE, source: Path, target: Path, chunks: int, **how: Any) -> None:
    def stop(done: int, total: int | None, found: int, seconds: float) -> None:
        if done >= chunks * how["chunk_rows"]:
            raise Killed

    with pytest.raises(Killed):
        run(explainer, source, target, progress=stop, **how)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": {"n": 2}}, "option n was null and is 2"),
        ({"chunk_rows": 11}, "chunk_rows was 10 and is 11"),
        ({"format": "csv"}, 'format was "jsonl" and is "csv"'),
        ({"keep": ["zip"]}, 'keep was [] and is ["zip"]'),
        ({"model_digest": "sha256:1"}, 'model was null and is "sha256:1"'),
    ],
)
def test_another_job_is_not_resumed(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    target = tmp_path / "out"
    how: dict[str, Any] = {"format": "jsonl", "chunk_rows": 10}
    stop_after(explainer, rows_file, target, 1, **how)
    with pytest.raises(InputError) as error:
        run(explainer, rows_file, target, **how | change)
    assert message in str(error.value)
    assert "resume=False (or the folder deleted) to start again" in str(error.value)
    assert not target.exists()
    assert run(explainer, rows_file, target, resume=False, **how | change).resumed == 0


def test_another_source_or_explainer_is_not_resumed(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, fitted: Callable[..., FasterCE]
) -> None:
    source, target = tmp_path / "rows.csv", tmp_path / "out.csv"
    source.write_bytes(rows_file.read_bytes())
    how: dict[str, Any] = {"format": "csv", "chunk_rows": 10}
    stop_after(explainer, source, target, 1, **how)
    text = source.read_text()
    stamp = source.stat()
    source.write_text(text.replace("abc", "abd"))
    os.utime(source, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(InputError, match="another run: source was"):
        run(explainer, source, target, **how)
    source.write_text(text)
    assert run(explainer, source, target, **how).resumed == 1
    stop_after(explainer, source, target, 1, **how)
    with pytest.raises(InputError, match="another run: explainer was"):
        run(fitted(seed=5), source, target, **how)


def test_only_one_run_at_a_time(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"

    def second(*ignored: Any) -> None:
        with pytest.raises(InputError, match="Only one run at a time"):
            run(explainer, rows_file, target, format="csv")
        raise Killed

    with pytest.raises(Killed):
        run(explainer, rows_file, target, format="csv", progress=second)


def test_a_foreign_folder_is_not_touched(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    (tmp_path / ".out.csv.parts").mkdir()
    (tmp_path / ".out.csv.parts" / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match=r"must hold the files of one run and nothing else; got 'diary.txt'"):
        run(explainer, rows_file, tmp_path / "out.csv", format="csv")
    assert (tmp_path / ".out.csv.parts" / "diary.txt").read_text() == "mine"


def test_a_source_changed_during_the_run_is_rejected(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_bytes(rows_file.read_bytes())
    with pytest.raises(InputError, match="must not change while it is read"):
        run(explainer, source, tmp_path / "out.csv", format="csv", progress=lambda *_: source.write_text("x"))
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "xlsx"}, "Unknown format 'xlsx'"),
        ({"options": {"methot": "sparse"}}, "Unknown option 'methot'"),
        ({"options": {"method": "nearest"}}, "method must be one of"),
        ({"target": "nowhere/out.csv"}, "expected the name of a file in a folder that exists"),
        ({"target": "."}, "got a folder"),
        ({"target": "rows.csv"}, "must be different files"),
        ({"records": "records.jsonl"}, "records needs a record_maker"),
        ({"source": "missing.csv"}, "no such file"),
        ({"id_column": "whoo"}, "Did you mean 'who'?"),
    ],
)
def test_wrong_arguments_are_rejected_before_writing(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    (tmp_path / "rows.csv").write_bytes(rows_file.read_bytes())
    given = {"source": "rows.csv", "target": "out.csv", "format": "csv"} | change
    source, target = (tmp_path / given.pop(name) for name in ("source", "target"))
    with pytest.raises(InputError) as error:
        run(explainer, source, target, **given)
    assert message in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_a_model_that_fails_for_some_rows_does_not_stop_the_run(
    rows_file: Path, tmp_path: Path, fitted: Callable[..., FasterCE]
) -> None:
    explainer = fitted()
    sound = explainer.model

    def moody(frame: pd.DataFrame) -> Any:
        if (frame["age"] > 70).any():
            raise RuntimeError("too old")
        return sound(frame)

    explainer.model = moody
    summary = run(explainer, rows_file, tmp_path / "out.csv", format="csv", chunk_rows=10, options={"diagnose": False})
    rows = pd.read_csv(tmp_path / "out.csv")
    assert summary.rows == 61
    failed = rows[rows["status"] == "model_error"]
    assert 0 < len(failed) < 30
    assert failed["reason"].str.contains("too old").all()
    assert summary.found > 20


def test_progress_is_reported_after_every_chunk(explainer: FasterCE, people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_parquet(tmp_path / "rows.parquet")
    seen: list[tuple[Any, ...]] = []
    how: dict[str, Any] = {"format": "parquet", "chunk_rows": 25}
    run(explainer, tmp_path / "rows.parquet", tmp_path / "out", progress=lambda *counts: seen.append(counts), **how)
    assert [(done, total) for done, total, _, _ in seen] == [(25, 60), (50, 60), (60, 60)]
    assert seen[-1][2] == (pd.read_parquet(tmp_path / "out")["rank"] == 0).sum()


def test_records_are_made_by_the_record_maker(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    def maker(owner: FasterCE, found: Any, ids: list[str]) -> list[dict[str, Any]]:
        assert owner is explainer
        return [
            {"id": one, "status": word, "age": found.rows["age"].iloc[k]}
            for k, (one, word) in enumerate(zip(ids, found.status, strict=True))
        ]

    how: dict[str, Any] = {"id_column": "who", "chunk_rows": 20, "record_maker": maker}
    run(explainer, rows_file, tmp_path / "out.csv", format="csv", records=tmp_path / "records.jsonl", **how)
    run(explainer, rows_file, tmp_path / "only.jsonl", format="jsonl", **how)
    beside = (tmp_path / "records.jsonl").read_text()
    assert beside == (tmp_path / "only.jsonl").read_text()
    records = [json.loads(line) for line in beside.splitlines()]
    assert len(records) == 61
    assert [record["id"] for record in records[28:31]] == ["p28", "29", "p29"]
    assert records[5] == {"id": "p5", "status": "invalid_input", "age": "abc"}


class Pipe(io.BytesIO):
    """Standard output whose reader goes away after so many bytes."""

    def __init__(self, most: float = float("inf")) -> None:
        super().__init__()
        self.most = most

    def write(self, text: Any) -> int:
        if self.tell() + len(text) > self.most:
            raise BrokenPipeError
        return super().write(text)


class Stream:
    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer

    def fileno(self) -> int:
        raise OSError


@pytest.mark.parametrize("form", FORMATS)
def test_pipes_give_the_same_as_files(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / f"out.{form}"
    how: dict[str, Any] = {"format": form, "chunk_rows": 16, "id_column": "who"}
    whole = run(explainer, rows_file, target, **how)
    pipe = Pipe()
    monkeypatch.setattr(sys, "stdin", Stream(io.BytesIO(rows_file.read_bytes())))
    monkeypatch.setattr(sys, "stdout", Stream(pipe))
    summary = run(explainer, "-", "-", **how)
    monkeypatch.undo()
    (tmp_path / f"piped.{form}").write_bytes(pipe.getvalue())
    assert content(tmp_path / f"piped.{form}") == content(target)
    assert summary.statuses == whole.statuses


def test_a_closed_pipe_ends_the_run(explainer: FasterCE, rows_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(most=6000)
    monkeypatch.setattr(sys, "stdout", Stream(pipe))
    summary = run(explainer, rows_file, "-", format="csv", chunk_rows=10)
    assert not summary.complete
    assert 0 < summary.rows < 61
    assert pipe.getvalue().endswith(b"\n")


def test_standard_input_into_a_file_starts_again_every_time(
    explainer: FasterCE, rows_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.csv"
    how: dict[str, Any] = {"format": "csv", "chunk_rows": 10}
    monkeypatch.setattr(sys, "stdin", Stream(io.BytesIO(rows_file.read_bytes())))
    stop_after(explainer, "-", target, 2, **how)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", Stream(io.BytesIO(rows_file.read_bytes())))
    assert run(explainer, "-", target, **how).resumed == 0
    assert len(pd.read_csv(target)) == 61


SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from tests.io.conftest import approve, identity
from fasterce import io, load

folder, source, target, form = sys.argv[2:]
explainer = load(folder, approve, autoencoder=(identity, identity))
print("ready", flush=True)
how = {"chunk_rows": 3, "options": {"diagnose": False}, "progress": lambda *_: time.sleep(0.02)}
io.run(explainer, source, target, format=form, **how)
"""


def test_a_process_killed_twice_finishes(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    form = "csv"
    target, once = tmp_path / f"out.{form}", tmp_path / f"once.{form}"
    explainer.save(tmp_path / "artifact")
    run(explainer, rows_file, once, format=form, chunk_rows=3, options={"diagnose": False})
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(Path(__file__).parents[2])]
    command += [str(tmp_path / "artifact"), str(rows_file), str(target), form]
    dice, kills = random.Random(7), 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
        time.sleep(dice.uniform(0.05, 0.5))
        if kills < 2 and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        message = process.communicate()[1].decode()
        assert process.returncode in (0, -signal.SIGKILL), message
        if process.returncode == 0:
            break
        assert not target.exists()
    assert kills > 0
    assert content(target) == content(once)
    assert not list(tmp_path.glob(".*"))


def test_plain_numbers_are_written_with_the_digits_they_have(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path
) -> None:
    people.to_csv(tmp_path / "rows.csv", index=False)
    run(explainer, tmp_path / "rows.csv", tmp_path / "out.csv", format="csv")
    run(explainer, tmp_path / "rows.csv", tmp_path / "out.parquet")
    text, typed = pd.read_csv(tmp_path / "out.csv", dtype=str), pd.read_parquet(tmp_path / "out.parquet")
    for name in ("cf_weight", "cf_pay", "distance"):
        there = typed[name].notna()
        assert (text[name].notna() == there).all()
        assert (text[name][there].astype(typed[name].dtype) == typed[name][there]).all()
    assert text["cf_weight"].dropna().str.len().max() <= 6
    assert typed["cf_weight"].dtype == np.float32


def test_columns_kept_of_any_type_are_written_in_any_format(
    explainer: FasterCE, people: pd.DataFrame, tmp_path: Path
) -> None:
    kept = {"a": np.nan, "a.b": 1.5, "when": pd.Timestamp("2020-01-02"), "kind": "x"}
    rows = people.iloc[:3].assign(**kept).astype({"kind": "category"})
    rows.loc[1, "a"] = np.inf
    rows.to_parquet(tmp_path / "rows.parquet")
    for form in FORMATS:
        run(explainer, tmp_path / "rows.parquet", tmp_path / f"out.{form}", format=form, keep=["a", "when", "kind"])
    text = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert text["when"].tolist() == ["2020-01-02 00:00:00"] * 3
    assert text["a"].isna().tolist() == [True, False, True]
    typed = pd.read_parquet(tmp_path / "out.parquet")
    assert typed["when"].tolist() == rows["when"].tolist()
    assert typed["kind"].tolist() == ["x"] * 3
    objects = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["a"] for one in objects] == [None] * 3


def test_an_unwritable_place_is_rejected(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    (tmp_path / ".out.csv.parts").write_text("a file")
    with pytest.raises(InputError, match="must be a new folder or that of an earlier run; got a file"):
        run(explainer, rows_file, tmp_path / "out.csv", format="csv")


def test_a_run_is_resumed_after_a_full_disk(explainer: FasterCE, rows_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    how: dict[str, Any] = {"format": "csv", "chunk_rows": 20}
    written = 0
    sync = os.fsync

    def full(file: Any) -> None:
        nonlocal written
        written += 1
        if written > 8:
            raise OSError(28, "No space left on device")
        sync(file)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="expected a place that can be written; got no space left on device"):
            run(explainer, rows_file, target, **how)
    assert run(explainer, rows_file, target, **how).resumed > 0
    assert len(pd.read_csv(target)) == 61


@pytest.mark.parametrize(("kind", "form"), [("csv", "csv"), ("parquet", "parquet"), ("csv", "jsonl")])
def test_memory_does_not_grow_with_the_file(
    explainer: FasterCE, some_people: Callable[..., pd.DataFrame], tmp_path: Path, kind: str, form: str
) -> None:
    many = some_people(9000, seed=3)
    there = many[explainer.model(many) == "yes"].head(4000)
    peaks, arrow = {}, {}
    for count in (800, 4000):
        source = tmp_path / f"rows{count}.{kind}"
        rows = there.head(count)
        rows.to_csv(source, index=False) if kind == "csv" else rows.to_parquet(source)
        held: list[int] = []
        tracemalloc.start()
        how: dict[str, Any] = {"format": form, "chunk_rows": 200, "options": {"target": "yes"}}
        run(
            explainer, source, tmp_path / "out", progress=lambda *_, held=held: held.append(pa.total_allocated_bytes()), **how
        )
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        arrow[count] = max(held)
    assert peaks[4000] < 1.5 * peaks[800]
    assert arrow[4000] < arrow[800] + 2**16
