import json

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


def test_what_clients_of_the_protocol_send_besides(client, dispatcher):
    """Parameters of codecs, a preference for binary outputs, no content type."""
    sent = {
        "inputs": [{**one, "parameters": {"content_type": "np"}} for one in INPUTS],
        "outputs": [{"name": "status", "parameters": {"binary_data": True}}],
        "parameters": {"content_type": "pd", "binary_data_output": True, "n": 2},
    }
    answer = client.post(INFER, content=json.dumps(sent).encode())
    assert "content-type" not in answer.request.headers
    assert answer.status_code == 200
    told = answer.json()
    assert told["outputs"] == [{"name": "status", "shape": [2], "datatype": "BYTES", "data": ["found", "found"]}]
    assert told["parameters"] == {"ignored": "binary_data_output, content_type"}
    assert dispatcher.usage[0].options["n"] == 2
    assert client.post(INFER, content=json.dumps(sent), headers={"content-type": "text/plain"}).status_code == 415
    packed = client.post(INFER, json=sent, headers={"content-encoding": "gzip"})
    assert packed.status_code == 415


def test_binary_inputs_are_refused_clearly(client, dispatcher):
    binary = {"name": "duration", "shape": [2], "datatype": "INT64", "parameters": {"binary_data_size": 16}}
    marked = {"inference-header-content-length": "10", "content-type": "application/octet-stream"}
    for answer in (
        client.post(INFER, json={"inputs": [binary, *INPUTS[1:]]}),
        client.post(INFER, content=b"{}" + bytes(16), headers=marked),
    ):
        assert answer.status_code == 400
        assert "binary_data=False" in answer.json()["error"]
    assert not dispatcher.usage


def test_truth_values_as_numbers(client, dispatcher):
    from fasterce.serve.api.inference import values
    from fasterce.serve.api.schemas import InputTensor

    tensor = InputTensor(name="owner", shape=[3], datatype="BOOL", data=[1, 0, True])
    assert values(tensor) == [True, False, True]


INSTANCES = [{"duration": 24, "amount": 1.5, "housing": "own"}, [36, None, "rent"]]


def test_kserve_explains_and_predicts_instances(client, dispatcher):
    sent = {"instances": INSTANCES, "parameters": {"n": 2, "content_type": "pd"}}
    told = client.post("/v1/models/credit:explain", json=sent).json()
    assert [one["status"] for one in told["explanations"]] == ["found", "found"]
    assert dispatcher.usage[0].rows[1] == {"duration": 36, "amount": None, "housing": "rent"}
    assert dispatcher.usage[0].options["n"] == 2
    assert client.get(f"/v1/records/{told['explanations'][0]['ids']['record']}").json() == told["explanations"][0]
    assert client.post("/v1/models/credit:predict", json=sent).json() == {"predictions": ["bad", "bad"]}
    assert dispatcher.usage[1].action == "predict"


def test_kserve_says_what_is_served(client):
    assert client.get("/v1/models").json() == {"models": ["credit"]}
    assert client.get("/v1/models/credit").json() == {"name": "credit", "ready": True}
    assert client.get("/v1/models/none").json().keys() == {"error"}


@pytest.mark.parametrize(
    ("action", "instances"),
    [("explain", [[1]]), ("predict", [[1]]), ("predict", [[24, 1.0, "castle"]]), ("explain", []), ("predict", ["x"])],
)
def test_wrong_instances(client, dispatcher, action, instances):
    answer = client.post(f"/v1/models/credit:{action}", json={"instances": instances})
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}
    assert client.post(f"/v1/models/none:{action}", json={"instances": INSTANCES}).status_code == 404
    assert client.post(f"/v1/models/credit:{action}", json={"instances": INSTANCES * 3}).status_code == 413
    assert not dispatcher.usage


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
