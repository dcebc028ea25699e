"""A shard's lines on their way to the disk: row groups of a fixed length, a file a partition, nothing under its last name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from fasterce.batch.folder import RECORDS, Folder
from fasterce.errors import InputError, shorten, unknown_name
from fasterce.streams import commit, formats

GROUP_LINES = 50_000
MOST_PARTITIONS = 1000
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class SteadySink:
    """A Parquet file whose row groups do not depend on the pieces it was handed."""

    def __init__(self, file: IO[bytes], fields: pa.Schema) -> None:
        self.sink = formats.FORMATS["parquet"].sink(file, fields)
        self.waiting: list[pa.Table] = []
        self.fields = fields

    def write(self, lines: pa.Table) -> None:
        self.waiting.append(lines)
        while sum(map(len, self.waiting)) >= GROUP_LINES:
            joined = pa.concat_tables(self.waiting)
            self._put(joined.slice(0, GROUP_LINES))
            self.waiting = [joined.slice(GROUP_LINES)]

    def close(self) -> None:
        if sum(map(len, self.waiting)):
            self._put(pa.concat_tables(self.waiting))
        self.sink.close()

    def _put(self, lines: pa.Table) -> None:
        self.sink.write(lines.combine_chunks())


class ShardWriter:
    """The files of one shard, staged; `close` says what they are to be called."""

    def __init__(self, folder: Folder, number: int, fields: pa.Schema, by: Sequence[str], records: bool) -> None:
        self.folder, self.name, self.by = folder, f"part-{number:06d}", tuple(by)
        self.inner = pa.schema([field for field in fields if field.name not in by])
        self.sinks: dict[str, SteadySink] = {}
        self.staged: dict[str, Path] = {}
        self.files = ExitStack()
        self.records = self._open(f"{RECORDS}/{self.name}.jsonl") if records else None
        if not by:
            self._sink(f"{self.name}.parquet")

    def write(self, lines: pa.Table, records: Sequence[Mapping[str, Any]] | None) -> None:
        with commit.told(self.folder.path):
            for name, part in self._parted(lines):
                self._sink(name).write(part)
            if self.records is not None:
                formats.JsonLines().objects(self.records, records or ())

    def close(self) -> dict[str, Path]:
        """All of it on the disk, still under other names."""
        with commit.told(self.folder.path):
            for sink in self.sinks.values():
                sink.close()
            self.files.close()
        return self.staged

    def drop(self) -> None:
        """Away with what was not finished."""
        for sink in self.sinks.values():
            with suppress(OSError, ValueError, pa.ArrowException):
                sink.sink.close()
        with suppress(OSError, ValueError):
            self.files.close()
        for path in self.staged.values():
            path.unlink(missing_ok=True)

    def _parted(self, lines: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Lines by the file they go to, in their order."""
        if not self.by:
            yield f"{self.name}.parquet", lines
            return
        keys = pc.binary_join_element_wise(*(_folders(lines, name) for name in self.by), "/")
        encoded = keys.dictionary_encode()
        for place, key in enumerate(encoded.dictionary.to_pylist()):
            here = pc.equal(encoded.indices, place)
            yield f"{key}/{self.name}.parquet", lines.filter(here).select(self.inner.names)

    def _sink(self, name: str) -> SteadySink:
        if name not in self.sinks:
            if len(self.sinks) >= MOST_PARTITIONS:
                raise InputError(
                    f"partition_by must make at most {MOST_PARTITIONS} folders of a shard; got more by {shorten(self.by)}."
                )
            self.sinks[name] = SteadySink(self._open(name), self.inner)
        return self.sinks[name]

    def _open(self, name: str) -> IO[bytes]:
        with commit.told(self.folder.path):
            path = self.folder.stage()
            file = self.files.enter_context(commit.synced(path))
        self.staged[name] = path
        return file


def check_partitions(fields: pa.Schema, by: Sequence[str]) -> None:
    """Folders can be made of text, whole numbers and booleans."""
    for name in by:
        if name not in fields.names:
            raise InputError(f"partition_by: {unknown_name('column of the output', name, fields.names)}")
        kind = fields.field(name).type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise InputError(f"partition_by must name columns of text, whole numbers or booleans; got {name!r} of {kind}.")
    if len(set(by)) < len(by):
        raise InputError(f"partition_by must name every column once; got {shorten(by)}.")


def _folders(lines: pa.Table, name: str) -> pa.Array:
    """`name=value` for every line, as Hive writes it."""
    encoded = lines.column(name).combine_chunks().dictionary_encode()
    values = [f"{quote(name)}={_written(value)}" for value in encoded.dictionary.to_pylist()]
    texts = pa.array([*values, f"{quote(name)}={NO_VALUE}"])
    return texts.take(pc.fill_null(encoded.indices, len(values)))


def _written(value: Any) -> str:
    return quote(json.dumps(value) if isinstance(value, bool) else str(value), safe="") or NO_VALUE
