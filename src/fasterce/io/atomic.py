"""Files written completely or not at all, locks, and JSON files with a digest of their content."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from fasterce.errors import InputError
from fasterce.typing import Json

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

NO_LINK = getattr(os, "O_NOFOLLOW", 0)

Write = Callable[[IO[bytes]], object]


def replace_file(target: Path, write: Write, temporary: Path | None = None) -> None:
    """Write a new file and rename it to `target` when its bytes are on disk; no existing link is followed."""
    staged = target.with_name(f".{target.name}.{uuid4().hex}.tmp") if temporary is None else temporary
    with write_errors(target), new_file(staged) as file:
        write(file)
    with write_errors(target), removed_on_failure(staged):
        os.replace(staged, target)
        sync_folder(target.parent)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that must not exist; its bytes are on disk when it is closed, and a failure removes it."""
    with path.open("xb") as file, removed_on_failure(path):
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def removed_on_failure(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Raise `InputError` in place of the operating system's errors."""
    try:
        yield
    except OSError as error:
        raise InputError("io.cannot_write", path=path, cause=cause(error)) from error


def cause(error: OSError) -> str:
    """Return what the operating system says, in lower case."""
    return error.strerror.lower() if error.strerror else str(error)


@contextmanager
def exclusive_lock(lock: Path, target: Path) -> Iterator[None]:
    """Hold a lock that one process at a time can have; it is released when the process ends, also by a crash."""
    with write_errors(lock):
        descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | NO_LINK, 0o666)
    with os.fdopen(descriptor, "r+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError("io.locked", path=target) from None
        yield


def write_json(file: IO[bytes], content: Mapping[str, Json]) -> None:
    """Write JSON with a digest of its content."""
    file.write(json.dumps({**content, "sha256": _digest(content)}, indent=1).encode())


def read_json(path: Path) -> dict[str, Json] | None:
    """Return exactly what `write_json` wrote, or None for anything else."""
    try:
        content = json.loads(path.read_bytes())
        if isinstance(content, dict) and content.pop("sha256", None) == _digest(content):
            return content
    except (OSError, ValueError, RecursionError):
        pass
    return None


def _digest(content: Mapping[str, Json]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
