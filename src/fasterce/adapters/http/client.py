"""Requests to one far side: batches at once but not too many, tried again where that may help, and never for ever.

What the far side answers is believed only as far as it is JSON of a sane size. Sentences about failures name the address
without user, password or query, and never a value that was sent.
"""

import json
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fasterce.errors import InputError, MissingExtraError, ModelError

BUSY = (429, 502, 503, 504)
REFUSED = (401, 403, 404, 405, 407, 410, 415)
MOST_WAIT = 10.0
RESTS = 5.0
SLACK = 5.0
MOST_EXCERPT = 80
MOST_ADDRESS = 80

Part = TypeVar("Part")
Found = TypeVar("Found")
Sent = Callable[[], Iterable[str]]


class FarSideError(ModelError):
    """The model behind HTTP could not be reached, refused, or answered nonsense."""


class _UnavailableError(FarSideError):
    """The far side as a whole does not answer: asking about fewer rows would not help."""


class _BusyError(Exception):
    """Worth another try, after `seconds` if the far side says so."""

    def __init__(self, why: str, seconds: float | None = None) -> None:
        super().__init__(why)
        self.seconds = seconds


@dataclass(frozen=True)
class Request:
    """One request and what may not be repeated of it in a sentence."""

    method: str
    url: str
    body: bytes | None = None
    sent: Sent = tuple
    id: str = ""


Put = Callable[[Part], Request]
Read = Callable[[Any, Part, Request], Found]


@dataclass(frozen=True)
class Manners:
    """How a far side is asked: seconds a request may take, tries again, seconds before the first of them, requests at once,
    bytes of an answer, headers, a file of certificates to trust, and whether proxies of the environment are used."""

    timeout: float = 30.0
    retries: int = 3
    backoff: float = 0.2
    concurrency: int = 4
    most_bytes: int = 64 * 2**20
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | os.PathLike[str] | None = None
    trust_env: bool = False

    def __post_init__(self) -> None:
        for name, least in (("timeout", 1e-3), ("backoff", 0), ("retries", 0), ("concurrency", 1), ("most_bytes", 1)):
            value = getattr(self, name)
            whole = name not in ("timeout", "backoff")
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not value >= least:
                raise InputError(f"{name} must be a {'whole ' if whole else ''}number of at least {least:g}; got {value!r}.")

        for name, value in self.headers.items():
            if not all(isinstance(part, str) and part.isascii() and part.isprintable() for part in (name, value)):
                raise InputError(f"headers must be printable ASCII text; got something else in {name!r:.60}.")

    @property
    def patience(self) -> float:
        """Longer than a request with all its tries can take."""
        return (self.retries + 1) * (2 * self.timeout + MOST_WAIT) + SLACK


class Client:
    """One far side. Connections are opened when first needed, in each process anew, and left behind when pickled."""

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self._connections: dict[int, _Connection] = {}

    def get(self, url: str) -> Any:
        """One parsed answer."""
        return self.ask_each([url], lambda where: Request("GET", where), lambda answer, *_: answer)[0]

    def ask_each(self, parts: Sequence[Part], put: Put[Part], read: Read[Part, Found]) -> list[Found]:
        """`put` each part as a request and `read` its parsed answer: in order, a few at once, until the first failure."""
        connection = self._connection()

        def work(part: Part) -> Found:
            request = put(part)
            return read(connection.ask(request), part, request)

        futures = [connection.workers.submit(work, part) for part in parts]
        try:
            return [self._result(future, futures, connection) for future in futures]
        finally:
            for future in futures:
                future.cancel()

    def _result(self, wanted: Future[Found], futures: list[Future[Found]], connection: "_Connection") -> Found:
        """Waits as long as anything moves; sockets have limits of their own, so standing still this long is a hang."""
        while not wanted.done():
            finished = connection.finished
            done, _ = wait(futures, timeout=self.manners.patience, return_when=FIRST_EXCEPTION)
            failed = next((one for one in done if not one.cancelled() and one.exception()), None)
            if failed is not None:
                return failed.result()
            if not wanted.done() and connection.finished == finished:
                self.close()
                raise _UnavailableError("The far side keeps its connections open without ever answering; gave up on it.")
        return wanted.result()

    def _connection(self) -> "_Connection":
        mine = self._connections.get(os.getpid())
        if mine is None:
            opened = _Connection(self.manners)
            mine = self._connections.setdefault(os.getpid(), opened)
            if mine is not opened:
                opened.close()
        return mine

    def close(self) -> None:
        connection = self._connections.pop(os.getpid(), None)
        if connection is not None:
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"manners": self.manners}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["manners"])  # type: ignore[misc]


class _Connection:
    """What belongs to one process: the pool of connections, the workers, and whether the far side seems to be down.

    Once a request was tried as often as allowed, or the far side refuses everybody, nothing is sent for `RESTS` seconds;
    then a single try decides. A caller that asks again and again about smaller parts is told at once.
    """

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.httpx = _httpx()
        self.http = _open(self.httpx, manners)
        self.workers = ThreadPoolExecutor(manners.concurrency, thread_name_prefix="fasterce-http")
        self.finished = 0
        self.down: tuple[float, str] | None = None

    def close(self) -> None:
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.http.close()

    def ask(self, request: Request) -> Any:
        try:
            answer = self._try_until_answered(request)
            self.down = None
            return answer
        except _UnavailableError as error:
            self.down = (time.monotonic() + RESTS, str(error))
            raise
        finally:
            self.finished += 1

    def _try_until_answered(self, request: Request) -> Any:
        tries = 1 if self._resting(request) else self.manners.retries + 1
        pause = self.manners.backoff
        for turn in range(tries):
            try:
                return self._once(request)
            except _BusyError as busy:
                why, pause_wanted = str(busy), busy.seconds
            if turn == tries - 1:
                break
            # The moment of another try is the only thing random here; no answer depends on it.
            time.sleep(min(pause * random.uniform(0.5, 1.0) if pause_wanted is None else pause_wanted, MOST_WAIT))
            pause *= 2
            if self._resting(request):
                break
        raise _UnavailableError(f"{address(request.url)} {why} (asked {turn + 1} times).")

    def _resting(self, request: Request) -> bool:
        """Whether it was down a moment ago; raises while it is too early to try again."""
        if self.down is None:
            return False
        until, why = self.down
        if time.monotonic() < until:
            raise FarSideError(f"Not asked, since a moment ago: {why}")
        return True

    def _once(self, request: Request) -> Any:
        until = time.monotonic() + self.manners.timeout
        try:
            with self.http.stream(request.method, request.url, content=request.body) as response:
                body = self._read(response, until)
        except self.httpx.TimeoutException:
            raise _BusyError(f"did not answer within {self.manners.timeout:g} s") from None
        except self.httpx.DecodingError:
            raise FarSideError(f"{address(request.url)} sent an answer that cannot be unpacked.") from None
        except self.httpx.RequestError as error:
            if isinstance(error, self.httpx.UnsupportedProtocol):
                raise InputError(f"url must start with http:// or https://; got {address(request.url)!r}.") from None
            raise _BusyError(f"cannot be reached ({type(error).__name__}{_reason(error)})") from None
        return self._judged(response, body, request)

    def _read(self, response: Any, until: float) -> bytes:
        """The body, as long as it is neither too large nor too slow altogether."""
        chunks, size = [], 0
        for chunk in response.iter_bytes():
            size += len(chunk)
            if size > self.manners.most_bytes:
                most = f"{self.manners.most_bytes:,} bytes"
                raise FarSideError(f"{address(str(response.url))} must answer with at most {most}; got more.")
            if time.monotonic() > until:
                raise _BusyError(f"did not finish its answer within {self.manners.timeout:g} s")
            chunks.append(chunk)
        return b"".join(chunks)

    def _judged(self, response: Any, body: bytes, request: Request) -> Any:
        status, where = response.status_code, address(request.url)
        said = "" if 200 <= status < 300 else _said(body, [*request.sent(), *self.manners.headers.values()])
        if status in BUSY:
            raise _BusyError(f"answered {status}{said}", _retry_after(response))
        if 300 <= status < 400:
            to = address(response.headers.get("location", "nowhere"))
            raise _UnavailableError(f"{where} must answer itself; got {status}, a redirection to {to} (a login page?).")
        if status in REFUSED:
            raise _UnavailableError(f"{where} must accept the request; got {status}{said}.")
        if not 200 <= status < 300:
            raise FarSideError(f"{where} must accept the request; got {status}{said}.")
        return self._parsed(body, where, request)

    def _parsed(self, body: bytes, where: str, request: Request) -> Any:
        """JSON without NaN or infinities, or one sentence with the beginning of what came instead."""
        try:
            return json.loads(body, parse_constant=_no_constant)
        except _ConstantError as error:
            raise FarSideError(f"{where} must answer with finite numbers; got {error}.") from None
        except (ValueError, RecursionError):
            said = _said(body, [*request.sent(), *self.manners.headers.values()])
            raise FarSideError(f"{where} must answer with JSON; got something else{said}.") from None


def _httpx() -> Any:
    try:
        return import_module("httpx")
    except ImportError as error:
        raise MissingExtraError("httpx", "http", "A model behind HTTP") from error


def _open(httpx: Any, manners: Manners) -> Any:
    try:
        verify = True if manners.ca_file is None else ssl.create_default_context(cafile=os.fspath(manners.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"ca_file must be a file of certificates; got {manners.ca_file!r} ({error}).") from error
    headers = {"Content-Type": "application/json", "Accept": "application/json", **manners.headers}
    return httpx.Client(
        headers=headers,
        timeout=manners.timeout,
        limits=httpx.Limits(max_connections=manners.concurrency, max_keepalive_connections=manners.concurrency),
        follow_redirects=False,
        trust_env=manners.trust_env,
        verify=verify,
    )


class _ConstantError(Exception):
    """JSON as Python reads it has NaN and infinities; the standard has not."""


def _no_constant(name: str) -> Any:
    raise _ConstantError(name)


def _retry_after(response: Any) -> float | None:
    """Seconds, or a date, as the far side says; None where it says nothing that can be understood."""
    told = response.headers.get("retry-after", "").strip()
    if told.isdecimal():
        return float(told)
    try:
        return max((parsedate_to_datetime(told) - datetime.now(UTC)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _reason(error: Exception) -> str:
    """What the operating system says, without anything of the request."""
    said = str(error).strip()
    return f": {said:.80}" if said and "\n" not in said else ""


def _said(body: bytes, sent: Iterable[str]) -> str:
    """The beginning of an answer for a sentence: no tags, no numbers, nothing that was sent."""
    text = body[:4_000].decode("utf-8", errors="replace")
    for value in sorted({value for value in sent if value.strip()}, key=len, reverse=True):
        for written in {value, json.dumps(value)[1:-1]}:
            text = re.sub(rf"(?<!\w){re.escape(written)}(?!\w)", "…", text)
    text = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL | re.IGNORECASE)
    text = re.sub(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?", "#", text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f": {text[:MOST_EXCERPT]}{'…' if len(text) > MOST_EXCERPT else ''}" if text else " and an empty body"


def address(url: str) -> str:
    """An address for a sentence: without user, password, query or fragment."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    start = f"{parts.scheme}://{parts.hostname}{port}" if parts.hostname else ""
    return f"{start}{parts.path}"[:MOST_ADDRESS] or "nowhere"


def check_url(url: Any) -> str:
    """An http or https address, or one sentence."""
    readable = isinstance(url, str) and not any(c.isspace() for c in url)
    try:
        parts = urlsplit(url) if readable else None
        usable = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"url must be an address like http://host:port/…; got {address(url) if readable else url!r}.")
    return str(url)
