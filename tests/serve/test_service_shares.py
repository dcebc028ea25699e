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
    sent, headers = (
        json.dumps(body),
        {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {}),
    )
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
def attacked(service: Service, path: bytes) -> Iterator[list[int]]:
    """Connections without a key that announce a body and send a single byte of it, opened again when they are closed; the
    statuses they get."""
    stopped = threading.Event()
    statuses: list[int] = []
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
                        if received := connection.recv(4096):
                            # A response may come in parts.
                            if received.startswith(b"HTTP/1.1 "):
                                statuses.append(int(received[9:12]))
                            continue
                    except ConnectionError:
                        pass
                    connection.close()
                    del opened[connection]
            sleep(0.02)

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        wait_for(lambda: len(opened) >= STRANGERS and len(statuses) >= STRANGERS)
        yield statuses
    finally:
        stopped.set()
        thread.join()
        for connection in opened:
            connection.close()


@pytest.mark.parametrize(
    ("path", "status"), [(b"/v1/explain", 401), (b"/v2/models/moody/infer", 401), (b"/no/such/path", 404)]
)
def test_strangers_cannot_lock_out_clients_with_keys(keyed: tuple[Service, list[str]], path: bytes, status: int) -> None:
    """Every stranger is refused before its body comes and none takes the place of a client; what share of the throughput
    clients keep, `make bench-serve` says."""
    service, tokens = keyed
    refused = service.metric("fasterce_refused_total{")
    with attacked(service, path) as first_answers:
        beside = measured(service, tokens[:CLIENTS])
        # Of all requests, only this one of ours is under way once the clients have their answers.
        wait_for(lambda: service.metric("fasterce_requests_in_flight ") == 1)
    assert {code for code, _ in beside} == {200}
    assert len(beside) >= 2 * CLIENTS
    assert set(first_answers) == {status}
    assert len(first_answers) >= STRANGERS
    assert service.metric("fasterce_refused_total{") - refused >= STRANGERS
    assert not service.metric('fasterce_refused_total{key="",reason="busy"')


def test_a_stranger_is_refused_before_its_body_and_its_place_is_free(keyed: tuple[Service, list[str]]) -> None:
    service, _ = keyed
    announced = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 99999999\r\n\r\n"
    wrong = announced[:-2] + b"Authorization: Bearer fce_" + b"a" * 43 + b"\r\n\r\n"
    for sent in (announced, wrong):
        # Neither the type of the body nor its length is looked at before the key.
        assert service.raw(sent % b"/v1/explain", seconds=1.0).startswith(b"HTTP/1.1 401")
        assert service.raw(sent % b"/v2/models/moody/infer", seconds=1.0).startswith(b"HTTP/1.1 401")


def test_one_with_large_requests_and_no_key_leaves_room_for_other_connections(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, f"moody={folder}", "--most-waiting", 16) as service:
        service.whole()
        large = {"rows": LARGE, "deadline_ms": 60_000, "keep": False}
        with asked_by(service, [""], large) as heavy:
            wait_for(lambda: service.metric("fasterce_rows{"))
            beside = measured(service, [""] * CLIENTS)
        assert {status for status, _ in beside} == {200}
        assert {status for status, _ in heavy[0]} == {200}


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


def test_a_probe_gets_in_where_clients_hold_all_connections(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, f"moody={folder}", "--most-connections", 20) as service:
        idle = [HTTPConnection("127.0.0.1", service.port) for _ in range(20)]
        for one in idle:
            one.request("GET", "/v1/schema")
            assert one.getresponse().read()
        assert service.stranger.get("/v2/health/live").status_code == 200
        assert service.afresh(row()).status_code == 200
        # The other ones are still served on the connections they have.
        idle[-1].request("GET", "/v1/schema")
        assert idle[-1].getresponse().status == 200
        for one in idle:
            one.close()


@pytest.mark.parametrize("options", [{}, {"n": 10, "method": "all"}], ids=["default", "all, n=10"])
def test_single_rows_beside_one_with_very_large_requests(keyed: tuple[Service, list[str]], options: dict[str, Any]) -> None:
    """Nobody is refused, and single rows are answered while the large request waits; how soon, `workers/test_fairness.py`
    and `make bench-serve` say."""
    service, tokens = keyed
    large = {"rows": LARGE, "deadline_ms": 60_000, "keep": False, **options}
    with asked_by(service, tokens[CLIENTS:], large) as heavy:
        sleep(0.2)
        beside = measured(service, tokens[:CLIENTS])
    assert {status for status, _ in beside} == {200}
    assert {status for status, _ in heavy[0]} == {200}
    assert slowest(beside) < min(seconds for _, seconds in heavy[0])
