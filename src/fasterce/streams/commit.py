"""Files that appear whole or not at all: written under a name nobody can have put a link in the place of, renamed when their
bytes are on the disk, and JSON that carries a digest of itself."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fasterce.artifact.folder import sync
from fasterce.errors import InputError

NO_LINK = getattr(os, "O_NOFOLLOW", 0)

Write = Callable[[IO[bytes]], None]


def replace_file(temporary: Path, target: Path, write: Write) -> None:
    """Write a file that was not there, follow no link, and rename it when all of it is on the disk."""
    with told(target), synced(temporary) as file:
        write(file)
    with told(target), away_on_failure(temporary):
        os.replace(temporary, target)
        sync(target.parent)


@contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """A file that was not there, whose bytes are on the disk when it is closed; away with it if that fails."""
    with path.open("xb") as file, away_on_failure(path):
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def away_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What goes wrong in writing, in one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"Cannot write {path}; expected a place that can be written; got {(error.strerror or str(error)).lower()}."
        ) from error


@contextmanager
def only_one(lock: Path, target: Path) -> Iterator[None]:
    """One run at a time; the lock goes with the process, however it ends."""
    with told(lock):
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | NO_LINK, 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if not _take(file):
            raise InputError(f"Only one run at a time can write {target}; got a second while another is at work.")
        yield


def _take(file: IO[str]) -> bool:
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def dump(file: IO[bytes], content: Mapping[str, Any]) -> None:
    file.write(json.dumps({**content, "sha256": _digest(content)}, indent=1).encode())


def load(path: Path) -> dict[str, Any] | None:
    """What `dump` wrote, to the letter; None for anything else."""
    try:
        content = json.loads(path.read_bytes())
        if isinstance(content, dict) and content.pop("sha256", None) == _digest(content):
            return content
    except (OSError, ValueError, RecursionError):
        pass
    return None


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_same(folder: Path, found: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A run is gone on with only as what it was begun as; the sentence says what differs."""
    differing = [name for name in sorted({*found, *now}) if found.get(name) != now.get(name)]
    if differing:
        first = f"{differing[0]} was {_brief(found.get(differing[0]))} and is {_brief(now.get(differing[0]))}"
        others = f" (and {', '.join(differing[1:])} differ)" if differing[1:] else ""
        raise InputError(
            f"{folder} holds a run of something else: {first}{others}; expected the same to go on with it, or resume=False "
            "(or the folder deleted) to start again."
        )


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}…"
