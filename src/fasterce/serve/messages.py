"""Requests to workers, their responses, and the errors in place of a response, as plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fasterce.errors import FasterCEError, Problem, make_problem

# A value as JSON has it. Not in `fasterce.typing`, which imports NumPy: the HTTP process starts without it.
Json = Any
# Kinds of models that run elsewhere.
REMOTE = ("mlflow", "inference")
# Details of problems with a remote model that are for its operator only.
PRIVATE = ("url", "to", "name", "excerpt")


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
    key : str, optional
        Name of the API key, which may read the records again.
    client : str
        Who has an equal part of what may wait: a key, or an address where there are no keys.
    queue : str
        The queue it waits in, which take turns: of a key, or of a connection where there are no keys.
    action : {"explain", "predict"}
        Whether the rows are explained, or only evaluated by the model.
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
    key: str | None = None
    client: str = ""
    queue: str = ""
    action: Literal["explain", "predict"] = "explain"

    def part(self, start: int, stop: int) -> "WorkerRequest":
        """Return the request for some of the rows, which keep their labels."""
        labels = range(len(self.rows)) if self.row_ids is None else self.row_ids
        return replace(
            self,
            rows=self.rows[start:stop],
            row_ids=list(labels[start:stop]),
            decision_ids=None if self.decision_ids is None else self.decision_ids[start:stop],
            subjects=None if self.subjects is None else self.subjects[start:stop],
            edited=None if self.edited is None else self.edited[start:stop],
        )


@dataclass(frozen=True)
class RecordLine:
    """The fields by which a stored record is found; `key` is the name of the API key it was made with."""

    id: str
    request: str
    decision: str | None
    subject: str | None
    artifact: str
    status: str
    time: str
    retain_until: str | None
    key: str | None = field(default=None, kw_only=True)


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

    def __add__(self, more: "BatchUsage") -> "BatchUsage":
        return BatchUsage(self.calls + more.calls, self.rows + more.rows, self.batch_rows + more.batch_rows)


NO_USAGE = BatchUsage(0, 0, 0)


@dataclass(frozen=True)
class WorkerResponse:
    """One record (or prediction) per row, in order, and the model usage of the calls.

    `problem` is that of a request for one row that is invalid.
    """

    records: tuple[StoredRecord, ...]
    description: "Description"
    usage: BatchUsage
    problem: Problem | None = None
    predictions: tuple[Json, ...] = ()


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
    def is_remote(self) -> bool:
        """Whether the model runs elsewhere."""
        return self.model_kind in REMOTE

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


def without_addresses(problem: Problem) -> Problem:
    """Return the same problem without the address of a remote model, and without what its server wrote."""
    section, _, name = problem.code.partition(".")
    is_remote = section == "models" and name.startswith("http_")
    hidden = make_problem("serve.remote_model")
    details = {
        name: hidden if is_remote and name in PRIVATE else without_addresses(value) if isinstance(value, Problem) else value
        for name, value in problem.details.items()
    }
    return replace(problem, details=details)


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
