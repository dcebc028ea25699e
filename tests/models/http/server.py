"""A real server on this machine that behaves as it is told, and counts."""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0.0


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


Behaviour = Callable[[Received], Any]


class RecordingServer:
    """`behaviour` gets each request and gives a Reply, or anything that becomes a JSON body."""

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.behaviour = behaviour
        self.usage: list[Received] = []
        self.connections = 0
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> int:
        return len(self.usage)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def respond(self, request: Received) -> Reply:
        with self._lock:
            self.usage.append(request)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            returned = self.behaviour(request)
        finally:
            with self._lock:
                self._now -= 1
        return returned if isinstance(returned, Reply) else Reply(body=json.dumps(returned).encode())

    def connected(self) -> None:
        with self._lock:
            self.connections += 1


def _handler(far: RecordingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            far.connected()

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(text) if text else None
            reply = far.respond(Received(self.command, self.path, body, {k.lower(): v for k, v in self.headers.items()}))
            try:
                self._send(reply)
            except OSError:
                self.close_connection = True

        do_GET = do_POST

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not reply.drip:
                self.wfile.write(reply.body)
                return
            for k in range(len(reply.body)):
                self.wfile.write(reply.body[k : k + 1])
                time.sleep(reply.drip)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> Iterator[RecordingServer]:
    far = RecordingServer(behaviour, tls)
    try:
        yield far
    finally:
        far.close()


def table(request: Received) -> pd.DataFrame:
    """The frame an MLflow server makes of a request."""
    split = request.body["dataframe_split"]
    return pd.DataFrame(split["data"], columns=split["columns"])
