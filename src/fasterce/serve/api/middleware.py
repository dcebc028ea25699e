"""Where every request comes in and goes out: its id, limits that need no reading, headers, the log line and the count."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from time import perf_counter
from typing import Any
from uuid import uuid4

from fasterce.serve.app import logs
from fasterce.serve.app.house import EXPLAIN, House, whose
from fasterce.serve.app.problems import RETRY_SOON, Problem, retry_after
from fasterce.serve.settings import LOCAL

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
READ_SECONDS = 10.0
# Requests being read beyond those whose rows may wait: each may hold a body in memory.
MORE_ASKING = 32
ASKING = re.compile(r"/v1/explain|/v2/models/[^/]+(/versions/[^/]+)?/infer")
PAGE = "/page/"
QUIET = ("/v2/health/", "/metrics", PAGE)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
POLICY = b"; ".join(
    (
        *(b"default-src 'self'", b"img-src 'self' data:", b"object-src 'none'", b"base-uri 'none'", b"form-action 'self'"),
        b"frame-ancestors 'none'",
    )
)


class Gate:
    """Around all routes. Nothing gets past it as a stack trace."""

    def __init__(self, app: App, house: House) -> None:
        self.app, self.house = app, house
        self.local_only = house.settings.host in LOCAL
        self.asking = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        visit = Visit(scope, send)
        asks = scope["method"] == "POST"
        self.asking += asks
        self.house.metrics.in_flight.inc()
        try:
            self.look(scope)
            await self.app(scope, await self.whole_body(scope, receive), visit.send)
        except Problem as problem:
            await visit.refuse(problem)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logs.say("unforeseen", level=40, exc_info=error, request_id=visit.id)
            await visit.refuse(Problem(500, "unforeseen", "An unforeseen error; the log has it under this request id."))
        finally:
            self.asking -= asks
            self.house.metrics.in_flight.dec()
            self.write_down(visit)

    def look(self, scope: Scope) -> None:
        """What can be refused before anything is read."""
        headers = dict(scope["headers"])
        if self.local_only and not is_local(headers.get(b"host", b"").decode("latin-1")):
            raise Problem(
                421, "wrong_host", "This server answers on this machine alone; expected Host localhost or 127.0.0.1."
            )
        if scope["method"] in ("POST", "DELETE"):
            self.look_whence(headers)
        if scope["method"] != "POST":
            return
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.house.settings.most_body:
            raise self.too_large()
        if ASKING.fullmatch(scope["path"]):
            if self.house.keys is not None:
                # Strangers get no place among those whose bodies are waited for.
                whose(self.house.keys, headers.get(b"authorization", b"").decode("latin-1"), EXPLAIN)
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                raise Problem(415, "media_type", "Expected Content-Type application/json.")
            self.admit()

    def look_whence(self, headers: Mapping[bytes, bytes]) -> None:
        """A page of another site can send what needs no preflight, without seeing the answer; browsers say so."""
        elsewhere = headers.get(b"sec-fetch-site", b"") in (b"cross-site", b"same-site")
        if elsewhere and headers.get(b"origin", b"").decode("latin-1") not in self.house.settings.origins:
            raise Problem(403, "other_site", "Pages of other sites may not ask here; see --origin.")

    def admit(self) -> None:
        if self.house.closing:
            raise Problem(503, "closing", "The server is closing.", headers=retry_after(RETRY_SOON))
        load = self.house.desk.load()
        most = self.house.settings.most_waiting
        if load.waiting_rows + load.running_rows >= most or self.asking > most + MORE_ASKING:
            raise Problem(429, "busy", f"{most} rows are waiting already; come again.", headers=retry_after(RETRY_SOON))

    def too_large(self) -> Problem:
        return Problem(413, "too_large", f"Expected a body of at most {self.house.settings.most_body:,} bytes.")

    async def whole_body(self, scope: Scope, receive: Receive) -> Receive:
        """Read up to the limit, in limited time, before anybody waits for it."""
        if scope["method"] != "POST":
            return receive
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(READ_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(499, "gone", "The client is gone.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.house.settings.most_body:
                        raise self.too_large()
                    more = message.get("more_body", False)
        except TimeoutError:
            sentence = f"Expected the whole body within {READ_SECONDS:g} s."
            raise Problem(408, "slow", sentence, headers={"Connection": "close"}) from None
        return replayed(b"".join(parts), receive)

    def write_down(self, visit: "Visit") -> None:
        seconds, metrics = perf_counter() - visit.started, self.house.metrics
        route = visit.route()
        metrics.requests.labels(route, visit.status).inc()
        metrics.seconds.labels(route).observe(seconds)
        if not visit.scope["path"].startswith(QUIET):
            facts = visit.scope["state"].get("facts", {})
            logs.say("request", request_id=visit.id, route=route, method=visit.scope["method"], status=visit.status,
                     ms=round(seconds * 1e3, 1), key=visit.scope["state"].get("key"), **facts)  # fmt: skip


class Visit:
    """One request from coming to going."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self._send = scope, send
        self.started, self.status, self.begun = perf_counter(), 0, False
        given = dict(scope["headers"]).get(b"x-request-id", b"")
        self.id = given.decode() if REQUEST_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = self.id

    def route(self) -> str:
        """The pattern, not the path: a path may hold an id, and there are too many of them."""
        return getattr(self.scope.get("route"), "path", None) or ("page" if self.scope["path"].startswith(PAGE) else "other")

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            there = {name for name, _ in message["headers"]}
            added = [*HEADERS, (b"x-request-id", self.id.encode())]
            added += [(b"content-security-policy", POLICY)] if b"content-security-policy" not in there else []
            added += [(b"cache-control", self.caching())] if b"cache-control" not in there else []
            message["headers"] = [*message["headers"], *added]
        await self._send(message)

    def caching(self) -> bytes:
        """The page's files may be kept if they are asked for again; answers are nobody's to keep."""
        return b"no-cache" if self.scope["path"].startswith(PAGE) and self.status < 400 else b"no-store"

    async def refuse(self, problem: Problem) -> None:
        if self.begun:
            return
        body = rendered(problem, self.scope["path"], self.id)
        headers = {"content-type": "application/json", "content-length": str(len(body)), **problem.headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": problem.status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})


def rendered(problem: Problem, path: str, request_id: str) -> bytes:
    """Our shape, or that of Open Inference under /v2."""
    if path.startswith("/v2"):
        return json.dumps({"error": problem.message}).encode()
    return problem.body(request_id).model_dump_json().encode()


def is_local(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name.strip("[]").lower() in LOCAL


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, as if it came now; after that whatever the client does."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
