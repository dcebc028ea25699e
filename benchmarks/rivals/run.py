"""One rival on one setting, in the rival's own virtual environment: `python -m benchmarks.rivals.run`.

Writes the answers as Parquet and what they cost as JSON; judging them is left to the process that asked.
"""

import argparse
import json
import traceback
import warnings
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from benchmarks.rivals.problem import Clock, Problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rival", help="a module of benchmarks.rivals")
    parser.add_argument("variant")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="no new row is begun after this time")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        report = measure(arguments)
    except Exception as error:  # whatever a rival does wrong belongs in its line of the table
        traceback.print_exc()
        report = {"failure": f"{type(error).__name__}: {error}"}
    arguments.out.with_suffix(".json").write_text(json.dumps(report))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    problem = Problem(arguments.folder)
    rows = problem.rows.iloc[: arguments.rows]
    started = perf_counter()
    system = import_module(f"benchmarks.rivals.{arguments.rival}").Rival(problem, arguments.variant)
    fitted = perf_counter() - started
    system.explain(rows.iloc[:1])
    deadline = perf_counter() + arguments.seconds
    passes, answers, errors = [], [], []
    for _ in range(arguments.repeats):
        one = loop(system, problem, rows, deadline, errors)
        if passes and len(one["seconds"]) < len(rows):
            break
        answers = answers or one["answers"]
        passes.append({key: value for key, value in one.items() if key != "answers"})
    pd.concat(answers or [rows.iloc[:0]]).to_parquet(arguments.out.with_suffix(".parquet"))
    return {
        "fit": fitted,
        "passes": passes,
        "batches": batches(system, rows, arguments.repeats),
        "notes": system.notes() if hasattr(system, "notes") else [],
        "errors": sorted(set(errors)),
    }


def loop(system: Any, problem: Problem, rows: pd.DataFrame, deadline: float, errors: list[str]) -> dict[str, Any]:
    """Row by row: seconds of each without our glue, and the answers found, indexed by the row's position."""
    problem.clock = clock = Clock()
    seconds: list[float] = []
    answers: list[pd.DataFrame] = []
    for position in range(len(rows)):
        if seconds and perf_counter() > deadline:
            break
        row, glue, started = rows.iloc[position : position + 1], clock.glue, perf_counter()
        try:
            answer = system.explain(row)
        except Exception as error:
            answer = None
            errors.append(f"{type(error).__name__}: {error}"[:200])
        seconds.append(perf_counter() - started - (clock.glue - glue))
        if answer is not None:
            answers.append(system.table(answer).set_axis([position]))
    return {"seconds": seconds, "clock": asdict(clock), "answers": answers}


def batches(system: Any, rows: pd.DataFrame, repeats: int) -> list[float]:
    """Seconds of explaining all rows in one call, for a rival that has one."""
    if not hasattr(system, "explain_batch"):
        return []
    seconds = []
    for _ in range(repeats):
        started = perf_counter()
        system.explain_batch(rows)
        seconds.append(perf_counter() - started)
    return seconds


if __name__ == "__main__":
    main()
