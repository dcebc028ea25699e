"""Where a file is: on this machine, or at an address that Arrow opens (s3://…, gs://…, hdfs://…, file://…)."""

import re
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.fs as filesystems

from fasterce.errors import InputError

Source = str | Path

ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_address(source: Source) -> bool:
    return ADDRESS.match(str(source)) is not None


def at(address: str) -> tuple[Any, str]:
    """The file system an address is on, and the path there."""
    try:
        found, path = filesystems.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        said = str(error).split("\n", 1)[0].rstrip(". ")[:200]
        raise InputError(f"Cannot open {address}; expected an address Arrow can open, such as s3://…; got {said}.") from error
    return found, str(path)


def open_binary(source: Source) -> IO[bytes]:
    """A file to read at any place of; OSError where it cannot be."""
    if not is_address(source):
        return Path(source).open("rb")
    system, path = at(str(source))
    opened: IO[bytes] = system.open_input_file(path)
    return opened


def stamp(source: Source) -> tuple[int, int] | None:
    """Size and time of the last change, None where there is no such file."""
    try:
        if not is_address(source):
            found = Path(source).stat()
            return found.st_size, found.st_mtime_ns
        system, path = at(str(source))
        told = system.get_file_info(path)
    except OSError:
        return None
    return None if told.type != filesystems.FileType.File else (int(told.size), int(told.mtime_ns or 0))


def is_file(source: Source) -> bool:
    return stamp(source) is not None if is_address(source) else Path(source).is_file()
