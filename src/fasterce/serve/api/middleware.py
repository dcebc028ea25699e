"""Middleware around all routes: request ids, hosts and origins, headers of responses, the log line and metrics."""

import logging
import re
from collections.abc import Mapping
from time import perf_counter
from urllib.parse import urlsplit
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fasterce.serve.api import logs
from fasterce.serve.api.problems import HANDLED, HTTPProblem, matching_routes, respond
from fasterce.serve.api.route import refuse_if_busy, scopes_of
from fasterce.serve.api.state import AppState
from fasterce.serve.settings import LOCAL

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
# Safe methods.
SAFE = ("GET", "HEAD", "OPTIONS")
PAGE = "/page/"
NOT_LOGGED = ("/v2/health/", "/metrics", PAGE)
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class RequestMiddleware:
    """Around all routes. No response has a stack trace."""

    def __init__(self, app: ASGIApp, state: AppState, busy: Mapping[str, BaseRoute]) -> None:
        self.app, self.state = app, state
        # Routes, by path, that most requests are for: those there is no room for are refused here.
        self.busy = {path: (route, scopes_of(route)) for path, route in busy.items()}
        self.local_only = state.settings.host in LOCAL

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # Every GET route also supports HEAD.
            scope, send = {**scope, "method": "GET"}, without_body(send)
        tracked = TrackedRequest(scope, send)
        self.state.metrics.in_flight.inc()
        try:
            self.check_headers(scope)
            if scope["method"] == "POST" and scope["path"] in self.busy:
                scope["route"], scopes = self.busy[scope["path"]]
                refuse_if_busy(Request(scope), self.state, scopes)
            await self.app(scope, receive, tracked.send)
        except Exception as error:
            if not isinstance(error, HANDLED):
                logs.log_event("unforeseen", level=logging.ERROR, exc_info=error, request_id=tracked.id)
            if not tracked.status:
                await respond(Request(scope), error)(scope, receive, tracked.send)
        finally:
            self.state.metrics.in_flight.dec()
            self.log_request(tracked)

    def check_headers(self, scope: Scope) -> None:
        """Reject requests for another host, and those a page of another site sends."""
        headers, origins = Headers(scope=scope), self.state.settings.origins
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.local_only and not is_local(host):
            raise HTTPProblem(421, "wrong_host", "serve.wrong_host")
        if scope["method"] in SAFE or origin in origins:
            return
        # Some requests of other sites are sent without a preflight. Browsers mark them by one header or the other.
        is_other = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
        if is_other or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HTTPProblem(403, "other_site", "serve.other_site")

    def log_request(self, tracked: "TrackedRequest") -> None:
        seconds, metrics = perf_counter() - tracked.started, self.state.metrics
        route, scope = tracked.route(), tracked.scope
        found = scope["state"]
        metrics.requests.labels(route, tracked.status).inc()
        metrics.seconds.labels(route).observe(seconds)
        if found.get("refused"):
            metrics.refused.labels(route, found["refused"], found.get("key") or "").inc()
        if not scope["path"].startswith(NOT_LOGGED):
            logs.log_event(
                "request",
                request_id=tracked.id,
                route=route,
                method=scope["method"],
                status=tracked.status,
                ms=round(seconds * 1e3, 1),
                key=found.get("key"),
                address=logs.shown_address(scope.get("client"), self.state.settings.log_address),
                **({"refused": found["refused"]} if found.get("refused") else {}),
                **found.get("log_fields", {}),
            )


class TrackedRequest:
    """One request: its id, its duration and status, and the headers of its response."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self._send = scope, send
        self.started, self.status = perf_counter(), 0
        given = Headers(scope=scope).get("x-request-id", "")
        self.id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id

    def route(self) -> str:
        """Return the pattern, not the path: a path may hold an id, and there are too many of them."""
        if self.scope["path"].startswith(PAGE):
            return "page"
        matching = [self.scope["route"]] if "route" in self.scope else matching_routes(self.scope)
        return next((path for one in matching if (path := getattr(one, "path", ""))), "other")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(raw=[*message["headers"], *RAW_HEADERS, (b"x-request-id", self.id.encode())])
            message["headers"] = headers.raw
            headers.setdefault("content-security-policy", POLICY)
            # Files of the page may be cached if they are revalidated; results may not.
            cached = self.scope["path"].startswith(PAGE) and self.status < 400
            headers.setdefault("cache-control", "no-cache" if cached else "no-store")
        await self._send(message)


def without_body(send: Send) -> Send:
    async def head_only(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return head_only


def is_local(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.strip("[]").lower() in LOCAL
