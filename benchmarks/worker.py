"""One system on one problem, in the system's own process: builds it once, then answers row by row as it is told.

`python -m benchmarks.worker MODULE VARIANT FOLDER`. Lines come in ("row 3", "batch 200"), one line of JSON goes out for
each, through a channel of its own: whatever a system prints goes to the log. The process that asks keeps the time-out.
It runs in every rival's environment, so it needs nothing but what `rivals/problem.py` needs.
"""

import json
import math
import os
import sys
import traceback
import warnings
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from benchmarks.rivals.problem import Clock, Problem

LONGEST_REASON = 200


def main(module: str, variant: str, folder: str, package: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def say(**said: Any) -> None:
        answers.write(json.dumps(said, default=plain) + "\n")
        answers.flush()

    try:
        problem, system, ready = built(module, variant, Path(folder), package)
    except BaseException as error:  # whatever goes wrong in there belongs in the table
        say(failure=reason(error))
        return
    say(**ready)
    for line in sys.stdin:
        what, number = line.split()
        if what == "row":
            say(**one_row(system, problem, int(number)))
        else:
            say(**batch(system, problem, int(number)))


def built(module: str, variant: str, folder: Path, package: str) -> tuple[Problem, Any, dict[str, Any]]:
    """The problem, the system made ready for it, and how long that took; loading the problem is not charged."""
    problem = Problem(folder)
    started = perf_counter()
    found = import_module(module if "." in module else f"benchmarks.rivals.{module}")
    imported = perf_counter()
    system = found.Rival(problem, variant)
    seconds = perf_counter() - imported
    ready = {
        "imported": imported - started,
        "setup": getattr(system, "setup_seconds", seconds),
        "setup_calls": problem.clock.calls,
        "setup_asked": problem.clock.rows,
        "version": version_of(package),
    }
    return problem, system, ready


def version_of(package: str) -> str:
    try:
        return version(package) if package else ""
    except PackageNotFoundError:
        return ""


def one_row(system: Any, problem: Problem, position: int) -> dict[str, Any]:
    """Seconds without our glue, what was asked of the model, and the answers as plain values."""
    position = min(position, len(problem.rows) - 1)
    row = problem.rows.iloc[position : position + 1]
    problem.clock = clock = Clock()
    answer, failure, started = None, "", perf_counter()
    try:
        answer = system.explain(row)
    except Exception as error:
        failure = reason(error)
    seconds = perf_counter() - started
    cost = {"seconds": seconds - clock.glue, "wall": seconds, **asdict(clock)}
    try:
        found = as_plain(None if answer is None else system.table(answer))
    except Exception as error:
        found, failure = None, reason(error)
    notes = system.notes() if hasattr(system, "notes") else []
    return {"position": position, "answers": found, "failure": failure, "notes": notes, **cost}


def as_plain(table: Any) -> dict[str, Any] | None:
    if table is None:
        return None
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"a table was expected, got {type(table).__name__}")
    values = [list(row) for row in table.itertuples(index=False, name=None)]
    return {"columns": [str(name) for name in table.columns], "rows": values} if values else None


def batch(system: Any, problem: Problem, size: int) -> dict[str, Any]:
    """Seconds of explaining so many rows in one call, after a small one to warm up; nothing where there is no such call."""
    if not hasattr(system, "explain_batch"):
        return {"batch": None}
    rows = problem.rows.iloc[:size]
    try:
        system.explain_batch(rows.iloc[:2])
        problem.clock = Clock()
        started = perf_counter()
        system.explain_batch(rows)
    except Exception as error:
        return {"batch": None, "failure": reason(error)}
    seconds = perf_counter() - started - problem.clock.glue
    return {"batch": seconds, "size": len(rows), **asdict(problem.clock)}


def reason(error: BaseException) -> str:
    traceback.print_exc()
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}"[:LONGEST_REASON]


def plain(value: Any) -> Any:
    """A value of NumPy or pandas as JSON has it; a missing one as null."""
    if value is pd.NA or value is pd.NaT:
        return None
    found = value.item() if hasattr(value, "item") else str(value)
    return None if isinstance(found, float) and math.isnan(found) else found


if __name__ == "__main__":
    main(*sys.argv[1:5])
