"""Routes that check the key, the client's share and the headers of a request before they read its body."""

import asyncio
from collections.abc import Callable, Coroutine

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope

from fasterce.serve.api.json_body import parse
from fasterce.serve.api.problems import HTTPProblem
from fasterce.serve.api.state import AppState
from fasterce.serve.keys import Key, MissingScope
from fasterce.serve.messages import Json
from fasterce.serve.settings import Settings

JSON = "application/json"
Handler = Callable[[Request], Coroutine[None, None, Response]]


def needs(*alternatives: str) -> dict[str, Json]:
    """Return the part of a route's description that names the scopes of its key: "a+b" for both, one of several arguments."""
    return {"security": [{"key": one.split("+")} for one in alternatives]}


class ServiceRoute(APIRoute):
    """A route whose key is checked first; `openapi_extra=needs(...)` declares the scopes."""

    def get_route_handler(self) -> Handler:
        handler = super().get_route_handler()
        alternatives = scopes_of(self)
        reads_rows = self.body_field is not None

        async def handle(request: Request) -> Response:
            state: AppState = request.app.state.service
            if not alternatives:
                return await handler(request)
            client, connection = identify(request, state, alternatives)
            if not state.open_requests.permits(client, connection):
                raise too_busy(state)
            with state.open_requests.hold(client, connection):
                if not reads_rows:
                    return await handler(request)
                check_body_headers(request, state.settings)
                if state.closing:
                    raise HTTPProblem(503, "closing", "serve.closing")
                if not state.dispatcher.permits(client, connection):
                    raise too_busy(state)
                request.state.body = await read_body(request.receive, state.settings)
                parsed = StrictJSONRequest({**request.scope, "headers": as_json(request.scope)}, request.receive)
                if request.state.body:
                    await parsed.json()
                return await handler(parsed)

        return handle


def identify(request: Request, state: AppState, alternatives: list[list[str]]) -> tuple[str, str]:
    """Return who shares the service with others: the key of the request, or the client's address and connection where there
    are no keys.

    Raises KeyRejected if the key has none of the alternative sets of scopes.
    """
    host, port = request.client or ("", 0)
    client = f"address {host}"
    request.state.scopes, request.state.queue = None, f"connection {host} {port}"
    if state.keys is not None:
        key = check_key(state, request.headers.get("authorization", ""), alternatives)
        request.state.key, request.state.scopes = key.name, key.scopes
        request.state.queue = client = f"key {key.name}"
    request.state.client = client
    connection = request.scope["state"].get("connection")
    if connection is not None:
        connection.accept()
    return client, request.state.queue


def check_key(state: AppState, authorization: str, alternatives: list[list[str]]) -> Key:
    assert state.keys is not None
    kind, _, token = authorization.partition(" ")
    token = token.strip() if kind.lower() == "bearer" else ""
    first: MissingScope | None = None
    for scopes in alternatives:
        try:
            return state.keys.check(token, *scopes)
        except MissingScope as error:
            first = first or error
    assert first is not None
    raise first


def check_body_headers(request: Request, settings: Settings) -> None:
    """Reject a body by its headers. Clients of the inference protocols may leave the type out."""
    headers = request.headers
    if "inference-header-content-length" in headers:
        raise HTTPProblem(400, "binary", "serve.binary_tensors")
    kind = headers.get("content-type", JSON if is_inference(request.scope["path"]) else "")
    if kind.split(";")[0].strip().lower() != JSON or headers.get("content-encoding", "identity") != "identity":
        raise HTTPProblem(415, "media_type", "serve.media_type")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > settings.most_body:
        raise too_large(settings)


def as_json(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request, with the content type that was checked."""
    others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return [*others, (b"content-type", JSON.encode())]


def is_inference(path: str) -> bool:
    """Whether a path belongs to the Open Inference protocol or KServe's first one."""
    return path.startswith(("/v2", "/v1/models"))


def refuse_if_busy(request: Request, state: AppState, alternatives: list[list[str]]) -> None:
    """Raise what a route that reads rows would, if it has no room for this client. Costs less than to get there: while there
    is no room, most requests are refused."""
    if state.open_requests.is_full or state.dispatcher.is_full:
        client, connection = identify(request, state, alternatives)
        if not (state.open_requests.permits(client, connection) and state.dispatcher.permits(client, connection)):
            raise too_busy(state)


def scopes_of(route: BaseRoute) -> list[list[str]]:
    """Return the alternative sets of scopes that a route needs."""
    extra: dict[str, Json] = getattr(route, "openapi_extra", None) or {}
    return [one["key"] for one in extra.get("security", ())]


def too_busy(state: AppState) -> HTTPProblem:
    return HTTPProblem(429, "busy", "serve.queue_full", rows=state.settings.most_waiting)


def too_large(settings: Settings) -> HTTPProblem:
    return HTTPProblem(413, "too_large", "serve.body_too_large", bytes=f"{settings.most_body:,}")


async def read_body(receive: Receive, settings: Settings) -> bytes:
    """Return the body; HTTPProblem if it is too large, or takes too long to arrive."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(settings.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HTTPProblem(499, "gone", "serve.client_gone")
                body += message.get("body", b"")
                if len(body) > settings.most_body:
                    raise too_large(settings)
                more = message.get("more_body", False)
    except TimeoutError:
        close = {"Connection": "close"}
        raise HTTPProblem(408, "slow", "serve.body_too_slow", headers=close, expected=settings.body_seconds) from None
    return bytes(body)


class StrictJSONRequest(Request):
    """A request whose body has been read."""

    async def body(self) -> bytes:
        body: bytes = self.state.body
        return body

    async def json(self) -> Json:
        if not hasattr(self, "_json"):
            self._json = parse(self.state.body)
        return self._json
