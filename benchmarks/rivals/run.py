"""Run one rival on one problem, in the rival's own virtual environment: `python -m benchmarks.rivals.run`.

Writes the counterfactuals as Parquet and their cost as JSON; the calling process scores them. Meanwhile every event is
appended to OUT.lines as a line of JSON, so that a watchdog sees which row is being explained, and results before a hang or a
crash are kept; `--first` continues after the row that failed.
"""

import argparse
import json
import traceback
import warnings
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd

from benchmarks.rivals import catalogue
from benchmarks.rivals.problem import Problem, Usage

# Seconds per row above which a system is slow.
SLOW = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rival", help="a module of benchmarks.rivals, or any module by its whole name")
    parser.add_argument("variant")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, required=True, help="explain the rows before this position")
    parser.add_argument("--first", type=int, default=0, help="start at this position")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no row after this processor time")
    parser.add_argument("--slow", type=float, default=float("inf"), help="the same, for a system slower than 50 ms per row")
    parser.add_argument(
        "--batch", type=int, default=0, help="also time a batch of this many rows, if the rival supports batches"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with arguments.out.with_suffix(".lines").open("a", encoding="utf-8") as lines:
        events = Events(lines)
        try:
            report = measure(arguments, events)
        except Exception as error:  # reported as the reason in the line of the rival
            traceback.print_exc()
            report = {"failure": short_text(error)}
        arguments.out.with_suffix(".json").write_text(json.dumps(report))
        events.write("failed" if "failure" in report else "done", **report)


class Events:
    """Writes events as lines of JSON: start, ready, warm, begin, row, done or failed."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines

    def write(self, event: str, **facts: Any) -> None:
        self.lines.write(json.dumps({"event": event, **facts}, default=str) + "\n")
        self.lines.flush()


def measure(arguments: argparse.Namespace, events: Events) -> dict[str, Any]:
    events.write("start", rival=arguments.rival, variant=arguments.variant)
    problem = Problem(arguments.folder)
    rows = problem.rows.iloc[arguments.first : arguments.rows]
    started = process_time()
    system = imported(arguments.rival).Rival(problem, arguments.variant)
    fitted = getattr(system, "setup_seconds", process_time() - started)
    events.write("ready", fit=fitted, usage=asdict(problem.usage), versions=versions(arguments.rival))
    errors: list[str] = []
    warm_up(system, rows.iloc[:1], errors)
    events.write("warm")
    deadline = process_time() + arguments.seconds
    result = loop(system, problem, rows, deadline, arguments.slow, errors, events)
    pd.concat(result.pop("counterfactuals") or [rows.iloc[:0]]).to_parquet(arguments.out.with_suffix(".parquet"))
    return {
        "fit": fitted,
        "versions": versions(arguments.rival),
        **result,
        "cut": is_cut(result["seconds"], arguments.slow),
        "batches": batches(system, problem.rows.iloc[: arguments.batch]) if arguments.batch else [],
        "notes": system.notes() if hasattr(system, "notes") else [],
        "errors": sorted(set(errors)),
    }


def imported(name: str) -> Any:
    return import_module(name if "." in name else f"benchmarks.rivals.{name}")


def warm_up(system: Any, row: pd.DataFrame, errors: list[str]) -> None:
    """Explain one row that is not timed; an error here occurs again where it counts."""
    try:
        system.explain(row)
    except Exception as error:
        errors.append(short_text(error))


def is_cut(seconds: list[float], limit: float) -> bool:
    """Return whether a slow system has used its time."""
    return sum(seconds) > max(limit, SLOW * len(seconds))


def loop(
    system: Any, problem: Problem, rows: pd.DataFrame, deadline: float, slow: float, errors: list[str], events: Events
) -> dict[str, Any]:
    """Explain row by row; return the seconds of each without conversions, and the counterfactuals by position of the row."""
    problem.usage = usage = Usage()
    seconds: list[float] = []
    counterfactuals: list[pd.DataFrame] = []
    for position in rows.index:
        if seconds and (process_time() > deadline or is_cut(seconds, slow)):
            break
        events.write("begin", row=int(position))
        before, error = Usage(**asdict(usage)), ""
        started = process_time()
        try:
            result = system.explain(rows.loc[[position]])
        except Exception as raised:
            result, error = None, short_text(raised)
            errors.append(error)
        spent = process_time() - started
        seconds.append(spent - (usage.conversion_seconds - before.conversion_seconds))
        table, unreadable = as_table(system, result)
        if unreadable:
            errors.append(unreadable)
        if table is not None:
            counterfactuals.append(table.set_axis([position] * len(table)))
        events.write(
            "row",
            row=int(position),
            seconds=seconds[-1],
            usage={name: value - getattr(before, name) for name, value in asdict(usage).items()},
            counterfactuals=None if table is None else json.loads(table.to_json(orient="records", double_precision=15)),
            error=error or unreadable,
            proven=getattr(system, "proven", None),
        )
    return {"seconds": seconds, "usage": asdict(usage), "counterfactuals": counterfactuals}


def as_table(system: Any, result: Any) -> tuple[pd.DataFrame | None, str]:
    """Return the counterfactuals as rows of the table, None without any, and why a result cannot be read."""
    if result is None:
        return None, ""
    try:
        table = system.table(result)
    except Exception as error:
        return None, f"not a row of the table: {short_text(error)}"
    if table is None or isinstance(table, pd.DataFrame):
        return table, ""
    return None, f"not a row of the table: {type(table).__name__}"


def short_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def versions(module: str) -> dict[str, str]:
    """Return the version of the rival's package, if it has one."""
    packages = {entry.package for entry in catalogue.ENTRIES if entry.module == module and entry.package}
    return {name: installed(name) for name in sorted(packages)}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def batches(system: Any, rows: pd.DataFrame) -> list[float]:
    """Return the seconds of explaining all rows in one call, after a small one that is not counted; empty without batches."""
    if not hasattr(system, "explain_batch"):
        return []
    system.explain_batch(rows.iloc[:2])
    started = process_time()
    system.explain_batch(rows)
    return [process_time() - started]


if __name__ == "__main__":
    main()
