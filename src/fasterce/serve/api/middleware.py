"""Middleware around all routes: request ids, limits that need no reading of the body, headers, the log line and metrics."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from time import perf_counter
from uuid import uuid4

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fasterce.serve.api import logs
from fasterce.serve.api.problems import RETRY_SOON, HTTPProblem, retry_after
from fasterce.serve.api.state import EXPLAIN, AppState, key_name
from fasterce.serve.settings import LOCAL

REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
EXPLAIN_PATHS = re.compile(r"/v1/explain|/v2/models/[^/]+(/versions/[^/]+)?/infer")
PAGE = "/page/"
NOT_LOGGED = ("/v2/health/", "/metrics", PAGE)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
POLICY = (
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
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
            await self.app(scope, await self.read_body(scope, receive), tracked.send)
        except HTTPProblem as problem:
            await tracked.send_problem(problem)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logs.log_event("unforeseen", level=logging.ERROR, exc_info=error, request_id=tracked.id)
            await tracked.send_problem(HTTPProblem(500, "unforeseen", "serve.unforeseen"))
        finally:
            self.posts -= is_post
            self.state.metrics.in_flight.dec()
            self.log_request(tracked)

    def check_headers(self, scope: Scope) -> None:
        """Reject what can be rejected before the body is read."""
        headers = dict(scope["headers"])
        if self.local_only and not is_local(headers.get(b"host", b"").decode("latin-1")):
            raise HTTPProblem(421, "wrong_host", "serve.wrong_host")
        if scope["method"] in ("POST", "DELETE"):
            self.check_origin(headers)
        if scope["method"] != "POST":
            return
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.state.settings.most_body:
            raise self.too_large()
        if EXPLAIN_PATHS.fullmatch(scope["path"]):
            if self.state.keys is not None:
                # Before the body is read: it is held in memory only for clients with a key.
                name = key_name(self.state.keys, headers.get(b"authorization", b"").decode("latin-1"), EXPLAIN)
                scope["state"] |= {"key": name, "key_scope": EXPLAIN}
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise HTTPProblem(415, "media_type", "serve.media_type")
            self.check_capacity()

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Reject requests from pages of other sites, which browsers send without a preflight but mark."""
        elsewhere = headers.get(b"sec-fetch-site", b"") in (b"cross-site", b"same-site")
        if elsewhere and headers.get(b"origin", b"").decode("latin-1") not in self.state.settings.origins:
            raise HTTPProblem(403, "other_site", "serve.other_site")

    def check_capacity(self) -> None:
        if self.state.closing:
            raise HTTPProblem(503, "closing", "serve.closing", headers=retry_after(RETRY_SOON))
        load = self.state.dispatcher.load()
        most = self.state.settings.most_waiting
        if load.waiting_rows + load.running_rows >= most or self.posts > most + self.state.settings.extra_requests:
            raise HTTPProblem(429, "busy", "serve.queue_full", headers=retry_after(RETRY_SOON), rows=most)

    def too_large(self) -> HTTPProblem:
        return HTTPProblem(413, "too_large", "serve.body_too_large", bytes=f"{self.state.settings.most_body:,}")

    async def read_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read a body up to the limit, in limited time, and return a `receive` that gives it once."""
        if scope["method"] != "POST":
            return receive
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.state.settings.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HTTPProblem(499, "gone", "serve.client_gone")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.state.settings.most_body:
                        raise self.too_large()
                    more = message.get("more_body", False)
        except TimeoutError:
            raise HTTPProblem(
                408, "slow", "serve.body_too_slow", headers={"Connection": "close"}, expected=self.state.settings.body_seconds
            ) from None
        return replay_body(b"".join(parts), receive)

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
        self.started, self.status, self.response_started = perf_counter(), 0, False
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        self.id = given.decode() if REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id

    def route(self) -> str:
        """Return the pattern, not the path: a path may hold an id, and there are too many of them."""
        return getattr(self.scope.get("route"), "path", None) or ("page" if self.scope["path"].startswith(PAGE) else "other")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.response_started = message["status"], True
            present = {name for name, _ in message["headers"]}
            added = [*HEADERS, (b"x-request-id", self.id.encode())]
            added += [(b"content-security-policy", POLICY)] if b"content-security-policy" not in present else []
            added += [(b"cache-control", self.caching())] if b"cache-control" not in present else []
            message["headers"] = [*message["headers"], *added]
        await self._send(message)

    def caching(self) -> bytes:
        """Files of the page may be cached if they are revalidated; results may not."""
        return b"no-cache" if self.scope["path"].startswith(PAGE) and self.status < 400 else b"no-store"

    async def send_problem(self, problem: HTTPProblem) -> None:
        if self.response_started:
            return
        body = rendered(problem, self.scope["path"], self.id)
        headers = {"content-type": "application/json", "content-length": str(len(body)), **problem.headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})


def rendered(problem: HTTPProblem, path: str, request_id: str) -> bytes:
    """Return the body of an error: in our shape, or in that of Open Inference under /v2."""
    if path.startswith("/v2"):
        return json.dumps({"error": problem.message}).encode()
    return problem.body(request_id).model_dump_json().encode()


def is_local(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.strip("[]").lower() in LOCAL


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body once, and after that whatever the client does."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
