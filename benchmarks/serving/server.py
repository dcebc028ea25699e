"""The real server as a process, an artifact for it, and the resources its processes use."""

import csv
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from benchmarks.processes import family, processor_seconds

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 60.0


class Server:
    """`fasterce serve` on a free port; `starting` is seconds until it was ready, `token` the key of our own requests."""

    def __init__(
        self,
        artifact: Path,
        records: Path,
        *options: str,
        environment: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> None:
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        command = [sys.executable, "-m", "fasterce", "serve", f"german={artifact}", "--port", "0", "--log-level", "warning"]
        command += ["--records", f"sqlite:///{records}", *options]
        began = perf_counter()
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        self.port = self._port()
        while self.get("/v2/health/ready")[0] != 200:
            if perf_counter() - began > TIMEOUT_SECONDS:
                self.stop()
                raise RuntimeError("The server is not ready after a minute.")
            sleep(0.01)
        self.starting = perf_counter() - began

    def _port(self) -> int:
        assert self.process.stderr is not None
        output = ""
        for line in self.process.stderr:
            output += line
            if "Listening on" in line:
                return int(line.strip().rpartition(":")[2])
        raise RuntimeError(f"The server did not start: {output}")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> tuple[int, float]:
        """Send SIGTERM; return the exit code and the seconds until the end."""
        began = perf_counter()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code, perf_counter() - began

    def get(self, path: str) -> tuple[int, str]:
        return self._open(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=self.headers))

    def post(self, body: str, path: str = "/v1/explain") -> tuple[int, str]:
        return self._open(urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body.encode(), self.headers))

    def _open(self, request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str) -> float:
        """Return one number of /metrics."""
        lines = self.get("/metrics")[1].splitlines()
        return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))

    def batch_rows(self) -> tuple[float, float]:
        """Return the sum over requests of the rows of the shared call, and the number of requests."""
        return self.metric("fasterce_batch_rows_sum"), self.metric("fasterce_batch_rows_count")

    def full(self) -> bool:
        """Return whether all workers and the spare are running."""
        return self.metric('fasterce_workers{state="spare"}') == 1 and self.metric('fasterce_workers{state="alive"}') >= 2

    def wait_until_full(self) -> float:
        began = perf_counter()
        while not self.full():
            if perf_counter() - began > TIMEOUT_SECONDS:
                raise RuntimeError("The workers did not all come back within a minute.")
            sleep(0.02)
        return perf_counter() - began

    def processes(self) -> list[int]:
        """Return the front process and all its descendants."""
        return family(self.process.pid)

    def workers(self) -> list[int]:
        """Return the workers, the busiest first; the front has one child, the spawner, whose children they are."""
        return sorted(self.processes()[2:], key=processor_seconds, reverse=True)

    def processor_ms(self) -> dict[str, float]:
        """Return the processor time used by the front and by all other processes."""
        front, *others = (1e3 * processor_seconds(pid) for pid in self.processes())
        return {"front_ms": front, "workers_ms": sum(others)}

    def footprint(self) -> dict[str, Any]:
        """Return processes, threads, descriptors and memory; shared memory is counted once (PSS)."""
        found: dict[str, Any] = {"processes": 0, "threads": 0, "descriptors": 0, "pss_mb": 0.0, "front_mb": 0.0}
        for pid in self.processes():
            with suppress(OSError):
                pss = _of(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") / 1024
                found["pss_mb"] += pss
                found["front_mb"] += pss if pid == self.process.pid else 0.0
                found["threads"] += _of(Path(f"/proc/{pid}/status"), "Threads:")
                found["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
                found["processes"] += 1
        return found


def _of(file: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(name))


def prepared(folder: Path) -> Path:
    """Return the folder with German Credit, an artifact with an MLP as ONNX, and refused rows; created once."""
    made = folder / "german_credit"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        code = (
            "import sys, pathlib; from scripts.serve_demo import served; served(pathlib.Path(sys.argv[1]), 'german_credit')"
        )
        subprocess.run([sys.executable, "-c", code, str(folder)], check=True, cwd=ROOT)
    return made


def hanging(folder: Path) -> Path:
    """Return an artifact for the model of models.py."""
    made = folder / "hanging.fasterce"
    if not made.exists():
        code = (
            "import sys; from benchmarks.serving.models import hangs; from fasterce import FasterCE, datasets;"
            "data = datasets.load('german_credit');"
            "FasterCE(hangs, data.schema, random_state=0, progress=False).fit(data.X.head(300)).save(sys.argv[1])"
        )
        subprocess.run([sys.executable, "-c", code, str(made)], check=True, cwd=ROOT)
    return made


def bodies(rows_file: Path, server: Server, **more: Any) -> list[str]:
    """Return one request body per row of a file."""
    numeric = {one["name"]: one["kind"] == "numeric" for one in json.loads(server.get("/v1/schema")[1])["features"]}
    with rows_file.open(newline="", encoding="utf-8") as file:
        rows = [{name: float(row[name]) if numeric[name] else row[name] for name in numeric} for row in csv.DictReader(file)]
    return [json.dumps({"rows": [row], **more}) for row in rows]


def drive(server: Server, bodies: Sequence[str], seconds: float, **plan: Any) -> subprocess.Popen[str]:
    """Start clients; `log_of` waits for them."""
    clients = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving.clients"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert clients.stdin is not None
    clients.stdin.write(json.dumps({"port": server.port, "bodies": list(bodies), "seconds": seconds, **plan}))
    clients.stdin.close()
    clients.stdin = None
    return clients


def log_of(clients: subprocess.Popen[str]) -> dict[str, Any]:
    assert clients.stdout is not None
    log: dict[str, Any] = json.load(clients.stdout)
    clients.wait()
    return log
