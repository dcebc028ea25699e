import asyncio
import json
import re
from contextlib import ExitStack
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from fasterce.serve.api import create_app
from fasterce.serve.api.middleware import is_local
from fasterce.serve.api.state import AppState
from fasterce.serve.keys import Keys, new_key
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


def test_a_full_service_says_so_only_to_those_it_knows(keyed, dispatcher):
    client, keys = keyed
    dispatcher.rows_inside = dispatcher.most_waiting
    assert client.post("/v1/explain", json=ASK).status_code == 401
    assert client.post("/v1/explain", json=ASK, headers=keys["metrics"]).status_code == 403
    busy = client.post("/v1/explain", content=b"not json", headers=keys["explain"] | JSON)
    assert (busy.status_code, error_of(busy)["code"], "retry-after" in busy.headers) == (429, "busy", True)
    assert client.post("/v1/explain", json=ASK, headers={"origin": "https://other.example"}).status_code == 403
    assert client.get("/v1/explain", headers=keys["explain"]).status_code == 405
    dispatcher.rows_inside = 0
    assert client.post("/v1/explain", json=ASK, headers=keys["explain"]).status_code == 200


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
    # No redirect, which would repeat the host name of the request.
    assert client.post("/v1/explain/", json=ASK, follow_redirects=False).status_code == 404
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


def sent_by(state, *parts, headers=(), path="/v1/explain"):
    """What is answered to a client that sends these parts of a body, and after them no more."""
    sent = []

    async def receive():
        if not waiting:
            await asyncio.sleep(60)
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [*POST, *headers]}
    asyncio.run(create_app(state)(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])


def test_a_body_that_does_not_come_is_not_waited_for(dispatcher, settings):
    hasty = replace(settings, body_seconds=0.05)
    status, headers = sent_by(AppState(hasty, dispatcher, None, None), b"{", b'"rows"')
    assert (status, headers[b"connection"]) == (408, b"close")


def test_not_more_bodies_are_read_than_can_be_of_use(dispatcher, settings):
    state = AppState(settings, dispatcher, None, None)
    with ExitStack() as held:
        for connection in range(settings.most_waiting + settings.extra_requests):
            held.enter_context(state.open_requests.hold("address ", f"connection {connection}"))
        assert sent_by(state)[0] == 429
        assert state.open_requests.permits("address of another", "its first")
    assert not state.open_requests.held


def test_strangers_are_answered_before_they_have_sent_a_body(dispatcher, settings, tmp_path):
    new_key(tmp_path / "keys.json", "bank", ["explain"])
    state = AppState(settings, dispatcher, None, Keys(tmp_path / "keys.json"))
    for path, status in (("/v1/explain", 401), ("/v2/models/credit/infer", 401), ("/nowhere", 404), ("/v1/reload", 401)):
        assert sent_by(state, path=path)[0] == status
    wrong = (b"authorization", b"Bearer fce_" + b"A" * 43)
    assert sent_by(state, headers=[wrong])[0] == 401


def test_pages_of_other_sites_cannot_even_send(client, make_client):
    elsewhere = {"origin": "https://other.example", "sec-fetch-site": "cross-site"}
    assert error_of(client.post("/v1/reload", headers=elsewhere))["code"] == "other_site"
    assert client.post("/v1/reload", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert client.post("/v1/reload").status_code == 200
    assert make_client(origins=("https://other.example",)).post("/v1/reload", headers=elsewhere).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/explain"), ("POST", "/v1/reload"), ("DELETE", "/v1/records?subject=x")]
)
def test_the_origin_of_whatever_changes_something_is_checked(client, make_client, method, path):
    sent = {"json": ASK} if path == "/v1/explain" else {}
    for origin in ("https://other.example", "null", "http://localhost:99"):
        answer = client.request(method, path, headers={"origin": origin}, **sent)
        assert (answer.status_code, error_of(answer)["code"]) == (403, "other_site")
    assert client.request(method, path, headers={"origin": "https://localhost"}, **sent).status_code == 200
    named = make_client(origins=("https://other.example",))
    assert named.request(method, path, headers={"origin": "https://other.example"}, **sent).status_code == 200
    assert client.get("/v1/artifacts", headers={"origin": "https://other.example"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/v1/explain", "POST"),
        ("/v1/records", "DELETE, GET, HEAD"),
        ("/v1/artifacts", "GET, HEAD"),
        ("/v2/models/credit/infer", "POST"),
        ("/v2/health/live", "GET, HEAD"),
        ("/", "GET, HEAD"),
        ("/page/icon.svg", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(client, path, allowed):
    answer = client.request("PATCH", path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_head_is_get_without_the_body(client):
    for path in ("/", "/page/theme.css", "/v1/artifacts", "/v1/schema", "/metrics", "/v2/health/ready", "/openapi.json"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content, head.headers["content-type"]) == (200, b"", get.headers["content-type"])
    assert client.head("/nowhere").status_code == 404
    assert client.head("/v1/explain").status_code == 405


@pytest.fixture
def keyed(make_client, tmp_path):
    """A client without a key, and the headers of keys by their scopes."""
    file = tmp_path / "keys.json"
    tokens = {scope: new_key(file, f"{scope} key", [scope]) for scope in ("explain", "metrics", "records", "applicants")}
    client = make_client(keys=Keys(file), people=[{"duration": "12", "amount": "", "housing": "rent"}])
    return client, {scope: {"authorization": f"Bearer {token}"} for scope, token in tokens.items()}


def test_refusals_are_counted_under_their_route_with_reason_and_key(keyed, dispatcher):
    client, keys = keyed
    client.post("/v1/explain", json=ASK)
    client.post("/v1/explain", json=ASK, headers=keys["metrics"])
    dispatcher.rows_inside = dispatcher.most_waiting
    client.post("/v1/explain", json=ASK, headers=keys["explain"])
    client.post("/v2/models/credit/infer", json={}, headers=keys["explain"] | {"origin": "https://other.example"})
    client.post("/no/such/path")
    text = client.get("/metrics", headers=keys["metrics"]).text
    for route, reason, key in (
        ("/v1/explain", "wrong_key", ""),
        ("/v1/explain", "missing_scope", "metrics key"),
        ("/v1/explain", "busy", "explain key"),
        ("/v2/models/{name}/infer", "other_site", ""),
        ("other", "not_found", ""),
    ):
        assert f'fasterce_refused_total{{key="{key}",reason="{reason}",route="{route}"}} 1.0' in text


@pytest.mark.parametrize(("how", "shown"), [("truncated", "203.0.113.0/24"), ("full", "203.0.113.77"), ("none", None)])
def test_log_lines_have_route_key_and_as_much_of_the_address_as_is_wanted(keyed, capfd, how, shown):
    from fasterce.serve.api import logs

    client, keys = keyed
    app = client.app
    app.state.service.settings = replace(app.state.service.settings, log_address=how)
    logs.set_up("info")
    there = TestClient(app, base_url="http://localhost", client=("203.0.113.77", 5000))
    there.post("/v1/explain", json=ASK, headers=keys["explain"])
    there.post("/v1/explain", json=ASK, headers=keys["metrics"])
    asked, refused = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (asked["route"], asked["key"], asked["address"]) == ("/v1/explain", "explain key", shown)
    assert (refused["key"], refused["refused"], refused["address"]) == ("metrics key", "missing_scope", shown)


def test_an_address_of_the_sixth_version_is_truncated_too():
    from fasterce.serve.api.logs import shown_address

    assert shown_address(("2001:db8:1:2::3", 1), "truncated") == "2001:db8:1::/48"
    assert shown_address(("::ffff:203.0.113.77", 1), "truncated") == "203.0.113.0/24"
    assert shown_address(("testclient", 1), "truncated") is None


def test_applicants_are_for_keys_that_may_see_them(keyed):
    client, keys = keyed
    assert client.get("/v1/applicants", headers=keys["explain"]).status_code == 403
    assert client.get("/v1/applicants", headers=keys["applicants"]).json()["total"] == 1


def test_a_key_reads_back_what_it_made_and_nothing_else(keyed):
    client, keys = keyed
    made = client.post("/v1/explain", json=ASK, headers=keys["explain"]).json()["records"][0]
    path = f"/v1/records/{made['ids']['record']}"
    assert client.get(path, headers=keys["explain"]).json() == made
    assert client.get(path, headers=keys["records"]).json() == made
    assert client.get(path, headers=keys["metrics"]).status_code == 403
    assert client.get("/v1/records?request=x", headers=keys["explain"]).status_code == 403
    other = {"authorization": f"Bearer {new_key(client.app.state.service.keys._path, 'other', ['explain'])}"}
    client.app.state.service.keys._checked = 0.0
    assert client.get(path, headers=other).status_code == 404
    found = client.get("/v1/records", params={"request": made["ids"].get("request") or ""}, headers=keys["records"])
    assert found.status_code == 200


def test_the_interface_says_which_scope_a_route_needs(keyed, client):
    there, keys = keyed
    paths = there.get("/openapi.json", headers=keys["explain"]).json()["paths"]
    assert paths["/v1/explain"]["post"]["security"] == [{"key": ["explain"]}]
    assert paths["/v1/records"]["delete"]["security"] == [{"key": ["records", "admin"]}]
    assert "security" not in paths["/v2/health/ready"]["get"]
    assert "security" not in client.get("/openapi.json").json()["paths"]["/v1/explain"]["post"]


def test_path_parameters_are_never_null(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert "/v2/models/{name}/versions/{version}/infer" in paths
    for path, operations in paths.items():
        for operation in operations.values():
            names = [one for one in operation.get("parameters", ()) if one["in"] == "path"]
            assert {one["name"] for one in names} == set(re.findall(r"{(\w+)}", path))
            assert all(one["required"] and one["schema"].get("type") == "string" for one in names)
            assert not [one for one in operation.get("parameters", ()) if one["name"] == "version" and one["in"] == "query"]


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
