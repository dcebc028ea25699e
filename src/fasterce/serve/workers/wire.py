"""Messages between the HTTP process and a worker, as JSON.

Nothing is unpickled on either side: a worker runs the user's model, and the HTTP process need not trust it.
"""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from fasterce.io.processes import Header
from fasterce.serve.messages import WorkerRequest
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


def pack_settings(settings: Settings) -> Header:
    """Return what a worker needs to know."""
    artifacts = [vars(served) | {"folder": str(served.folder), "applicants": None} for served in settings.artifacts]
    wording = None if settings.wording is None else str(settings.wording)
    return {"artifacts": artifacts, "wording": wording, "most_memory_mb": settings.most_memory_mb}


def unpack_settings(header: Header) -> Settings:
    artifacts = tuple(ServedArtifact(**one | {"folder": Path(one["folder"])}) for one in header["artifacts"])
    wording = None if header["wording"] is None else Path(header["wording"])
    return Settings(artifacts, wording=wording, most_memory_mb=header["most_memory_mb"])
