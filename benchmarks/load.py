"""The service under load, faults and time: the real server, driven from another process. `make bench-serve`."""

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measuring import facts, load, machine
from benchmarks.serving import phases
from benchmarks.serving.report import for_page, is_busy, markdown
from benchmarks.serving.server import Server, bodies, prepared

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "serve.md"
START, END = "<!-- serve -->", "<!-- /serve -->"
NOT_PUBLISHED = "it gets the figures of a complete run with one worker on a machine without other work (or with --publish)."
PHASES = ("start", "sustained", "overload", "mixed", "attack", "kill", "hang", "end", "soak")
SERVED_BY = ("fastapi", "uvicorn", "uvloop", "httptools", "pydantic", "SQLAlchemy")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about half a minute: shows that it works, not how fast it is")
    parser.add_argument(
        "--soak", type=float, default=0.0, metavar="SECONDS", help="also run the usual load for this long (600)"
    )
    parser.add_argument("--only", nargs="+", choices=PHASES, default=PHASES, help="some of the experiments")
    parser.add_argument("--publish", action="store_true", help="update docs/serve.md even if the machine was busy")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--work", type=Path, default=HERE / ".work" / "serve", help="folder of the artifacts, which are created once"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results" / "serve.md", help="and .json beside it")
    options = parser.parse_args(arguments)
    effort = replace(phases.QUICK if options.quick else phases.Effort(), soak=options.soak)
    run = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "benchmarks.load", *(sys.argv[1:] if arguments is None else arguments)]),
        "machine": machine(),
        "facts": facts(),
        "served_by": {name: version(name) for name in SERVED_BY},
        "effort": vars(effort),
        "workers": options.workers,
        "load_before": load(),
        **measure(options.work, effort, options.only, options.workers),
        "load_after": load(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(run, indent=1), encoding="utf-8")
    options.out.write_text(markdown(run), encoding="utf-8")
    print(markdown(run))
    complete = not options.quick and set(PHASES) <= {*options.only, "soak"} and options.workers == 1
    if complete and (options.publish or not is_busy(run)):
        publish(run)
        print(f"{PAGE.name}: the figures of this run", file=sys.stderr)
    else:
        print(f"{PAGE.name} is not changed: {NOT_PUBLISHED}", file=sys.stderr)


def publish(run: dict[str, Any], page: Path = PAGE) -> None:
    """Write the figures of a run into the page of the service."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(START, 1)
    _, after = rest.split(END, 1)
    page.write_text(f"{before}{START}\n\n{for_page(run)}\n\n{END}{after}", encoding="utf-8")


def measure(work: Path, effort: phases.Effort, names: Sequence[str], workers: int) -> dict[str, Any]:
    """Run the experiments, those that disturb the server last."""
    made = prepared(work)
    artifact, rows_file, found = made / "artifact", made / "people.csv", {}
    with tempfile.TemporaryDirectory() as folder:
        work_folder = Path(folder)
        if "start" in names:
            found["start"] = log_done(phases.starts(artifact, work_folder, effort.starts), "start")
        with Server(artifact, work_folder / "records.db", "--workers", str(workers)) as server:
            requests = bodies(rows_file, server)
            server.wait_until_full()
            if "sustained" in names or "overload" in names:
                found["sustained"] = log_done(phases.sustained(server, requests, effort), "sustained")
                capacity = max(one["per_second"] for one in found["sustained"])
            if "overload" in names:
                found["overload"] = log_done(phases.overload(server, requests, effort, capacity), "overload")
            if "kill" in names:
                found["kill"] = log_done(phases.killed(server, requests, effort), "kill")
            if "soak" in names and effort.soak:
                found["soak"] = log_done(phases.soak(server, requests, effort), "soak")
            if "end" in names:
                found["end"] = log_done(phases.ended(server, requests, effort), "end")
        if "mixed" in names:
            found["mixed"] = log_done(phases.mixed(artifact, rows_file, work_folder, effort), "mixed")
        if "attack" in names:
            found["attack"] = log_done(phases.attacked(artifact, rows_file, work_folder, effort), "attack")
        if "hang" in names:
            found["hang"] = log_done(phases.hung(work, effort, rows_file), "hang")
    return found


def log_done(found: Any, what: str) -> Any:
    print(f"{datetime.now(UTC):%H:%M:%S} {what} done", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
