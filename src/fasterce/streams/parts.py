"""Finished chunks in a folder beside the target: what is there is whole, and a run that was killed goes on after it.

`.NAME.parts/` holds `run.json` (what this is a run of), a data file a chunk, and beside it a small JSON file that is written
last: a chunk without it was not finished. All files appear by renaming, after their bytes are on the disk.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fasterce.errors import InputError, shorten

MANIFEST, LOCK = "run.json", "lock"
VERSION = 1
OURS = re.compile(r"run\.json|lock|\d{9}(\.records)?\.(json|csv|jsonl|parquet)|.*\.tmp")

Write = Callable[[IO[bytes]], None]


class Parts:
    """The work folder of one target."""

    def __init__(self, target: Path, suffix: str) -> None:
        self.target = target
        self.folder = target.parent / f".{target.name}.parts"
        self.suffix = suffix

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One run at a time; the lock goes with the process, however it ends."""
        self._check_ours()
        with told(self.folder):
            self.folder.mkdir(exist_ok=True)
        with (self.folder / LOCK).open("a") as file:
            if not _lock(file):
                raise InputError(f"Only one run at a time can write {self.target}; got a second while another is at work.")
            yield

    def begin(self, about: Mapping[str, Any], fresh: bool) -> None:
        """Start afresh, or go on with a run of the same thing; anything else is refused."""
        found = self._manifest()
        if found is None or fresh:
            self._clear()
            self._put(MANIFEST, lambda file: _dump(file, {"parts": VERSION, "of": about}))
            return
        now = json.loads(json.dumps(about))
        differing = [name for name in sorted({*found, *now}) if found.get(name) != now.get(name)]
        if differing:
            first = f"{differing[0]} was {_brief(found.get(differing[0]))} and is {_brief(now.get(differing[0]))}"
            others = f" (and {', '.join(differing[1:])} differ)" if differing[1:] else ""
            raise InputError(
                f"{self.folder} holds an unfinished run of something else: {first}{others}; expected the same to go on with "
                "it, or resume=False (or the folder deleted) to start again."
            )

    def finished(self) -> list[dict[str, Any]]:
        """What is known of the chunks from the first on that are whole."""
        known: list[dict[str, Any]] = []
        while (about := self._about(len(known))) is not None:
            known.append(about)
        return known

    def add(self, number: int, files: Mapping[str, Write], about: Mapping[str, Any]) -> None:
        """Store a chunk; it counts from the moment all of it is on the disk."""
        sizes = {kind: self._put(self._name(number, kind), write) for kind, write in files.items()}
        self._put(f"{number:09d}.json", lambda file: _dump(file, {**about, "files": sizes}))

    def paths(self, count: int, kind: str = "") -> Iterator[Path]:
        return (self.folder / self._name(number, kind) for number in range(count))

    def publish(self, target: Path, write: Write) -> None:
        """Put a whole file in the target's place, at the last moment."""
        temporary = target.parent / f".{target.name}.tmp"
        _write(temporary, write)
        os.replace(temporary, target)
        _sync(target.parent)

    def remove(self) -> None:
        """The manifest first: what is left without it is no run to go on with."""
        self._clear()
        with suppress(OSError):
            (self.folder / LOCK).unlink()
            self.folder.rmdir()

    def _clear(self) -> None:
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.name != LOCK:
                path.unlink()

    def _check_ours(self) -> None:
        if self.folder.is_dir():
            strange = sorted(path.name for path in self.folder.iterdir() if not OURS.fullmatch(path.name))
            if strange:
                raise InputError(f"{self.folder} must hold the parts of a run and nothing else; got {shorten(strange, 3)}.")
        elif self.folder.exists():
            raise InputError(f"{self.folder} must be a folder for the parts of a run; got a file.")

    def _manifest(self) -> dict[str, Any] | None:
        """What the folder holds a run of; None where it holds none that can be gone on with."""
        content = _load(self.folder / MANIFEST) or {}
        return content["of"] if content.get("parts") == VERSION and isinstance(content.get("of"), dict) else None

    def _about(self, number: int) -> dict[str, Any] | None:
        about = _load(self.folder / f"{number:09d}.json")
        if about is None:
            return None
        for kind, size in about["files"].items():
            path = self.folder / self._name(number, kind)
            if not path.is_file() or path.stat().st_size != size:
                return None
        return about

    def _name(self, number: int, kind: str) -> str:
        return f"{number:09d}{self.suffix}" if not kind else f"{number:09d}.{kind}.jsonl"

    def _put(self, name: str, write: Write) -> int:
        temporary = self.folder / f"{name}.tmp"
        _write(temporary, write)
        size = temporary.stat().st_size
        os.replace(temporary, self.folder / name)
        _sync(self.folder)
        return size


def _write(path: Path, write: Write) -> None:
    with told(path), path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What goes wrong in writing, in one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot write {path}; expected a place that can be written; got {(error.strerror or str(error)).lower()}."
        ) from error


def _sync(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(file: IO[str]) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _dump(file: IO[bytes], content: Mapping[str, Any]) -> None:
    file.write(json.dumps(content, indent=1).encode())


def _load(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}…"
