"""Everybody on the same data, black boxes and rows: `make bench`, or `python -m benchmarks.bench`.

Every cell (dataset, black box, question, method, seed) is a file of its own, so a stopped run goes on. At the end all is in
one Parquet file and one JSON file, and a report is written as Markdown and as one HTML page.
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

from benchmarks import measuring, report, sharing
from benchmarks.asking import Limits, ask_all
from benchmarks.plan import Plan
from benchmarks.rivals.catalogue import ENTRIES, Entry
from benchmarks.scoring import Judge
from benchmarks.setting import BOXES, DATASETS, QUESTIONS, Question, Setting, prepare
from benchmarks.store import Cell, Key, Store, write

HERE = Path(__file__).parent
# Cells take from seconds to minutes: the time left is guessed from all that were made.
ALL_OF_THEM = 1e6
QUICK_METHODS = ("ours-closest", "ours-sparse", "ours-realistic", "nice-sparsity", "certifai-genetic")
QUICK = Plan(
    datasets=("german_credit",),
    boxes=("mlp", "xgboost"),
    questions=("free", "frozen"),
    methods=tuple(entry for entry in ENTRIES if entry.name in QUICK_METHODS),
    seeds=(0, 1),
    few=1,
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
    manifest = {"command": command_of(argv), "machine": measuring.facts(), "plan": described(plan), "cells": len(run.wanted)}
    if not options.claims:
        write(options.out / "manifest.json", json.dumps(manifest, indent=1))
    try:
        with ended_as_interrupted():
            if options.jobs > 1 and not options.report_only:
                run.share(["-m", "benchmarks.bench", *arguments(argv), "--jobs", "1", "--no-progress"], options.jobs)
            cells = run.all_cells() if not options.report_only else run.known_cells()
    except KeyboardInterrupt:
        print(f"\nStopped. What is done is kept in {options.out}; the same command goes on.", file=sys.stderr)
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
        "made_anew": [key.file for key in run.strangers],
    }
    report.write(options.out, cells, about, plan, quick=options.quick)
    print(f"Report: {options.out / 'report.html'} and report.md; results.parquet, results.json beside it.")
    return 0


@contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """A process told to end takes its rivals with it, as with Ctrl-C."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="little data, few systems, five minutes")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS)
    parser.add_argument("--boxes", nargs="+", choices=BOXES)
    parser.add_argument("--questions", nargs="+", choices=list(QUESTIONS))
    parser.add_argument(
        "--methods",
        nargs="+",
        metavar="NAME",
        help="MODULE-VARIANT or MODULE of the catalogue (see --list), or MODULE:VARIANT",
    )
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--few", type=int, help="seeds for systems the paper does not compare")
    parser.add_argument("--rows", type=int, help="rows explained of every black box")
    parser.add_argument("--batch", type=int, help="rows of a batch, 0 for none")
    parser.add_argument("--train-rows", type=int)
    parser.add_argument("--row-seconds", type=float, help="time-out of one row")
    parser.add_argument("--method-seconds", type=float, help="after which a system begins no further row")
    parser.add_argument("--slow-seconds", type=float, help="the same for a system slower than 50 ms per row")
    parser.add_argument("--setup-seconds", type=float, help="time-out of getting ready")
    parser.add_argument("--jobs", type=int, default=1, help="black boxes at a time, each on a core of its own")
    parser.add_argument("--claims", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--report-only", action="store_true", help="of the cells that are there")
    parser.add_argument("--no-progress", action="store_true")
    parser.add_argument("--list", action="store_true", help="name every system and stop")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    options.out = options.out or HERE / ".work" / ("quick" if options.quick else "bench")
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    plan = QUICK if options.quick else Plan()
    given: dict[str, Any] = {
        name: tuple(value) for name in ("datasets", "boxes", "questions", "seeds") if (value := getattr(options, name))
    }
    given |= {name: value for name in ("few", "rows", "batch", "train_rows") if (value := getattr(options, name)) is not None}
    if options.questions:
        given["elsewhere"] = given["questions"]
    if options.methods:
        given["methods"] = tuple(entry for name in options.methods for entry in named(name))
        given["sparing"] = False
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
    """Of the catalogue, by name or by module; or a system of your own, MODULE:VARIANT."""
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
        self.wanted = wanted(plan)
        self.strangers = store.strangers(self.wanted)
        self.console = Console(stderr=True)
        self.quiet = quiet or not self.console.is_terminal

    def known_cells(self) -> list[Cell]:
        found = (self.store.get(key, made_by) for key, made_by in self.wanted.items())
        return [cell for cell in found if cell is not None]

    def all_cells(self) -> list[Cell]:
        if self.strangers:
            self.console.print(f"{len(self.strangers)} cells were made by other code, versions or options: made anew.")
        with self._progress() as progress, threadpool_limits(measuring.threads()):
            self.part = progress.add_task("", total=self.plan.rows)
            return [cell for group in self.plan.groups() if self._mine(*group) for cell in self._group(*group)]

    def share(self, command: Sequence[str], jobs: int) -> None:
        """Other processes make what is missing, as many as there are jobs."""
        started = time()
        with self._progress() as progress:
            told = lambda: progress.update(self.total, completed=self.store.written_since(started))  # noqa: E731
            sharing.run(command, jobs, self.quiet, told)

    def _progress(self) -> Progress:
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            console=self.console, disable=self.quiet, speed_estimate_period=ALL_OF_THEM,
        )  # fmt: skip
        self.total = self.progress.add_task("cells to make", total=len(self.wanted) - len(self.known_cells()))
        return self.progress

    def _mine(self, seed: int, data: str, box: str) -> bool:
        return self.claims is None or sharing.take(self.claims, f"{data}-{box}-{seed}")

    def _group(self, seed: int, data: str, box: str) -> list[Cell]:
        """One black box: whatever is missing is made, each system beside the others."""
        jobs = list(self.plan.jobs(seed, data, box))
        cells = {key: self.store.get(key, self.wanted[key]) for key, _, _ in jobs}
        missing = [key for key, cell in cells.items() if cell is None]
        if missing:
            self._say(f"{data}, {box}, seed {seed}: the black box")
            setting = prepare(data, box, seed, self.plan.train_rows)
            bench = Bench(setting, self.plan, self)
            for key, entry, question in jobs:
                if key in missing:
                    cells[key] = self._done(bench.cell(key, entry, question, self.wanted[key]))
        return [cell for cell in cells.values() if cell is not None]

    def _done(self, cell: Cell) -> Cell:
        self.store.put(cell)
        self.progress.advance(self.total)
        return cell

    def _say(self, what: str) -> None:
        self.progress.reset(self.part, description=what)
        if self.quiet:
            self.console.print(what, highlight=False, soft_wrap=True)

    def tell(self, what: str) -> Callable[[int], None]:
        """Says what is done now; what it gives is told how many rows are done."""
        self._say(what)
        return lambda rows: self.progress.update(self.part, completed=rows)


class Bench:
    """One black box and everyone who explains it."""

    def __init__(self, setting: Setting, plan: Plan, run: Run) -> None:
        self.setting, self.plan, self.run = setting, plan, run
        self.judge = Judge(setting, plan.crowd)
        self.rows = min(plan.rows, len(setting.rows))
        self.dumped: set[Path] = set()

    def cell(self, key: Key, entry: Entry, question: Question, made_by: str) -> Cell:
        tell = self.run.tell(f"{key.data}, {key.box}, {key.question}, seed {key.seed}: {entry.title}")
        load = measuring.load()
        told = ask_all(entry, self._folder(question), self.rows, self.plan.limits, self.plan.batch, tell)
        about = {name: value for name, value in vars(told).items() if name != "records"}
        about |= {
            "batch_rows": self.plan.batch,
            "title": entry.title,
            "load": load,
            "black_box": self.facts(),
            "constraints": sorted(entry.constraints),
        }
        return Cell(key, made_by, about, self.judge.lines(told.records, question))

    def _folder(self, question: Question) -> Path:
        setting = self.setting
        folder = self.plan.work / f"{setting.data}-{setting.box}-{setting.seed}-{question.name}"
        if folder not in self.dumped:
            setting.dump(folder, question, max(self.plan.batch, self.rows))
            self.dumped.add(folder)
        return folder

    def facts(self) -> dict[str, Any]:
        setting = self.setting
        return {"accuracy": setting.accuracy, "training_rows": len(setting.X_train), "refused": len(setting.rows)}


def wanted(plan: Plan) -> dict[Key, str]:
    """Every cell of the plan and by what it has to be made."""
    made_by = {entry.name: plan.made_by(entry) for entry in plan.methods}
    found: dict[Key, str] = {}
    for group in plan.groups():
        found |= {key: made_by[entry.name] for key, entry, _ in plan.jobs(*group)}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
