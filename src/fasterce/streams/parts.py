"""Finished chunks in a folder beside the target: what is there is whole, and a run that was killed goes on after it.

`.NAME.parts/` holds `run.json` (what this is a run of), a data file a chunk, and beside it a small JSON file that is written
last: a chunk without it was not finished. All files appear by renaming, after their bytes are on the disk, and are made under
names nobody can have put a link in the place of. JSON files carry a digest of themselves and of the data they are about: what
does not match was not finished.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from fasterce.errors import InputError, shorten
from fasterce.streams import commit, identity
from fasterce.streams.commit import Write

MANIFEST, LOCK = "run.json", "lock"
VERSION = 2
OURS = re.compile(r"run\.json|lock|\d{9}(\.records)?\.(json|csv|jsonl|parquet)|.*\.tmp")


class Parts:
    """The work folder of one target; `others` are files published along with it."""

    def __init__(self, target: Path, suffix: str, others: Sequence[Path] = ()) -> None:
        self.target, self.outputs = target, (target, *others)
        self.folder = target.parent / f".{target.name}.parts"
        self.suffix = suffix
        self.token = uuid4().hex

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One run at a time."""
        self._check_ours()
        with commit.told(self.folder):
            self.folder.mkdir(exist_ok=True)
        with commit.only_one(self.folder / LOCK, self.target):
            yield

    def begin(self, about: Mapping[str, Any], fresh: bool) -> None:
        """Start afresh, or go on with a run of the same thing; anything else is refused."""
        found = self._manifest()
        if found is not None:
            self._sweep(found["token"])
        if found is None or fresh:
            with commit.told(self.folder):
                self._clear()
            self._put(MANIFEST, lambda file: commit.dump(file, {"parts": VERSION, "token": self.token, "of": about}))
            return
        commit.check_same(self.folder, found["of"], json.loads(json.dumps(about)))
        self.token = found["token"]

    def finished(self) -> list[dict[str, Any]]:
        """What is known of the chunks from the first on that are whole."""
        known: list[dict[str, Any]] = []
        while (about := self._about(len(known))) is not None:
            known.append(about)
        return known

    def add(self, number: int, files: Mapping[str, Write], about: Mapping[str, Any]) -> None:
        """Store a chunk; it counts from the moment all of it is on the disk."""
        written = {kind: self._put(self._name(number, kind), write) for kind, write in files.items()}
        described = {"token": self.token, "number": number, "about": about, "files": written}
        self._put(f"{number:09d}.json", lambda file: commit.dump(file, described))

    def paths(self, count: int, kind: str = "") -> Iterator[Path]:
        return (self.folder / self._name(number, kind) for number in range(count))

    def publish(self, target: Path, write: Write) -> None:
        """Put a whole file in the target's place, at the last moment."""
        commit.replace_file(self._beside(target, self.token), target, write)

    def remove(self) -> None:
        """The manifest first: what is left without it is no run to go on with."""
        self._clear()
        with suppress(OSError):
            (self.folder / LOCK).unlink()
            self.folder.rmdir()

    def _beside(self, output: Path, token: str) -> Path:
        """Where an output is written before it is whole: in its own folder, since only there it can be renamed."""
        return output.parent / f".{output.name}.{token}.tmp"

    def _sweep(self, token: str) -> None:
        """Away with what a killed run had begun to write."""
        with commit.told(self.folder):
            for path in (*(self._beside(output, token) for output in self.outputs), *self.folder.glob("*.tmp")):
                path.unlink(missing_ok=True)

    def _clear(self) -> None:
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.name != LOCK:
                path.unlink()

    def _check_ours(self) -> None:
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            got = "a link" if self.folder.is_symlink() else "a file"
            raise InputError(f"{self.folder} must be a folder for the parts of a run; got {got}.")
        if self.folder.is_dir():
            strange = sorted(path.name for path in self.folder.iterdir() if not OURS.fullmatch(path.name))
            if strange:
                raise InputError(f"{self.folder} must hold the parts of a run and nothing else; got {shorten(strange, 3)}.")

    def _manifest(self) -> dict[str, Any] | None:
        """What the folder holds a run of; None where it holds none that can be gone on with."""
        content = commit.load(self.folder / MANIFEST)
        return content if content is not None and content.get("parts") == VERSION else None

    def _about(self, number: int) -> dict[str, Any] | None:
        """What was said of a chunk when it was stored; None where it is not there as it was stored."""
        described = commit.load(self.folder / f"{number:09d}.json")
        if described is None or (described.get("token"), described.get("number")) != (self.token, number):
            return None
        for kind, written in described["files"].items():
            path = self.folder / self._name(number, kind)
            if not path.is_file() or identity.of_file(path) != written:
                return None
        about: dict[str, Any] = described["about"]
        return about

    def _name(self, number: int, kind: str) -> str:
        return f"{number:09d}{self.suffix}" if not kind else f"{number:09d}.{kind}.jsonl"

    def _put(self, name: str, write: Write) -> dict[str, Any]:
        """Write a file of the folder, and say what identifies it."""
        path = self.folder / name
        commit.replace_file(self.folder / f"{name}.{uuid4().hex}.tmp", path, write)
        return identity.of_file(path)
