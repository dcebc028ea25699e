"""Messages between the HTTP process and a worker, as JSON.

Nothing is unpickled on either side: a worker runs the user's model, and the HTTP process need not trust it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

from fasterce.io.processes import Header
from fasterce.serve.messages import StoredRecord, WorkerRequest
from fasterce.serve.settings import ServedArtifact, Settings

# The field of the message that asks a worker whether its remote models respond, and of the reply.
CHECK = "check"


def pack_requests(requests: Sequence[WorkerRequest]) -> Header:
    """Return the message of a batch, with the time left of each request instead of a moment on this process's clock."""
    now = monotonic()
    return {"requests": [vars(request) | {"until": request.until - now} for request in requests]}


def unpack_requests(header: Header) -> list[WorkerRequest]:
    now = monotonic()
    return [WorkerRequest(**written | {"until": now + written["until"]}) for written in header["requests"]]


def pack_record(record: StoredRecord) -> Header:
    """Return a record without its text, which follows the header: it is JSON already."""
    return {name: value for name, value in vars(record).items() if name != "body"}


def pack_texts(header: Header, texts: Sequence[str]) -> tuple[Header, bytes]:
    """Return the header of a message with the lengths of texts in bytes, and the texts."""
    encoded = [one.encode() for one in texts]
    return header | {"lengths": [len(one) for one in encoded]}, b"".join(encoded)


def unpack_texts(header: Header, body: bytes) -> Iterator[str]:
    """Return the texts that follow a header, in order."""
    start = 0
    for length in header["lengths"]:
        yield body[start : start + length].decode()
        start += length


def pack_settings(settings: Settings, is_first: bool) -> Header:
    """Return what a worker needs to know, and whether its description of the artifacts is the one that counts."""
    artifacts = [vars(served) | {"folder": str(served.folder), "applicants": None} for served in settings.artifacts]
    wording = None if settings.wording is None else str(settings.wording)
    return {"artifacts": artifacts, "wording": wording, "most_memory_mb": settings.most_memory_mb, "is_first": is_first}


def unpack_settings(header: Header) -> tuple[Settings, bool]:
    artifacts = tuple(ServedArtifact(**one | {"folder": Path(one["folder"])}) for one in header["artifacts"])
    wording = None if header["wording"] is None else Path(header["wording"])
    return Settings(artifacts, wording=wording, most_memory_mb=header["most_memory_mb"]), header["is_first"]
