from tests.serve.api.conftest import ROW, error_of


def kept(client, **more):
    return client.post("/v1/explain", json={"rows": [ROW], **more})


def test_records_of_a_request(client):
    answer = kept(client)
    found = client.get("/v1/records", params={"request": answer.json()["request_id"]}).json()["records"]
    assert [one["id"] for one in found] == [answer.json()["records"][0]["ids"]["record"]]


def test_one_has_to_say_whose(client):
    assert client.get("/v1/records").status_code == 422


def test_an_id_that_is_none_and_one_that_is_not_there(client):
    assert client.get("/v1/records/abc").status_code == 422
    answer = client.get("/v1/records/11111111-1111-4111-8111-111111111111")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "no_such_record")


def test_erasing_a_subjects_records(client):
    assert client.delete("/v1/records", params={"subject": "nobody"}).json() == {"erased": 0}
    assert client.delete("/v1/records").status_code == 422


def test_a_server_without_records_answers_and_says_so(make_client):
    client = make_client(records=None)
    told = kept(client).json()
    assert told["kept"] is False
    assert error_of(client.get("/v1/records", params={"request": "r"}))["code"] == "no_records"
