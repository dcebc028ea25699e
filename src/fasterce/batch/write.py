"""Write the lines of a shard: row groups of a fixed length, one file per partition, staged until the shard is whole."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fasterce.config import BatchConfig
from fasterce.errors import InputError, unknown
from fasterce.io import atomic, formats
from fasterce.io.resumable import RECORDS, ResumableFolder

GROUP_LINES, MOST_PARTITIONS = BatchConfig().row_group_lines, BatchConfig().max_partitions
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class GroupWriter:
    """Writes row groups of GROUP_LINES lines, however many come at a time."""

    def __init__(self, file: pq.ParquetWriter) -> None:
        self.file = file
        self.waiting: list[pa.Table] = []

    def write(self, lines: pa.Table) -> None:
        self.waiting.append(lines)
        while sum(map(len, self.waiting)) >= GROUP_LINES:
            joined = pa.concat_tables(self.waiting)
            formats.write_group(self.file, joined.slice(0, GROUP_LINES))
            self.waiting = [joined.slice(GROUP_LINES)]

    def close(self) -> None:
        if sum(map(len, self.waiting)):
            formats.write_group(self.file, pa.concat_tables(self.waiting))
        self.file.close()


class ShardWriter:
    """The files of one shard, staged; `close` returns them by their names in the folder."""

    def __init__(self, folder: ResumableFolder, number: int, fields: pa.Schema, by: Sequence[str], records: bool) -> None:
        self.folder, self.name, self.by = folder, f"part-{number:06d}", tuple(by)
        self.inner = pa.schema([field for field in fields if field.name not in by])
        self.writers: dict[str, GroupWriter] = {}
        self.staged: dict[str, Path] = {}
        self.files = ExitStack()
        self.records = self._open(f"{RECORDS}/{self.name}.jsonl") if records else None
        if not by:
            self._writer(f"{self.name}.parquet")

    def write(self, lines: pa.Table, records: Sequence[Mapping[str, object]]) -> None:
        with atomic.write_errors(self.folder.path):
            for name, part in self._by_file(lines):
                self._writer(name).write(part)
            if self.records is not None:
                formats.Records().write_part(self.records, records)

    def close(self) -> dict[str, Path]:
        """Finish the files, still under other names."""
        with atomic.write_errors(self.folder.path):
            for writer in self.writers.values():
                writer.close()
            self.files.close()
        return self.staged

    def drop(self) -> None:
        """Remove what was not finished."""
        for writer in self.writers.values():
            with suppress(OSError, ValueError, pa.ArrowException):
                writer.file.close()
        with suppress(OSError, ValueError):
            self.files.close()
        for path in self.staged.values():
            path.unlink(missing_ok=True)

    def _by_file(self, lines: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the lines by the file they belong to, in their order."""
        if not self.by:
            yield f"{self.name}.parquet", lines
            return
        keys = pc.binary_join_element_wise(*(_folders(lines, name) for name in self.by), "/")
        encoded = keys.dictionary_encode()
        for place, key in enumerate(encoded.dictionary.to_pylist()):
            here = pc.equal(encoded.indices, place)
            yield f"{key}/{self.name}.parquet", lines.filter(here).select(self.inner.names)

    def _writer(self, name: str) -> GroupWriter:
        if name not in self.writers:
            if len(self.writers) >= MOST_PARTITIONS:
                raise InputError(
                    "batch.too_many_partitions", option="partition_by", expected=MOST_PARTITIONS, columns=self.by
                )
            self.writers[name] = GroupWriter(formats.parquet_writer(self._open(name), self.inner))
        return self.writers[name]

    def _open(self, name: str) -> IO[bytes]:
        with atomic.write_errors(self.folder.path):
            path = self.folder.stage()
            file = self.files.enter_context(atomic.new_file(path))
        self.staged[name] = path
        return file


def check_partitions(fields: pa.Schema, by: Sequence[str]) -> None:
    """Raise for columns folders cannot be named after: those of other types than text, whole numbers and booleans."""
    for name in by:
        if name not in fields.names:
            raise InputError(unknown("batch.unknown_partition", name, fields.names, option="partition_by"))
        kind = fields.field(name).type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            raise InputError("batch.partition_type", option="partition_by", column=name, type=str(kind))
    if len(set(by)) < len(by):
        raise InputError("batch.repeated_partition", option="partition_by", received=list(by))


def _folders(lines: pa.Table, name: str) -> pa.Array:
    """Return `name=value` for every line, as Hive writes it."""
    encoded = lines.column(name).combine_chunks().dictionary_encode()
    values = [f"{quote(name)}={_written(value)}" for value in encoded.dictionary.to_pylist()]
    texts = pa.array([*values, f"{quote(name)}={NO_VALUE}"])
    return texts.take(pc.fill_null(encoded.indices, len(values)))


def _written(value: str | int | bool) -> str:
    return quote(json.dumps(value) if isinstance(value, bool) else str(value), safe="") or NO_VALUE
