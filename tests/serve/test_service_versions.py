"""Several artifacts, new versions of them while questions come in, and keys."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from time import monotonic
from typing import Any

import httpx
import pytest

from fasterce import artifact
from fasterce.serve.keys import SCOPES, new_key, revoke_key
from tests.serve.models import Moody
from tests.serve.service import NOISE, Service, row, serving, under_load, wait_for


@pytest.fixture(scope="module")
def place(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("versions")
    copytree(folder, where / "first.fasterce")
    copytree(folder, where / "second.fasterce")
    save_version(where / "second.fasterce", 2)
    return where


def save_version(folder: Path, seed: int) -> None:
    explainer = artifact.load(folder, Moody(calm=True))
    explainer.random_state = seed
    explainer.save(folder)


@pytest.fixture(scope="module")
def keys(place: Path) -> dict[str, str]:
    file = place / "keys.json"
    tokens = {scope: new_key(file, scope, [scope]) for scope in SCOPES}
    tokens["all"] = new_key(file, "all", list(SCOPES))
    tokens["old"] = new_key(file, "old", list(SCOPES), expires="2998-01-01")
    file.write_text(file.read_text().replace("2998-01-01", "2020-01-01"))
    tokens["leaves"] = new_key(file, "leaves", list(SCOPES))
    return tokens


@pytest.fixture(scope="module")
def two(place: Path, keys: dict[str, str]) -> Iterator[Service]:
    """Two artifacts with one model, behind keys; the client has one that may do everything."""
    artifacts = [f"{name}={place / name}.fasterce" for name in ("first", "second")]
    more = ["--model", "second=tests.serve.models:moody", "--keys", place / "keys.json", "--title", "first=The first"]
    with serving(place, *artifacts, *more, model="first=tests.serve.models:moody") as started:
        started.client.headers.update(bearer(keys["all"]))
        yield started


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def digests(service: Service) -> dict[str, str]:
    return {one["name"]: one["artifact_digest"] for one in service.client.get("/v1/artifacts").json()["artifacts"]}


def test_each_artifact_by_its_name(two: Service) -> None:
    listed = two.client.get("/v1/artifacts").json()["artifacts"]
    assert [(one["name"], one["title"], one["default"]) for one in listed] == [
        ("first", "The first", True),
        ("second", "second", False),
    ]
    found = digests(two)
    assert found["first"] != found["second"]
    for asked, name in ((None, "first"), ("first", "first"), ("second", "second")):
        answer = two.explain(row(), artifact=asked).json()
        assert answer["artifact"]["name"] == name
        assert answer["records"][0]["digests"]["artifact"] == answer["artifact"]["artifact_digest"] == found[name]
        assert two.client.get("/v1/schema", params={"artifact": name}).json()["digests"]["artifact"] == found[name]
    assert two.explain(row(), artifact="third").status_code == 404
    assert two.client.get("/v2/models/second").json()["name"] == "second"
    tensors = [
        {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}
        for name, value in row().items()
    ]
    answer = two.client.post("/v2/models/second/infer", json={"inputs": tensors, "id": "x"}).json()
    assert found["second"].removeprefix("sha256:").startswith(answer["model_version"])
    assert json.loads(answer["outputs"][0]["data"][0])["digests"]["artifact"] == found["second"]


def test_a_new_version_takes_over_under_load(two: Service, place: Path) -> None:
    before = digests(two)
    with under_load(two) as load:
        save_version(place / "first.fasterce", 11)
        reloaded = two.client.post("/v1/reload")
        assert reloaded.status_code == 200
        after = digests(two)
        changed = monotonic()
        wait_for(lambda: sum(one[0] > changed for one in load.answers) >= 4)
    assert {one["name"]: one["artifact_digest"] for one in reloaded.json()["artifacts"]} == after
    assert after["first"] != before["first"]
    assert after["second"] == before["second"]
    assert set(load.codes()) == {200}
    assert load.refused == 0
    for began, _, _, body in load.answers:
        (record,) = body["records"]
        assert record["digests"]["artifact"] == body["artifact"]["artifact_digest"]
        versions = [after["first"]] if began > changed else [before["first"], after["first"]]
        assert body["artifact"]["artifact_digest"] in versions


def test_a_version_that_cannot_be_loaded_leaves_the_old_one_at_work(two: Service, place: Path) -> None:
    before, manifest = digests(two), place / "second.fasterce" / "manifest.json"
    sound = manifest.read_bytes()
    manifest.write_text("{")
    try:
        with under_load(two) as load:
            refused = two.client.post("/v1/reload")
            wait_for(lambda: len(load.answers) >= 12)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "reload_failed")
        assert "second.fasterce" in refused.json()["error"]["message"]
        assert set(load.codes()) == {200}
        assert digests(two) == before
        two.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any(line["event"] == "reload failed" for line in two.lines()))
        assert two.explain(row(), artifact="second").status_code == 200
    finally:
        manifest.write_bytes(sound)
    save_version(place / "second.fasterce", 12)
    two.process.send_signal(signal.SIGHUP)
    wait_for(lambda: digests(two)["second"] != before["second"])
    assert any(line["event"] == "reloaded" for line in two.lines())


ROUTES = [
    ("explain", "POST", "/v1/explain"),
    ("explain", "POST", "/v2/models/first/infer"),
    ("explain", "GET", "/v1/artifacts"),
    ("explain", "GET", "/v1/schema"),
    ("applicants", "GET", "/v1/applicants"),
    ("explain", "GET", "/v1/models"),
    ("explain", "POST", "/v1/models/first:explain"),
    ("explain", "POST", "/v1/models/first:predict"),
    ("explain", "GET", "/v2/models/first"),
    ("explain", "GET", "/openapi.json"),
    ("records", "GET", "/v1/records?decision=d"),
    ("records explain", "GET", "/v1/records/11111111-1111-4111-8111-111111111111"),
    ("records explain", "GET", "/v1/records/11111111-1111-4111-8111-111111111111/letter"),
    ("admin", "POST", "/v1/reload"),
    ("metrics", "GET", "/metrics"),
]


@pytest.mark.parametrize(("scope", "method", "path"), ROUTES)
def test_every_route_wants_a_key_of_its_scope(two: Service, keys: dict[str, str], scope: str, method: str, path: str) -> None:
    def asked(token: str | None) -> httpx.Response:
        headers: Any = {"content-type": b"application/json"} | (
            {"authorization": f"Bearer {token}".encode()} if token else {}
        )
        return two.stranger.request(method, path, headers=headers, content=b"{}")

    for token in (None, "fce_" + "x" * 43, "fce_" + "ü" * 43, keys["old"], keys["all"][:-1]):
        answer = asked(token)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert token is None or token not in answer.text
    if path == "/v1/explain":  # told before anything of the body is there
        head = b"POST /v1/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n"
        assert two.raw(head, seconds=1.0 + NOISE).startswith(b"HTTP/1.1 401")
    for other in set(SCOPES) - set(scope.split()):
        assert asked(keys[other]).status_code == 403
    for one in scope.split():
        assert asked(keys[one]).status_code not in (401, 403)


def test_erasing_takes_two_scopes(two: Service, keys: dict[str, str]) -> None:
    answer = two.explain(row(), subjects=["somebody"]).json()
    pseudonym = answer["records"][0]["ids"]["subject"]
    erase = f"/v1/records?subject={pseudonym}"
    for scope in SCOPES:
        assert two.stranger.delete(erase, headers=bearer(keys[scope])).status_code == 403
    assert two.client.get("/v1/records", params={"subject": pseudonym}).json()["records"]
    assert two.stranger.delete(erase, headers=bearer(keys["all"])).json() == {"erased": 1}
    assert two.client.get("/v1/records", params={"subject": pseudonym}).json() == {"records": []}
    assert two.client.get(f"/v1/records/{answer['records'][0]['ids']['record']}").status_code == 404


def test_health_and_the_page_want_none(two: Service) -> None:
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/first/ready", "/", "/page/icon.svg"):
        assert two.stranger.get(path).status_code == 200


def test_a_key_taken_away_is_of_no_use_without_a_restart(two: Service, keys: dict[str, str], place: Path) -> None:
    def status() -> int:
        return two.stranger.get("/v1/artifacts", headers=bearer(keys["leaves"])).status_code

    assert status() == 200
    revoke_key(place / "keys.json", "leaves")
    wait_for(lambda: status() == 401, 2.0 + 3 * NOISE)
    assert two.client.get("/v1/artifacts").status_code == 200
    assert not any(token in two.said for token in keys.values())
    assert any(line.get("key") == "all" for line in two.lines())
