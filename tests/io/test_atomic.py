"""Files that appear whole or not at all."""

from pathlib import Path
from typing import IO

import pytest

from fasterce.errors import InputError
from fasterce.io import atomic


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def write(file: IO[bytes]) -> None:
        file.write(b"new")
        assert target.read_text() == "old"

    atomic.replace_file(target, write)
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: IO[bytes]) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic.replace_file(tmp_path / "out.txt", fail)
    assert not list(tmp_path.iterdir())


def test_an_unwritable_place_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        atomic.replace_file(tmp_path / "none" / "out.txt", lambda file: None)
    assert error.value.problem.code == "io.cannot_write"
    assert error.value.problem.details["path"] == tmp_path / "none" / "out.txt"


def test_json_is_read_only_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with atomic.new_file(path) as file:
        atomic.write_json(file, {"rows": 5})
    assert atomic.read_json(path) == {"rows": 5}
    path.write_text(path.read_text().replace("5", "6"))
    assert atomic.read_json(path) is None
    assert atomic.read_json(tmp_path / "none.json") is None


def test_a_lock_admits_one(tmp_path: Path) -> None:
    lock, target = tmp_path / "lock", tmp_path / "out"
    with atomic.exclusive_lock(lock, target), pytest.raises(InputError) as error, atomic.exclusive_lock(lock, target):
        pass
    assert error.value.problem.code == "io.locked"
    with atomic.exclusive_lock(lock, target):
        pass
