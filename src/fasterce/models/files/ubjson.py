"""A strict reader of UBJSON, as XGBoost writes it: every length is checked before memory is allocated."""

import struct
from typing import Any

import numpy as np

from fasterce.errors import FasterCEError

MOST_DEPTH = 64
WHOLE = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
NUMBERS = {**WHOLE, b"d": ">f", b"D": ">d"}
CONSTANTS = {b"T": True, b"F": False, b"Z": None}


class NotUbjsonError(FasterCEError, ValueError):
    """The bytes are not UBJSON, or end too early."""


def read(content: bytes) -> Any:
    """Return the one value in the bytes."""
    reader = _Reader(content)
    value = reader.value(reader.take(1), 0)
    if reader.at != len(content):
        raise NotUbjsonError("models.ubjson_too_long", count=len(content) - reader.at)
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.content):
            raise NotUbjsonError("models.ubjson_too_short", byte=len(self.content), count=count)
        self.at += count
        return self.content[self.at - count : self.at]

    def peek(self) -> bytes:
        return self.content[self.at : self.at + 1]

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > MOST_DEPTH:
            raise NotUbjsonError("models.ubjson_too_deep", expected=MOST_DEPTH)
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
        raise NotUbjsonError("models.ubjson_marker", marker=marker, byte=self.at)

    def number(self, marker: bytes) -> Any:
        form = NUMBERS[marker]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def length(self) -> int:
        marker = self.take(1)
        if marker not in WHOLE:
            raise NotUbjsonError("models.ubjson_length", byte=self.at)
        return int(self.number(marker))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", "strict")

    def array(self, depth: int) -> Any:
        kind = b""
        if self.peek() == b"$":
            self.take(1)
            kind = self.take(1)
            if self.peek() != b"#":
                raise NotUbjsonError("models.ubjson_length", byte=self.at)
        if self.peek() == b"#":
            self.take(1)
            return self.counted(self.length(), kind, depth)
        values = []
        while (marker := self.take(1)) != b"]":
            values.append(self.value(marker, depth + 1))
        return values

    def counted(self, count: int, kind: bytes, depth: int) -> Any:
        if kind in NUMBERS:
            form = np.dtype(NUMBERS[kind].replace("b", "i1").replace("B", "u1") if kind in b"iU" else NUMBERS[kind])
            return np.frombuffer(self.take(count * form.itemsize), dtype=form)
        if kind:
            raise NotUbjsonError("models.ubjson_marker", marker=kind, byte=self.at)
        self.check_room(count)
        return [self.value(self.take(1), depth + 1) for _ in range(count)]

    def check_room(self, count: int) -> None:
        if count < 0 or count > len(self.content) - self.at:
            raise NotUbjsonError("models.ubjson_too_many", count=count, byte=self.at)

    def members(self, depth: int) -> dict[str, Any]:
        found = {}
        if self.peek() == b"#":
            raise NotUbjsonError("models.ubjson_marker", marker=b"#", byte=self.at)
        while self.peek() != b"}":
            name = self.text()
            found[name] = self.value(self.take(1), depth + 1)
        self.take(1)
        return found
