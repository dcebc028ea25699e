"""A strict reader of UBJSON, as XGBoost writes it: every length is checked before memory is allocated."""

import struct
from typing import Any

import numpy as np

from fasterce.models.files.kinds import UnsoundError

MOST_DEPTH = 64
WHOLE = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
NUMBERS = {**WHOLE, b"d": ">f", b"D": ">d"}
CONSTANTS = {b"T": True, b"F": False, b"Z": None}


def read(content: bytes) -> Any:
    """Return the one value in the bytes; raise `UnsoundError` if they are not UBJSON or end too early."""
    reader = _Reader(content)
    value = reader.value(0)
    if reader.at != len(content):
        raise UnsoundError("models.ubjson_too_long", count=len(content) - reader.at)
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise UnsoundError("models.ubjson_too_short", byte=len(self.content), count=count)
        self.at += count
        return self.content[self.at - count : self.at]

    def skip(self, marker: bytes) -> bool:
        """Return whether a marker comes next, and move past it."""
        found = self.content[self.at : self.at + 1] == marker
        self.at += found
        return found

    def value(self, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise UnsoundError("models.ubjson_too_deep", expected=MOST_DEPTH)
        marker = self.take(1)
        if marker in NUMBERS:
            return self.number(marker)
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker == b"[":
            return self.array(depth)
        if marker == b"{":
            return self.members(depth)
        raise UnsoundError("models.ubjson_marker", marker=marker, byte=self.at)

    def number(self, marker: bytes) -> Any:
        form = NUMBERS[marker]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        marker = self.take(1)
        if marker not in WHOLE:
            raise UnsoundError("models.ubjson_length", byte=self.at)
        return int(self.number(marker))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", "strict")

    def array(self, depth: int) -> Any:
        kind = self.take(1) if self.skip(b"$") else b""
        if self.skip(b"#"):
            return self.counted(self.length(), kind, depth)
        if kind:
            raise UnsoundError("models.ubjson_length", byte=self.at)
        values = []
        while not self.skip(b"]"):
            values.append(self.value(depth + 1))
        return values

    def counted(self, count: int, kind: bytes, depth: int) -> Any:
        if kind in NUMBERS:
            form = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(count * form.itemsize), dtype=form)
        if kind:
            raise UnsoundError("models.ubjson_marker", marker=kind, byte=self.at)
        if not 0 <= count <= len(self.content) - self.at:
            raise UnsoundError("models.ubjson_too_many", count=count, byte=self.at)
        return [self.value(depth + 1) for _ in range(count)]

    def members(self, depth: int) -> dict[str, Any]:
        found = {}
        while not self.skip(b"}"):
            name = self.text()
            found[name] = self.value(depth + 1)
        return found
