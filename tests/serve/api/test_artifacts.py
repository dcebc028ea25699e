import json
import re

from fasterce.errors import make_problem
from fasterce.serve.messages import ReloadError
from tests.serve.api.conftest import FEATURES, ROW, error_of


def test_artifacts_and_their_schema(client):
    assert [one["name"] for one in client.get("/v1/artifacts").json()["artifacts"]] == ["credit"]
    told = client.get("/v1/schema").json()
    assert told["features"] == FEATURES
    assert told["limits"] == {"rows": 5, "n": 100, "deadline_ms": 60_000}
    assert client.get("/v1/schema", params={"artifact": "none"}).status_code == 404


def test_people_to_pick(make_client):
    people = [{"duration": "12", "amount": "", "housing": "rent"}, {"duration": "24", "amount": "3.5", "housing": "own"}]
    client = make_client(people=people)
    told = client.get("/v1/applicants", params={"query": "OWN"}).json()
    assert told == {
        "total": 1,
        "first": 0,
        "people": [{"id": "2", "values": {"duration": 24, "amount": 3.5, "housing": "own"}}],
    }
    assert client.get("/v1/applicants").json()["people"][0]["values"]["amount"] is None
    assert client.get("/v1/applicants", params={"first": 1, "count": 1}).json()["people"][0]["id"] == "2"


def test_no_people(client):
    assert error_of(client.get("/v1/applicants"))["code"] == "no_applicants"


def test_reload(client, dispatcher):
    assert client.post("/v1/reload").json()["artifacts"][0]["name"] == "credit"
    dispatcher.fails = ReloadError("serve.database_damaged")
    answer = client.post("/v1/reload")
    assert (answer.status_code, error_of(answer)["message"]) == (409, "the file is damaged.")
    inside = make_problem("models.http_timeout", seconds=3)
    dispatcher.fails = ReloadError("models.http_unavailable", url="http://scoring.internal/x", cause=inside, count=4)
    answer = client.post("/v1/reload")
    assert "scoring.internal" not in answer.text
    assert error_of(answer)["message"] == "the remote model did not answer within 3 s (tried 4 times)."


def test_openapi_has_a_model_of_a_row(client):
    told = client.get("/openapi.json").json()
    row = told["components"]["schemas"]["Row_credit"]
    assert row["properties"]["duration"] == {"title": "Duration", "type": "integer", "minimum": 4, "maximum": 72}
    assert row["properties"]["housing"]["enum"] == ["own", "rent"]
    assert set(row["required"]) == {"duration", "housing"}
    assert row["additionalProperties"] is False


def test_openapi_has_a_model_of_a_record(client):
    """Every record of a response fits it, and every reference leads somewhere."""
    told = client.get("/openapi.json").json()
    schemas = told["components"]["schemas"]
    assert schemas["Record"]["properties"]["infeasible"]["anyOf"][1]["properties"]["proven"]["type"] == "boolean"
    record = {"$ref": "#/components/schemas/Record"}
    assert schemas["ExplainResponse"]["properties"]["records"]["items"] == record
    assert schemas["Explanations"]["properties"]["explanations"]["items"] == record
    content = told["paths"]["/v1/records/{id}"]["get"]["responses"]["200"]["content"]
    assert content == {"application/json": {"schema": record}}
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(told)))
    assert len([one for one in references if one.startswith("#/components/schemas/Record_")]) > 5
    assert references <= {f"#/components/schemas/{name}" for name in schemas}


def test_a_new_version_has_a_new_model_of_a_row(client, dispatcher):
    assert client.post("/v1/explain", json={"rows": [ROW]}).status_code == 200
    assert set(client.get("/openapi.json").json()["components"]["schemas"]["Row_credit"]["properties"]) == set(ROW)
    dispatcher.digest = "sha256:" + "b" * 64
    dispatcher.schema = dispatcher.schema | {"features": [*FEATURES, FEATURES[0] | {"name": "age"}]}
    assert client.get("/v1/schema").json()["digests"]["artifact"] == dispatcher.digest
    row = ROW | {"age": 30}
    assert set(client.get("/openapi.json").json()["components"]["schemas"]["Row_credit"]["properties"]) == set(row)
    assert client.post("/v1/explain", json={"rows": [row]}).status_code == 200


def test_ready_says_why_not(make_client, dispatcher, tmp_path):
    client = make_client()
    state = client.app.state.service
    assert client.get("/v2/health/ready").status_code == 200
    dispatcher.model_problems = {"credit": make_problem("models.http_hangs")}
    answer = client.get("/v2/health/ready")
    assert (answer.status_code, answer.json()) == (503, {"error": "Not ready: the model of 'credit' does not respond."})
    assert client.get("/v2/models/credit/ready").status_code == 503
    assert client.get("/v1/models/credit").status_code == 503
    dispatcher.model_problems = {}
    with state.store._database.writer.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
    state._store_checked = 0.0
    answer = client.get("/v2/health/ready")
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("Not ready: records cannot be stored: ")
    assert str(tmp_path) not in answer.text
    assert client.get("/v2/health/live").status_code == 200


def test_health(make_client, dispatcher):
    client = make_client()
    assert client.get("/v2/health/live").status_code == 200
    assert client.get("/v2/health/ready").status_code == 200
    dispatcher.ready = False
    assert client.get("/v2/health/ready").status_code == 503
    dispatcher.ready = True
    client.app.state.service.closing = True
    assert client.get("/v2/health/ready").status_code == 503
    assert client.get("/v2/health/live").status_code == 200
    assert client.post("/v1/explain", json={"rows": [ROW]}).status_code == 503
