"""Sources: files of this machine, and addresses that Arrow opens (s3://…, gs://…, hdfs://…, file://…)."""

import re
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.fs as filesystems

from fasterce.errors import InputError

Source = str | Path

ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def display_name(source: Source) -> str:
    """Return how messages name a source."""
    return "standard input" if str(source) == "-" else str(source)


def is_address(source: Source) -> bool:
    return ADDRESS.match(str(source)) is not None


def filesystem_of(address: str) -> tuple[filesystems.FileSystem, str]:
    """Return the file system of an address, and the path on it."""
    try:
        system, path = filesystems.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError("io.bad_address", path=address, cause=first_line(error)) from error
    return system, str(path)


def first_line(error: Exception) -> str:
    """Return the first line of a foreign error, without its full stop."""
    return str(error).split("\n", 1)[0].rstrip(". ")[:200]


def open_binary(source: Source) -> IO[bytes]:
    """Open a file for reading at any position; raise OSError where that fails."""
    if not is_address(source):
        return Path(source).open("rb")
    system, path = filesystem_of(str(source))
    opened: IO[bytes] = system.open_input_file(path)
    return opened


def stamp(source: Source) -> tuple[int, int] | None:
    """Return size and time of the last change, or None if there is no such file."""
    try:
        if not is_address(source):
            found = Path(source).stat()
            return found.st_size, found.st_mtime_ns
        system, path = filesystem_of(str(source))
        info = system.get_file_info(path)
    except OSError:
        return None
    return (int(info.size), int(info.mtime_ns or 0)) if info.type == filesystems.FileType.File else None


def is_file(source: Source) -> bool:
    return stamp(source) is not None if is_address(source) else Path(source).is_file()
