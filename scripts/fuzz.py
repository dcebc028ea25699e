"""`make fuzz`: requests made from the server's own OpenAPI description, thousands of them, and not one server error."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving.server import Server, bodies, prepared  # noqa: E402

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# A deadline of a millisecond, which every round tries, ends in 504 and rightly so.
LATE = "504"
SETTINGS = '[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 504]\n'
# A round has about so many times more requests than examples: one an operation and example, and the edges of every field.
ROUTES_WITH_INPUT = 10
FEWEST = 5
EDGES = 1000
Statuses = Counter[tuple[str, str]]
LINE = re.compile(r'fasterce_requests_total\{code="(\d+)",route="([^"]*)"\} ([\d.]+)')


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python scripts/fuzz.py", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="go on until so many have been sent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / ".work" / "serve")
    options = parser.parse_args(arguments)
    made = prepared(options.work)
    with tempfile.TemporaryDirectory() as folder, Server(made / "artifact", Path(folder) / "records.db") as server:
        row = json.loads(bodies(made / "people.csv", server)[0])["rows"][0]
        found, as_described = fuzz(server, row, options.requests, options.seed, Path(folder))
    worst = errors(found)
    late = sum(count for key, count in found.items() if key[0] == LATE)
    explained = sum(count for key, count in found.items() if key[0] == "200" and key[1].endswith(("explain", "infer")))
    print(f"{found.total()} requests, {explained} explained, {late} too late, server errors: {worst or 'none'}")
    return int(bool(worst) or not as_described)


def fuzz(server: Server, row: dict[str, Any], requests: int, seed: int, folder: Path) -> tuple[Statuses, bool]:
    """So many requests at least, by status and route; and whether every answer was as described."""
    (folder / "schemathesis.toml").write_text(SETTINGS, encoding="utf-8")
    environment = told_to_hooks(server, row)
    as_described, rounds = True, 0
    while (sent := counted(server).total()) < requests:
        # The edges of every field take a thousand requests, once.
        phases = "coverage,fuzzing" if rounds == 0 and requests > EDGES else "fuzzing"
        examples = max((requests - sent) // ROUTES_WITH_INPUT, FEWEST)
        as_described &= fuzzed(server, phases, examples, seed + rounds, folder, environment)
        rounds += 1
    return counted(server), as_described


def errors(found: Statuses) -> dict[tuple[str, str], int]:
    return {key: count for key, count in found.items() if key[0].startswith("5") and key[0] != LATE}


def told_to_hooks(server: Server, row: dict[str, Any]) -> dict[str, str]:
    """What generated requests need to get past the first checks."""
    name = json.loads(server.get("/v1/artifacts")[1])["artifacts"][0]["name"]
    version = json.loads(server.get(f"/v2/models/{name}")[1])["versions"][0]
    hooks = {"SCHEMATHESIS_HOOKS": "scripts.fuzz_hooks", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    return os.environ | hooks | {"FASTERCE_FUZZ": json.dumps({"name": name, "version": version, "row": row})}


def fuzzed(server: Server, phases: str, examples: int, seed: int, folder: Path, environment: dict[str, str]) -> bool:
    """One run of Schemathesis."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{server.port}/openapi.json"]
    command += ["--max-examples", str(examples), "--seed", str(seed), "--checks", CHECKS, "--continue-on-failure"]
    command += ["--phases", phases, "--generation-database", "none", "--no-color"]
    command += ["--suppress-health-check", "all", "--warnings", "off"]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode == 0


def counted(server: Server) -> Statuses:
    """Requests by status and route, as the server has counted them."""
    lines = LINE.findall(server.get("/metrics")[1])
    return Counter({(code, route): round(float(count)) for code, route, count in lines})


if __name__ == "__main__":
    sys.exit(main())
