"""Middleware around all routes: request ids, limits that need no reading of the body, headers, the log line and metrics."""

import asyncio
import logging
import re
from time import perf_counter
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fasterce.serve.api import logs
from fasterce.serve.api.problems import HANDLED, HTTPProblem, http_problem
from fasterce.serve.api.state import EXPLAIN, AppState, key_name
from fasterce.serve.settings import LOCAL

REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
EXPLAIN_PATHS = re.compile(r"/v1/explain|/v2/models/[^/]+(/versions/[^/]+)?/infer")
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
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class RequestMiddleware:
    """Around all routes. No response has a stack trace."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self.app, self.state = app, state
        self.local_only = state.settings.host in LOCAL
        self.posts = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        tracked = TrackedRequest(scope, send)
        is_post = scope["method"] == "POST"
        self.posts += is_post
        self.state.metrics.in_flight.inc()
        try:
            self.check_headers(scope)
            if is_post:
                scope["state"]["body"] = await self.read_body(receive)
            await self.app(scope, receive, tracked.send)
        except Exception as error:
            if not isinstance(error, HANDLED):
                logs.log_event("unforeseen", level=logging.ERROR, exc_info=error, request_id=tracked.id)
            if not tracked.status:
                await http_problem(error).response(scope["path"], tracked.id)(scope, receive, tracked.send)
        finally:
            self.posts -= is_post
            self.state.metrics.in_flight.dec()
            self.log_request(tracked)

    def check_headers(self, scope: Scope) -> None:
        """Reject what can be rejected before the body is read."""
        headers, method = Headers(scope=scope), scope["method"]
        if self.local_only and not is_local(headers.get("host", "")):
            raise HTTPProblem(421, "wrong_host", "serve.wrong_host")
        # Pages of other sites send requests without a preflight, which browsers mark.
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if method in ("POST", "DELETE") and elsewhere and headers.get("origin") not in self.state.settings.origins:
            raise HTTPProblem(403, "other_site", "serve.other_site")
        length = headers.get("content-length", "0")
        if method == "POST" and length.isdecimal() and int(length) > self.state.settings.most_body:
            raise self.too_large()
        if method == "POST" and EXPLAIN_PATHS.fullmatch(scope["path"]):
            if self.state.keys is not None:
                # Before the body is read: it is held in memory only for clients with a key.
                name = key_name(self.state.keys, headers.get("authorization", ""), EXPLAIN)
                scope["state"] |= {"key": name, "key_scope": EXPLAIN}
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                raise HTTPProblem(415, "media_type", "serve.media_type")
            self.check_capacity()

    def check_capacity(self) -> None:
        if self.state.closing:
            raise HTTPProblem(503, "closing", "serve.closing")
        load = self.state.dispatcher.load()
        most = self.state.settings.most_waiting
        if load.waiting_rows + load.running_rows >= most or self.posts > most + self.state.settings.extra_requests:
            raise HTTPProblem(429, "busy", "serve.queue_full", rows=most)

    def too_large(self) -> HTTPProblem:
        return HTTPProblem(413, "too_large", "serve.body_too_large", bytes=f"{self.state.settings.most_body:,}")

    async def read_body(self, receive: Receive) -> bytes:
        """Return the body; HTTPProblem if it is too large, or takes too long to arrive."""
        body, more, settings = bytearray(), True, self.state.settings
        try:
            async with asyncio.timeout(settings.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HTTPProblem(499, "gone", "serve.client_gone")
                    body += message.get("body", b"")
                    if len(body) > settings.most_body:
                        raise self.too_large()
                    more = message.get("more_body", False)
        except TimeoutError:
            close = {"Connection": "close"}
            raise HTTPProblem(408, "slow", "serve.body_too_slow", headers=close, expected=settings.body_seconds) from None
        return bytes(body)

    def log_request(self, tracked: "TrackedRequest") -> None:
        seconds, metrics = perf_counter() - tracked.started, self.state.metrics
        route, scope = tracked.route(), tracked.scope
        metrics.requests.labels(route, tracked.status).inc()
        metrics.seconds.labels(route).observe(seconds)
        if not scope["path"].startswith(NOT_LOGGED):
            logs.log_event(
                "request",
                request_id=tracked.id,
                route=route,
                method=scope["method"],
                status=tracked.status,
                ms=round(seconds * 1e3, 1),
                key=scope["state"].get("key"),
                **scope["state"].get("log_fields", {}),
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
        return getattr(self.scope.get("route"), "path", None) or ("page" if self.scope["path"].startswith(PAGE) else "other")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS | {"x-request-id": self.id})
            headers.setdefault("content-security-policy", POLICY)
            # Files of the page may be cached if they are revalidated; results may not.
            cached = self.scope["path"].startswith(PAGE) and self.status < 400
            headers.setdefault("cache-control", "no-cache" if cached else "no-store")
        await self._send(message)


def is_local(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.strip("[]").lower() in LOCAL
