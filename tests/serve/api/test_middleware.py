import asyncio
import json
from dataclasses import replace

import pytest

from fasterce.serve.api import create_app
from fasterce.serve.api.middleware import RequestMiddleware, is_local
from fasterce.serve.api.state import AppState
from tests.serve.api.conftest import ROW, error_of

ASK = {"rows": [ROW]}
JSON = {"content-type": "application/json"}


def test_a_body_that_is_not_json(client):
    for body in (b"{", b"", b"\xff\xfe", b"[" * 9000):
        answer = client.post("/v1/explain", content=body, headers=JSON)
        assert answer.status_code in (400, 422)
        assert "request_id" in answer.json()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_media_type(client, dispatcher, kind):
    answer = client.post("/v1/explain", content=json.dumps(ASK), headers={"content-type": kind})
    assert (answer.status_code, error_of(answer)["code"]) == (415, "media_type")
    assert not dispatcher.usage


def test_a_body_too_large_is_refused_by_its_length_and_by_its_bytes(client):
    big = b" " * 20_001
    assert client.post("/v1/explain", content=big, headers=JSON).status_code == 413

    def in_parts():
        for _ in range(30):
            yield b" " * 1000

    answer = client.post("/v1/explain", content=in_parts(), headers=JSON)
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too_large")


def test_more_than_may_wait_is_sent_away_before_it_is_read(client, dispatcher, settings):
    dispatcher.rows_inside = settings.most_waiting
    answer = client.post("/v1/explain", content=b"not json", headers=JSON)
    assert (answer.status_code, error_of(answer)["code"]) == (429, "busy")
    assert int(answer.headers["retry-after"]) >= 1
    assert client.get("/v2/health/ready").status_code == 200


def test_every_answer_has_an_id_and_headers_that_browsers_heed(client):
    for path in ("/v1/artifacts", "/nowhere", "/"):
        headers = client.get(path, headers={"x-request-id": "abc-1"}).headers
        assert headers["x-request-id"] == "abc-1"
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]
    assert client.get("/v1/artifacts", headers={"x-request-id": "bad id\t"}).headers["x-request-id"] != "bad id"


def test_no_other_site_may_ask_unless_it_was_named(make_client):
    asking = {"origin": "https://other.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in make_client().options("/v1/explain", headers=asking).headers
    named = make_client(origins=("https://other.example",)).options("/v1/explain", headers=asking)
    assert named.headers["access-control-allow-origin"] == "https://other.example"


def test_a_named_site_can_read_why_it_was_sent_away(make_client, dispatcher, settings):
    dispatcher.rows_inside = settings.most_waiting
    named = make_client(origins=("https://other.example",))
    answer = named.post("/v1/explain", json=ASK, headers={"origin": "https://other.example", "sec-fetch-site": "cross-site"})
    assert answer.status_code == 429
    assert answer.headers["access-control-allow-origin"] == "https://other.example"
    assert "retry-after" in answer.headers["access-control-expose-headers"].lower()


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1:8000", True),
        ("[::1]:80", True),
        ("[::1]", True),
        ("evil.example:8000", False),
        ("", False),
    ],
)
def test_names_of_this_machine(host, local):
    assert is_local(host) is local


def test_a_name_that_was_bent_to_this_machine_is_refused(client):
    answer = client.get("/v1/artifacts", headers={"host": "evil.example"})
    assert (answer.status_code, error_of(answer)["code"]) == (421, "wrong_host")


def test_wrong_ways_and_wrong_places(client):
    assert client.get("/v1/explain").status_code == 405
    assert error_of(client.get("/nowhere"))["code"] == "not_found"
    assert set(client.get("/v2/nowhere").json()) == {"error"}


def test_the_log_says_what_happened_and_nothing_of_the_person(client, capfd):
    from fasterce.serve.api import logs

    logs.set_up("info")
    client.post(
        "/v1/explain",
        json={"rows": [{**ROW, "amount": 987654.25}], "subjects": ["SECRET-5"]},
        headers={"x-request-id": "r-1"},
    )
    client.post("/v1/explain", json={"rows": [{**ROW, "housing": "SECRET-6"}]})
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    first = next(line for line in lines if line.get("request_id") == "r-1")
    assert first["route"] == "/v1/explain"
    assert first["status"] == 200
    assert first["statuses"] == {"found": 1}
    assert "SECRET" not in json.dumps(lines)
    assert "987654" not in json.dumps(lines)


def test_metrics_count_and_name_no_one(client):
    client.post("/v1/explain", json={**ASK, "subjects": ["SECRET-4"]})
    client.get("/v1/records/11111111-1111-4111-8111-111111111111")
    client.get("/some/strange/path")
    text = client.get("/metrics").text
    assert 'fasterce_explanations_total{artifact="credit",status="found"} 1.0' in text
    assert 'fasterce_requests_total{code="404",route="/v1/records/{id}"} 1.0' in text
    assert "strange" not in text
    assert "SECRET" not in text


POST = [(b"host", b"localhost"), (b"content-type", b"application/json")]


def sent_by(middleware_, *parts, headers=()):
    """What the gate answers to a client that sends these parts of a body, and after them no more."""
    sent = []

    async def receive():
        if not waiting:
            await asyncio.sleep(60)
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    scope = {"type": "http", "method": "POST", "path": "/v1/explain", "headers": [*POST, *headers]}
    asyncio.run(middleware_(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])


def test_a_body_that_does_not_come_is_not_waited_for(dispatcher, settings):
    hasty = replace(settings, body_seconds=0.05)
    status, headers = sent_by(RequestMiddleware(None, AppState(hasty, dispatcher, None, None)), b"{", b'"rows"')  # type: ignore[arg-type]
    assert (status, headers[b"connection"]) == (408, b"close")


def test_not_more_bodies_are_read_than_can_be_of_use(dispatcher, settings):
    middleware_ = RequestMiddleware(None, AppState(settings, dispatcher, None, None))  # type: ignore[arg-type]
    middleware_.posts = settings.most_waiting + settings.extra_requests
    assert sent_by(middleware_)[0] == 429
    assert middleware_.posts == settings.most_waiting + settings.extra_requests


def test_pages_of_other_sites_cannot_even_send(client, make_client):
    elsewhere = {"origin": "https://other.example", "sec-fetch-site": "cross-site"}
    assert error_of(client.post("/v1/reload", headers=elsewhere))["code"] == "other_site"
    assert client.post("/v1/reload", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert client.post("/v1/reload").status_code == 200
    assert make_client(origins=("https://other.example",)).post("/v1/reload", headers=elsewhere).status_code == 200


def test_a_client_who_leaves_takes_the_question_along(dispatcher, settings):
    ended = []

    async def explain(question):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(question)

    async def leave():
        messages = [{"type": "http.request", "body": json.dumps(ASK).encode()}, {"type": "http.disconnect"}]

        async def receive():
            await asyncio.sleep(0.05)
            return messages.pop(0)

        async def send(message):
            pass

        app = create_app(AppState(settings, dispatcher, None, None))
        scope = {"type": "http", "method": "POST", "path": "/v1/explain", "query_string": b"", "headers": POST}
        async with asyncio.timeout(5):
            await app(scope, receive, send)
        await asyncio.sleep(0)

    dispatcher.explain = explain
    asyncio.run(leave())
    assert len(ended) == 1
