"""The service as its users meet it: `python -m fasterce serve …` on a free port, asked over HTTP, killed by signals."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

import httpx

from tests.serve.models import as_json, refused

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src"
PSEUDONYM_KEY = "a key for tests, long enough to be one"
LISTENS = re.compile(r"Listening on (http://\S+)")
ROWS = as_json(refused(64))
PATIENCE = 60.0
# The machine of the tests is busy with other things.
NOISE = 1.0


def row(number: int = 0, mood: str = "calm", **changed: Any) -> dict[str, Any]:
    return {**ROWS[number % len(ROWS)], "mood": mood, **changed}


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(SOURCE), str(TESTS.parent)])
    return {**os.environ, "PYTHONPATH": path, "FASTERCE_PSEUDONYM_KEY": PSEUDONYM_KEY, "OMP_NUM_THREADS": "1", **more}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "fasterce", "serve", *map(str, arguments)]


class Service:
    """One server; `said` is what it has written on stderr so far."""

    def __init__(
        self, folder: Path, *arguments: object, records: str | None = None, model: str | None = "tests.serve.models:moody"
    ):
        self.folder, self.said = folder, ""
        self.database = folder / "records.db"
        kept = records or f"sqlite:///{self.database}"
        models = ["--model", model] if model else []
        self.process = subprocess.Popen(
            command(*arguments, *models, "--port", 0, "--records", kept),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=folder,
        )
        self.listening, self.url = Event(), ""
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()
        assert self.listening.wait(PATIENCE), self.said
        assert self.url, self.said
        self.client, self.stranger = self._client(), self._client(max_keepalive_connections=0)

    def _client(self, **limits: int) -> httpx.Client:
        """`stranger` has a new connection for everything it asks, and no key."""
        unlimited = httpx.Limits(max_connections=None, **limits)
        return httpx.Client(base_url=self.url, timeout=PATIENCE, limits=unlimited, trust_env=False)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            if found := LISTENS.search(line):
                self.url = found[1]
                self.listening.set()
        self.listening.set()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def explain(self, *rows: dict[str, Any], headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        return self.client.post("/v1/explain", json={"rows": rows, **options}, headers=headers)

    def afresh(self, *rows: dict[str, Any], **options: Any) -> httpx.Response:
        """On a connection of its own."""
        headers = {name: value for name, value in self.client.headers.items() if name == "authorization"}
        return self.stranger.post("/v1/explain", json={"rows": rows, **options}, headers=headers)

    def at_once(self, *bodies: dict[str, Any]) -> list[httpx.Response]:
        with ThreadPoolExecutor(max(len(bodies), 1)) as threads:
            return list(threads.map(lambda body: self.client.post("/v1/explain", json=body), bodies))

    def raw(self, sent: bytes, seconds: float = 5.0) -> bytes:
        """What comes back to these very bytes until the server closes or is quiet."""
        received = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(sent)
            with suppress(TimeoutError, ConnectionError):
                while part := connection.recv(1 << 16):
                    received += part
        return received

    def family(self) -> list[int]:
        """The processes it has started, and theirs."""
        return descendants(self.process.pid)

    def workers(self) -> list[int]:
        """All but the front and the process that makes workers."""
        spawner = children(self.process.pid)
        return [pid for one in spawner for pid in children(one)]

    def metric(self, name: str) -> float:
        text = self.client.get("/metrics").text
        return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))

    def whole(self, seconds: float = PATIENCE) -> None:
        """Until an worker and the spare are there, and nobody is being answered."""
        wait_for(lambda: self.metric('fasterce_workers{state="spare"}') and not self.metric("fasterce_rows{"), seconds)

    def lines(self) -> list[dict[str, Any]]:
        """The log."""
        return [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]

    def end(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal and wait: the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.reader.join(5)
        return self.process.returncode


class Load:
    """Questions asked one after the other by several clients until it is stopped; each on a connection of its own."""

    def __init__(self, service: Service, clients: int = 4, **options: Any) -> None:
        self.service, self.options = service, options
        self.stopped = Event()
        self.answers: list[tuple[float, float, int, dict[str, Any]]] = []
        self.refused = 0
        self.threads = ThreadPoolExecutor(clients)
        self.clients: list[Future[None]] = [self.threads.submit(self._ask, number) for number in range(clients)]

    def _ask(self, number: int) -> None:
        while not self.stopped.is_set():
            began = monotonic()
            try:
                answer = self.service.afresh(row(number), deadline_ms=30_000, **self.options)
            except httpx.TransportError:
                self.refused += 1
                sleep(0.05)
            else:
                self.answers.append((began, monotonic(), answer.status_code, answer.json()))
            number += 7

    def codes(self) -> dict[int, int]:
        found = [code for _, _, code, _ in self.answers]
        return {code: found.count(code) for code in set(found)}

    def stop(self) -> None:
        self.stopped.set()
        for client in self.clients:
            client.result(PATIENCE)
        self.threads.shutdown()


@contextmanager
def under_load(service: Service, clients: int = 4, **options: Any) -> Iterator[Load]:
    load = Load(service, clients, **options)
    try:
        wait_for(lambda: len(load.answers) >= clients)
        yield load
    finally:
        load.stop()


@contextmanager
def serving(folder: Path, *arguments: object, **options: Any) -> Iterator[Service]:
    service = Service(folder, *arguments, **options)
    try:
        yield service
    finally:
        service.end(signal.SIGKILL)
        service.client.close()
        service.stranger.close()


def wait_for(there: Callable[[], Any], seconds: float = PATIENCE) -> None:
    until = monotonic() + seconds
    while not there():
        assert monotonic() < until, "it did not happen"
        sleep(0.02)


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(one) for one in task.read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    return [found for child in children(pid) for found in (child, *descendants(child))]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def libraries(pid: int) -> str:
    """The files a process has in memory."""
    return Path(f"/proc/{pid}/maps").read_text()
