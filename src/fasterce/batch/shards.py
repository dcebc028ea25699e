"""The input cut into shards: by its files and their rows alone, never by who does the work."""

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow.fs as filesystems

from fasterce.errors import InputError, shorten
from fasterce.streams import identity, places

KNOWN = re.compile(r".*\.(parquet|pq|csv|tsv|csv\.gz|tsv\.gz)", re.IGNORECASE)
WILD = re.compile(r"[*?\[]")

Sources = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Shard:
    """Some rows of one file: `rows` of them from row `start` on; `first` is the position of the first in the whole input."""

    number: int
    source: str
    start: int
    rows: int
    first: int


@dataclass(frozen=True)
class Extent:
    """How long a file is: its rows, and those of its row groups where it has any."""

    source: str
    rows: int
    groups: tuple[int, ...] = ()


def find_files(source: Sources) -> list[str]:
    """The files meant by names, folders, patterns and addresses, each pattern's in alphabetical order."""
    given = [source] if isinstance(source, (str, Path)) else list(source)
    found = [file for one in given for file in _files(str(one))]
    if not found:
        raise InputError(f"input must name at least one CSV or Parquet file; got none by {shorten(map(str, given))}.")
    twice = [file for file in dict.fromkeys(found) if found.count(file) > 1]
    if twice:
        raise InputError(f"input must name every file once; got {shorten(twice)} more than once.")
    return found


def cut(extents: Iterable[Extent], shard_rows: int, limit: int | None = None) -> list[Shard]:
    """Shards of at most `shard_rows` rows: whole row groups together while they fit, larger ones in pieces."""
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
    # Nothing in, nothing out, but with its columns.
    return made or [Shard(0, every[0].source, 0, 0, 0)]


def identify(source: str) -> dict[str, Any]:
    """What tells a file from another: all of its bytes, or for one elsewhere its size and the time it was last changed."""
    if not places.is_address(source):
        return {"name": source, **identity.of_file(source)}
    size, changed = places.stamp(source) or (0, 0)
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
        if waiting == most:
            yield start, waiting
            start, waiting = start + waiting, 0
    if waiting:
        yield start, waiting


def _files(source: str) -> list[str]:
    if places.is_address(source):
        return _elsewhere(source)
    path = Path(source)
    if path.is_file():
        return [source]
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.is_file() and KNOWN.fullmatch(file.name))
        return sorted(str(file) for file in inside if not _hidden(file.relative_to(path).parts))
    if WILD.search(source):
        return sorted(file for file in glob.glob(source, recursive=True) if Path(file).is_file())
    raise InputError(
        f"Cannot read {source}; expected a file, a folder or a pattern such as 'rows/*.parquet'; got nothing there."
    )


def _elsewhere(address: str) -> list[str]:
    """Files at an address: one, all of a folder, or those of a pattern in the part after its last plain folder."""
    plain = WILD.split(address, maxsplit=1)[0]
    base = address if plain == address else plain.rpartition("/")[0]
    system, path = places.at(base)
    try:
        told = system.get_file_info(path)
        if told.type == filesystems.FileType.File:
            return [address]
        if told.type != filesystems.FileType.Directory:
            raise InputError(f"Cannot read {address}; expected a file or a folder; got nothing there.")
        inside = system.get_file_info(filesystems.FileSelector(path, recursive=True))
    except OSError as error:
        raise InputError(f"Cannot read {address}; expected a file or a folder; got {str(error)[:200]}.") from error
    files = {one.path[len(path) :].lstrip("/"): one for one in inside if one.type == filesystems.FileType.File}
    if plain == address:
        chosen = [name for name in files if KNOWN.fullmatch(name) and not _hidden(name.split("/"))]
    else:
        pattern = address[len(base) :].lstrip("/")
        chosen = [name for name in files if fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")]
    return sorted(f"{base.rstrip('/')}/{name}" for name in chosen)


def _hidden(parts: Iterable[str]) -> bool:
    """Names that readers of such folders pass over by custom."""
    return any(part.startswith(("_", ".")) for part in parts)
