"""The load test drives a real server and tells what it did; how fast it was is not for a test to say."""

import json
import os
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.serve.models import as_json, calm, people, saved

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def load() -> SimpleNamespace:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        names = ("clients", "phases", "report", "server")
        return SimpleNamespace(**{name: import_module(f"benchmarks.serving.{name}") for name in names})


@pytest.fixture(scope="module")
def server(load: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("load")
    saved(folder / "calm.fasterce", calm)
    found_at = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    options = ("--model", "tests.serve.models:calm")
    with load.server.Server(folder / "calm.fasterce", folder / "r.db", *options, environment=os.environ | found_at) as server:
        server.wait_until_full()
        yield server


@pytest.fixture(scope="module")
def asked() -> list[str]:
    return [json.dumps({"rows": [row], "deadline_ms": 20_000}) for row in as_json(people(20))]


def test_clients_are_answered_and_counted(load: SimpleNamespace, server: Any, asked: list[str]) -> None:
    told = load.phases.summary(load.phases.driven(server, asked, load.phases.QUICK, clients=4))
    assert told["statuses"] == {"200": told["requests"]}
    assert told["requests"] >= 4
    assert 0 < told["ms"]["p50"] <= told["ms"]["p99"] <= told["ms"]["max"]
    assert told["unhealthy"] == 0


def test_requests_at_their_times_are_all_sent_whatever_the_server_does(load: SimpleNamespace, server: Any) -> None:
    told = load.phases.driven(server, ['{"rows": []}'], load.phases.QUICK, rate=20.0, warm_up=0.0)
    assert load.phases.statuses(told) == {"422": 20}
    assert all(later >= sooner for sooner, later, *_ in told["lines"])


def test_a_killed_engine_is_replaced(load: SimpleNamespace, server: Any, asked: list[str]) -> None:
    told = load.phases.killed(server, asked, load.phases.QUICK)
    assert told["one"][0]["statuses"]["200"] > 0
    assert "all at once" in load.report.killed(told)


def test_memory_and_descriptors_are_those_of_all_processes(server: Any) -> None:
    found = server.footprint()
    assert found["processes"] == 4  # front, fork server, worker, spare
    assert found["pss_mb"] > found["front_mb"] > 0
    assert found["descriptors"] > found["processes"]


def test_growth_is_told_a_minute(load: SimpleNamespace) -> None:
    samples = [{"at": 6.0 * k, "pss_mb": 300.0 + 0.2 * k} for k in range(20)]
    assert load.phases.slope(samples) == pytest.approx(2.0)


def test_a_lost_server_is_told_as_lost(load: SimpleNamespace) -> None:
    told = load.phases.counted([200, 0, 200, 429])
    assert told == {"lost": 1, "200": 2, "429": 1}
