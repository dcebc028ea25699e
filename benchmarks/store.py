"""Results, a file a cell, written whole or not at all: a stopped run goes on where it was.

A cell knows by what it was made (`made_by`: code, versions and plan). One made by anything else is not used.
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
WORDS = ("status", "reason", "changed", "feature")


@dataclass(frozen=True, order=True)
class Key:
    """One cell: a method's answers to one question about one black box."""

    data: str
    box: str
    question: str
    method: str
    seed: int

    @property
    def file(self) -> str:
        return f"{self.data}--{self.box}--{self.question}--{self.method}--{self.seed}.json"


@dataclass(frozen=True)
class Cell:
    key: Key
    made_by: str
    about: dict[str, Any]
    lines: pd.DataFrame

    def to_json(self) -> str:
        lines = json.loads(self.lines.to_json(orient="records", double_precision=12))
        return json.dumps({"key": vars(self.key), "made_by": self.made_by, "about": self.about, "lines": lines})

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        read = json.loads(text)
        lines = pd.DataFrame(read["lines"])
        numbers = [name for name in lines if name not in WORDS]
        return cls(Key(**read["key"]), read["made_by"], read["about"], lines.astype(dict.fromkeys(numbers, float)))


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / CELLS).mkdir(parents=True, exist_ok=True)

    def get(self, key: Key, made_by: str) -> Cell | None:
        """The cell, if it is there, whole, and made by the same code, versions and plan."""
        found = self._read(self.folder / CELLS / key.file)
        return found if found is not None and found.made_by == made_by else None

    def strangers(self, wanted: dict[Key, str]) -> list[Key]:
        """Cells that are there but were made by something else; they are made anew."""
        cells = {key: self._read(self.folder / CELLS / key.file) for key in wanted}
        return [key for key, cell in cells.items() if cell is not None and cell.made_by != wanted[key]]

    def written_since(self, when: float) -> int:
        """How many cells, by the clock of the file system."""
        return sum(path.stat().st_mtime >= when for path in (self.folder / CELLS).glob("[!.]*"))

    def put(self, cell: Cell) -> None:
        write(self.folder / CELLS / cell.key.file, cell.to_json())

    def _read(self, path: Path) -> Cell | None:
        try:
            return Cell.from_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def write(path: Path, text: str) -> None:
    """Whole or not at all: a name of its own first, then one move."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    os.replace(half, path)


def fingerprint(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def digest(paths: Iterable[Path]) -> str:
    """Of source files, by name and content, in whatever order."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def gather(cells: Iterable[Cell]) -> pd.DataFrame:
    """All lines in one table, with their cell's names in front."""
    parts = [cell.lines.assign(**vars(cell.key))[[*vars(cell.key), *cell.lines.columns]] for cell in cells]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
