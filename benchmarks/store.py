"""Results, one file per cell, written completely or not at all, so that a stopped run can be resumed.

A cell has the fingerprint of the code, versions and plan that computed it. A cell with another fingerprint is not used.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

CELLS = "cells"
TEXT_COLUMNS = ("status", "reason", "changed", "feature")


@dataclass(frozen=True, order=True)
class Key:
    """A cell: the counterfactuals of a method for one task of one model."""

    data: str
    model: str
    task: str
    method: str
    seed: int

    @property
    def file(self) -> str:
        return f"{self.data}--{self.model}--{self.task}--{self.method}--{self.seed}.json"


@dataclass(frozen=True)
class Cell:
    key: Key
    fingerprint: str
    about: dict[str, Any]
    lines: pd.DataFrame

    def to_json(self) -> str:
        lines = json.loads(self.lines.to_json(orient="records", double_precision=12))
        return json.dumps({"key": vars(self.key), "fingerprint": self.fingerprint, "about": self.about, "lines": lines})

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        read = json.loads(text)
        lines = pd.DataFrame(read["lines"])
        numbers = [name for name in lines if name not in TEXT_COLUMNS]
        return cls(Key(**read["key"]), read["fingerprint"], read["about"], lines.astype(dict.fromkeys(numbers, float)))


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / CELLS).mkdir(parents=True, exist_ok=True)

    def get(self, key: Key, fingerprint: str) -> Cell | None:
        """Return the cell if there is a complete one with this fingerprint."""
        found = self._read(self.folder / CELLS / key.file)
        return found if found is not None and found.fingerprint == fingerprint else None

    def outdated(self, planned: dict[Key, str]) -> list[Key]:
        """Return the planned cells that are there with another fingerprint; they are computed again."""
        cells = {key: self._read(self.folder / CELLS / key.file) for key in planned}
        return [key for key, cell in cells.items() if cell is not None and cell.fingerprint != planned[key]]

    def written_since(self, when: float) -> int:
        """Return the number of cells written since a time, by the clock of the file system."""
        return sum(path.stat().st_mtime >= when for path in (self.folder / CELLS).glob("[!.]*"))

    def put(self, cell: Cell) -> None:
        write(self.folder / CELLS / cell.key.file, cell.to_json())

    def _read(self, path: Path) -> Cell | None:
        try:
            return Cell.from_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def write(path: Path, text: str) -> None:
    """Write a file completely or not at all: a temporary file is moved into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def fingerprint(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of source files, by name and content, independent of their order."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def gather(cells: Iterable[Cell]) -> pd.DataFrame:
    """Return all lines as one table, with the key of their cell in the first columns."""
    parts = [cell.lines.assign(**vars(cell.key))[[*vars(cell.key), *cell.lines.columns]] for cell in cells]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
