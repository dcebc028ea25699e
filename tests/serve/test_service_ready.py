"""Ready means ready: a full disk and a remote model that is down are noticed before a client asks."""

import resource
from pathlib import Path

from fasterce.models.http import MLflowModel
from tests.models.http.server import Received, Reply, table
from tests.models.http.server import serving as serving_model
from tests.serve.models import Moody, saved
from tests.serve.service import row, serving, wait_for


def test_a_full_disk(folder: Path, tmp_path: Path) -> None:
    """No file may grow any more; then it may again."""
    with serving(tmp_path, f"moody={folder}") as service:
        assert service.explain(row()).status_code == 200
        assert service.client.get("/v2/health/ready").status_code == 200
        soft, hard = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
        try:
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, hard))
            wait_for(lambda: service.client.get("/v2/health/ready").status_code == 503, 5.0)
            answer = service.client.get("/v2/health/ready")
            assert answer.json()["error"].startswith("Not ready: records cannot be stored: ")
            assert "records.db" not in answer.text
            assert service.client.get("/v2/models/moody/ready").status_code == 503
            assert service.client.get("/v2/health/live").status_code == 200
            refused_answer = service.explain(row())
            assert (refused_answer.status_code, refused_answer.json()["error"]["code"]) == (503, "records")
            assert service.explain(row(), keep=False).status_code == 200
        finally:
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        wait_for(lambda: service.client.get("/v2/health/ready").status_code == 200, 5.0)
        assert service.explain(row()).status_code == 200


def test_a_remote_model_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    """The address is in the log, and in no response and no record."""
    model = Moody(calm=True)
    down: list[bool] = []

    def answer(received: Received) -> object:
        if down:
            return Reply(503, b"no upstream http://scoring.internal:9000")
        return {"predictions": model.predict_proba(table(received)).tolist()}

    with serving_model(answer) as far:
        url = f"{far.url}/invocations"
        saved(tmp_path / "remote.fasterce", MLflowModel(url, classes=["bad", "good"]))
        options = ("--classes", "bad,good")
        with serving(tmp_path, f"remote={tmp_path / 'remote.fasterce'}", *options, model=url) as service:
            wanted = row(mood="calm")
            assert service.explain(wanted).status_code == 200
            assert service.client.get("/v2/health/ready").status_code == 200
            down.append(True)
            wait_for(lambda: service.client.get("/v2/health/ready").status_code == 503, 20.0)
            told = service.client.get("/v2/health/ready")
            assert told.json() == {"error": "Not ready: the model of 'remote' does not respond."}
            assert service.client.get("/v2/health/live").status_code == 200
            failed = service.explain(wanted, deadline_ms=20_000)
            assert failed.json()["records"][0]["status"] == "model_error"
            for text in (told.text, failed.text, service.client.get("/v1/artifacts").text):
                assert far.url.rpartition(":")[2] not in text
                assert "scoring" not in text
            assert [line for line in service.lines() if line["event"] == "model down"]
            down.clear()
            wait_for(lambda: service.client.get("/v2/health/ready").status_code == 200, 20.0)
