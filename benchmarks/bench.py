"""Compare all systems on the same datasets, models and rows: `make bench`, or `python -m benchmarks.bench`.

Every cell (dataset, model, task, method, seed) is a file, so that a stopped run can be resumed. At the end all results are
written to one Parquet file and one JSON file, and a report as Markdown and as one HTML page.
"""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter, time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from benchmarks import measuring, parallel, report
from benchmarks.plan import Plan
from benchmarks.rivals.catalogue import ENTRIES, Entry
from benchmarks.runner import Limits, run_system
from benchmarks.scoring import Scorer
from benchmarks.setting import DATASETS, MODELS, TASKS, Setting, Task, prepare
from benchmarks.store import Cell, Key, Store, write

HERE = Path(__file__).parent
# Seconds over which the speed is averaged: cells take from seconds to minutes, so that all of them count.
SPEED_PERIOD = 1e6
QUICK_METHODS = ("ours-closest", "ours-sparse", "ours-realistic", "nice-sparsity", "certifai-genetic")
QUICK = Plan(
    datasets=("german_credit",),
    models=("mlp", "xgboost"),
    tasks=("free", "frozen"),
    methods=tuple(entry for entry in ENTRIES if entry.name in QUICK_METHODS),
    seeds=(0, 1),
    other_seeds=1,
    rows=5,
    batch=20,
    limits=Limits(setup=120, row=5, method=10, processes=2),
)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    plan = plan_of(options)
    if options.list:
        print("\n".join(f"{entry.name:32}{entry.title}" for entry in ENTRIES))
        return 0
    run = Run(plan, Store(options.out), quiet=options.no_progress, claims=options.claims)
    started, load = perf_counter(), measuring.load()
    manifest = {"command": command_of(argv), "machine": measuring.facts(), "plan": described(plan), "cells": len(run.planned)}
    if not options.claims:
        write(options.out / "manifest.json", json.dumps(manifest, indent=1))
    try:
        with sigterm_as_interrupt():
            if options.jobs > 1 and not options.report_only:
                run.run_workers(["-m", "benchmarks.bench", *arguments(argv), "--jobs", "1", "--no-progress"], options.jobs)
            cells = run.all_cells() if not options.report_only else run.known_cells()
    except KeyboardInterrupt:
        print(f"\nStopped. Finished cells are kept in {options.out}; the same command resumes.", file=sys.stderr)
        return 130
    if options.claims:
        return 0
    if not cells:
        print(f"There is nothing to report of this plan in {options.out}.", file=sys.stderr)
        return 1
    about = {
        "command": command_of(argv),
        "machine": measuring.facts(),
        "load": {"before": load, "after": measuring.load()},
        "seconds": perf_counter() - started,
        "plan": described(plan),
        "recomputed": [key.file for key in run.outdated],
    }
    report.write(options.out, cells, about, plan, quick=options.quick)
    print(f"Report: {options.out / 'report.html'} and report.md; results.parquet, results.json beside it.")
    return 0


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that the processes of the rivals end too."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def progress_bar(console: Console, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        console=console, disable=quiet, speed_estimate_period=SPEED_PERIOD,
    )  # fmt: skip


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="little data, few systems, five minutes")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS)
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS))
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="MODULE-VARIANT or MODULE of the catalogue (see --list), or MODULE:VARIANT",
    )
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--other-seeds", type=int, help="number of seeds for systems the paper does not compare")
    parser.add_argument("--rows", type=int, help="rows to explain per dataset and model")
    parser.add_argument("--batch", type=int, help="rows per batch, 0 for no batches")
    parser.add_argument("--train-rows", type=int)
    parser.add_argument("--row-seconds", type=float, help="time limit of one row")
    parser.add_argument("--method-seconds", type=float, help="processor time after which a system starts no further row")
    parser.add_argument("--slow-seconds", type=float, help="the same for a system slower than 50 ms per row")
    parser.add_argument("--setup-seconds", type=float, help="time limit of set-up")
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of models explained at the same time, each in a process of its own"
    )
    parser.add_argument("--claims", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--report-only", action="store_true", help="report on the finished cells")
    parser.add_argument("--no-progress", action="store_true")
    parser.add_argument("--list", action="store_true", help="list all systems and exit")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    options.out = options.out or HERE / ".work" / ("quick" if options.quick else "bench")
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else Plan()
    given: dict[str, Any] = {
        name: tuple(value) for name in ("datasets", "models", "tasks", "seeds") if (value := getattr(options, name))
    }
    given |= {
        name: value
        for name in ("other_seeds", "rows", "batch", "train_rows")
        if (value := getattr(options, name)) is not None
    }
    if options.tasks:
        given["other_tasks"] = given["tasks"]
    if options.methods:
        given["methods"] = tuple(entry for name in options.methods for entry in named(name))
        given["skip_costly"] = False
    limits = {
        name: value
        for name in ("row", "method", "slow", "setup")
        if (value := getattr(options, f"{name}_seconds")) is not None
    }
    return replace(
        plan,
        **given,
        limits=replace(plan.limits, **limits),
        work=options.out / "problems",
    )


def named(name: str) -> list[Entry]:
    """Return the systems of the catalogue with a name or module; or a system of your own, MODULE:VARIANT."""
    if ":" in name:
        module, variant = name.split(":", 1)
        return [Entry(f"{module.rpartition('.')[2]} {variant}", module, variant)]
    found = [entry for entry in ENTRIES if name in (entry.name, entry.module)]
    if not found:
        raise SystemExit(f"No system is called {name!r}; --list names them.")
    return found


def arguments(argv: Sequence[str] | None) -> Sequence[str]:
    return sys.argv[1:] if argv is None else argv


def command_of(argv: Sequence[str] | None) -> str:
    return " ".join(["python -m benchmarks.bench", *arguments(argv)])


def described(plan: Plan) -> dict[str, Any]:
    return {
        **vars(plan),
        "methods": [entry.name for entry in plan.methods],
        "limits": vars(plan.limits),
        "work": str(plan.work),
    }


class Run:
    def __init__(self, plan: Plan, store: Store, quiet: bool = False, claims: Path | None = None) -> None:
        self.plan, self.store, self.claims = plan, store, claims
        self.planned = planned(plan)
        self.outdated = store.outdated(self.planned)
        self.console = Console(stderr=True)
        self.quiet = quiet or not self.console.is_terminal

    def known_cells(self) -> list[Cell]:
        found = (self.store.get(key, fingerprint) for key, fingerprint in self.planned.items())
        return [cell for cell in found if cell is not None]

    def all_cells(self) -> list[Cell]:
        if self.outdated:
            self.console.print(f"{len(self.outdated)} cells are of other code, versions or options and are computed again.")
        with self._progress() as progress, threadpool_limits(measuring.threads()):
            self.rows_task = progress.add_task("", total=self.plan.rows)
            return [cell for group in self.plan.groups() if self._claim(*group) for cell in self._group(*group)]

    def run_workers(self, command: Sequence[str], jobs: int) -> None:
        """Compute the missing cells in worker processes."""
        started = time()
        with self._progress() as progress:
            update = lambda: progress.update(self.cells_task, completed=self.store.written_since(started))  # noqa: E731
            parallel.run(command, jobs, self.quiet, update)

    def _progress(self) -> Progress:
        self.progress = progress_bar(self.console, self.quiet)
        self.cells_task = self.progress.add_task("missing cells", total=len(self.planned) - len(self.known_cells()))
        return self.progress

    def _claim(self, seed: int, data: str, model: str) -> bool:
        return self.claims is None or parallel.claim(self.claims, f"{data}-{model}-{seed}")

    def _group(self, seed: int, data: str, model: str) -> list[Cell]:
        """Return the cells of one model, computing those that are missing."""
        jobs = list(self.plan.jobs(seed, data, model))
        cells = {key: self.store.get(key, self.planned[key]) for key, _, _ in jobs}
        missing = [key for key, cell in cells.items() if cell is None]
        if missing:
            self._announce(f"{data}, {model}, seed {seed}: training the model")
            comparison = Comparison(prepare(data, model, seed, self.plan.train_rows), self.plan, self)
            for key, entry, task in jobs:
                if key in missing:
                    cells[key] = self._put(comparison.cell(key, entry, task, self.planned[key]))
        return [cell for cell in cells.values() if cell is not None]

    def _put(self, cell: Cell) -> Cell:
        self.store.put(cell)
        self.progress.advance(self.cells_task)
        return cell

    def _announce(self, text: str) -> None:
        self.progress.reset(self.rows_task, description=text)
        if self.quiet:
            self.console.print(text, highlight=False, soft_wrap=True)

    def row_progress(self, text: str) -> Callable[[int], None]:
        """Announce a cell, and return a function to be called with the number of finished rows."""
        self._announce(text)
        return lambda rows: self.progress.update(self.rows_task, completed=rows)


class Comparison:
    """All systems on one model."""

    def __init__(self, setting: Setting, plan: Plan, run: Run) -> None:
        self.setting, self.plan, self.run = setting, plan, run
        self.scorer = Scorer(setting, plan.reference_rows)
        self.rows = min(plan.rows, len(setting.rows))
        self.dumped: set[Path] = set()

    def cell(self, key: Key, entry: Entry, task: Task, fingerprint: str) -> Cell:
        progress = self.run.row_progress(f"{key.data}, {key.model}, {key.task}, seed {key.seed}: {entry.title}")
        load = measuring.load()
        result = run_system(entry, self._folder(task), self.rows, self.plan.limits, self.plan.batch, progress)
        about = {name: value for name, value in vars(result).items() if name != "records"}
        about |= {
            "batch_rows": self.plan.batch,
            "title": entry.title,
            "load": load,
            "black_box": self.facts(),
            "constraints": sorted(entry.constraints),
        }
        return Cell(key, fingerprint, about, self.scorer.score(result.records, task))

    def _folder(self, task: Task) -> Path:
        setting = self.setting
        folder = self.plan.work / f"{setting.data}-{setting.model_name}-{setting.seed}-{task.name}"
        if folder not in self.dumped:
            setting.dump(folder, task, max(self.plan.batch, self.rows))
            self.dumped.add(folder)
        return folder

    def facts(self) -> dict[str, Any]:
        setting = self.setting
        return {"accuracy": setting.accuracy, "training_rows": len(setting.X_train), "refused": len(setting.rows)}


def planned(plan: Plan) -> dict[Key, str]:
    """Return every cell of a plan with its fingerprint."""
    fingerprints = {entry.name: plan.fingerprint(entry) for entry in plan.methods}
    found: dict[Key, str] = {}
    for group in plan.groups():
        found |= {key: fingerprints[entry.name] for key, entry, _ in plan.jobs(*group)}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
