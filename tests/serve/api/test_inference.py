import pytest

INPUTS = [
    {"name": "duration", "shape": [2], "datatype": "INT64", "data": [24, 36]},
    {"name": "amount", "shape": [2, 1], "datatype": "FP64", "data": [[3500.5], [100.0]]},
    {"name": "housing", "shape": [2], "datatype": "BYTES", "data": ["own", "rent"]},
]
INFER = "/v2/models/credit/infer"


def test_tensors_in_and_records_out(client, dispatcher):
    told = client.post(INFER, json={"id": "x", "inputs": INPUTS, "parameters": {"method": "sparse"}}).json()
    assert (told["id"], told["model_name"], told["model_version"]) == ("x", "credit", "a" * 12)
    outputs = {one["name"]: one for one in told["outputs"]}
    assert outputs["status"]["data"] == ["found", "found"]
    assert outputs["record"]["shape"] == [2]
    question = dispatcher.usage[0]
    assert question.rows[1] == {"duration": 36, "amount": 100.0, "housing": "rent"}
    assert question.options["method"] == "sparse"


def test_only_the_outputs_wanted(client):
    told = client.post(INFER, json={"inputs": INPUTS, "outputs": [{"name": "status"}]}).json()
    assert [one["name"] for one in told["outputs"]] == ["status"]


def test_what_is_served(client):
    assert client.get("/v2").json()["name"] == "fasterce"
    told = client.get("/v2/models/credit").json()
    assert told["inputs"][0] == {"name": "duration", "datatype": "FP64", "shape": [-1]}
    assert client.get(f"/v2/models/credit/versions/{'a' * 12}/ready").json()["ready"] is True
    assert client.get("/v2/models/credit/versions/old").json().keys() == {"error"}
    assert client.get("/v2/models/none/ready").status_code == 404


@pytest.mark.parametrize(
    "sent",
    [
        {"inputs": []},
        {"inputs": [INPUTS[0], INPUTS[0]]},
        {"inputs": [INPUTS[0], {**INPUTS[1], "shape": [1], "data": [1.0]}]},
        {"inputs": [{**INPUTS[0], "shape": [3]}]},
        {"inputs": [{**INPUTS[0], "shape": [1, 2], "data": [1, 2]}]},
        {"inputs": INPUTS, "parameters": {"method": "best"}},
        {"inputs": INPUTS, "parameters": {"rows": []}, "outputs": [{"name": "other"}]},
        {"inputs": [{**INPUTS[0], "datatype": "INT128"}]},
    ],
)
def test_wrong_tensors_are_told_in_the_protocols_shape(client, dispatcher, sent):
    answer = client.post(INFER, json=sent)
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}
    assert not dispatcher.usage
