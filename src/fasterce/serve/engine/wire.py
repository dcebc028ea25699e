"""What goes over the socket between the front and an engine: a header in JSON, and records as the text they are stored as.

Nothing is unpickled on either side: an engine runs the user's model, and the front need not trust it.
"""

import json
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from time import monotonic
from typing import Any

from fasterce.serve.question import Description, Kept, Question
from fasterce.serve.settings import Served, Settings

LENGTHS = struct.Struct(">IQ")
NAMES = tuple(field.name for field in fields(Kept) if field.name != "body")
MOST_HEADER, MOST_BODY = 1 << 30, 1 << 32

Header = dict[str, Any]


def packed(header: Mapping[str, Any], body: bytes = b"") -> bytes:
    written = json.dumps(header, separators=(",", ":")).encode()
    return LENGTHS.pack(len(written), len(body)) + written + body


def lengths(prefix: bytes) -> tuple[int, int]:
    header, body = LENGTHS.unpack(prefix)
    if header > MOST_HEADER or body > MOST_BODY:
        raise ConnectionError("An engine's message must have a length that can be; got nonsense.")
    return header, body


def receive(connection: socket.socket) -> tuple[Header, bytes]:
    """The next message, waited for; EOFError if the other side is gone."""
    header, body = lengths(_exactly(connection, LENGTHS.size))
    return json.loads(_exactly(connection, header)), _exactly(connection, body)


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = connection.recv(min(size - len(received), 1 << 20))
        if not part:
            raise EOFError
        received += part
    return bytes(received)


def question_out(question: Question) -> str:
    """A question for another process, all but the time it has; written once however often it is asked."""
    named = {field.name: getattr(question, field.name) for field in fields(question) if field.name != "until"}
    return json.dumps(named | {"rows": [dict(row) for row in question.rows], "options": dict(question.options)})


def questions_out(written: Sequence[str], untils: Sequence[float]) -> bytes:
    """A batch: for each question the time left instead of a moment on this process's clock."""
    now = monotonic()
    left = json.dumps([until - now for until in untils])
    header = f'{{"left": {left}, "questions": [{", ".join(written)}]}}'.encode()
    return LENGTHS.pack(len(header), 0) + header


def questions_in(header: Header) -> list[Question]:
    now = monotonic()
    return [
        Question(**{name: _as_given(value) for name, value in written.items()}, until=now + left)
        for written, left in zip(header["questions"], header["left"], strict=True)
    ]


def _as_given(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def settings_out(settings: Settings) -> Header:
    """What an engine needs to know."""
    artifacts = [asdict(served) | {"folder": str(served.folder), "applicants": None} for served in settings.artifacts]
    wording = None if settings.wording is None else str(settings.wording)
    return {"artifacts": artifacts, "wording": wording, "most_memory_mb": settings.most_memory_mb}


def settings_in(written: Header) -> Settings:
    artifacts = tuple(
        Served(**one | {"folder": Path(one["folder"]), "trusted": tuple(one["trusted"])}) for one in written["artifacts"]
    )
    wording = None if written["wording"] is None else Path(written["wording"])
    return Settings(artifacts, wording=wording, most_memory_mb=written["most_memory_mb"])


def description_out(description: Description) -> Header:
    return {field.name: getattr(description, field.name) for field in fields(description)}


def description_in(written: Header) -> Description:
    return Description(**written | {"classes": tuple(written["classes"])})


def records_out(kept: Sequence[Kept]) -> tuple[list[list[Any]], list[bytes]]:
    """All but the text in the header, with the length of the text in its place."""
    texts = [one.body.encode() for one in kept]
    named = [[*(getattr(one, name) for name in NAMES), len(text)] for one, text in zip(kept, texts, strict=True)]
    return named, texts


def records_in(written: Sequence[Sequence[Any]], texts: memoryview) -> tuple[tuple[Kept, ...], int]:
    """The records at the beginning of `texts`, and how long they are together."""
    found, start = [], 0
    for *values, length in written:
        named = dict(zip(NAMES, values, strict=True))
        found.append(Kept(**named, body=str(texts[start : start + length], "utf-8")))
        start += length
    return tuple(found), start
