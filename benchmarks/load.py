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
from benchmarks.serving.report import for_page, is_busy, written
from benchmarks.serving.server import Server, bodies, prepared

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "serve.md"
FIRST, LAST = "<!-- serve -->", "<!-- /serve -->"
LEFT = "it gets the figures of a run of everything with one worker on a machine without other work (or with --publish)."
PHASES = ("start", "steady", "overload", "beside", "attack", "kill", "hang", "end", "soak")
SERVED_BY = ("fastapi", "uvicorn", "uvloop", "httptools", "pydantic", "SQLAlchemy")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about half a minute: shows that it works, not how fast it is")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS", help="the usual load for so long, too (600)")
    parser.add_argument("--only", nargs="+", choices=PHASES, default=PHASES, help="some of the experiments")
    parser.add_argument("--publish", action="store_true", help="write docs/serve.md even if the machine was busy")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--work", type=Path, default=HERE / ".work" / "serve", help="artifacts are made here, once")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "serve.md", help="and .json beside it")
    options = parser.parse_args(arguments)
    effort = replace(phases.QUICK if options.quick else phases.Effort(), soak=options.soak)
    told = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "benchmarks.load", *(sys.argv[1:] if arguments is None else arguments)]),
        "machine": machine(),
        "facts": facts(),
        "served_by": {name: version(name) for name in SERVED_BY},
        "effort": vars(effort),
        "workers": options.workers,
        "load_before": load(),
        **measured(options.work, effort, options.only, options.workers),
        "load_after": load(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    options.out.write_text(written(told), encoding="utf-8")
    print(written(told))
    complete = not options.quick and set(PHASES) <= {*options.only, "soak"} and options.workers == 1
    if complete and (options.publish or not is_busy(told)):
        publish(told)
        print(f"{PAGE.name}: the figures of this run", file=sys.stderr)
    else:
        print(f"{PAGE.name} is left as it was: {LEFT}", file=sys.stderr)


def publish(told: dict[str, Any], page: Path = PAGE) -> None:
    """Write the figures of a run into the page of the service."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(FIRST, 1)
    _, after = rest.split(LAST, 1)
    page.write_text(f"{before}{FIRST}\n\n{for_page(told)}\n\n{LAST}{after}", encoding="utf-8")


def measured(work: Path, effort: phases.Effort, wanted: Sequence[str], workers: int) -> dict[str, Any]:
    """The experiments in an order in which none spoils the next one's server."""
    made = prepared(work)
    artifact, people, found = made / "artifact", made / "people.csv", {}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder)
        if "start" in wanted:
            found["start"] = say(phases.starts(artifact, kept, effort.starts), "start")
        with Server(artifact, kept / "records.db", "--workers", str(workers)) as server:
            asked = bodies(people, server)
            server.wait_until_full()
            if "steady" in wanted or "overload" in wanted:
                found["steady"] = say(phases.steady(server, asked, effort), "steady")
                capacity = max(one["per_second"] for one in found["steady"])
            if "overload" in wanted:
                found["overload"] = say(phases.overload(server, asked, effort, capacity), "overload")
            if "kill" in wanted:
                found["kill"] = say(phases.killed(server, asked, effort), "kill")
            if "soak" in wanted and effort.soak:
                found["soak"] = say(phases.soak(server, asked, effort), "soak")
            if "end" in wanted:
                found["end"] = say(phases.ended(server, asked, effort), "end")
        if "beside" in wanted:
            found["beside"] = say(phases.beside(artifact, people, kept, effort), "beside")
        if "attack" in wanted:
            found["attack"] = say(phases.attacked(artifact, people, kept, effort), "attack")
        if "hang" in wanted:
            found["hang"] = say(phases.hung(work, effort, people), "hang")
    return found


def say(found: Any, what: str) -> Any:
    print(f"{datetime.now(UTC):%H:%M:%S} {what} done", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
