"""Real Ray: a cluster of two nodes on this machine; an actor and a node are killed in mid-run, and the bytes are the same."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fasterce import batch
from tests.batch.conftest import digests, whole
from tests.batch.models import TRAP
from tests.batch.test_runner import ROWS, trapped_rows

pytest.importorskip("ray")
Explain = Callable[..., batch.BatchReport]
HERE = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trap") / "trap"


@pytest.fixture(scope="module")
def cluster(trap: Path) -> Iterator[Any]:
    """A head that does no work, and two nodes with a core each, whose processes know of the trap."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(TRAP, str(trap))
        patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **HERE})
        nodes = [made.add_node(num_cpus=1, **HERE) for _ in range(2)]
        yield made, nodes
        made.shutdown()


def test_an_actor_and_a_node_are_lost(cluster: Any, explain: Explain, rows_folder: Path, trap: Path, tmp_path: Path) -> None:
    made, nodes = cluster
    source, output = tmp_path / "rows", tmp_path / "out"
    trapped_rows(rows_folder, source)
    explain(source, tmp_path / "calm", workers=0)
    trap.touch()

    def lose_one() -> None:
        until = time.monotonic() + 120
        while not list(output.glob("_shards/*.json")) and time.monotonic() < until:
            time.sleep(0.02)
        made.remove_node(nodes.pop(), allow_graceful=False)

    losing = Thread(target=lose_one, daemon=True)
    losing.start()
    report = explain(
        source, backend="ray", workers=2, address=made.address, model="tests.batch.models:slow_killing", retries=3
    )
    losing.join()
    assert not trap.exists()
    assert len(nodes) == 1
    assert report.complete
    assert report.counts.read == ROWS
    assert digests(output) == digests(tmp_path / "calm")
    again = explain(source, backend="ray", address=made.address, model="tests.batch.models:slow_killing")
    assert again.resumed == again.shards == 6


def test_a_shard_that_kills_every_actor_is_reported(
    cluster: Any, explain: Explain, rows_folder: Path, tmp_path: Path
) -> None:
    made, _ = cluster
    source = tmp_path / "rows"
    trapped_rows(rows_folder, source)
    report = explain(
        source, backend="ray", workers=1, address=made.address, model="tests.batch.models:killing_always", retries=1
    )
    (failure,) = report.failed
    assert (failure.number, failure.kind) == (3, "WorkerDied")
    assert "died 2 times" in failure.reason
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert len(whole(tmp_path / "out")) == ROWS - failure.rows


def test_an_own_cluster_listens_on_loopback_and_reports_what_actors_cannot_load(
    explain: Explain, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    heard: set[str] = set()

    def listen(standing: batch.BatchProgress) -> None:
        heard.update(node["NodeManagerAddress"] for node in (ray.nodes() if ray.is_initialized() else ()))

    monkeypatch.setitem(sys.modules, "only_here", sys.modules["tests.batch.models"])
    report = explain(backend="ray", workers=1, model="only_here:grants", retries=0, limit=80, progress=listen)
    assert [failure.kind for failure in report.failed] == ["ModelError", "ModelError"]
    assert "only_here" in report.failed[0].reason
    assert heard == {"127.0.0.1"}
    assert not ray.is_initialized()
