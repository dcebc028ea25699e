"""The load test drives a real server; its speed is not tested."""

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
def bodies() -> list[str]:
    return [json.dumps({"rows": [row], "deadline_ms": 20_000}) for row in as_json(people(20))]


def test_responses_to_clients_are_counted(load: SimpleNamespace, server: Any, bodies: list[str]) -> None:
    counts = load.phases.summary(load.phases.driven(server, bodies, load.phases.QUICK, clients=4))
    assert counts["statuses"] == {"200": counts["requests"]}
    assert counts["requests"] >= 4
    assert 0 < counts["ms"]["p50"] <= counts["ms"]["p99"] <= counts["ms"]["max"]
    assert counts["unhealthy"] == 0


def test_requests_at_their_times_are_all_sent_whatever_the_server_does(load: SimpleNamespace, server: Any) -> None:
    counts = load.phases.driven(server, ['{"rows": []}'], load.phases.QUICK, rate=20.0, warm_up=0.0)
    assert load.phases.statuses(counts) == {"422": 20}
    assert all(later >= sooner for sooner, later, *_ in counts["lines"])


def test_a_killed_worker_is_replaced(load: SimpleNamespace, server: Any, bodies: list[str]) -> None:
    counts = load.phases.killed(server, bodies, load.phases.QUICK)
    assert counts["one"][0]["statuses"]["200"] > 0
    assert "all at once" in load.report.killed(counts)


def test_memory_and_descriptors_are_those_of_all_processes(server: Any) -> None:
    found = server.footprint()
    assert found["processes"] == 4  # front, fork server, worker, spare
    assert found["pss_mb"] > found["front_mb"] > 0
    assert found["descriptors"] > found["processes"]


def test_growth_is_reported_per_minute(load: SimpleNamespace) -> None:
    samples = [{"at": 6.0 * k, "pss_mb": 300.0 + 0.2 * k} for k in range(20)]
    assert load.phases.slope(samples) == pytest.approx(2.0)


def test_a_lost_server_is_reported_as_lost(load: SimpleNamespace) -> None:
    counts = load.phases.counted([200, 0, 200, 429])
    assert counts == {"lost": 1, "200": 2, "429": 1}


def test_the_page_of_the_service_gets_the_figures_of_a_run(load: SimpleNamespace, tmp_path: Path) -> None:
    times = {"p50": 5.0, "p95": 6.0, "p99": 7.0, "max": 9.0}
    run = {"clients": 1, "per_second": 120.0, "ms": times, "statuses": {"200": 10}}
    pair = {"alone": run, "together": run | {"per_second": 60.0}}
    left = {"processes": 4, "threads": 8, "descriptors": 36, "pss_mb": 360.0}
    counts = {
        "time": "2026-11-18T00:00:00+00:00",
        "facts": {"cores": 2},
        "start": {"seconds": [1.5], "pss_mb": [360.0]},
        "sustained": [run, run | {"clients": 64, "per_second": 1000.0}],
        "overload": run | {"rate": 4000.0, "busy_ms": times, "health_ms": times},
        "mixed": [pair],
        "attack": [pair],
        "kill": {"one": [run | {"longest_gap": 0.1}], "all": [run | {"longest_gap": 0.2}]},
        "hang": {"late": [0.003], "usable": [0.1], "statuses": {"504": 1}, "before": left, "after": left},
        "end": {"code": 0, "seconds": 0.5, "before": {"200": 3}},
    }
    page = tmp_path / "serve.md"
    page.write_text("before\n\n<!-- serve -->\n\nold\n\n<!-- /serve -->\n\nafter\n", encoding="utf-8")
    for _ in range(2):
        import_module("benchmarks.load").publish(counts, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n\n<!-- serve -->\n\nMeasured on 2026-11-18 with 2 cores.")
    assert text.endswith("<!-- /serve -->\n\nafter\n")
    assert "old" not in text
    assert "| 1 | 120 | 5 | 6 | 7 |\n| 64 | 1000 | 5 | 6 | 7 |" in text
    assert "keep 50% of their throughput" in text
    assert all(f"<!-- {mark} -->" in (ROOT / "docs" / "serve.md").read_text(encoding="utf-8") for mark in ("serve", "/serve"))
