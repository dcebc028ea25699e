"""Messages between the HTTP process and a worker: a header in JSON, and records as the text they are stored as.

Nothing is unpickled on either side: a worker runs the user's model, and the HTTP process need not trust it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from time import monotonic
from typing import Any

from fasterce.io.processes import LENGTHS, Header
from fasterce.serve.messages import Description, RecordLine, StoredRecord, WorkerRequest
from fasterce.serve.settings import ServedArtifact, Settings

SUMMARY = tuple(field.name for field in fields(RecordLine))


def pack_request(request: WorkerRequest) -> str:
    """Return a request as JSON, without its deadline; written once however often it is sent."""
    named = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "until"}
    return json.dumps(named | {"rows": [dict(row) for row in request.rows], "options": dict(request.options)})


def pack_batch(written: Sequence[str], untils: Sequence[float]) -> bytes:
    """Return the message of a batch, with the time left of each request instead of a moment on this process's clock."""
    now = monotonic()
    left = json.dumps([until - now for until in untils])
    header = f'{{"left": {left}, "requests": [{", ".join(written)}]}}'.encode()
    return LENGTHS.pack(len(header), 0) + header


def unpack_requests(header: Header) -> list[WorkerRequest]:
    now, found = monotonic(), []
    for written, left in zip(header["requests"], header["left"], strict=True):
        values: Header = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
        found.append(WorkerRequest(**values, until=now + left))
    return found


def pack_settings(settings: Settings) -> Header:
    """Return what a worker needs to know."""
    artifacts = [asdict(served) | {"folder": str(served.folder), "applicants": None} for served in settings.artifacts]
    wording = None if settings.wording is None else str(settings.wording)
    return {"artifacts": artifacts, "wording": wording, "most_memory_mb": settings.most_memory_mb}


def unpack_settings(header: Header) -> Settings:
    artifacts = tuple(
        ServedArtifact(**one | {"folder": Path(one["folder"]), "trusted": tuple(one["trusted"])})
        for one in header["artifacts"]
    )
    wording = None if header["wording"] is None else Path(header["wording"])
    return Settings(artifacts, wording=wording, most_memory_mb=header["most_memory_mb"])


def pack_description(description: Description) -> Header:
    return {field.name: getattr(description, field.name) for field in fields(description)}


def unpack_description(header: Header) -> Description:
    return Description(**header | {"classes": tuple(header["classes"])})


def pack_records(records: Sequence[StoredRecord]) -> tuple[list[list[str | int | None]], list[bytes]]:
    """Return all fields but the text, with the length of the text in its place; and the texts."""
    texts = [record.body.encode() for record in records]
    summaries = [[*(getattr(one, name) for name in SUMMARY), len(text)] for one, text in zip(records, texts, strict=True)]
    return summaries, texts


def unpack_records(summaries: Sequence[Sequence[Any]], texts: memoryview) -> tuple[tuple[StoredRecord, ...], int]:
    """Return the records at the beginning of `texts`, and their length in bytes."""
    found, start = [], 0
    for *values, length in summaries:
        named = dict(zip(SUMMARY, values, strict=True))
        found.append(StoredRecord(**named, body=str(texts[start : start + length], "utf-8")))
        start += length
    return tuple(found), start
