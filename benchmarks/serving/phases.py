"""What is done to the server, one experiment a function; each gives plain numbers."""

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
from benchmarks.serving.server import Server, bodies, drive, hanging, told_by
from fasterce.serve.keys import SCOPES, new_key

CLIENTS = (1, 8, 64)
USUAL = 8
OVERLOAD = 4
# Rows and options of the large requests beside which single rows are timed.
LARGE_ROWS = 256
LARGE: dict[str, dict[str, Any]] = {
    "default": {},
    "n=10": {"n": 10},
    "all": {"method": "all"},
    "all, n=10": {"method": "all", "n": 10},
}
HANG_MS = 300
SETTLED = 3.0
# Connections without a key that announce a body and do not send it, and where to.
STRANGERS = 180
ATTACKED = ("/v1/explain", "/v2/models/german/infer", "/no/such/path")
# Seconds by which large requests come before the small ones.
HEAD_START = 0.5


@dataclass(frozen=True)
class Effort:
    """How long everything takes; a short one shows that it works, not how fast it is."""

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
    """Until ready, and memory once the spare is there too; then told to end without work."""
    seconds, pss, ended = [], [], []
    for k in range(times):
        with Server(artifact, folder / f"start{k}.db") as server:
            seconds.append(server.starting)
            server.wait_until_full()
            pss.append(server.footprint()["pss_mb"])
            code, took = server.stop()
            ended.append({"code": code, "seconds": took})
    return {"seconds": seconds, "pss_mb": pss, "ended": ended}


def steady(server: Server, asked: Sequence[str], effort: Effort) -> list[dict[str, Any]]:
    """So many clients, each asking again as soon as it is answered."""
    return [steadily(server, asked, effort, clients) for clients in CLIENTS for _ in range(effort.repeats)]


def steadily(server: Server, asked: Sequence[str], effort: Effort, clients: int) -> dict[str, Any]:
    """One run, with the processor time of the server per request, those of the warm-up included."""
    found, before, batches = {"clients": clients, "load": load()}, server.processor_ms(), server.batch_rows()
    told = driven(server, asked, effort, clients=clients)
    rows, requests = (after - earlier for after, earlier in zip(server.batch_rows(), batches, strict=True))
    found["batch_rows"] = rows / max(requests, 1)
    used = {name: (after - before[name]) / max(len(told["lines"]), 1) for name, after in server.processor_ms().items()}
    return found | summary(told, effort.warm_up) | used


def overload(server: Server, asked: Sequence[str], effort: Effort, capacity: float) -> dict[str, Any]:
    """Four times as many requests as it can answer, at their times whatever happens; then the usual load again."""
    before = server.footprint()
    told = driven(server, asked, effort, seconds=effort.overload, rate=OVERLOAD * capacity)
    after = server.footprint()
    sleep(SETTLED)
    settled = server.footprint()
    again = summary(driven(server, asked, effort, clients=USUAL, warm_up=0.0))
    return {
        "rate": OVERLOAD * capacity,
        **summary(told, effort.warm_up),
        "before": before,
        "after": after,
        "settled": settled,
        "usual_again": again,
    }


def beside(artifact: Path, people: Path, folder: Path, effort: Effort) -> list[dict[str, Any]]:
    """The usual load of single rows, alone and beside one client who sends large requests, in turns; each has a key."""
    tokens = [new_key(folder / "keys.json", f"client {k}", SCOPES) for k in range(USUAL + 1)]
    singles: dict[str, Any] = {"clients": USUAL, "tokens": tokens[:USUAL]}
    found = []
    with Server(artifact, folder / "beside.db", "--keys", str(folder / "keys.json"), token=tokens[-1]) as server:
        asked = bodies(people, server)
        server.wait_until_full()
        rows = [json.loads(body)["rows"][0] for body in asked]
        large = [rows[k % len(rows)] for k in range(LARGE_ROWS)]
        for name, options in LARGE.items():
            body = json.dumps({"rows": large, "deadline_ms": 60_000, "keep": False, **options})
            for _ in range(effort.repeats):
                alone = summary(driven(server, asked, effort, **singles), effort.warm_up)
                heavy = drive(server, [body], effort.warm_up + effort.seconds, clients=1, tokens=tokens[-1:], unanswered=70.0)
                sleep(HEAD_START)
                with_it = summary(driven(server, asked, effort, **singles), effort.warm_up)
                found.append({"large": name, "alone": alone, "beside": with_it, "large_statuses": statuses(told_by(heavy))})
    return found


def attacked(artifact: Path, people: Path, folder: Path, effort: Effort) -> list[dict[str, Any]]:
    """The usual load of clients with keys, alone and beside strangers without one, in turns."""
    tokens = [new_key(folder / "attacked.json", f"client {k}", SCOPES) for k in range(USUAL)]
    usual: dict[str, Any] = {"clients": USUAL, "tokens": tokens}
    found = []
    with Server(artifact, folder / "attacked.db", "--keys", str(folder / "attacked.json"), token=tokens[0]) as server:
        asked = bodies(people, server)
        server.wait_until_full()
        for path in ATTACKED:
            for _ in range(effort.repeats):
                alone = summary(driven(server, asked, effort, **usual), effort.warm_up)
                strangers = drive(server, [], effort.warm_up + effort.seconds + HEAD_START, strangers=STRANGERS, path=path)
                sleep(HEAD_START)
                with_them = summary(driven(server, asked, effort, **usual), effort.warm_up)
                found.append({"path": path, "alone": alone, "beside": with_them, "strangers": statuses(told_by(strangers))})
    return found


def killed(server: Server, asked: Sequence[str], effort: Effort) -> dict[str, Any]:
    """SIGKILL under the usual load: of the worker that works, and then of all at once, the spare too."""
    return {
        who: [_killed(server, asked, effort, most) for _ in range(effort.repeats)]
        for who, most in (("one", 1), ("all", None))
    }


def _killed(server: Server, asked: Sequence[str], effort: Effort, most: int | None) -> dict[str, Any]:
    server.wait_until_full()
    clients = drive(server, asked, effort.killing, clients=USUAL)
    sleep(effort.killing / 3)
    for pid in server.workers()[:most]:
        os.kill(pid, signal.SIGKILL)
    sleep(0.1)
    full = server.wait_until_full() + 0.1
    told = told_by(clients)
    answered = sorted(line[1] for line in told["lines"] if line[2] == 200)
    gaps = [later - sooner for sooner, later in pairwise(answered)]
    return {**summary(told), "full_after": full, "longest_gap": max(gaps)}


def hung(folder: Path, effort: Effort, people: Path) -> dict[str, Any]:
    """A model that never answers about one row: how late the 504 is, how soon another is answered, what is left behind."""
    options = ("--model", "benchmarks.serving.models:hangs")
    with Server(hanging(folder), folder / "hanging.db", *options) as server:
        usual = bodies(people, server)[0]
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


def ended(server: Server, asked: Sequence[str], effort: Effort) -> dict[str, Any]:
    """SIGTERM under the usual load: what became of all that was asked before it."""
    clients = drive(server, asked, effort.seconds / 2, clients=USUAL)
    sleep(effort.seconds / 4)
    began = perf_counter()
    code, took = server.stop()
    told = told_by(clients)
    before = [line for line in told["lines"] if told["start"] + line[0] < began]
    return {"code": code, "seconds": took, "before": statuses({"lines": before}), "statuses": statuses(told)}


def soak(server: Server, asked: Sequence[str], effort: Effort) -> dict[str, Any]:
    """The usual load for long: memory and descriptors again and again."""
    clients = drive(server, asked, effort.soak, clients=USUAL, warm_up=0.0)
    began, samples = perf_counter(), []
    while clients.poll() is None and perf_counter() - began < effort.soak:
        samples.append({"at": perf_counter() - began, **server.footprint()})
        sleep(min(10.0, effort.soak / 10))
    return {**summary(told_by(clients)), "samples": samples, "mb_per_minute": slope(samples)}


def slope(samples: Sequence[dict[str, Any]]) -> float:
    """MB a minute, by least squares, without the first fifth."""
    kept = samples[len(samples) // 5 :]
    times, sizes = [one["at"] / 60 for one in kept], [one["pss_mb"] for one in kept]
    middle, mean = sum(times) / len(times), sum(sizes) / len(sizes)
    spread = sum((time - middle) ** 2 for time in times)
    return sum((time - middle) * (size - mean) for time, size in zip(times, sizes, strict=True)) / spread if spread else 0.0


def driven(server: Server, asked: Sequence[str], effort: Effort, **plan: Any) -> dict[str, Any]:
    return told_by(drive(server, asked, **{"seconds": effort.seconds, "warm_up": effort.warm_up, **plan}))


def summary(told: dict[str, Any], warm_up: float = 0.0) -> dict[str, Any]:
    """Of the requests after the warm-up: how many a second were answered, how long they took, what the others were told."""
    counted_ones = [line for line in told["lines"] if line[0] >= warm_up]
    good = [line for line in counted_ones if line[2] == 200]
    busy = [line for line in counted_ones if line[2] == 429]
    end = max((line[1] for line in counted_ones), default=warm_up)
    return {
        "requests": len(counted_ones),
        "statuses": statuses({"lines": counted_ones}),
        "per_second": len(good) / (end - warm_up) if good else 0.0,
        "ms": percentiles([1e3 * (line[1] - line[0]) for line in good]),
        "busy_ms": percentiles([1e3 * (line[1] - line[0]) for line in busy]),
        "busy_share": len(busy) / max(len(counted_ones), 1),
        "busy_with_retry_after": sum(line[3] for line in busy),
        "health_ms": percentiles([1e3 * (line[1] - line[0]) for line in told["health"]]),
        "unhealthy": sum(line[2] != 200 for line in told["health"]),
        "client_cpu": told["cpu"],
    }


def statuses(told: dict[str, Any]) -> dict[str, int]:
    return counted([line[2] for line in told["lines"]])


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
