"""Finished pieces of a job in a folder: resumed by the same job, refused by another, discarded when damaged."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from fasterce.errors import InputError
from fasterce.io.resumable import ResumableFolder, job_options

JOB = {"input": "rows.csv", "n": 1}


def write_lines(file: IO[bytes]) -> None:
    file.write(b"lines")


@pytest.fixture
def folder(tmp_path: Path) -> ResumableFolder:
    """A folder with one finished piece."""
    made = ResumableFolder(tmp_path / "out")
    with made.locked():
        made.begin(JOB, fresh=False)
        made.commit(0, {"part-000000.csv": write_lines}, {"rows": 5})
    return made


def test_a_finished_piece_is_resumed(folder: ResumableFolder) -> None:
    again = ResumableFolder(folder.path)
    with again.locked():
        again.begin(JOB, fresh=False)
    assert again.token == folder.token
    assert again.finished(0) == {"rows": 5}
    assert again.finished(1) is None
    assert (again.path / "part-000000.csv").read_bytes() == b"lines"


def test_a_fresh_run_discards_finished_pieces(folder: ResumableFolder) -> None:
    with folder.locked():
        folder.begin(JOB, fresh=True)
    assert folder.finished(0) is None
    assert not (folder.path / "part-000000.csv").exists()


@pytest.mark.parametrize("damage", ["part-000000.csv", "_shards/000000.json"])
def test_a_damaged_piece_is_not_finished(folder: ResumableFolder, damage: str) -> None:
    (folder.path / damage).write_bytes(b"other")
    assert folder.finished(0) is None


def test_another_job_is_refused(folder: ResumableFolder) -> None:
    with folder.locked(), pytest.raises(InputError) as error:
        folder.begin(JOB | {"n": 2}, fresh=False)
    problem = error.value.problem
    assert (problem.code, problem.option) == ("io.different_job", "resume=False")
    assert (problem.details["name"], problem.details["was"], problem.details["now"]) == ("n", "1", "2")
    assert folder.finished(0) == {"rows": 5}


def test_a_piece_of_a_replaced_run_is_refused(folder: ResumableFolder) -> None:
    stale = ResumableFolder(folder.path, folder.token)
    with folder.locked():
        folder.begin(JOB, fresh=True)
    with pytest.raises(InputError) as error:
        stale.commit(1, {"part-000001.csv": write_lines}, {})
    assert error.value.problem.code == "io.replaced_run"


def test_files_without_a_manifest_are_kept(folder: ResumableFolder) -> None:
    (folder.path / "_run.json").unlink()
    with folder.locked(), pytest.raises(InputError) as error:
        folder.begin(JOB, fresh=False)
    assert error.value.problem.code == "io.not_resumable"
    assert (folder.path / "part-000000.csv").exists()
    with folder.locked():
        folder.begin(JOB, fresh=False, discard=True)
    assert not (folder.path / "part-000000.csv").exists()


@pytest.mark.parametrize("name", ["thesis.txt", "_shards/thesis.txt"])
def test_a_folder_with_foreign_files_is_refused(folder: ResumableFolder, name: str) -> None:
    (folder.path / name).write_text("years of work")
    with pytest.raises(InputError) as error, folder.locked():
        pass
    assert (error.value.problem.code, error.value.problem.received) == ("io.foreign_files", [name])


def test_options_are_compared_as_json() -> None:
    options = {"permitted_range": {3: (1, 2)}, "target": "good"}
    assert job_options(options) == json.loads('{"option permitted_range": {"3": [1, 2]}, "option target": "good"}')


KILLED_RUN = """
import os, sys
from pathlib import Path
from fasterce.io.resumable import ResumableFolder

target, other = Path(sys.argv[1]), Path(sys.argv[2])
folder = ResumableFolder(target.with_name("parts"), outputs=[target, other])

def end(file):
    file.write(b"half")
    file.flush()
    os._exit(9)

with folder.locked():
    folder.begin({"of": "this"}, fresh=sys.argv[3] == "fresh", discard=True)
    if sys.argv[4] == "part":
        folder.commit(0, {"part-000000.csv": end}, {})
    folder.publish(target if sys.argv[4] == "target" else other, end)
"""


def test_leftovers_of_killed_runs_are_removed(tmp_path: Path) -> None:
    target, other = tmp_path / "a" / "out.csv", tmp_path / "b" / "records.jsonl"
    target.parent.mkdir()
    other.parent.mkdir()
    for fresh, at in (("go on", "target"), ("go on", "other"), ("go on", "part"), ("fresh", "target"), ("fresh", "other")):
        command = [sys.executable, "-c", KILLED_RUN, str(target), str(other), fresh, at]
        assert subprocess.run(command, timeout=120, check=False).returncode == 9
        assert len(list(tmp_path.rglob("*.tmp"))) == 1
    work = ResumableFolder(target.with_name("parts"), outputs=[target, other])
    with work.locked():
        work.begin({"of": "this"}, fresh=False, discard=True)
        work.publish(target, lambda file: file.write(b"whole") and None)
        work.remove()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "out.csv"]
