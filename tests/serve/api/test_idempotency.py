"""A request that is sent again, since its response was lost, is answered by what is stored."""

import asyncio

import pytest

from fasterce.serve.keys import Keys, new_key
from tests.serve.api.conftest import ROW, error_of

ASK = {"rows": [ROW, ROW]}
ONCE = {"idempotency-key": "order-17"}


def stored(client):
    async def every():
        return await client.app.state.service.store.find(count=100)

    return asyncio.run(every())


def test_the_same_request_again_is_answered_from_the_store(client, dispatcher):
    first = client.post("/v1/explain", json=ASK, headers=ONCE)
    again = client.post("/v1/explain", json=ASK, headers=ONCE)
    assert first.status_code == again.status_code == 200
    assert again.json() == first.json()
    assert len(dispatcher.usage) == 1
    assert len(stored(client)) == 2


def test_another_key_or_none_is_another_request(client, dispatcher):
    for headers in (ONCE, {"idempotency-key": "order-18"}, {}, {}):
        assert client.post("/v1/explain", json=ASK, headers=headers).status_code == 200
    assert len(stored(client)) == 8


def test_a_key_is_for_one_request(client, dispatcher):
    client.post("/v1/explain", json=ASK, headers=ONCE)
    answer = client.post("/v1/explain", json={"rows": [ROW]}, headers=ONCE)
    assert (answer.status_code, error_of(answer)["code"]) == (422, "idempotency_key")
    assert len(stored(client)) == 2


def test_of_two_at_once_one_is_stored_and_both_are_answered_alike(client, dispatcher):
    import threading
    from concurrent.futures import ThreadPoolExecutor

    together = threading.Barrier(2)
    plain = dispatcher.explain

    async def slow(question):
        await asyncio.to_thread(together.wait, 10)
        return await plain(question)

    dispatcher.explain = slow
    with client, ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda _: client.post("/v1/explain", json=ASK, headers=ONCE), range(2)))
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert len(dispatcher.usage) == 2
    assert len(stored(client)) == 2


def test_keys_of_clients_are_their_own(make_client, tmp_path, dispatcher):
    tokens = [new_key(tmp_path / "keys.json", name, ["explain"]) for name in ("one", "two")]
    client = make_client(keys=Keys(tmp_path / "keys.json"))
    answers = [
        client.post("/v1/explain", json=ASK, headers=ONCE | {"authorization": f"Bearer {token}"}).json() for token in tokens
    ]
    assert answers[0]["records"] != answers[1]["records"]
    assert len(stored(client)) == 4


def test_a_preview_and_an_error_are_not_stored(client, dispatcher):
    for _ in range(2):
        assert client.post("/v1/explain", json={**ASK, "keep": False}, headers=ONCE).json()["kept"] is False
        assert client.post("/v1/explain", json={"rows": [{**ROW, "housing": "castle"}]}, headers=ONCE).status_code == 422
    assert stored(client) == []
    assert client.post("/v1/explain", json=ASK, headers=ONCE).status_code == 200


def test_an_answer_whose_records_are_erased_is_gone(client, dispatcher):
    client.post("/v1/explain", json=ASK, headers=ONCE)
    from datetime import UTC, datetime

    store = client.app.state.service.store
    store._retention_days = 1
    asyncio.run(store.purge(datetime(2026, 11, 18, tzinfo=UTC)))
    answer = client.post("/v1/explain", json=ASK, headers=ONCE)
    assert (answer.status_code, error_of(answer)["code"]) == (410, "erased")


def test_after_a_day_a_key_is_new(client, dispatcher):
    from datetime import UTC, datetime, timedelta

    client.post("/v1/explain", json=ASK, headers=ONCE)
    asyncio.run(client.app.state.service.store.purge(datetime.now(UTC) + timedelta(hours=25)))
    assert client.post("/v1/explain", json=ASK, headers=ONCE).status_code == 200
    assert len(dispatcher.usage) == 2


def test_tensors_too(client, dispatcher):
    inputs = [
        {"name": name, "shape": [1], "datatype": kind, "data": [ROW[name]]}
        for name, kind in (("duration", "INT64"), ("amount", "FP64"), ("housing", "BYTES"))
    ]
    answers = [client.post("/v2/models/credit/infer", json={"inputs": inputs}, headers=ONCE).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(dispatcher.usage) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_a_key_that_is_none_is_refused(client, dispatcher, key):
    assert client.post("/v1/explain", json=ASK, headers={"idempotency-key": key}).status_code == 422
    assert not dispatcher.usage
