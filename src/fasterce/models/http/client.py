"""Requests to one server: several batches at once, repeated where that may help, with limits on time and size.

Only JSON of a limited size is accepted. Messages about failures name the address without user, password or query, and never
a value that was sent.
"""

import json
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from fasterce.errors import InputError, ModelError, Problem, import_extra, problem_of
from fasterce.options import Checked, Kind, Option, option

if TYPE_CHECKING:
    import httpx

BUSY = (429, 502, 503, 504)
REFUSED = (401, 403, 404, 405, 407, 410, 415)
# Characters shown of a response and of an address.
MOST_EXCERPT = 80
MOST_ADDRESS = 80

Part = TypeVar("Part")
Found = TypeVar("Found")
Sent = Callable[[], Iterable[str]]


class RemoteModelError(ModelError):
    """A model behind HTTP could not be reached, refused the request, or returned an invalid response."""


class _UnavailableError(RemoteModelError):
    """The server as a whole does not respond: a request with fewer rows would not help."""


class _BusyError(RemoteModelError):
    """The request may be repeated, after `pause` seconds if the server sets a time."""

    pause: float | None = None


@dataclass(frozen=True)
class Request:
    """One request; `sent` returns the text that must not appear in a message."""

    method: str
    url: str
    body: bytes | None = None
    sent: Sent = tuple
    id: str = ""


Put = Callable[[Part], Request]
Read = Callable[[Any, Part, Request], Found]


@dataclass(frozen=True)
class ConnectionOptions(Checked):
    """How a server is called."""

    timeout: float = option(30.0, "Seconds a request may take.", minimum=1e-3)
    retries: int = option(3, "How often a request is repeated if the server is busy, unreachable or too slow.", minimum=0)
    backoff: float = option(0.2, "Seconds before the first repetition; doubled each time.", minimum=0)
    longest_wait: float = option(10.0, "Most seconds before a repetition, whatever `Retry-After` says.", minimum=0)
    rest: float = option(
        5.0, "Seconds for which nothing is sent to a server that stayed unavailable or refuses all requests.", minimum=0
    )
    slack: float = option(5.0, "Seconds beyond all timeouts and waits after which a call counts as hanging.", minimum=0)
    concurrency: int = option(4, "Requests at once.", minimum=1)
    most_bytes: int = option(64 * 2**20, "The largest response that is read.", minimum=1)
    headers: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"option": Option("Sent with every request; never shown.", Kind.OBJECT)}
    )
    ca_file: str | os.PathLike[str] | None = option(
        None, "File of certificates to trust instead of the usual ones.", kind=Kind.OBJECT
    )
    trust_env: bool = option(False, "Whether proxies of the environment are used.")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "headers", dict(self.headers or {}))
        for name, value in self.headers.items():
            if not all(isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)):
                raise InputError("models.http_header", option="headers", name=name)

    @property
    def patience(self) -> float:
        """Upper bound in seconds on a request with all its repetitions."""
        return (self.retries + 1) * (2 * self.timeout + self.longest_wait) + self.slack


class Client:
    """A client of one server. Connections are opened when first needed, per process, and not pickled."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._connections: dict[int, _Connection] = {}

    def get(self, url: str) -> Any:
        """Return one parsed response."""
        return self.send_each([url], lambda where: Request("GET", where), lambda response, *_: response)[0]

    def send_each(self, parts: Sequence[Part], put: Put[Part], read: Read[Part, Found]) -> list[Found]:
        """Make each part a request with `put` and `read` its parsed response: in order, a few at once, until one fails."""
        connection = self._connection()

        def work(part: Part) -> Found:
            request = put(part)
            return read(connection.send(request), part, request)

        futures = [connection.workers.submit(work, part) for part in parts]
        waiting = set(futures)
        try:
            while waiting:
                finished = connection.finished
                done, waiting = wait(waiting, self.options.patience, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                # Sockets have time limits: if no request finishes for this long, it hangs.
                if waiting and connection.finished == finished:
                    self.close()
                    raise _UnavailableError("models.http_hangs")
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _connection(self) -> "_Connection":
        mine = self._connections.get(os.getpid())
        # If two threads arrive first at the same time, one client is discarded: a connection opens only when it is used.
        return mine or self._connections.setdefault(os.getpid(), _Connection(self.options))

    def close(self) -> None:
        connection = self._connections.pop(os.getpid(), None)
        if connection is not None:
            connection.close()

    def __reduce__(self) -> tuple[type["Client"], tuple[ConnectionOptions]]:
        return Client, (self.options,)


class _Connection:
    """The state of one process: the pool of connections, the threads, and whether the server seems to be down.

    Once a request was repeated as often as allowed, or the server refuses all requests, nothing is sent for `rest` seconds;
    then a single request tests the server. A caller that sends smaller parts in the meantime fails at once.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.httpx = import_extra("httpx", "http", "A model behind HTTP")
        self.http = _open(self.httpx, options)
        self.workers = ThreadPoolExecutor(options.concurrency, thread_name_prefix="fasterce-http")
        self.finished = 0
        self.down: tuple[float, Problem] | None = None

    def close(self) -> None:
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.http.close()

    def send(self, request: Request) -> Any:
        """Return the parsed response to a request, repeated where that may help."""
        try:
            response = self._send_with_retries(request)
            self.down = None
            return response
        except _UnavailableError as error:
            self.down = (time.monotonic() + self.options.rest, error.problem)
            raise
        finally:
            self.finished += 1

    def _send_with_retries(self, request: Request) -> object:
        tries = 1 if self._resting() else self.options.retries + 1
        pause = self.options.backoff
        for turn in range(1, tries + 1):
            try:
                return self._once(request)
            except _BusyError as busy:
                cause, wanted = busy.problem, busy.pause
            if turn < tries:
                # Only the pause is random; no result depends on it.
                time.sleep(min(pause * random.uniform(0.5, 1.0) if wanted is None else wanted, self.options.longest_wait))
                pause *= 2
                if self._resting():
                    break
        raise _UnavailableError("models.http_unavailable", url=address(request.url), cause=cause, count=turn)

    def _resting(self) -> bool:
        """Return whether the server was down a moment ago; raise while it is too early to try again."""
        if self.down is None:
            return False
        until, cause = self.down
        if time.monotonic() < until:
            raise RemoteModelError("models.http_not_sent", cause=cause)
        return True

    def _once(self, request: Request) -> object:
        until = time.monotonic() + self.options.timeout
        try:
            with self.http.stream(request.method, request.url, content=request.body) as response:
                body = self._read(response, until)
        except self.httpx.TimeoutException:
            raise _BusyError("models.http_timeout", seconds=self.options.timeout) from None
        except self.httpx.DecodingError:
            raise RemoteModelError("models.http_encoding", url=address(request.url)) from None
        except self.httpx.RequestError as error:
            raise _BusyError("models.http_unreachable", cause=problem_of(error)) from None
        return self._parse(response, body, request)

    def _read(self, response: "httpx.Response", until: float) -> bytes:
        """Return the body unless it is too large or too slow."""
        body, most = bytearray(), self.options.most_bytes
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > most:
                raise RemoteModelError("models.http_too_large", url=address(str(response.url)), most=f"{most:,}")
            if time.monotonic() > until:
                raise _BusyError("models.http_slow", seconds=self.options.timeout)
        return bytes(body)

    def _parse(self, response: "httpx.Response", body: bytes, request: Request) -> object:
        """Return the JSON of a successful response, without NaN or infinities."""
        status, url = response.status_code, address(request.url)

        def excerpt() -> str:
            return _excerpt(body, [*request.sent(), *self.options.headers.values()])

        def not_finite(constant: str) -> NoReturn:
            raise RemoteModelError("models.http_not_finite", url=url, received=constant)

        if 300 <= status < 400:
            to = address(response.headers.get("location", "nowhere"))
            raise _UnavailableError("models.http_redirected", url=url, received=status, to=to)
        if status in BUSY:
            busy = _BusyError("models.http_busy", received=status, excerpt=excerpt())
            busy.pause = _retry_after(response)
            raise busy
        if not 200 <= status < 300:
            kind = _UnavailableError if status in REFUSED else RemoteModelError
            raise kind("models.http_refused", url=url, received=status, excerpt=excerpt())
        try:
            return json.loads(body, parse_constant=not_finite)
        except (ValueError, RecursionError):
            raise RemoteModelError("models.http_not_json", url=url, excerpt=excerpt()) from None


def _open(module: ModuleType, options: ConnectionOptions) -> "httpx.Client":
    try:
        verify = True if options.ca_file is None else ssl.create_default_context(cafile=os.fspath(options.ca_file))
    except (OSError, ssl.SSLError) as error:
        cause = problem_of(error)
        raise InputError("models.http_certificates", option="ca_file", received=options.ca_file, cause=cause) from error
    headers = {"Content-Type": "application/json", "Accept": "application/json", **options.headers}
    client: httpx.Client = module.Client(
        headers=headers,
        timeout=options.timeout,
        limits=module.Limits(max_connections=options.concurrency, max_keepalive_connections=options.concurrency),
        follow_redirects=False,
        trust_env=options.trust_env,
        verify=verify,
    )
    return client


def _retry_after(response: "httpx.Response") -> float | None:
    """Return the seconds until the time the server names; None where it names none."""
    after = response.headers.get("retry-after", "").strip()
    if after.isdecimal():
        return float(after)
    try:
        return max((parsedate_to_datetime(after) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _excerpt(body: bytes, sent: Iterable[str]) -> str:
    """Return the beginning of a response for a message: no tags, no numbers, nothing that was sent."""
    text = body[:4_000].decode("utf-8", errors="replace")
    for value in sorted({value for value in sent if value.strip()}, key=len, reverse=True):
        for written in {value, json.dumps(value)[1:-1]}:
            text = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", "…", text)
    text = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    text = re.sub(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?", "#", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text[:MOST_EXCERPT] + ("…" if len(text) > MOST_EXCERPT else "") if text else "an empty body"


def address(url: str) -> str:
    """Return an address for a message: without user, password, query or fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    start = f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else ""
    return f"{start}{parts.path}"[:MOST_ADDRESS] or "nowhere"


def check_url(url: object) -> str:
    """Return an http or https address; anything else is an error."""
    is_text = isinstance(url, str) and not any(c.isspace() for c in url)
    with suppress(ValueError):
        parts = urlsplit(str(url))
        if is_text and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return str(url)
    raise InputError("models.http_url", option="url", received=address(str(url)) if is_text else url)
