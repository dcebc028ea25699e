"""Cut the input into shards, which depend on its files and rows, not on backend or workers."""

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow.fs as filesystems

from fasterce.errors import InputError
from fasterce.io import locations
from fasterce.io.atomic import cause
from fasterce.io.resumable import file_digest
from fasterce.typing import JsonObject

KNOWN = re.compile(r".*\.(parquet|pq|csv|tsv|csv\.gz|tsv\.gz)", re.IGNORECASE)
WILD = re.compile(r"[*?\[]")

Sources = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Shard:
    """Consecutive rows of one file: `rows` of them from row `start` on, the first at position `first` of the whole input."""

    number: int
    source: str
    start: int
    rows: int
    first: int


@dataclass(frozen=True)
class Extent:
    """The length of a file: its rows, and those of its row groups if it has any."""

    source: str
    rows: int
    groups: tuple[int, ...] = ()


def find_files(source: Sources) -> list[str]:
    """Return the files of names, folders, patterns and addresses, those of each pattern in alphabetical order."""
    given = [source] if isinstance(source, (str, Path)) else list(source)
    found = [file for one in given for file in _files(str(one))]
    if not found:
        raise InputError("batch.no_files", option="input", received=[str(one) for one in given])
    repeated = [file for file in dict.fromkeys(found) if found.count(file) > 1]
    if repeated:
        raise InputError("batch.repeated_files", option="input", received=repeated)
    return found


def cut(extents: Iterable[Extent], shard_rows: int, limit: int | None = None) -> list[Shard]:
    """Return shards of at most `shard_rows` rows: whole row groups while they fit, larger ones in pieces."""
    made: list[Shard] = []
    first = 0
    every = list(extents)
    for extent in every:
        for start, rows in _ranges(extent, shard_rows):
            taken = rows if limit is None else min(rows, limit - first)
            if taken <= 0:
                return made
            made.append(Shard(len(made), extent.source, start, taken, first))
            first += taken
    # An input without rows has an output with columns.
    return made or [Shard(0, every[0].source, 0, 0, 0)]


def identify(source: str) -> JsonObject:
    """Return what identifies a file: a digest of its bytes, or at an address its size and the time of its last change."""
    if not locations.is_address(source):
        return {"name": source, **file_digest(source)}
    size, changed = locations.stamp(source) or (0, 0)
    return {"name": source, "bytes": size, "changed": changed}


def _ranges(extent: Extent, most: int) -> Iterator[tuple[int, int]]:
    start, waiting = 0, 0
    for group in extent.groups or (extent.rows,):
        if waiting and waiting + group > most:
            yield start, waiting
            start, waiting = start + waiting, 0
        waiting += group
        while waiting > most:
            yield start, most
            start, waiting = start + most, waiting - most
    if waiting:
        yield start, waiting


def _files(source: str) -> list[str]:
    if locations.is_address(source):
        return _files_at(source)
    path = Path(source)
    if path.is_file():
        return [source]
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.is_file() and KNOWN.fullmatch(file.name))
        return sorted(str(file) for file in inside if not _hidden(file.relative_to(path).parts))
    if WILD.search(source):
        return sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
    raise InputError("batch.nothing_there", path=source)


def _files_at(address: str) -> list[str]:
    """Return the files at an address: one, all of a folder, or those of a pattern after its last plain folder."""
    plain = WILD.split(address, maxsplit=1)[0]
    base = address if plain == address else plain.rpartition("/")[0]
    system, path = locations.filesystem_of(base)
    try:
        info = system.get_file_info(path)
        if info.type == filesystems.FileType.File:
            return [address]
        if info.type != filesystems.FileType.Directory:
            raise InputError("batch.nothing_there", path=address)
        inside = system.get_file_info(filesystems.FileSelector(path, recursive=True))
    except OSError as error:
        raise InputError("io.cannot_read", path=address, cause=cause(error)) from error
    files = {one.path[len(path) :].lstrip("/"): one for one in inside if one.type == filesystems.FileType.File}
    if plain == address:
        chosen = [name for name in files if KNOWN.fullmatch(name) and not _hidden(name.split("/"))]
    else:
        pattern = address[len(base) :].lstrip("/")
        chosen = [name for name in files if fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")]
    return sorted(f"{base.rstrip('/')}/{name}" for name in chosen)


def _hidden(parts: Iterable[str]) -> bool:
    """Find names that readers of Parquet folders skip."""
    return any(part.startswith(("_", ".")) for part in parts)
