"""Errors over HTTP in one shape: a code, a message, the fields concerned and the id of the request. Never a stack trace."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from fasterce.errors import FasterCEError, Problem, make_problem
from fasterce.options import names
from fasterce.serve.api import logs
from fasterce.serve.keys import KeyRejected
from fasterce.serve.messages import InvalidRequest, Json, NoResponse, without_addresses
from fasterce.serve.store import StoreError, UnstorableError

RETRY_SECONDS = 1.0
# Errors of pydantic that are looked at, of which a body may have any number, and fields of a response.
MAX_ERRORS = 100
MAX_FIELDS = 20
# What was expected, by the type of pydantic's error.
EXPECTED_TYPES: Mapping[str, str] = {
    "bool_type": "boolean",
    "dict_type": "object",
    "float_type": "number",
    "int_from_float": "whole",
    "int_type": "whole",
    "list_type": "list",
    "tuple_type": "list",
    "none_required": "null",
    "string_type": "text",
}
# Where a value may be of several types, pydantic adds the type it tried to the location.
TYPES = ("bool", "int", "float", "str", "constrained-", "list[", "tuple[", "dict[", "literal[", "function-")
# How requests call the options that the text of a problem names.
OPTION_NAMES = names("http")
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
    retry_seconds : float
        When to try again, if the status is 429 or 503.
    """

    def __init__(
        self,
        status: int,
        code: str,
        problem: Problem | str,
        fields: Fields = (),
        headers: Mapping[str, str] | None = None,
        retry_seconds: float = RETRY_SECONDS,
        **details: object,
    ) -> None:
        super().__init__(problem, **details)
        self.status, self.code, self.fields, self.headers = status, code, fields, dict(headers or {})
        if status in (429, 503):
            self.headers["Retry-After"] = str(max(1, round(retry_seconds)))
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"

    @property
    def message(self) -> str:
        return self.problem.text(names=OPTION_NAMES)

    def response(self, path: str, request_id: str) -> Response:
        """Return the response: in our shape, or in that of the inference protocols under their paths."""
        fields = [{"field": where, "message": what} for where, what in self.fields]
        body = {"error": {"code": self.code, "message": self.message, "fields": fields}, "request_id": request_id}
        if path.startswith(("/v2", "/v1/models")):
            body = {"error": self.message}
        return Response(json.dumps(body), self.status, self.headers, "application/json")


class FieldsProblem(HTTPProblem):
    """An error about fields of the request; its message is that of the first field, and how many others there are."""

    def __init__(self, code: str, fields: Fields, count: int | None = None) -> None:
        super().__init__(422, code, "serve.more_fields", fields, count=(len(fields) if count is None else count) - 1)

    @property
    def message(self) -> str:
        where, what = self.fields[0]
        more = f" {self.problem.text()}" if self.problem.details["count"] > 0 else ""
        return f"{where}: {what}{more}"


HTTP_CODES = {400: "not_json", 404: "not_found", 405: "wrong_method"}
HANDLED = (HTTPProblem, NoResponse, KeyRejected, StoreError, RequestValidationError, HTTPException)


def respond(request: Request, error: Exception) -> Response:
    """Return the response to an error, and note the reason for the log line and the metrics."""
    found = http_problem(error)
    if found.status == 405:
        routes = matching_routes(request.scope)
        # What is not a route of the interface is a file of the page.
        methods = {method for route in routes for method in getattr(route, "methods", None) or ()} or {"GET"}
        found.headers["Allow"] = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
    state = request.scope["state"]
    state["refused"] = found.code
    if isinstance(error, KeyRejected) and error.key is not None:
        state["key"] = error.key
    return found.response(request.url.path, state["request_id"])


def matching_routes(scope: Scope) -> list[BaseRoute]:
    """Return the routes with the path of a request, whatever their methods."""
    return [route for route in scope["app"].state.known_routes if route.matches(scope)[0] is not Match.NONE]


def http_problem(error: Exception) -> HTTPProblem:
    """Return the response to one of the errors that are HANDLED; any other is unforeseen, and its text is not shown."""
    if isinstance(error, HTTPProblem):
        return error
    if isinstance(error, RequestValidationError):
        return FieldsProblem("invalid_request", fields_of(error.errors()))
    if isinstance(error, HTTPException):
        code, reason = HTTP_CODES.get(error.status_code, "refused"), f"{error.detail.rstrip('.')}."
        return HTTPProblem(error.status_code, code, "serve.http_error", headers=error.headers, reason=reason)
    if isinstance(error, (NoResponse, KeyRejected, UnstorableError)):
        seconds = getattr(error, "retry_after", RETRY_SECONDS)
        made = HTTPProblem(error.status, error.code, without_addresses(error.problem), retry_seconds=seconds)
        if isinstance(error, InvalidRequest) and error.field:
            made.fields = [(error.field, made.message)]
        return made
    if isinstance(error, StoreError):
        # Where the records are and what is wrong is for the log only.
        logs.log_event("records failed", level=logging.ERROR, reason=str(error))
        return HTTPProblem(503, "records", "serve.store_unavailable")
    return HTTPProblem(500, "unforeseen", "serve.unforeseen")


def text(code: str, **details: object) -> str:
    """Return the text of a code of `messages.toml`."""
    return make_problem(f"serve.{code}", **details).text()


def fields_of(errors: Iterable[Mapping[str, Json]]) -> list[tuple[str, str]]:
    """Return one text per field, with everything that would have been valid there."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    for error in islice(errors, MAX_ERRORS):
        found.setdefault(location(error["loc"]), []).append(error)
    return [(where, combined(of_field)) for where, of_field in list(found.items())[:MAX_FIELDS]]


def combined(errors: Sequence[Mapping[str, Json]]) -> str:
    """Return one text: of a value that may have several types, pydantic reports for each why it is not of it."""
    expected: dict[str, None] = {}
    for error in errors:
        if error["type"] == "literal_error":
            expected[str(error["ctx"]["expected"])] = None
        elif error["type"] in EXPECTED_TYPES:
            expected[text(f"type_{EXPECTED_TYPES[error['type']]}").rstrip(".")] = None
        elif error["type"] == "string_pattern_mismatch":
            return text("header_characters" if error["loc"][0] == "header" else "control_characters")
        elif error["type"] == "uuid_parsing":
            return text("not_a_uuid")
        else:
            return str(error.get("ctx", {}).get("error") or error["msg"]).rstrip(".") + "."
    *types, last = expected
    return text("not_of_types", types=", ".join(types), last=last) if types else text("not_of_type", type=last)


def location(parts: Sequence[str | int]) -> str:
    """Return rows[0].duration for ("body", "rows", 0, "duration", "int")."""
    path = ""
    for part in parts[1:] if parts and parts[0] in ("body", "query", "path", "header") else parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not str(part).startswith(TYPES):
            path += f".{part}" if path else str(part)
    return path or "body"


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
    410: "The records of the reply have been erased",
    413: "Too large, or too many rows",
    415: "Not application/json",
    422: "Something in the request is not as expected; fields says what",
    429: "More rows are waiting than may wait; Retry-After says when to try again",
    503: "Cannot be served now",
    504: "The deadline passed before there was a result",
}
