"""One rival on one setting, in the rival's own virtual environment: `python -m benchmarks.rivals.run`.

Writes the answers as Parquet and what they cost as JSON; judging them is left to the process that asked. While it runs,
every event is a line of JSON in OUT.lines, so that a watchdog sees which row is being explained, and what was answered
before a hang or a crash is not lost: `--first` goes on behind the row that was the matter.
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
from benchmarks.rivals.problem import Clock, Problem

# Seconds per row above which a system is slow.
SLOW = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rival", help="a module of benchmarks.rivals, or any module by its whole name")
    parser.add_argument("variant")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, required=True, help="explain the rows before this position")
    parser.add_argument("--first", type=int, default=0, help="begin at this position")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new row is begun after this processor time")
    parser.add_argument("--slow", type=float, default=float("inf"), help="the same, for a system slower than 50 ms per row")
    parser.add_argument("--batch", type=int, default=0, help="time the rival's own batch, if it has one, on so many rows")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with arguments.out.with_suffix(".lines").open("a", encoding="utf-8") as lines:
        events = Events(lines)
        try:
            report = measure(arguments, events)
        except Exception as error:  # whatever a rival does wrong belongs in its line of the table
            traceback.print_exc()
            report = {"failure": shortened(error)}
        arguments.out.with_suffix(".json").write_text(json.dumps(report))
        events.say("failed" if "failure" in report else "done", **report)


class Events:
    """Lines of JSON, each written out at once: start, ready, warm, begin, row, done or failed."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines

    def say(self, event: str, **facts: Any) -> None:
        self.lines.write(json.dumps({"event": event, **facts}, default=str) + "\n")
        self.lines.flush()


def measure(arguments: argparse.Namespace, events: Events) -> dict[str, Any]:
    events.say("start", rival=arguments.rival, variant=arguments.variant)
    problem = Problem(arguments.folder)
    rows = problem.rows.iloc[arguments.first : arguments.rows]
    started = process_time()
    system = imported(arguments.rival).Rival(problem, arguments.variant)
    fitted = getattr(system, "setup_seconds", process_time() - started)
    events.say("ready", fit=fitted, asked=asdict(problem.clock), versions=versions(arguments.rival))
    errors: list[str] = []
    warm_up(system, rows.iloc[:1], errors)
    events.say("warm")
    deadline = process_time() + arguments.seconds
    passes, answers = [], []
    for number in range(arguments.repeats):
        one = loop(system, problem, rows, deadline, arguments.slow, errors, events if number == 0 else None)
        if passes and len(one["seconds"]) < len(rows):
            break
        answers = answers or one["answers"]
        passes.append({key: value for key, value in one.items() if key != "answers"})
    pd.concat(answers or [rows.iloc[:0]]).to_parquet(arguments.out.with_suffix(".parquet"))
    return {
        "fit": fitted,
        "first": arguments.first,
        "versions": versions(arguments.rival),
        "passes": passes,
        "cut": is_cut(passes[0]["seconds"], arguments.slow),
        "batches": batches(system, problem.rows.iloc[: arguments.batch], arguments.repeats) if arguments.batch else [],
        "notes": system.notes() if hasattr(system, "notes") else [],
        "errors": sorted(set(errors)),
    }


def imported(name: str) -> Any:
    return import_module(name if "." in name else f"benchmarks.rivals.{name}")


def warm_up(system: Any, row: pd.DataFrame, errors: list[str]) -> None:
    """One row outside the clock; if it fails here, it fails again where it counts."""
    try:
        system.explain(row)
    except Exception as error:
        errors.append(shortened(error))


def is_cut(seconds: list[float], limit: float) -> bool:
    """Return whether a slow system has had its time."""
    return sum(seconds) > max(limit, SLOW * len(seconds))


def loop(
    system: Any, problem: Problem, rows: pd.DataFrame, deadline: float, slow: float, errors: list[str], events: Events | None
) -> dict[str, Any]:
    """Row by row: seconds of each without our glue, and the answers found, indexed by the row's position."""
    problem.clock = clock = Clock()
    seconds: list[float] = []
    answers: list[pd.DataFrame] = []
    for position in rows.index:
        if seconds and (process_time() > deadline or is_cut(seconds, slow)):
            break
        if events:
            events.say("begin", row=int(position))
        before, error = Clock(**asdict(clock)), ""
        started = process_time()
        try:
            answer = system.explain(rows.loc[[position]])
        except Exception as problem_of_its:
            answer, error = None, shortened(problem_of_its)
            errors.append(error)
        spent = process_time() - started
        seconds.append(spent - (clock.glue - before.glue))
        table, wrong = tabled(system, answer)
        if wrong:
            errors.append(wrong)
        if table is not None:
            answers.append(table.set_axis([position] * len(table)))
        if events:
            asked = {name: value - getattr(before, name) for name, value in asdict(clock).items()}
            found = None if table is None else json.loads(table.to_json(orient="records", double_precision=15))
            said = {"seconds": seconds[-1], "asked": asked, "answer": found, "error": error or wrong}
            events.say("row", row=int(position), **said, proven=getattr(system, "proven", None))
    return {"seconds": seconds, "clock": asdict(clock), "answers": answers}


def tabled(system: Any, answer: Any) -> tuple[pd.DataFrame | None, str]:
    """The answer as rows of the table; none where nothing was found. An answer that is neither is no answer, and says why."""
    if answer is None:
        return None, ""
    try:
        table = system.table(answer)
    except Exception as error:
        return None, f"not a row of the table: {shortened(error)}"
    if table is None or isinstance(table, pd.DataFrame):
        return table, ""
    return None, f"not a row of the table: {type(table).__name__}"


def shortened(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def versions(module: str) -> dict[str, str]:
    """What is reported of the rival's own package, if it has one."""
    packages = {entry.package for entry in catalogue.ENTRIES if entry.module == module and entry.package}
    return {name: installed(name) for name in sorted(packages)}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def batches(system: Any, rows: pd.DataFrame, repeats: int) -> list[float]:
    """Seconds of explaining all rows in one call, after a small one to warm up, for a rival that has one."""
    if not hasattr(system, "explain_batch"):
        return []
    system.explain_batch(rows.iloc[:2])
    seconds = []
    for _ in range(repeats):
        started = process_time()
        system.explain_batch(rows)
        seconds.append(process_time() - started)
    return seconds


if __name__ == "__main__":
    main()
