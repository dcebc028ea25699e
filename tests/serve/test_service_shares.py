"""Clients beside others who ask too much, or only pretend to ask: strangers without a key, and one with large requests."""

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from fasterce.serve.keys import SCOPES, new_key
from tests.serve.service import Service, row, serving, wait_for

SECONDS = 2.0
# The machine of the tests does other things as well: what holds in one of these rounds is not due to the service.
ROUNDS = 4
STRANGERS = 180
CLIENTS = 8
ANNOUNCED = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
LARGE = [row(k) for k in range(256)]


@pytest.fixture(scope="module")
def keyed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, list[str]]]:
    where = tmp_path_factory.mktemp("keyed")
    everything, *tokens = [new_key(where / "keys.json", f"client {k}", SCOPES) for k in range(CLIENTS + 2)]
    with serving(where, f"moody={folder}", "--keys", where / "keys.json", "--log-level", "warning") as started:
        started.client.headers["authorization"] = f"Bearer {everything}"
        started.whole()
        yield started, tokens


def asking(service: Service, token: str, body: dict[str, Any], stopped: threading.Event) -> list[tuple[int, float]]:
    """Ask again and again over one connection: status and seconds of each answer."""
    answers: list[tuple[int, float]] = []
    sent, headers = json.dumps(body), {"content-type": "application/json", "authorization": f"Bearer {token}"}
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    while not stopped.is_set():
        began = monotonic()
        connection.request("POST", "/v1/explain", sent, headers)
        response = connection.getresponse()
        response.read()
        answers.append((response.status, monotonic() - began))
    connection.close()
    return answers


@contextmanager
def asked_by(service: Service, tokens: list[str], *bodies: dict[str, Any]) -> Iterator[list[list[tuple[int, float]]]]:
    """Clients that ask while the block runs, each with its key; their answers once it has ended."""
    answers: list[list[tuple[int, float]]] = []
    stopped = threading.Event()
    with ThreadPoolExecutor(len(bodies)) as threads:
        futures = [threads.submit(asking, service, *one, stopped) for one in zip(tokens, bodies, strict=True)]
        try:
            yield answers
        finally:
            stopped.set()
            answers.extend(future.result(60) for future in futures)


def singles() -> list[dict[str, Any]]:
    return [{"rows": [row(k)], "deadline_ms": 10_000} for k in range(CLIENTS)]


def measured(service: Service, tokens: list[str]) -> list[tuple[int, float]]:
    with asked_by(service, tokens, *singles()) as answers:
        sleep(SECONDS)
    return [one for client in answers for one in client]


def slowest(answers: list[tuple[int, float]]) -> float:
    """The 99th percentile of the seconds."""
    return sorted(seconds for _, seconds in answers)[int(0.99 * (len(answers) - 1))]


@contextmanager
def attacked(service: Service, path: bytes) -> Iterator[None]:
    """Connections without a key that announce a body and send a single byte of it, opened again when they are closed."""
    stopped = threading.Event()
    opened: dict[socket.socket, float] = {}

    def attack() -> None:
        while not stopped.is_set():
            while len(opened) < STRANGERS and not stopped.is_set():
                with suppress(OSError):
                    connection = socket.create_connection(("127.0.0.1", service.port))
                    connection.sendall(ANNOUNCED % path)
                    connection.setblocking(False)
                    opened[connection] = monotonic()
            for connection in list(opened):
                with suppress(BlockingIOError):
                    try:
                        if connection.recv(4096):
                            continue
                    except ConnectionError:
                        pass
                    connection.close()
                    del opened[connection]
            sleep(0.02)

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        wait_for(lambda: len(opened) >= STRANGERS)
        yield
    finally:
        stopped.set()
        thread.join()
        for connection in opened:
            connection.close()


@pytest.mark.parametrize("path", [b"/v1/explain", b"/v2/models/moody/infer", b"/no/such/path"])
def test_strangers_cannot_lock_out_clients_with_keys(keyed: tuple[Service, list[str]], path: bytes) -> None:
    service, tokens = keyed
    shares = []
    for _ in range(ROUNDS):
        quiet = measured(service, tokens[:CLIENTS])
        with attacked(service, path):
            beside = measured(service, tokens[:CLIENTS])
        assert {status for status, _ in beside} == {200}
        shares.append(len(beside) / len(quiet))
        if shares[-1] >= 0.9:
            break
    assert max(shares) >= 0.9, shares


def test_strangers_are_cut_off_when_there_are_too_many(folder: Path, tmp_path: Path) -> None:
    token = new_key(tmp_path / "keys.json", "a", SCOPES)
    limits = ("--most-connections", 40, "--most-connections-per-address", 30)
    with serving(tmp_path, f"moody={folder}", "--keys", tmp_path / "keys.json", *limits) as service:
        service.client.headers["authorization"] = f"Bearer {token}"
        assert service.explain(row()).status_code == 200
        silent = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(60)]
        try:
            for k in range(10):
                assert service.explain(row(k)).status_code == 200
                assert service.afresh(row(k)).status_code == 200
            assert service.metric("fasterce_connections ") <= 31
            assert service.metric("fasterce_connections_closed") >= 30
        finally:
            for connection in silent:
                connection.close()


@pytest.mark.parametrize("options", [{}, {"n": 10}], ids=["default", "n=10"])
def test_single_rows_beside_one_with_very_large_requests(keyed: tuple[Service, list[str]], options: dict[str, Any]) -> None:
    """No refusals, and the slowest at most three times as slow as without it."""
    service, tokens = keyed
    large = {"rows": LARGE, "deadline_ms": 60_000, "keep": False, **options}
    ratios = []
    for _ in range(ROUNDS):
        quiet = measured(service, tokens[:CLIENTS])
        with asked_by(service, tokens[CLIENTS:], large) as heavy:
            sleep(0.2)
            beside = measured(service, tokens[:CLIENTS])
        assert {status for status, _ in beside} == {200}
        assert {status for status, _ in heavy[0]} == {200}
        ratios.append(slowest(beside) / slowest(quiet))
        if ratios[-1] <= 3.0:
            break
    assert min(ratios) <= 3.0, ratios
