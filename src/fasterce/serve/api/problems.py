"""Errors over HTTP in one shape: a code, a message, the fields concerned and the id of the request. Never a stack trace."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from fasterce.errors import FasterCEError, Problem, make_problem
from fasterce.options import names
from fasterce.serve.messages import (
    DeadlineExceeded,
    InvalidRequest,
    NoResponse,
    NotReady,
    Overloaded,
    ReloadError,
    UnknownArtifact,
    WorkerLost,
)

RETRY_SOON = 1.0
Fields = Sequence[tuple[str, str]]


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


class HTTPProblem(FasterCEError):
    """A response that is an error.

    Parameters
    ----------
    status : int
        The HTTP status.
    code : str
        The code in the body, for programs.
    problem : Problem or str
        What is wrong, or its code in `messages.toml` with values for its text as keywords.
    fields : sequence of (field, message)
        The fields of the request concerned.
    headers : mapping, optional
    """

    def __init__(
        self,
        status: int,
        code: str,
        problem: Problem | str,
        fields: Fields = (),
        headers: Mapping[str, str] | None = None,
        **details: object,
    ) -> None:
        super().__init__(problem, **details)
        self.status, self.code, self.fields, self.headers = status, code, fields, dict(headers or {})

    @property
    def message(self) -> str:
        return self.problem.text(names=names("http"))

    def body(self, request_id: str) -> ProblemBody:
        named = [FieldProblem(field=where, message=what) for where, what in self.fields]
        return ProblemBody(error=ProblemDetail(code=self.code, message=self.message, fields=named), request_id=request_id)


class FieldsProblem(HTTPProblem):
    """An error about fields of the request; its message is that of the first field, and how many others there are."""

    def __init__(self, code: str, fields: Fields, count: int | None = None) -> None:
        super().__init__(422, code, "serve.more_fields", fields, count=(len(fields) if count is None else count) - 1)

    @property
    def message(self) -> str:
        where, what = self.fields[0]
        more = f" {self.problem.text()}" if self.problem.details["count"] > 0 else ""
        return f"{where}: {what}{more}"


STATUS: Mapping[type[NoResponse], tuple[int, str]] = {
    InvalidRequest: (422, "refused"),
    UnknownArtifact: (404, "no_such_artifact"),
    Overloaded: (429, "busy"),
    DeadlineExceeded: (504, "late"),
    WorkerLost: (503, "worker_lost"),
    NotReady: (503, "not_ready"),
    ReloadError: (409, "reload_failed"),
}


def http_problem(error: NoResponse) -> HTTPProblem:
    """Return the error response for a request without a result."""
    status, code = next((known for kind, known in STATUS.items() if isinstance(error, kind)), (503, "unanswered"))
    made = HTTPProblem(status, code, error.problem)
    if isinstance(error, InvalidRequest) and error.field:
        made.fields = [(error.field, made.message)]
    if isinstance(error, Overloaded):
        made.headers = retry_after(error.retry_after)
    elif status == 503:
        made.headers = retry_after(RETRY_SOON)
    return made


def text(code: str, **details: object) -> str:
    """Return the text of a code of `messages.toml`."""
    return make_problem(f"serve.{code}", **details).text()


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header, in whole seconds of at least one."""
    return {"Retry-After": str(max(1, round(seconds)))}


def documented(*statuses: int, body: type[BaseModel] = ProblemBody) -> dict[int | str, dict[str, object]]:
    """Return the error responses of a route for OpenAPI."""
    return {status: {"model": body, "description": DESCRIPTIONS[status]} for status in statuses}


DESCRIPTIONS = {
    400: "The body is not JSON",
    401: "No key, or not a known one",
    403: "The key does not have this scope",
    404: "Not found",
    405: "Method not allowed",
    409: "The new version could not be loaded; the old one stays in service",
    413: "Too large, or too many rows",
    415: "Not application/json",
    422: "Something in the request is not as expected; fields says what",
    429: "More rows are waiting than may wait; Retry-After says when to try again",
    503: "Cannot be served now",
    504: "The deadline passed before there was a result",
}
