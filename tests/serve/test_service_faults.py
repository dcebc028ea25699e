"""Too many questions, models that hang, raise, lie or die, workers that are killed, records that cannot be kept."""

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest

from tests.serve.service import NOISE, Service, alive, row, serving, under_load, wait_for

FEW = 8


@pytest.fixture(scope="module")
def few(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server in which eight rows may wait."""
    where = tmp_path_factory.mktemp("few")
    with serving(where, f"moody={folder}", "--most-rows", FEW, "--most-waiting", FEW) as started:
        started.whole()
        yield started


@pytest.fixture(autouse=True)
def rested(few: Service) -> None:
    few.whole()


@pytest.mark.parametrize("mood", ["raises", "nan", "shape", "count", "lies", "eats"])
def test_a_model_that_fails_is_the_status_of_its_row(few: Service, mood: str) -> None:
    answer = few.explain(row(0), row(1, mood), row(2))
    assert answer.status_code == 200
    records = answer.json()["records"]
    assert [one["status"] for one in records] == ["found", "model_error", "found"]
    assert records[1]["reason"]
    assert "Traceback" not in answer.text


def test_what_is_too_much_is_sent_away_at_once_and_health_goes_on(few: Service) -> None:
    with ThreadPoolExecutor(FEW) as threads:
        hanging = [threads.submit(few.explain, row(k, "hangs"), deadline_ms=2500) for k in range(FEW)]
        wait_for(lambda: few.metric("fasterce_rows{") >= FEW, 2.0 + NOISE)
        times, answers = [], []
        for _ in range(10):
            began = monotonic()
            answers.append(few.explain(row()))
            times.append(monotonic() - began)
        began = monotonic()
        assert few.client.get("/v2/health/live").status_code == 200
        assert few.client.get("/v2/health/ready").status_code == 200
        assert monotonic() - began < 0.2 + NOISE
        assert [answer.status_code for answer in answers] == [429] * 10
        assert all(1 <= int(answer.headers["retry-after"]) <= 10 for answer in answers)
        assert sorted(times)[len(times) // 2] < 0.05 + 0.1 * NOISE
        assert [one.result().status_code for one in hanging] == [504] * FEW
    began = monotonic()
    assert few.explain(row()).status_code == 200
    assert monotonic() - began < 2.0 + NOISE


def test_a_hanging_model_is_late_in_time_and_the_next_is_answered(few: Service) -> None:
    before = set(few.workers())
    began = monotonic()
    answer = few.explain(row(mood="hangs"), deadline_ms=500)
    took = monotonic() - began
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "late")
    assert 0.5 <= took < 0.75 + NOISE
    began = monotonic()
    assert few.explain(row()).status_code == 200
    assert monotonic() - began < 1.0 + NOISE
    few.whole()
    assert len(before & set(few.workers())) == 1
    assert len(few.workers()) == 2


def test_a_question_that_kills_its_engine_is_refused_and_its_company_answered(few: Service) -> None:
    moods = ["calm", "killed", "calm", "calm"]
    answers = few.at_once(*({"rows": [row(k, mood)], "deadline_ms": 30_000} for k, mood in enumerate(moods)))
    assert [one.status_code for one in answers] == [200, 503, 200, 200]
    assert answers[1].json()["error"]["code"] == "worker_lost"
    assert int(answers[1].headers["retry-after"]) >= 1


def test_engines_killed_under_load_cost_no_answer(few: Service) -> None:
    with under_load(few) as load:
        for _ in range(3):
            began = monotonic()
            for worker in few.workers()[:1]:
                os.kill(worker, signal.SIGKILL)

            def answered(since: float = began) -> bool:
                return sum(one[0] > since for one in load.answers) >= 8

            wait_for(answered)
            wait_for(lambda: few.metric('fasterce_workers{state="spare"}') == 1, 5.0 + 10 * NOISE)
    assert set(load.codes()) == {200}
    assert load.refused == 0
    assert {one["records"][0]["status"] for *_, one in load.answers} == {"found"}


def test_all_engines_killed_at_once_are_back_in_seconds(few: Service) -> None:
    for pid in few.family():
        os.kill(pid, signal.SIGKILL)
    began = monotonic()
    wait_for(lambda: few.afresh(row()).status_code == 200)
    assert monotonic() - began < 5.0 + 10 * NOISE


def test_nobody_works_for_a_client_who_has_left(few: Service) -> None:
    """Those who wait in the queue are dropped at once; an worker that goes on for nobody is ended soon."""
    body = few.client.build_request("POST", "/v1/explain", json={"rows": [row(mood="hangs")], "deadline_ms": 20_000})
    raw = body.method.encode() + b" /v1/explain HTTP/1.1\r\n"
    raw += b"".join(name + b": " + value + b"\r\n" for name, value in body.headers.raw) + b"\r\n" + body.content
    connections = []
    for _ in range(FEW):
        connections.append(socket.create_connection(("127.0.0.1", few.port)))
        connections[-1].sendall(raw)
    wait_for(lambda: few.metric("fasterce_rows{") == FEW)
    waiting = few.metric('fasterce_rows{where="waiting"')
    assert few.explain(row()).status_code == 429
    for connection in connections:
        connection.close()
    wait_for(lambda: few.metric("fasterce_rows{") <= FEW - waiting, 2.0 + NOISE)
    wait_for(lambda: few.metric("fasterce_requests_in_flight") == 1)
    wait_for(lambda: few.metric("fasterce_rows{") == 0, 4.0 + 2 * NOISE)
    assert few.explain(row()).status_code == 200


def test_without_records_there_is_no_answer(few: Service) -> None:
    aside = few.database.with_suffix(".aside")
    few.database.rename(aside)
    try:
        answer = few.explain(row())
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "records")
        assert int(answer.headers["retry-after"]) >= 1
        wait_for(lambda: few.client.get("/v2/health/ready").status_code == 503, 2.0 + NOISE)
        assert few.client.get("/v2/health/live").status_code == 200
        assert few.explain(row(), keep=False).status_code == 200
        assert few.metric("fasterce_store_failures_total") >= 1
    finally:
        aside.rename(few.database)
    wait_for(lambda: few.client.get("/v2/health/ready").status_code == 200, 2.0 + NOISE)
    answer = few.explain(row())
    assert answer.status_code == 200
    assert few.client.get(f"/v1/records/{answer.json()['records'][0]['ids']['record']}").json() == answer.json()["records"][0]


def test_a_preview_leaves_no_trace(few: Service) -> None:
    answer = few.explain(row(), keep=False, headers={"x-request-id": "preview-1"}).json()
    assert answer["kept"] is False
    assert few.client.get(f"/v1/records/{answer['records'][0]['ids']['record']}").status_code == 404
    assert few.client.get("/v1/records", params={"request": "preview-1"}).json() == {"records": []}


def test_slow_clients_keep_nobody_waiting(few: Service) -> None:
    head = b"POST /v1/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    slow = [socket.create_connection(("127.0.0.1", few.port)) for _ in range(20)]
    try:
        for connection in slow:
            connection.sendall(head)
        began = monotonic()
        assert few.afresh(row()).status_code == 200
        assert monotonic() - began < 1.0 + 2 * NOISE
    finally:
        for connection in slow:
            connection.close()
    wait_for(lambda: few.metric("fasterce_requests_in_flight") == 1)


def test_many_hangs_leave_nothing_behind(few: Service) -> None:
    few.whole()
    descriptors = Path(f"/proc/{few.process.pid}/fd")
    before, workers = len(list(descriptors.iterdir())), set(few.workers())
    for _ in range(5):
        assert few.explain(row(mood="hangs"), deadline_ms=50).status_code == 504
        few.whole()
    wait_for(lambda: len(list(descriptors.iterdir())) <= before)
    wait_for(lambda: len(few.workers()) == 2 and not any(alive(pid) for pid in workers))


def test_ctrl_c_twice_ends_it_at_once(few: Service) -> None:
    """The last of this server: what is under way is not waited for."""
    family = few.family()
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(few.explain, row(mood="hangs"), deadline_ms=60_000)
        wait_for(lambda: few.metric("fasterce_rows{") == 1)
        began = monotonic()
        few.process.send_signal(signal.SIGINT)
        wait_for(lambda: not listens(few.port))
        assert few.end(signal.SIGINT) == 0
        assert monotonic() - began < 3.0 + 2 * NOISE
        hanging.exception()
    assert "Traceback" not in few.said
    wait_for(lambda: not any(alive(pid) for pid in family), 2.0 + NOISE)


def listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0
