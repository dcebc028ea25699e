"""The output folder: what is in it under its last name is whole, and says by a digest what it is.

`_run.json` says what it is a run of; `part-000000.parquet` (or `column=value/part-000000.parquet`) are the lines of a shard,
`_records/part-000000.jsonl` its audit records, and `_shards/000000.json`, written last, says that a shard is finished, with
size and SHA-256 of its files. `_SUCCESS` is there when all of them are. Names with an underscore are passed over by what
reads folders of Parquet.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from fasterce.artifact.folder import sync
from fasterce.errors import InputError, shorten
from fasterce.streams import commit, identity, places

RUN, LOCK, SUCCESS = "_run.json", "_lock", "_SUCCESS"
SHARDS, RECORDS, STAGING = "_shards", "_records", "_temporary"
REPORT_JSON, REPORT_PAGE = "_report.json", "_report.html"
OURS = re.compile(
    r"_run\.json|_lock|_SUCCESS|_report\.(json|html)|_shards/\d+\.json|_records/part-\d+\.jsonl|_temporary/.*"
    r"|([^/]+=[^/]*/)*part-\d+\.parquet|.*/"
)
VERSION = 1


class Folder:
    """The folder of one run; workers make one of their own from its path and token."""

    def __init__(self, path: str | Path, token: str = "") -> None:
        if places.is_address(path):
            raise InputError(f"output must be a folder that all workers can write; got the address {path}.")
        self.path, self.token = Path(path), token

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One run at a time, in a folder with nothing else in it."""
        self._check_ours()
        with commit.told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with commit.only_one(self.path / LOCK, self.path):
            yield

    def begin(self, about: Mapping[str, Any], fresh: bool) -> None:
        """Start afresh, or go on with a run of the same thing; anything else is refused."""
        found = commit.load(self.path / RUN)
        if found is not None and found.get("batch") == VERSION and not fresh:
            commit.check_same(self.path, found["of"], json.loads(json.dumps(about)))
            self.token = found["token"]
            with commit.told(self.path):
                (self.path / SUCCESS).unlink(missing_ok=True)
        else:
            self._clear(fresh or found is not None)
            self.token = uuid4().hex
        with commit.told(self.path):
            for name in (SHARDS, STAGING):
                (self.path / name).mkdir(exist_ok=True)
            for left in (self.path / STAGING).iterdir():
                left.unlink()
        if found is None or found.get("token") != self.token:
            self._put(RUN, {"batch": VERSION, "token": self.token, "of": about})

    def finished(self, number: int) -> dict[str, Any] | None:
        """What was said of a shard when it was finished; None where its files are not there as they were written."""
        told = commit.load(self._told(number))
        if told is None or (told.get("token"), told.get("number")) != (self.token, number):
            return None
        for name, written in told["files"].items():
            path = self.path / name
            if path.is_symlink() or not path.is_file() or path.stat().st_size != written["bytes"]:
                return None
            if identity.of_file(path) != written:
                return None
        about: dict[str, Any] = told["about"]
        return about

    def stage(self) -> Path:
        """A name to write under before something is whole."""
        return self.path / STAGING / uuid4().hex

    def begin_try(self, number: int) -> int:
        """Note that a shard is begun; how often it was before and nobody came back to say how it ended."""
        with self._tries(number).open("ab") as file:
            before = file.tell()
            file.write(b".")
        return before

    def end_try(self, number: int) -> None:
        self._tries(number).unlink(missing_ok=True)

    def commit(self, number: int, staged: Mapping[str, Path], about: Mapping[str, Any]) -> None:
        """Put a shard's files in their places; it is finished from the moment all of them are there."""
        self._check_still_ours()
        files = {name: identity.of_file(path) for name, path in staged.items()}
        with commit.told(self.path):
            for name, path in staged.items():
                target = self.path / name
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
                sync(target.parent)
        told = {"token": self.token, "number": number, "about": about, "files": files}
        commit.replace_file(self.stage(), self._told(number), lambda file: commit.dump(file, told))

    def publish(self, texts: Mapping[str, str], whole: bool) -> None:
        """The reports, and where all is done the mark that says so."""
        for name, text in texts.items():
            commit.replace_file(self.stage(), self.path / name, partial(_write, text))
        if whole:
            commit.replace_file(self.stage(), self.path / SUCCESS, lambda file: None)
        with suppress(OSError):
            shutil.rmtree(self.path / STAGING)

    def _put(self, name: str, content: Mapping[str, Any]) -> None:
        commit.replace_file(self.stage(), self.path / name, lambda file: commit.dump(file, content))

    def _told(self, number: int) -> Path:
        return self.path / SHARDS / f"{number:06d}.json"

    def _tries(self, number: int) -> Path:
        return self.path / STAGING / f"{number:06d}.tries"

    def _check_still_ours(self) -> None:
        """A worker that was taken for dead must not write into the run that took its place."""
        found = commit.load(self.path / RUN)
        if found is None or found.get("token") != self.token:
            raise InputError(f"{self.path} must hold the run this shard belongs to; got another one, begun meanwhile.")

    def _check_ours(self) -> None:
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            got = "a link" if self.path.is_symlink() else "a file"
            raise InputError(f"output must be a folder, new or of an earlier run; got {got} at {self.path}.")
        strange = [name for name in self._inside() if not OURS.fullmatch(name)]
        if strange:
            raise InputError(
                f"output must be a new folder, or one that holds a batch and nothing else; got {self.path} with "
                f"{shorten(sorted(strange), 3)}."
            )

    def _inside(self) -> Iterator[str]:
        if self.path.is_dir():
            for path in self.path.rglob("*"):
                name = path.relative_to(self.path).as_posix()
                yield name + "/" if path.is_dir() and not path.is_symlink() else name

    def _clear(self, wanted: bool) -> None:
        """Away with an earlier run, the file that says it is one first; parts of nobody's run are not ours to delete."""
        left = [name for name in self._inside() if name != LOCK and not name.startswith(STAGING)]
        if left and not wanted:
            raise InputError(
                f"{self.path} must be a new folder or hold a batch that can be gone on with; got {shorten(left, 3)} without "
                f"a whole {RUN}: expected resume=False to begin anew, or another folder."
            )
        with commit.told(self.path):
            (self.path / RUN).unlink(missing_ok=True)
            for entry in self.path.iterdir():
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                elif entry.name != LOCK:
                    entry.unlink()


def _write(text: str, file: IO[bytes]) -> None:
    file.write(text.encode())
