"""A batch as its user sees it: every row once, the same whoever does the work, finished or told."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fasterce import batch, io, load, records
from fasterce.batch.shards import Extent, cut
from fasterce.errors import ArtifactError, FasterCEError, InputError, MissingExtraError, ModelError
from fasterce.io.resumable import ResumableFolder
from tests.batch.conftest import MODEL, digests, people, whole
from tests.batch.models import TRAP, Grants

Explain = Callable[..., batch.BatchReport]
ROWS = 250


@pytest.fixture(scope="session")
def finished(artifact: Path, rows_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one worker process gives, shard by shard."""
    output = tmp_path_factory.mktemp("answers") / "out"
    report = batch.explain(
        artifact,
        rows_folder / "*.parquet",
        output,
        model=MODEL,
        shard_rows=50,
        batch_rows=20,
        workers=1,
        id_column="customer",
    )
    assert report.complete
    return output


def every_row(folder: Path) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


def test_every_row_has_one_status_in_order(finished: Path, rows_folder: Path) -> None:
    lines = whole(finished)
    assert lines["row"].tolist() == list(range(ROWS))
    assert lines["id"].tolist() == every_row(rows_folder)["customer"].tolist()
    assert (lines["status"] == "invalid_input").sum() == 3
    assert (lines["status"] == "found").sum() == ROWS - 3
    assert (finished / "_SUCCESS").exists()


def test_counterfactuals_are_those_of_explain(finished: Path, artifact: Path, rows_folder: Path) -> None:
    rows = every_row(rows_folder)
    expected = io.explain_chunk(load(artifact, Grants()), rows[["age", "pay", "debt", "job"]])
    got = pq.read_table(finished).sort_by("row").drop_columns(["id"])
    assert got.equals(expected.combine_chunks())


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 100), st.integers(0, 10**6))
def test_bytes_do_not_depend_on_batches(
    explain: Explain, finished: Path, tmp_path: Path, batch_rows: int, number: int
) -> None:
    output = tmp_path / f"out-{number}-{batch_rows}"
    explain(output=output, batch_rows=batch_rows, workers=0, resume=False, limit=80)
    assert digests(output).items() <= digests(finished).items()
    assert len(digests(output)) == 2


@pytest.mark.parametrize("shard_rows", [1, 33, 1000])
def test_rows_do_not_depend_on_shards(explain: Explain, finished: Path, tmp_path: Path, shard_rows: int) -> None:
    limit = 12 if shard_rows == 1 else None
    report = explain(shard_rows=shard_rows, workers=0, limit=limit)
    pd.testing.assert_frame_equal(whole(tmp_path / "out"), whole(finished).head(limit or ROWS), check_dtype=False)
    assert report.rows == (limit or ROWS)


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=4), st.integers(1, 12), st.integers(1, 40))
def test_shards_hold_every_row_once(files: list[list[int]], shard_rows: int, limit: int) -> None:
    extents = [Extent(str(k), sum(groups), tuple(groups)) for k, groups in enumerate(files)]
    for most in (None, limit):
        shards = cut(extents, shard_rows, most)
        reported = [(s.source, s.start + k, s.first + k) for s in shards for k in range(s.rows)]
        rows = [(extent.source, k) for extent in extents for k in range(extent.rows)][:most]
        assert reported == [(*row, place) for place, row in enumerate(rows)]
        assert all(0 < shard.rows <= shard_rows for shard in shards) or (not rows and len(shards) == 1)


def test_whole_row_groups_stay_together() -> None:
    assert [(s.start, s.rows) for s in cut([Extent("f", 100, (40, 40, 20))], 50)] == [(0, 40), (40, 40), (80, 20)]


def test_a_rerun_resumes_everything(explain: Explain, tmp_path: Path) -> None:
    explain(workers=0)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    again = explain(workers=0, batch_rows=7)
    assert (again.resumed, again.shards, again.complete) == (6, 6, True)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    assert again.counts.summary.rows == ROWS


def test_damaged_shards_are_explained_again(explain: Explain, finished: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    explain(workers=0)
    part = output / "part-000002.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    (output / "_shards" / "000004.json").write_text("{}")
    again = explain(workers=0)
    assert again.resumed == 4
    assert digests(output) == digests(finished)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"options": {"n": 2}}, "option n was null and is 2"),
        ({"where": "age > 30"}, 'where was null and is "age > 30"'),
        ({"shard_rows": 60}, "shard_rows was 50 and is 60"),
        ({"keep": ["job"]}, "keep was"),
        ({"limit": 60}, "limit was 50 and is 60"),
    ],
)
def test_another_job_is_not_resumed(explain: Explain, tmp_path: Path, more: dict[str, Any], message: str) -> None:
    explain(workers=0, limit=50)
    with pytest.raises(InputError, match=message):
        explain(workers=0, **{"limit": 50, **more})
    report = explain(workers=0, resume=False, **{"limit": 50, **more})
    assert report.complete
    assert report.resumed == 0


def test_changed_input_is_rejected(explain: Explain, tmp_path: Path) -> None:
    source = tmp_path / "rows.parquet"
    people(30, 5).to_parquet(source)
    explain(source, workers=0)
    people(30, 6).to_parquet(source)
    with pytest.raises(InputError, match=r"input was .* and is .*resume=False"):
        explain(source, workers=0)


def test_a_killed_worker_is_replaced(
    explain: Explain, finished: Path, tmp_path: Path, rows_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, trap = tmp_path / "rows", tmp_path / "trap"
    trapped_rows(rows_folder, source)
    trap.touch()
    monkeypatch.setenv(TRAP, str(trap))
    report = explain(source, model="tests.batch.models:killing", workers=2)
    assert not trap.exists()
    assert report.complete
    assert report.retried >= 1
    explain(source, tmp_path / "calm", workers=0)
    assert digests(tmp_path / "out") == digests(tmp_path / "calm")


def test_a_shard_that_always_fails_is_reported(
    explain: Explain, tmp_path: Path, rows_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, trap = tmp_path / "rows", tmp_path / "trap"
    trapped_rows(rows_folder, source)
    monkeypatch.setenv(TRAP, str(trap))
    report = explain(source, model="tests.batch.models:killing_always", workers=1, retries=1)
    assert not report.complete
    (failure,) = report.failed
    assert (failure.number, failure.first, failure.rows, failure.kind) == (3, 130, 40, "WorkerDied")
    assert "ended by signal 9" in failure.reason
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert set(whole(tmp_path / "out")["row"]) == set(range(ROWS)) - set(range(130, 170))
    reported = json.loads((tmp_path / "out" / "_report.json").read_text())
    assert reported["complete"] is False
    assert reported["failed"][0]["source"].endswith("b.parquet")
    assert "Shards that failed" in (tmp_path / "out" / "_report.html").read_text()
    monkeypatch.delenv(TRAP)
    again = explain(source, model="tests.batch.models:killing_always", workers=0)
    assert (again.complete, again.resumed) == (True, 5)
    assert len(whole(tmp_path / "out")) == ROWS


def test_a_model_that_is_down_fails_the_shard_but_one_bad_row_does_not(
    explain: Explain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "rows.parquet"
    frame = people(40, 5)
    frame.loc[3, "age"] = 98
    frame.loc[20:, "age"] = 99
    frame.to_parquet(source)
    fussy = explain(source, tmp_path / "fussy", model="tests.batch.models:fussy", workers=0, shard_rows=20)
    assert fussy.complete
    assert fussy.counts.summary.statuses == {"found": 39, "model_error": 1}
    filtered = explain(source, tmp_path / "few", model="tests.batch.models:fussy", workers=0, where="score > 2")
    assert filtered.counts.summary.statuses == {"model_error": 1}
    monkeypatch.setenv(TRAP, "x")
    down = explain(source, tmp_path / "down", model="tests.batch.models:trapped", workers=0, shard_rows=20, retries=1)
    (failure,) = down.failed
    assert (failure.number, failure.kind, down.retried) == (1, "ModelError", 1)
    assert "failed on all 20 rows of a batch: The model raised RuntimeError: out of order" in failure.reason
    assert len(whole(tmp_path / "down")) == 20


PROGRAM = """
import sys
from fasterce import batch
batch.explain(sys.argv[1], sys.argv[2], sys.argv[3], model="tests.batch.models:slow", shard_rows=50, batch_rows=20, workers=1,
              id_column="customer")
"""


def test_a_killed_run_is_resumed(explain: Explain, finished: Path, artifact: Path, rows_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ["", *sys.path]))}
    command = [sys.executable, "-c", PROGRAM, str(artifact), str(rows_folder), str(output)]
    process = subprocess.Popen(command, env=environment)
    until = time.monotonic() + 120
    while not list(output.glob("_shards/*.json")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(list(output.glob("_shards/*.json")))
    assert 1 <= done < 6
    again = explain(source=rows_folder, output=output, model="tests.batch.models:slow", workers=0)
    assert again.resumed >= done
    assert digests(output) == digests(finished)
    assert not (output / "_temporary").exists()


def test_a_rejected_run_writes_nothing(explain: Explain, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Unknown option 'm'"):
        explain(options={"m": 2})
    assert not (tmp_path / "out").exists()


def test_prediction_filters_evaluate_the_model_and_count_the_others(explain: Explain, finished: Path, tmp_path: Path) -> None:
    report = explain(where="prediction = 'refused' and age >= 30", workers=0, keep=["age"], group="job")
    expected = whole(finished)
    got = whole(tmp_path / "out")
    assert set(got["status"]) == {"found", "invalid_input"}
    assert (got.loc[got["status"] == "found", "prediction"] == "refused").all()
    assert (got["age"] >= 30).all()
    wanted = expected.set_index("row").loc[got["row"]].reset_index()
    pd.testing.assert_frame_equal(got.drop(columns="age"), wanted[got.drop(columns="age").columns], check_dtype=False)
    assert report.counts.filtered == ROWS - len(got)
    assert report.counts.summary.rows == len(got)
    assert report.counts.summary.model_rows > ROWS / 2, "model rows by the filter count"
    refused = expected[(expected["prediction"] == "refused") | (expected["status"] == "invalid_input")]
    assert set(got["row"]) <= set(refused["row"])
    assert (
        sum(cost.wanting for cost in report.counts.groups.values())
        == report.counts.cost.wanting
        == (got["status"] == "found").sum()
    )


def test_scores_filter_rows(explain: Explain, rows_folder: Path, tmp_path: Path) -> None:
    explain(where="score < 0.2", options={"target": "granted"}, workers=0)
    rows = every_row(rows_folder)
    sound = rows["pay"].notna()
    low = Grants().predict_proba(rows)[:, 0] < 0.2
    assert set(whole(tmp_path / "out")["row"]) == set(np.flatnonzero(~sound | low))


def test_partitions_are_hive_folders(explain: Explain, finished: Path, tmp_path: Path) -> None:
    assert explain(keep=["region"], partition_by=["region", "status"], workers=0).complete
    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table().to_pandas().sort_values("row", ignore_index=True)
    expected = whole(finished)
    assert table["row"].tolist() == expected["row"].tolist()
    assert set(table["region"]) == {"north", "south", "été/1"}
    assert table["status"].tolist() == expected["status"].tolist()
    assert (tmp_path / "out" / "region=%C3%A9t%C3%A9%2F1" / "status=found" / "part-000000.parquet").exists()


def test_records_are_written_and_can_be_replayed(explain: Explain, artifact: Path, tmp_path: Path) -> None:
    explain(records=True, workers=0, limit=60)
    lines = [json.loads(line) for path in sorted((tmp_path / "out" / "_records").iterdir()) for line in path.open()]
    assert [line["ids"]["request"] for line in lines] == whole(tmp_path / "out")["id"].tolist()
    assert [line["ids"]["row"] for line in lines] == list(range(60))
    assert {line["status"] for line in lines} == {"found", "invalid_input"}
    assert records.replay(lines, load(artifact, Grants())).same


def test_csv_files_and_addresses_are_read_too(explain: Explain, finished: Path, rows_folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "rows"
    source.mkdir()
    for path in rows_folder.glob("*.parquet"):
        pd.read_parquet(path).to_csv(source / f"{path.stem}.csv", index=False)
    explain(source, tmp_path / "csv", workers=0)
    pd.testing.assert_frame_equal(whole(tmp_path / "csv").drop(columns="reason"), whole(finished).drop(columns="reason"))
    explain((rows_folder / "*.parquet").as_uri().replace("%2A", "*"), tmp_path / "uri", workers=0)
    assert digests(tmp_path / "uri") == digests(finished)


def test_an_empty_input_has_an_output_with_columns(explain: Explain, finished: Path, tmp_path: Path) -> None:
    source = tmp_path / "none.parquet"
    people(0, 1).astype({"customer": "str", "job": "str", "region": "str"}).to_parquet(source)
    report = explain(source, workers=0)
    assert (report.rows, report.complete) == (0, True)
    assert (
        pq.read_schema(tmp_path / "out" / "part-000000.parquet").names
        == pq.read_schema(finished / "part-000000.parquet").names
    )


def test_every_shard_has_the_same_columns(explain: Explain, tmp_path: Path) -> None:
    explain(shard_rows=8, limit=24, options={"n": 2}, workers=0, keep=["region"])
    schemas = [pq.read_schema(path) for path in sorted((tmp_path / "out").glob("part-*.parquet"))]
    assert len(schemas) == 3
    assert all(schema.equals(schemas[0]) for schema in schemas)


def test_progress_is_reported(explain: Explain) -> None:
    seen: list[batch.BatchProgress] = []
    explain(workers=1, limit=100, progress=seen.append)
    assert [standing.done for standing in seen] == sorted(standing.done for standing in seen)
    assert len(seen) >= 5
    last = seen[-1]
    assert (last.done, last.rows, last.shards_done, last.shards, last.failed) == (100, 100, 3, 3, 0)
    assert last.found == 99
    assert last.calls > 0


def test_the_report_adds_up(explain: Explain, tmp_path: Path) -> None:
    explain(workers=0, group="region", options={"features_to_vary": ["job"]})
    reported = json.loads((tmp_path / "out" / "_report.json").read_text())
    lines = whole(tmp_path / "out")
    assert reported["statuses"] == lines["status"].value_counts().to_dict()
    found = lines[lines["status"] == "found"]
    assert reported["changed"] == {"job": len(found)}
    assert reported["cost"]["mean_distance"] == pytest.approx(found["distance"].mean())
    assert reported["without_recourse"] == pytest.approx((lines["status"] == "none_found").sum() / (ROWS - 3))
    assert set(reported["groups"]) == {"north", "south", "été/1"}
    assert sum(group["found"] for group in reported["groups"].values()) == len(found)
    assert reported["blocking"]
    page = (tmp_path / "out" / "_report.html").read_text()
    assert "Cost by region" in page
    assert "été/1" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_a_model_without_scores_is_rejected(explain: Explain) -> None:
    with pytest.raises((InputError, ArtifactError, ModelError), match="scores"):
        explain(workers=0, model=lambda frame: frame)


@pytest.mark.parametrize(
    ("more", "code", "received"),
    [
        ({"source": "nowhere.parquet"}, "batch.nothing_there", None),
        ({"source": "nowhere/*.parquet"}, "batch.no_files", ["nowhere/*.parquet"]),
        ({"source": []}, "batch.no_files", []),
        ({"source": "s4://bucket/x.parquet"}, "io.bad_address", None),
        ({"output": "s3://bucket/out"}, "batch.output_address", "s3://bucket/out"),
        ({"where": "agee > 3"}, "io.unknown_column", "agee"),
        ({"where": "prediction = 'maybe'"}, "constraints.filter_unknown_class", "maybe"),
        ({"where": "age >"}, "constraints.not_a_filter", "age >"),
        ({"where": "age = 'x'"}, "batch.where_number_column", "x"),
        ({"id_column": "costumer"}, "io.unknown_column", "costumer"),
        ({"keep": ["nope"]}, "io.unknown_column", "nope"),
        ({"keep": "job"}, "io.not_a_list", "job"),
        ({"group": "nope"}, "io.unknown_column", "nope"),
        ({"partition_by": ["nope"]}, "batch.unknown_partition", "nope"),
        ({"partition_by": ["distance"]}, "batch.partition_type", None),
        ({"backend": "spork"}, "batch.unknown_backend", "spork"),
        ({"address": "auto"}, "batch.address_without_ray", "auto"),
        ({"shard_rows": 0}, "options.not_a_count", 0),
        ({"batch_rows": 1.5}, "options.not_a_count", 1.5),
        ({"retries": -1}, "options.not_a_count", -1),
        ({"workers": -2}, "options.not_a_count", -2),
        ({"options": {"method": "nearest"}}, "options.unknown_choice", "nearest"),
    ],
)
def test_wrong_arguments_are_rejected_before_writing(
    explain: Explain, tmp_path: Path, more: dict[str, Any], code: str, received: object
) -> None:
    with pytest.raises((InputError, ModelError)) as error:
        explain(**{"workers": 0, **more})
    assert (error.value.problem.code, error.value.problem.received) == (code, received)
    assert not (tmp_path / "out").exists()


def test_files_must_agree_and_be_whole(explain: Explain, tmp_path: Path, rows_folder: Path) -> None:
    source = tmp_path / "rows"
    source.mkdir()
    frame = people(10, 1)
    frame.to_parquet(source / "a.parquet")
    frame.assign(customer=range(10)).to_parquet(source / "b.parquet")
    with pytest.raises(InputError, match=r"one type in all files; got 'id' of another type in .*b\.parquet"):
        explain(source, workers=0)
    (source / "b.parquet").write_bytes((source / "a.parquet").read_bytes()[:-100])
    with pytest.raises(InputError, match=r"b\.parquet must be a whole Parquet file"):
        explain(source, workers=0)
    frame.drop(columns="debt").to_parquet(source / "b.parquet")
    with pytest.raises(InputError, match="missing 'debt'"):
        explain(source, workers=0)


def test_a_file_damaged_during_the_run_fails_its_shards_only(
    explain: Explain, tmp_path: Path, rows_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "rows"
    source.mkdir()
    for name in "ab":
        people(20, ord(name)).to_parquet(source / f"{name}.parquet")
    begin = ResumableFolder.begin

    def spoiled(*arguments: Any, **more: Any) -> None:
        begin(*arguments, **more)
        (source / "b.parquet").write_bytes(b"PAR1 no more")

    monkeypatch.setattr(ResumableFolder, "begin", spoiled)
    report = explain(source, workers=0, retries=1)
    (failure,) = report.failed
    assert (failure.kind, failure.rows, report.retried) == ("InputError", 20, 1)
    assert "b.parquet must be a whole Parquet file" in failure.reason
    assert len(whole(tmp_path / "out")) == 20


def test_foreign_folders_are_not_written(explain: Explain, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "thesis.txt").write_text("years of work")
    for resume in (True, False):
        with pytest.raises(InputError, match=r"files of one run and nothing else; got 'thesis.txt'"):
            explain(workers=0, resume=resume)
    (output / "thesis.txt").unlink()
    (output / "part-000000.parquet").write_text("years of work")
    with pytest.raises(InputError, match=r"without a whole _run.json"):
        explain(workers=0)
    assert (output / "part-000000.parquet").read_text() == "years of work"


def test_the_output_must_not_hold_the_input(explain: Explain, rows_folder: Path) -> None:
    with pytest.raises(InputError, match="apart from the input"):
        explain(workers=0, output=rows_folder)


def test_two_runs_cannot_write_one_folder(explain: Explain, tmp_path: Path) -> None:
    with ResumableFolder(tmp_path / "out").locked(), pytest.raises(InputError, match="Only one run at a time"):
        explain(workers=0)


def test_workers_that_never_start_are_an_error(explain: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        FasterCEError, match="3 workers in a row ended before they had started, the last one with exit code 1"
    ):
        explain()


def test_ray_is_an_extra(explain: Explain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"fasterce\[ray\]"):
        explain(backend="ray")
    assert not (tmp_path / "out").exists()


def trapped_rows(rows_folder: Path, target: Path) -> None:
    """The same files; the first person of the second is 99."""
    target.mkdir()
    for path in rows_folder.glob("*.parquet"):
        frame = pd.read_parquet(path)
        if path.stem == "b":
            frame.loc[0, "age"] = 99
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), target / path.name, row_group_size=40)


def test_no_worker_is_left_behind(explain: Explain) -> None:
    def tire(standing: batch.BatchProgress) -> None:
        if standing.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explain(progress=tire)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [child for child in children if b"run_fork_server" in Path(f"/proc/{child}/cmdline").read_bytes()]
