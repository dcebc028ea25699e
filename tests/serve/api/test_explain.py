import json

import pytest

from fasterce.serve.messages import DeadlineExceeded, InvalidRequest, NotReady, Overloaded, WorkerLost
from tests.serve.api.conftest import ROW, error_of

ASK = {"rows": [ROW]}


def test_a_row_gets_its_record_and_the_record_can_be_asked_for(client, dispatcher):
    answer = client.post("/v1/explain", json=ASK)
    assert answer.status_code == 200
    told = answer.json()
    assert told["kept"] is True
    assert told["artifact"]["name"] == "credit"
    assert told["request_id"] == answer.headers["x-request-id"]
    kept = client.get(f"/v1/records/{told['records'][0]['ids']['record']}")
    assert kept.json() == told["records"][0]


def test_rows_come_back_in_order_and_number(client, dispatcher):
    told = client.post("/v1/explain", json={"rows": [ROW] * 5}).json()
    assert len(told["records"]) == 5
    assert told["usage"] == {"calls": 8, "rows": 30, "batch_rows": 5}


def test_a_preview_is_not_kept(client):
    told = client.post("/v1/explain", json={**ASK, "keep": False}).json()
    assert told["kept"] is False
    assert client.get(f"/v1/records/{told['records'][0]['ids']['record']}").status_code == 404


def test_options_reach_the_desk_as_they_were_sent(client, dispatcher):
    sent = {
        "method": "sparse",
        "n": 3,
        "freeze": ["amount"],
        "ranges": {"duration": [6, None]},
        "robust": 0.9,
        "target": "good",
    }
    client.post("/v1/explain", json={**ASK, **sent, "subjects": ["p1"], "decision_ids": ["d1"], "constraints_by": "policy 1"})
    question = dispatcher.usage[0]
    assert {name: question.options[name] for name in sent} == sent
    assert (question.subjects, question.decision_ids, question.constraints_by) == (("p1",), ("d1",), "policy 1")


@pytest.mark.parametrize(
    ("row", "field", "words"),
    [
        ({**ROW, "duration": "24"}, "rows[0].duration", "a number"),
        ({**ROW, "duration": 24.5}, "rows[0].duration", "a whole number"),
        ({**ROW, "duration": 400}, "rows[0].duration", "from 4 to 72"),
        ({**ROW, "duration": None}, "rows[0].duration", "may not be missing"),
        ({**ROW, "duration": True}, "rows[0].duration", "a number"),
        ({**ROW, "housing": "castle"}, "rows[0].housing", "one of own, rent"),
        ({**ROW, "duraton": 3}, "rows[0].duraton", "Did you mean 'duration'"),
        ({"duration": 24, "amount": 1}, "rows[0].housing", "missing"),
    ],
)
def test_a_wrong_cell_of_a_single_row_is_told_by_its_field(client, dispatcher, row, field, words):
    answer = client.post("/v1/explain", json={"rows": [row]})
    assert answer.status_code == 422
    told = {one["field"]: one["message"] for one in error_of(answer)["fields"]}
    assert words in told[field]
    assert not dispatcher.usage


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_told_by_its_field(client, literal):
    body = json.dumps(ASK).replace("3500.5", literal)
    answer = client.post("/v1/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert error_of(answer)["fields"][0]["field"] == "rows[0].amount"


def test_in_a_batch_a_wrong_cell_is_left_to_the_row(client, dispatcher):
    assert client.post("/v1/explain", json={"rows": [ROW, {**ROW, "housing": "castle"}]}).status_code == 200
    assert len(dispatcher.usage[0].rows) == 2


def test_what_is_sent_is_not_told_back(client):
    answer = client.post("/v1/explain", json={"rows": [{**ROW, "housing": "SECRET-9"}], "method": "SECRET-8"})
    assert answer.status_code == 422
    assert "SECRET" not in answer.text


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"n": 0}, "n"),
        ({"n": 101}, "n"),
        ({"method": "best"}, "method"),
        ({"robust": 1.5}, "robust"),
        ({"freeze": ["colour"]}, "freeze.colour"),
        ({"freeze": "amount"}, "freeze"),
        ({"ranges": [1]}, "ranges"),
        ({"vary": ["colour"]}, "vary.colour"),
        ({"ranges": {"colour": [1, 2]}}, "ranges.colour"),
        ({"subjects": ["a", "b"]}, "body"),
        ({"row_ids": ["a", "b"]}, "body"),
        ({"decision_ids": [None]}, "decision_ids[0]"),
        ({"deadline_ms": 10**7}, "deadline_ms"),
        ({"deadline_ms": 0}, "deadline_ms"),
        ({"rows": []}, "rows"),
        ({"rows": [[1]]}, "rows[0]"),
        ({"rows": "x"}, "rows"),
        ({"unknown": 1}, "unknown"),
        ({"rows": [{"duration": {"a": 1}}]}, "rows[0].duration"),
    ],
)
def test_a_wrong_option_is_told_by_its_field(client, dispatcher, changed, field):
    answer = client.post("/v1/explain", json={**ASK, **changed})
    assert answer.status_code == 422
    assert field in [one["field"] for one in error_of(answer)["fields"]]
    assert not dispatcher.usage


def test_what_costs_too_much_is_refused_before_it_is_begun(make_client, dispatcher):
    client = make_client(most_cost=100)
    assert client.post("/v1/explain", json={"rows": [ROW] * 5, "n": 10}).status_code == 200
    answer = client.post("/v1/explain", json={"rows": [ROW] * 5, "n": 100, "method": "all", "robust": 1})
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too_costly")
    few = make_client(most_n=3)
    answer = few.post("/v1/explain", json={**ASK, "n": 4})
    assert [one["field"] for one in error_of(answer)["fields"]] == ["n"]
    assert few.get("/v1/schema").json()["limits"]["n"] == 3
    assert len(dispatcher.usage) == 1


def test_too_many_rows(client):
    answer = client.post("/v1/explain", json={"rows": [ROW] * 6})
    assert (answer.status_code, error_of(answer)["code"]) == (413, "too_many_rows")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InvalidRequest("serve.no_pseudonym_key", "subjects", option="subjects", variable="KEY"), 422, "refused"),
        (Overloaded("serve.overloaded", 2.4, rows=9), 429, "busy"),
        (DeadlineExceeded("serve.deadline_exceeded"), 504, "late"),
        (WorkerLost("serve.worker_lost"), 503, "worker_lost"),
        (NotReady("serve.closing"), 503, "not_ready"),
    ],
)
def test_errors_of_the_dispatcher_have_their_status(client, dispatcher, error, status, code):
    dispatcher.fails = error
    answer = client.post("/v1/explain", json=ASK)
    assert (answer.status_code, error_of(answer)["code"]) == (status, code)
    assert ("retry-after" in answer.headers) == (status in (429, 503))


def test_whatever_is_unforeseen_shows_nothing_of_it(client, dispatcher, caplog):
    dispatcher.fails = RuntimeError("value SECRET-7 of a person")
    answer = client.post("/v1/explain", json=ASK)
    assert (answer.status_code, error_of(answer)["code"]) == (500, "unforeseen")
    assert "SECRET" not in answer.text
    assert "Traceback" not in answer.text


def test_a_row_the_explainer_finds_wrong_is_refused_alone_and_not_kept(client, dispatcher):
    dispatcher.status = "invalid_input"
    answer = client.post("/v1/explain", json={**ASK, "subjects": ["p"]})
    assert answer.status_code == 422
    assert [one["field"] for one in error_of(answer)["fields"]] == ["rows[0].duration"]
    assert "SECRET" not in answer.text
    assert client.get(f"/v1/records?request={answer.headers['x-request-id']}").json() == {"records": []}
    assert client.post("/v1/explain", json={"rows": [ROW, ROW]}).status_code == 200


def test_unknown_artifact(client):
    answer = client.post("/v1/explain", json={**ASK, "artifact": "nothing"})
    assert (answer.status_code, error_of(answer)["code"]) == (404, "no_such_artifact")


def test_without_a_record_there_is_no_answer(make_client, dispatcher, tmp_path):
    client = make_client()
    state = client.app.state.service

    async def broken(records):
        from fasterce.serve.store import StoreError

        raise StoreError("serve.database_disk_full")

    state.store.put = broken
    answer = client.post("/v1/explain", json=ASK)
    assert (answer.status_code, error_of(answer)["code"]) == (503, "records")
    assert client.post("/v1/explain", json={**ASK, "keep": False}).status_code == 200
