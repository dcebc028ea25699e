"""Requests to workers, their responses, and the errors in place of a response, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fasterce.errors import FasterCEError, Problem

# A value as JSON has it. Not in `fasterce.typing`, which imports NumPy: the HTTP process starts without it.
Json = Any


@dataclass(frozen=True)
class WorkerRequest:
    """Rows as JSON objects and how to explain them.

    Parameters
    ----------
    artifact : str
    rows : sequence of mapping
    options : mapping
        Options of `POST /v1/explain`, by the names they have there. Requests with equal options may share one call.
    until : float
        Deadline on this process's monotonic clock, in seconds.
    request_id : str
    row_ids, decision_ids, subjects, edited : sequence, optional
        One entry per row. Subjects come as received; the worker turns them into pseudonyms. `edited` are columns whose
        values were edited by hand.
    """

    artifact: str
    rows: Sequence[Mapping[str, Json]]
    options: Mapping[str, Json]
    until: float
    request_id: str
    row_ids: Sequence[str | int] | None = None
    decision_ids: Sequence[str] | None = None
    subjects: Sequence[str] | None = None
    edited: Sequence[Sequence[str]] | None = None
    constraints_by: str | None = None
    retain_until: str | None = None


@dataclass(frozen=True)
class RecordLine:
    """The fields by which a stored record is found."""

    id: str
    request: str
    decision: str | None
    subject: str | None
    artifact: str
    status: str
    time: str
    retain_until: str | None


@dataclass(frozen=True)
class StoredRecord(RecordLine):
    """An audit record as it is stored: the fields to look it up by, and its JSON text."""

    body: str


@dataclass(frozen=True)
class BatchUsage:
    """Model usage of a call of `explain` for `batch_rows` rows, which several requests may have shared."""

    calls: int
    rows: int
    batch_rows: int


@dataclass(frozen=True)
class WorkerResponse:
    """One record per row, in order, and the model usage of the call.

    `problem` is that of a request for one row that is invalid.
    """

    records: tuple[StoredRecord, ...]
    description: "Description"
    usage: BatchUsage
    problem: Problem | None = None


@dataclass(frozen=True)
class Description:
    """An artifact as the workers loaded it: `schema` is the body of `GET /v1/schema` without limits."""

    name: str
    title: str
    artifact_digest: str
    model_digest: str | None
    model_kind: str
    schema: Mapping[str, Json] = field(default_factory=dict)
    loaded: str = ""

    @property
    def version(self) -> tuple[str, str, str | None]:
        """Equal for artifacts that explain alike."""
        return self.name, self.artifact_digest, self.model_digest


@dataclass(frozen=True)
class PoolLoad:
    """How busy the workers are."""

    waiting_rows: int
    running_rows: int
    workers: int
    busy: int
    spare: bool
    restarts: int
    generation: int


class NoResponse(FasterCEError):
    """There is no response; the text says why and holds nothing of a person's data.

    `status` and `code` are those of the HTTP response.
    """

    status, code = 503, "unanswered"


class InvalidRequest(NoResponse):
    """The request itself is wrong: `field` says where in its body."""

    status, code = 422, "refused"

    def __init__(self, problem: Problem | str, field: str = "", **fields: object) -> None:
        super().__init__(problem, **fields)
        self.field = field


class UnknownArtifact(NoResponse):
    """No artifact of this name is served."""

    status, code = 404, "no_such_artifact"


class Overloaded(NoResponse):
    """More rows are waiting than may wait; `retry_after` is in seconds."""

    status, code = 429, "busy"

    def __init__(self, problem: Problem | str, retry_after: float, **fields: object) -> None:
        super().__init__(problem, **fields)
        self.retry_after = retry_after


class DeadlineExceeded(NoResponse):
    """The deadline passed before there was a response."""

    status, code = 504, "late"


class WorkerLost(NoResponse):
    """The worker died, and so did the second one that tried."""

    code = "worker_lost"


class NotReady(NoResponse):
    """No worker can respond now: the service is starting or closing."""

    code = "not_ready"


class StartError(NoResponse):
    """The artifacts or their models could not be loaded; `kind` names the class in `fasterce.errors`, if it is one."""

    def __init__(self, problem: Problem | str, kind: str = "", **fields: object) -> None:
        super().__init__(problem, **fields)
        self.kind = kind


class ReloadError(NoResponse):
    """The new version could not be loaded; the old one stays in service."""

    status, code = 409, "reload_failed"
