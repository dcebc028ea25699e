"""Whatever goes wrong, in one shape: a code, a sentence, the fields meant, and the id of the request. Never a stack trace."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from fasterce.serve.question import (
    Busy,
    EngineLost,
    Late,
    NoSuchArtifact,
    NotReady,
    Refused,
    ReloadFailed,
    Unanswered,
)

RETRY_SOON = 1.0


class FieldProblem(BaseModel):
    field: str = Field(description="Where in the request, for instance rows[0].duration")
    message: str


class ProblemDetail(BaseModel):
    code: str
    message: str
    fields: list[FieldProblem] = []


class ProblemBody(BaseModel):
    """Every error of the native routes."""

    error: ProblemDetail
    request_id: str


class InferenceProblemBody(BaseModel):
    """Every error of the Open Inference routes."""

    error: str


@dataclass
class Problem(Exception):
    """An answer that is an error."""

    status: int
    code: str
    message: str
    fields: Sequence[tuple[str, str]] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def body(self, request_id: str) -> ProblemBody:
        named = [FieldProblem(field=where, message=what) for where, what in self.fields]
        return ProblemBody(error=ProblemDetail(code=self.code, message=self.message, fields=named), request_id=request_id)


STATUS = {
    Refused: (422, "refused"),
    NoSuchArtifact: (404, "no_such_artifact"),
    Busy: (429, "busy"),
    Late: (504, "late"),
    EngineLost: (503, "engine_lost"),
    NotReady: (503, "not_ready"),
    ReloadFailed: (409, "reload_failed"),
}


def problem_of(error: Unanswered) -> Problem:
    """What the client is told when there is no answer."""
    status, code = next((told for kind, told in STATUS.items() if isinstance(error, kind)), (503, "unanswered"))
    fields = [(error.field, str(error))] if isinstance(error, Refused) and error.field else []
    return Problem(status, code, str(error), fields, _headers(error, status))


def _headers(error: Unanswered, status: int) -> dict[str, str]:
    if isinstance(error, Busy):
        return retry_after(error.retry_after)
    return retry_after(RETRY_SOON) if status == 503 else {}


def retry_after(seconds: float) -> dict[str, str]:
    """Whole seconds, at least one, as the header wants them."""
    return {"Retry-After": str(max(1, round(seconds)))}


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """For OpenAPI: these errors have our shape."""
    return {status: {"model": ProblemBody, "description": DESCRIPTIONS[status]} for status in statuses}


DESCRIPTIONS = {
    400: "The body is not JSON",
    401: "No key, or not a known one",
    403: "The key does not have this scope",
    404: "Not here",
    405: "Not with this method",
    409: "The new version could not be loaded; the old one goes on",
    413: "Too large, or too many rows",
    415: "Not application/json",
    422: "Something in the request is not as expected; fields says what",
    429: "More is waiting than may wait; Retry-After says when to come again",
    503: "Cannot be answered now",
    504: "The deadline came before an answer",
}
