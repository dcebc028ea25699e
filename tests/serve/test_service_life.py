"""How the service starts, and how it ends: in order, by force, and not at all."""

import json
import os
import pickle
import signal
import socket
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from time import monotonic

import httpx
import pytest
from typer.testing import CliRunner

from fasterce.cli.app import app
from fasterce.cli.exits import Exit
from tests.serve.service import NOISE, alive, command, environment, row, serving, under_load, wait_for

TEN_SECONDS = 10.0


def test_sigterm_under_load_finishes_what_was_accepted(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, f"moody={folder}") as service:
        service.whole()
        family = service.family()
        with ThreadPoolExecutor(4) as threads:
            slow = [threads.submit(service.explain, row(k, "slow"), deadline_ms=30_000) for k in range(3)]
            wait_for(lambda: service.metric("fasterce_rows{") >= 3)
            with under_load(service) as load:
                reloading = threads.submit(service.client.post, "/v1/reload")
                wait_for(lambda: len(service.family()) > len(family) or reloading.done())
                told = monotonic()
                code = service.end(signal.SIGTERM)
                took = monotonic() - told
                load.stopped.set()
                assert [one.result().status_code for one in slow] == [200] * 3
                assert reloading.result().status_code in (200, 409)
        assert code == 0
        assert took < TEN_SECONDS
        assert set(load.codes()) <= {200, 503}
        assert all(status == 200 for began, _, status, _ in load.answers if began < told - 0.5)
        assert all(body["error"]["code"] in ("closing", "not_ready") for *_, status, body in load.answers if status == 503)
        assert load.refused
        with pytest.raises(httpx.ConnectError):
            service.afresh(row())
        wait_for(lambda: not any(alive(pid) for pid in family), 2.0 + NOISE)
        kept = ids_in(service.database)
        assert {one["ids"]["record"] for *_, status, body in load.answers if status == 200 for one in body["records"]} <= kept
        assert service.lines()[-1]["event"] == "closed"
        assert "Traceback" not in service.said


def test_ctrl_c_does_not_wait_for_a_model_that_hangs(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, f"moody={folder}", "--grace", 1) as service:
        family = service.family()
        with ThreadPoolExecutor(1) as threads:
            hanging = threads.submit(service.explain, row(mood="hangs"), deadline_ms=60_000)
            wait_for(lambda: service.metric("fasterce_rows{") == 1)
            began = monotonic()
            assert service.end(signal.SIGINT) == 0
            assert 1.0 <= monotonic() - began < 3.0 + 2 * NOISE
            answer = hanging.result()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        wait_for(lambda: not any(alive(pid) for pid in family), 2.0 + NOISE)


def test_a_front_that_is_killed_has_kept_every_record_it_answered_with(folder: Path, tmp_path: Path) -> None:
    with serving(tmp_path, f"moody={folder}") as service:
        service.whole()
        family = service.family()
        assert len(family) == 3
        with under_load(service, clients=6) as load:
            wait_for(lambda: len(load.answers) >= 20)
            service.end(signal.SIGKILL)
            load.stopped.set()
        wait_for(lambda: not any(alive(pid) for pid in family), 5.0 + NOISE)
        assert set(load.codes()) == {200}
        answered = {one["ids"]["record"] for *_, body in load.answers for one in body["records"]}
        assert len(answered) == len(load.answers) >= 20
        kept = ids_in(service.database)
        assert answered <= kept


def ids_in(database: Path) -> set[str]:
    with sqlite3.connect(database) as connection:
        rows = connection.execute("SELECT id, body FROM fasterce_records").fetchall()
    assert all(json.loads(body)["ids"]["record"] == name for name, body in rows)
    return {name for name, _ in rows}


@pytest.fixture(scope="module")
def ends(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Servers that cannot start, all at once: exit codes and what they say."""
    where = tmp_path_factory.mktemp("ends")
    (where / "model.pkl").write_bytes(pickle.dumps(Bomb(where / "exploded")))
    (where / "keys.json").write_text("[]")
    broken = where / "broken.fasterce"
    copytree(folder, broken)
    arrays = max(broken.iterdir(), key=lambda file: file.stat().st_size)
    arrays.write_bytes(arrays.read_bytes()[:-10])
    moody = ("--model", "tests.serve.models:moody")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        cases = {
            "port": [folder, *moody, "--port", taken.getsockname()[1]],
            "broken": [broken, *moody],
            "unknown model": [folder, "--model", "tests.serve.models:nobody"],
            "pickle": [folder, "--model", where / "model.pkl"],
            "records": [folder, *moody, "--records", f"sqlite:///{where}/nowhere/records.db"],
            "keys": [folder, *moody, "--keys", where / "keys.json"],
        }
        with ThreadPoolExecutor(2) as threads:
            found = dict(zip(cases, threads.map(lambda arguments: ended(where, arguments), cases.values()), strict=True))
    assert not (where / "exploded").exists()
    return found


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def ended(where: Path, arguments: list[object]) -> tuple[int, str]:
    port = [] if "--port" in arguments else ["--port", 0]
    records = [] if "--records" in arguments else ["--records", "none"]
    done = subprocess.run(
        command(*arguments, *port, *records),
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        cwd=where,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("port", Exit.INPUT, "Cannot listen on 127.0.0.1 port"),
        ("broken", Exit.ARTIFACT, "broken.fasterce"),
        ("unknown model", Exit.MODEL, "nobody"),
        ("pickle", Exit.MODEL, "pickle"),
        ("records", Exit.INPUT, "records.db"),
        ("keys", Exit.INPUT, "keys.json"),
    ],
)
def test_what_cannot_start_says_so_in_a_sentence(ends: dict[str, tuple[int, str]], case: str, code: int, said: str) -> None:
    ended_with, text = ends[case]
    assert (ended_with, text.count("\n")) == (code, 1), text
    assert text.startswith("Error: ")
    assert said in text
    assert "trust" not in text
    assert "Listening" not in text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a=x", "a=y"], Exit.INPUT, "a name of its own"),
        (["a=x", "b=y", "--model", "model.onnx"], Exit.INPUT, "unknown artifact"),
        (["x", "--log-level", "loud"], Exit.INPUT, "loud"),
        (["x", "--host", "0.0.0.0"], Exit.INPUT, "--keys"),
        (["x", "--wrokers", "2"], Exit.USAGE, "--workers"),
        (["x", "--workers", "0"], Exit.USAGE, "workers"),
        ([], Exit.USAGE, "FOLDER"),
    ],
)
def test_what_was_asked_for_wrongly_is_told_before_anything_starts(arguments: list[str], code: int, said: str) -> None:
    ended_here = CliRunner().invoke(app, ["serve", *arguments])
    assert ended_here.exit_code == code
    assert said in ended_here.output
