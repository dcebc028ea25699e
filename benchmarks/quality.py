"""Quality of the search on bundled and unseen data: `make bench-quality`.

Three parts: `optimum` (distance against the proven optimum), `consistency` (whether calls agree with each other and with
exhaustive search) and `time`. Only the public interface of the library is used, so two versions of it can be compared.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import measuring
from benchmarks.yardstick import cases, consistency, optimum, report, tables, timing

HERE = Path(__file__).parent
PARTS = ("optimum", "consistency", "time")
QUICK_DATASETS = ("german_credit", "wine", "mixed10")
QUICK_MODELS = ("xgboost", "logistic", "mlp5")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.datasets, options.models = options.datasets or QUICK_DATASETS, options.models or QUICK_MODELS
        options.rows, options.batch = min(options.rows, 20), min(options.batch, 200)
    cells = [(data, model) for data in options.datasets or tables.SOURCES for model in options.models or cases.MODELS]
    found: list[dict[str, Any]] = []
    for k, (data, model) in enumerate(cells, 1):
        started = perf_counter()
        found.append(cell(data, model, options))
        text = f"failed: {found[-1]['error']}" if "error" in found[-1] else report.line(found[-1])
        print(f"[{k}/{len(cells)}] {data}, {model}: {perf_counter() - started:.0f} s; {text}", file=sys.stderr, flush=True)
        write(found, options)
    print(options.out.read_text(encoding="utf-8"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", choices=list(tables.SOURCES), help="all by default")
    parser.add_argument("--models", nargs="+", choices=list(cases.MODELS), help="all by default")
    parser.add_argument("--parts", type=_parts, default=list(PARTS), help=f"separated by commas: {','.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=50, help="queries per cell")
    parser.add_argument("--batch", type=int, default=1000, help="queries of the batch that is timed")
    parser.add_argument("--train-rows", type=int, default=4000, help="most training rows, 0 for all")
    parser.add_argument("--distance", default="gower", help="of the parts consistency and time")
    parser.add_argument("--seconds-per-row", type=float, default=4.0, help="time limit of exact search per query")
    parser.add_argument("--seconds", type=float, default=40.0, help="time limit of exact search per cell")
    parser.add_argument("--quick", action="store_true", help="three datasets, three models, 20 rows")
    parser.add_argument("--against", type=Path, help="the JSON of an earlier run to compare with")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "quality.md", help="the JSON goes beside it")
    return parser


def _parts(text: str) -> list[str]:
    chosen = text.split(",")
    if not set(chosen) <= set(PARTS):
        raise argparse.ArgumentTypeError(f"must be some of {','.join(PARTS)}")
    return chosen


def cell(data: str, model: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one dataset and model; an error is kept in place of the measures."""
    found: dict[str, Any] = {"data": data, "model": model}
    try:
        case = cases.make(data, model, options.train_rows)
        explainer, fit = timing.fit(case)
        found["fit"] = fit
        if "optimum" in options.parts and optimum.supported(case):
            found["optimum"] = optimum.measure(case, explainer, options.rows, options.seconds_per_row, options.seconds)
        if "consistency" in options.parts:
            found["consistency"] = consistency.measure(case, explainer, options.rows, options.distance)
        if "time" in options.parts:
            found["time"] = timing.measure(case, explainer, options.rows, options.batch, options.distance)
    except Exception as error:  # one cell must not end the run
        traceback.print_exc()
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def write(found: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Write what was measured so far."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    described = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    result = {"options": described, "machine": measuring.facts(), "load": measuring.load(), "cells": found}
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    command = " ".join(["python -m benchmarks.quality", *sys.argv[1:]])
    before = json.loads(options.against.read_text(encoding="utf-8"))["cells"] if options.against else []
    options.out.write_text(report.page(found, command, before), encoding="utf-8")


if __name__ == "__main__":
    main()
