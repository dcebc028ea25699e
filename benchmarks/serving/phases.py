"""The experiments with the server, one function each; they return plain numbers."""

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.measuring import load
from benchmarks.serving.clients import LOST
from benchmarks.serving.models import HANGS_AT
from benchmarks.serving.server import Server, bodies, drive, hanging, log_of
from fasterce.serve.keys import SCOPES, new_key

CLIENTS = (1, 8, 64)
USUAL = 8
OVERLOAD = 4
# Rows and options of the large requests that are sent while single rows are timed.
LARGE_ROWS = 256
LARGE: dict[str, dict[str, Any]] = {
    "default": {},
    "n=10": {"n": 10},
    "all": {"method": "all"},
    "all, n=10": {"method": "all", "n": 10},
}
HANG_MS = 300
SETTLED = 3.0
# Number of connections without a key that announce a body and do not send it, and their routes.
ANONYMOUS_CONNECTIONS = 180
ATTACKED = ("/v1/explain", "/v2/models/german/infer", "/no/such/path")
# Seconds by which large requests precede the small ones.
HEAD_START = 0.5


@dataclass(frozen=True)
class Effort:
    """Durations in seconds and repeats; short ones show that it works, not how fast it is."""

    warm_up: float = 3.0
    seconds: float = 10.0
    repeats: int = 3
    starts: int = 5
    overload: float = 30.0
    killing: float = 15.0
    hangs: int = 100
    soak: float = 0.0


QUICK = Effort(warm_up=0.5, seconds=1.0, repeats=1, starts=1, overload=2.0, killing=3.0, hangs=2)


def starts(artifact: Path, folder: Path, times: int) -> dict[str, Any]:
    """Measure the time until ready, memory once the spare worker runs, and the end of an idle server."""
    seconds, pss, ended = [], [], []
    for k in range(times):
        with Server(artifact, folder / f"start{k}.db") as server:
            seconds.append(server.starting)
            server.wait_until_full()
            pss.append(server.footprint()["pss_mb"])
            code, stopping = server.stop()
            ended.append({"code": code, "seconds": stopping})
    return {"seconds": seconds, "pss_mb": pss, "ended": ended}


def sustained(server: Server, requests: Sequence[str], effort: Effort) -> list[dict[str, Any]]:
    """Run some clients, each sending the next request when the last one is answered."""
    return [sustained_run(server, requests, effort, clients) for clients in CLIENTS for _ in range(effort.repeats)]


def sustained_run(server: Server, requests: Sequence[str], effort: Effort, clients: int) -> dict[str, Any]:
    """Return one run, with the processor time of the server per request, the warm-up included."""
    found, before, batches = {"clients": clients, "load": load()}, server.processor_ms(), server.batch_rows()
    log = driven(server, requests, effort, clients=clients)
    rows, requests = (after - earlier for after, earlier in zip(server.batch_rows(), batches, strict=True))
    found["batch_rows"] = rows / max(requests, 1)
    used = {name: (after - before[name]) / max(len(log["lines"]), 1) for name, after in server.processor_ms().items()}
    return found | summary(log, effort.warm_up) | used


def overload(server: Server, requests: Sequence[str], effort: Effort, capacity: float) -> dict[str, Any]:
    """Send four times as many requests as the server can answer, at fixed times; then the usual load again."""
    before = server.footprint()
    log = driven(server, requests, effort, seconds=effort.overload, rate=OVERLOAD * capacity)
    after = server.footprint()
    sleep(SETTLED)
    settled = server.footprint()
    again = summary(driven(server, requests, effort, clients=USUAL, warm_up=0.0))
    return {
        "rate": OVERLOAD * capacity,
        **summary(log, effort.warm_up),
        "before": before,
        "after": after,
        "settled": settled,
        "usual_again": again,
    }


def mixed(artifact: Path, rows_file: Path, folder: Path, effort: Effort) -> list[dict[str, Any]]:
    """Run the usual load of single rows in turns alone and with one client of large requests; each has a key."""
    tokens = [new_key(folder / "keys.json", f"client {k}", SCOPES) for k in range(USUAL + 1)]
    singles: dict[str, Any] = {"clients": USUAL, "tokens": tokens[:USUAL]}
    found = []
    with Server(artifact, folder / "mixed.db", "--keys", str(folder / "keys.json"), token=tokens[-1]) as server:
        requests = bodies(rows_file, server)
        server.wait_until_full()
        rows = [json.loads(body)["rows"][0] for body in requests]
        large = [rows[k % len(rows)] for k in range(LARGE_ROWS)]
        for name, options in LARGE.items():
            body = json.dumps({"rows": large, "deadline_ms": 60_000, "keep": False, **options})
            for _ in range(effort.repeats):
                alone = summary(driven(server, requests, effort, **singles), effort.warm_up)
                heavy = drive(
                    server, [body], effort.warm_up + effort.seconds, clients=1, tokens=tokens[-1:], no_response_seconds=70.0
                )
                sleep(HEAD_START)
                together = summary(driven(server, requests, effort, **singles), effort.warm_up)
                found.append({"large": name, "alone": alone, "together": together, "large_statuses": statuses(log_of(heavy))})
    return found


def attacked(artifact: Path, rows_file: Path, folder: Path, effort: Effort) -> list[dict[str, Any]]:
    """Run the usual load of clients with keys in turns alone and with anonymous connections."""
    tokens = [new_key(folder / "attacked.json", f"client {k}", SCOPES) for k in range(USUAL)]
    usual: dict[str, Any] = {"clients": USUAL, "tokens": tokens}
    found = []
    with Server(artifact, folder / "attacked.db", "--keys", str(folder / "attacked.json"), token=tokens[0]) as server:
        requests = bodies(rows_file, server)
        server.wait_until_full()
        for path in ATTACKED:
            for _ in range(effort.repeats):
                alone = summary(driven(server, requests, effort, **usual), effort.warm_up)
                anonymous = drive(
                    server, [], effort.warm_up + effort.seconds + HEAD_START, anonymous=ANONYMOUS_CONNECTIONS, path=path
                )
                sleep(HEAD_START)
                together = summary(driven(server, requests, effort, **usual), effort.warm_up)
                found.append({"path": path, "alone": alone, "together": together, "anonymous": statuses(log_of(anonymous))})
    return found


def killed(server: Server, requests: Sequence[str], effort: Effort) -> dict[str, Any]:
    """SIGKILL under the usual load: the busy worker, and then all workers at once, the spare included."""
    return {
        who: [_killed(server, requests, effort, most) for _ in range(effort.repeats)]
        for who, most in (("one", 1), ("all", None))
    }


def _killed(server: Server, requests: Sequence[str], effort: Effort, most: int | None) -> dict[str, Any]:
    server.wait_until_full()
    clients = drive(server, requests, effort.killing, clients=USUAL)
    sleep(effort.killing / 3)
    for pid in server.workers()[:most]:
        os.kill(pid, signal.SIGKILL)
    sleep(0.1)
    full = server.wait_until_full() + 0.1
    log = log_of(clients)
    times = sorted(line[1] for line in log["lines"] if line[2] == 200)
    gaps = [later - sooner for sooner, later in pairwise(times)]
    return {**summary(log), "full_after": full, "longest_gap": max(gaps)}


def hung(folder: Path, effort: Effort, rows_file: Path) -> dict[str, Any]:
    """A model that hangs on one row: how late the 504 is, how soon another row is explained, and what leaks."""
    options = ("--model", "benchmarks.serving.models:hangs")
    with Server(hanging(folder), folder / "hanging.db", *options) as server:
        usual = bodies(rows_file, server)[0]
        stuck = json.dumps({"rows": [json.loads(usual)["rows"][0] | HANGS_AT], "deadline_ms": HANG_MS})
        server.post(usual)
        server.wait_until_full()
        before = server.footprint()
        late, usable, statuses = [], [], []
        for _ in range(effort.hangs):
            began = perf_counter()
            status, _ = server.post(stuck)
            late.append(perf_counter() - began - HANG_MS / 1e3)
            statuses.append(status)
            began = perf_counter()
            while server.post(usual)[0] != 200 and perf_counter() - began < 30:
                sleep(0.01)
            usable.append(perf_counter() - began)
        server.wait_until_full()
        sleep(SETTLED)
        return {"statuses": counted(statuses), "late": late, "usable": usable, "before": before, "after": server.footprint()}


def ended(server: Server, requests: Sequence[str], effort: Effort) -> dict[str, Any]:
    """SIGTERM under the usual load: the outcome of the requests before it."""
    clients = drive(server, requests, effort.seconds / 2, clients=USUAL)
    sleep(effort.seconds / 4)
    began = perf_counter()
    code, stopping = server.stop()
    log = log_of(clients)
    before = [line for line in log["lines"] if log["start"] + line[0] < began]
    return {"code": code, "seconds": stopping, "before": statuses({"lines": before}), "statuses": statuses(log)}


def soak(server: Server, requests: Sequence[str], effort: Effort) -> dict[str, Any]:
    """Run the usual load for a long time, sampling memory and descriptors."""
    clients = drive(server, requests, effort.soak, clients=USUAL, warm_up=0.0)
    began, samples = perf_counter(), []
    while clients.poll() is None and perf_counter() - began < effort.soak:
        samples.append({"at": perf_counter() - began, **server.footprint()})
        sleep(min(10.0, effort.soak / 10))
    return {**summary(log_of(clients)), "samples": samples, "mb_per_minute": slope(samples)}


def slope(samples: Sequence[dict[str, Any]]) -> float:
    """Return MB per minute, by least squares, without the first fifth."""
    kept = samples[len(samples) // 5 :]
    times, sizes = [one["at"] / 60 for one in kept], [one["pss_mb"] for one in kept]
    middle, mean = sum(times) / len(times), sum(sizes) / len(sizes)
    spread = sum((time - middle) ** 2 for time in times)
    return sum((time - middle) * (size - mean) for time, size in zip(times, sizes, strict=True)) / spread if spread else 0.0


def driven(server: Server, requests: Sequence[str], effort: Effort, **plan: Any) -> dict[str, Any]:
    return log_of(drive(server, requests, **{"seconds": effort.seconds, "warm_up": effort.warm_up, **plan}))


def summary(log: dict[str, Any], warm_up: float = 0.0) -> dict[str, Any]:
    """Return rates, times and statuses of the requests after the warm-up."""
    counted_lines = [line for line in log["lines"] if line[0] >= warm_up]
    successful = [line for line in counted_lines if line[2] == 200]
    busy = [line for line in counted_lines if line[2] == 429]
    end = max((line[1] for line in counted_lines), default=warm_up)
    return {
        "requests": len(counted_lines),
        "statuses": statuses({"lines": counted_lines}),
        "per_second": len(successful) / (end - warm_up) if successful else 0.0,
        "ms": percentiles([1e3 * (line[1] - line[0]) for line in successful]),
        "busy_ms": percentiles([1e3 * (line[1] - line[0]) for line in busy]),
        "busy_share": len(busy) / max(len(counted_lines), 1),
        "busy_with_retry_after": sum(line[3] for line in busy),
        "health_ms": percentiles([1e3 * (line[1] - line[0]) for line in log["health"]]),
        "unhealthy": sum(line[2] != 200 for line in log["health"]),
        "client_cpu": log["cpu"],
    }


def statuses(log: dict[str, Any]) -> dict[str, int]:
    return counted([line[2] for line in log["lines"]])


def counted(values: Sequence[int]) -> dict[str, int]:
    return {"lost" if value == LOST else str(value): list(values).count(value) for value in sorted(set(values))}


def percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    if not ordered:
        return {}
    return {name: ordered[min(int(share * len(ordered)), len(ordered) - 1)] for name, share in shares.items()} | {
        "max": ordered[-1]
    }
