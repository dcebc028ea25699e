"""What must not get in, and what must not get out, over HTTP."""

import json
from time import monotonic
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.serve.service import NOISE, ROWS, Service, libraries, row, wait_for

JSON = {"content-type": "application/json"}
SECRET, SECRET_NUMBER = "Xaverl-Zuckschwert", 87654.375


def post(service: Service, body: str | bytes, **headers: str) -> httpx.Response:
    return service.client.post("/v1/explain", content=body, headers={**JSON, **headers})


def told(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"error", "request_id"}
    assert answer.headers["x-request-id"] == body["request_id"]
    return answer.status_code, body["error"]["code"]


def fields(answer: httpx.Response) -> list[str]:
    return [one["field"] for one in answer.json()["error"]["fields"]]


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ("{", {}, (400, "not_json")),
        (b"\xff\xfe", {}, (400, "not_json")),
        ("[" * 100_000, {}, (400, "not_json")),
        ('{"rows": [{}]} {"rows"', {}, (400, "not_json")),
        (json.dumps({"rows": [row()]}), {"content-type": "text/plain"}, (415, "media_type")),
        (json.dumps({"rows": [row()]}) + " " * (1 << 20), {}, (413, "too_large")),
        (json.dumps({"rows": [row()] * 257}), {}, (413, "too_many_rows")),
        (json.dumps({"rows": []}), {}, (422, "invalid_request")),
        ("[]", {}, (422, "invalid_request")),
        ("null", {}, (422, "invalid_request")),
        ("", {}, (422, "invalid_request")),
    ],
)
def test_a_body_that_cannot_be_taken(
    service: Service, body: str | bytes, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    assert told(post(service, body, **headers)) == expected


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"rows": [row(aeg=3)]}, "rows[0].aeg"),
        ({"rows": [row(), row(aeg=3)]}, "rows[1].aeg"),
        ({"rows": [row(job="cook")]}, "rows[0].job"),
        ({"rows": [row(age="old")]}, "rows[0].age"),
        ({"rows": [row(age=30.5)]}, "rows[0].age"),
        ({"rows": [row(age=2**60)]}, "rows[0].age"),
        ({"rows": [row(age=None)]}, "rows[0].age"),
        ({"rows": [row(income=float("nan"))]}, "rows[0].income"),
        ({"rows": [row(income=float("inf"))]}, "rows[0].income"),
        ({"rows": [row(income=201)]}, "rows[0].income"),
        ({"rows": [row(owner=1)]}, "rows[0].owner"),
        ({"rows": [row(job=["clerk"])]}, "rows[0].job"),
        ({"rows": [{name: value for name, value in row().items() if name != "debt"}]}, "rows[0].debt"),
        ({"rows": [row()], "n": 0}, "n"),
        ({"rows": [row()], "method": "luck"}, "method"),
        ({"rows": [row()], "mehtod": "sparse"}, "mehtod"),
        ({"rows": [row()], "freeze": ["aeg"]}, "freeze.aeg"),
        ({"rows": [row()], "ranges": {"aeg": [1, 2]}}, "ranges.aeg"),
        ({"rows": [row()], "target": "splendid"}, "target"),
        ({"rows": [row()], "constraints": [{"constraint": "near", "feature": "age", "up": 10**400}]}, "constraints"),
        ({"rows": [row()], "deadline_ms": 10**7}, "deadline_ms"),
        ({"rows": [row()], "row_ids": ["a", "b"]}, "body"),
        ({"rows": [row()], "decision_ids": ["a\0b"]}, "decision_ids[0]"),
        ({"rows": [row()], "subjects": ["a\nb"]}, "subjects[0]"),
    ],
)
def test_what_is_wrong_is_named(service: Service, sent: dict[str, Any], field: str) -> None:
    answer = post(service, json.dumps(sent))
    assert told(answer)[0] == 422
    assert fields(answer) == [field]


def test_in_a_batch_a_wrong_cell_is_the_status_of_its_row(service: Service) -> None:
    wrong = [row(1, job="cook"), row(2, income=float("nan")), row(3, age=2**60), {"age": 30}]
    answer = post(service, json.dumps({"rows": [row(0), *wrong, row(4)]}))
    assert answer.status_code == 200
    assert [one["status"] for one in answer.json()["records"]] == ["found", *["invalid_input"] * 4, "found"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"rows": [%s], "n": 1, "n": 2}', 400),
        ('{"rows": [%s], "decision_ids": ["\\ud800"]}', 400),
        ('{"rows": [{"\\udfff": 1}]}', 400),
        ('{"rows": [%s], "rules": [{"rule": "frozen", "features": ["\\ud800"]}]}', 400),
        ('{"rows": [%s], "decision_ids": ["\\ud83d\\ude00"]}', 200),
        ('{"rows": [%s], "decision_ids": ["\\u0000"]}', 422),
    ],
)
def test_what_json_leaves_open_is_decided(service: Service, text: str, code: int) -> None:
    answer = post(service, text.replace("%s", json.dumps(row())))
    assert answer.status_code == code, answer.text
    if code == 200:
        (record,) = answer.json()["records"]
        kept = service.client.get(f"/v1/records/{record['ids']['record']}")
        assert kept.json()["ids"]["decision"] == "😀"
        assert "😀" in service.client.get(f"/v1/records/{record['ids']['record']}/letter").text


@pytest.mark.parametrize(
    ("frame", "part", "count"),
    [
        ('{"rows": [{%s}]}', '"c%s":1', 90_000),
        ('{"rows": [{%s}]}', '"c%s":[]', 80_000),
        ('{"rows": [%s]}', '{"a":[]}', 100_000),
        ('{"rows": [{}], %s}', '"c%s":1', 90_000),
        ('{"rows": [{}], "freeze": [%s]}', "1", 500_000),
        ('{"rows": [{}], "freeze": [%s]}', '"c%s"', 100_000),
        ('{"rows": [{}], "ranges": {"age": [%s]}}', "[]", 300_000),
        ('{"rows": [{"%s": 1}]}', "a" * 1_000_000, 1),
    ],
    ids=["columns", "cells", "rows", "options", "numbers", "names", "ranges", "long"],
)
def test_a_mebibyte_of_errors_does_not_hold_up_the_front(service: Service, frame: str, part: str, count: int) -> None:
    body = frame.replace("%s", ",".join(part.replace("%s", str(k)) for k in range(count)))
    assert len(body) <= 1 << 20
    began = monotonic()
    answer = post(service, body)
    assert answer.status_code == 422
    assert len(answer.content) < 10_000
    assert monotonic() - began < 3.0 + NOISE


def test_the_other_protocol_says_its_errors_its_own_way(service: Service) -> None:
    inputs = [{"name": "age", "shape": [1], "datatype": "INT64", "data": [30]}]
    for sent, code in (({"inputs": inputs}, 422), ({"inputs": []}, 422), ({"inputs": inputs, "parameters": {"n": 0}}, 422)):
        answer = service.client.post("/v2/models/moody/infer", json=sent)
        assert answer.status_code == code
        assert list(answer.json()) == ["error"]
    assert service.client.post("/v2/models/nobody/infer", json={"inputs": inputs}).status_code == 404


HEAD = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /v1/explain HTTP/1.1\r\n"
        + HEAD
        + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v2 HTTP/1.1\r\n\r\n",
        b"POST /v1/explain HTTP/1.1\r\n" + HEAD + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\n{}\n",
        b"POST /v1/explain HTTP/1.1\r\n" + HEAD + b"Content-Length: -3\r\n\r\n{}\n",
        b"POST /v1/explain HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-ID: a\rb: c\r\n\r\n",
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
    ],
    ids=["two lengths", "lengths", "negative", "chunk", "header", "tls"],
)
def test_requests_that_two_servers_would_read_differently(service: Service, request_: bytes) -> None:
    answer = service.raw(request_, seconds=2.0)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"connection: close" in answer


@pytest.mark.parametrize("given", ["a b", "<script>", "x" * 65, "ä", 'a","level":"error'])
def test_the_id_of_a_request_is_plain_or_ours(service: Service, given: str) -> None:
    headers: Any = {"x-request-id": given.encode()}
    answer = service.client.get("/v1/artifacts", headers=headers)
    assert answer.headers["x-request-id"] != given
    assert answer.headers["x-request-id"].isalnum()


@pytest.mark.parametrize(
    "path",
    [
        *("/page/../running.py", "/page/%2e%2e/running.py", "/page/..%2frunning.py", "/page/..%5crunning.py"),
        *("/page//etc/passwd", "/page/%00", "/page/js/../../running.py", "/page/" + "a" * 5000, "/page/"),
    ],
)
def test_the_page_serves_its_own_files_only(service: Service, path: str) -> None:
    raw = service.raw(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path.encode())
    assert raw.startswith(b"HTTP/1.1 404")
    assert b"import" not in raw


def test_other_sites_stay_outside(service: Service) -> None:
    asking = {"origin": "https://other.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in service.client.options("/v1/explain", headers=asking).headers
    elsewhere = {"origin": "https://other.example", "sec-fetch-site": "cross-site"}
    assert told(service.client.post("/v1/reload", headers=elsewhere)) == (403, "other_site")
    assert told(service.client.delete("/v1/records?subject=x", headers=elsewhere)) == (403, "other_site")
    assert (
        service.client.post("/v1/explain", json={"rows": [row()]}, headers={"sec-fetch-site": "same-origin"}).status_code
        == 200
    )
    assert told(service.client.get("/v1/artifacts", headers={"host": "evil.example"})) == (421, "wrong_host")


def test_a_letter_shows_what_was_sent_and_runs_none_of_it(service: Service) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
    answer = service.explain(row(), decision_ids=[evil], row_ids=[evil], constraints_by=evil)
    record = answer.json()["records"][0]["ids"]["record"]
    letter = service.client.get(f"/v1/records/{record}/letter")
    assert letter.status_code == 200
    assert "<script" not in letter.text
    assert "<img" not in letter.text
    assert "&lt;script&gt;" in letter.text
    policy = letter.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script" not in policy


def test_nothing_of_a_person_is_in_logs_metrics_or_errors(service: Service) -> None:
    person: dict[str, Any] = {"subjects": [SECRET], "decision_ids": [SECRET], "row_ids": [SECRET]}
    answers = [
        service.explain(row(debt=SECRET_NUMBER), **person),
        service.explain(row(debt=SECRET_NUMBER, mood="raises"), **person),
        service.explain(row(debt=SECRET_NUMBER, mood="lies"), **person),
        service.explain(row(debt=SECRET_NUMBER, mood="hangs"), **person, deadline_ms=200),
        service.explain(row(debt=SECRET_NUMBER, mood="killed"), **person),
        service.explain(row(job=SECRET)),
        service.explain(row(age=SECRET_NUMBER)),
        service.explain(row(debt=SECRET)),
        service.explain(row(debt=SECRET_NUMBER * 1e40)),
        service.explain(row(income=SECRET_NUMBER)),
        service.explain(row(), row(job=SECRET)),
        service.client.get("/v1/records", params={"subject": SECRET}),
        service.client.get(f"/v1/records/{SECRET}"),
        service.client.get(f"/{SECRET}"),
    ]
    assert {answer.status_code for answer in answers} == {200, 404, 422, 503, 504}
    for answer in answers:
        if answer.status_code != 200:
            assert SECRET not in answer.text
            assert "87654" not in answer.text.replace(".", "")
    kept = answers[0].json()["records"][0]
    assert SECRET not in json.dumps(
        service.client.get("/v1/records", params={"decision": SECRET}).json()["records"][0]["subject"]
    )
    assert kept["ids"]["subject"] != SECRET
    metrics = service.client.get("/metrics").text
    wait_for(lambda: len([line for line in service.lines() if line.get("route") == "other"]) >= 1)
    for text in (metrics, service.said):
        assert SECRET not in text
        assert "87654" not in text
    assert "Traceback" not in service.said


def test_what_each_process_has_in_memory(service: Service) -> None:
    service.whole()
    front = libraries(service.process.pid)
    assert "python" in front
    for library in ("numpy", "pandas", "sklearn", "onnxruntime", "scipy", "torch"):
        assert f"/{library}/" not in front
    for worker in service.workers():
        assert "/numpy/" in libraries(worker)
        assert "/torch/" not in libraries(worker)


def test_the_description_of_the_interface_knows_the_columns(service: Service) -> None:
    described = service.client.get("/openapi.json").json()
    assert set(described["components"]["schemas"]["Row_moody"]["properties"]) == set(ROWS[0])
    assert "/numpy/" not in libraries(service.process.pid)


def test_records_are_as_described(service: Service) -> None:
    """For every status: the description has what a record of the service has, and knows no other field."""
    described = service.client.get("/openapi.json").json()
    fits = Draft202012Validator({"$ref": "#/components/schemas/Record", "components": described["components"]})
    answers = [
        service.explain(row(), edited=[["debt"]]),
        service.explain(row(), freeze=sorted(ROWS[0])),
        service.explain(row(mood="raises")),
        service.explain(row(), row(debt="much")),
    ]
    found = [record for answer in answers for record in answer.json()["records"]]
    assert {"found", "none_found", "model_error", "invalid_input"} <= {record["status"] for record in found}
    for record in found:
        fits.validate(record)
    blocked = answers[1].json()["records"][0]
    assert blocked["infeasible"]["proven"] is False, "a model that can only be called proves nothing"
    assert not fits.is_valid(blocked | {"infeasible": blocked["infeasible"] | {"proven": "no"}})
