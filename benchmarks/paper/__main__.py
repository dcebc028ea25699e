"""The experiments of the FASTER-CE paper at its size: `make bench-paper`, or `python -m benchmarks.paper`.

Every cell (dataset, run, target, system) is a file, so that a stopped run resumes. The report is Markdown and one HTML page.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks import measuring
from benchmarks.bench import progress_bar, sigterm_as_interrupt
from benchmarks.paper import report
from benchmarks.paper.plan import PARTS, RIVALS, PaperPlan
from benchmarks.paper.run import PaperRun
from benchmarks.runner import Limits
from benchmarks.setting import BUNDLED
from benchmarks.store import Store

HERE = Path(__file__).parents[1]
QUICK = PaperPlan(
    seeds=(0, 1),
    rivals=("dice-random", "certifai-genetic", "latentcf-adam", "nice-sparsity"),
    rows=20,
    timed_rows=10,
    ablated_rows=20,
    train_rows=1000,
    limits=Limits(setup=120, row=10, method=3, processes=2),
)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    plan = plan_of(options)
    console = Console(stderr=True)
    quiet = options.no_progress or not console.is_terminal
    progress = progress_bar(console, quiet)
    task = progress.add_task("", total=0)

    def announce(text: str) -> None:
        progress.update(task, description=text)
        if quiet:
            console.print(text, highlight=False, soft_wrap=True)

    run = PaperRun(plan, Store(options.out), announce)
    progress.update(task, total=len(run.planned) - len(run.known()))
    started, cpu, load = perf_counter(), process_time(), measuring.load()
    try:
        with sigterm_as_interrupt(), progress, threadpool_limits(measuring.threads()):
            cells = run.known() if options.report_only else run.all_cells(lambda: progress.advance(task))
    except KeyboardInterrupt:
        print(f"\nStopped. Finished cells are kept in {options.out}; the same command resumes.", file=sys.stderr)
        return 130
    if not cells:
        print(f"There is nothing to report of this plan in {options.out}.", file=sys.stderr)
        return 1
    about = {
        "command": " ".join(["python -m benchmarks.paper", *(sys.argv[1:] if argv is None else argv)]),
        "machine": measuring.facts(),
        "load": {"before": load, "after": measuring.load()},
        "seconds": perf_counter() - started,
        "cpu_seconds": process_time() - cpu,
        "cells": f"{len(cells)} of {len(run.planned)}",
    }
    report.write(options.out, cells, plan, json.loads(json.dumps(about)), quick=options.quick)
    print(f"Report: {options.out / 'report.html'} and report.md; results.parquet and results.json beside it.")
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="little data, two runs, a few minutes")
    parser.add_argument("--datasets", nargs="+", choices=BUNDLED)
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="experiments to run, all by default")
    parser.add_argument("--rivals", nargs="*", choices=list(RIVALS))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--rows", type=int, help="upper limit of queries per dataset, run and target")
    parser.add_argument("--train-rows", type=int)
    parser.add_argument("--rival-seconds", type=float, help="processor time after which a rival starts no further query")
    parser.add_argument("--report-only", action="store_true", help="report on the finished cells")
    parser.add_argument("--no-progress", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    options.out = options.out or HERE / ".work" / ("paper-quick" if options.quick else "paper")
    return options


def plan_of(options: argparse.Namespace) -> PaperPlan:
    plan = QUICK if options.quick else PaperPlan()
    given = {
        name: tuple(value)
        for name in ("datasets", "parts", "seeds", "rivals")
        if (value := getattr(options, name)) is not None
    }
    given |= {name: value for name in ("rows", "train_rows") if (value := getattr(options, name)) is not None}
    seconds = options.rival_seconds
    limits = plan.limits if seconds is None else replace(plan.limits, method=seconds)
    return replace(plan, **given, limits=limits, work=options.out / "problems")


if __name__ == "__main__":
    raise SystemExit(main())
