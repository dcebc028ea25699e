"""How our cost grows with rows and columns, on synthetic mixed tables: `make bench-scale`.

The explainer is fitted and saved once per number of columns. Every measurement loads it in a process of its own, so that its
peak memory can be measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from benchmarks import measuring
from fasterce import FasterCE, load
from fasterce.cli.adult_demo import preprocessing

HERE = Path(__file__).parent
TRAINING_ROWS = 4000
CATEGORIES = tuple("abcde")
UNWANTED = "no"
HEADER = ("columns", "rows", "fit s", "seconds", "ms each", "calls", "model rows each", "found %", "peak MB", "input MB")


@dataclass(frozen=True)
class Plan:
    rows: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 100_000)
    columns: tuple[int, ...] = (10, 30, 100, 300)
    columns_at_rows: int = 16
    rows_at_columns: int = 1_000
    repeats: int = 3


QUICK = Plan(rows=(1, 10, 100, 1_000), columns=(10, 30), rows_at_columns=200, repeats=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 rows and 30 columns")
    parser.add_argument("--method", default="closest")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "scale.md")
    parser.add_argument("--child", nargs=4, metavar=("FOLDER", "COLUMNS", "ROWS", "REPEATS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        folder, *sizes = options.child
        print(json.dumps(measure(Path(folder), *map(int, sizes), options.method, options.seed)))
        return
    report = grow(QUICK if options.quick else Plan(), options)
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report, encoding="utf-8")


def grow(plan: Plan, options: argparse.Namespace) -> str:
    by_rows = lines(plan.columns_at_rows, plan.rows, plan.repeats, options)
    by_columns = [line for width in plan.columns for line in lines(width, [plan.rows_at_columns], plan.repeats, options)]
    command = " ".join(["python -m benchmarks.scale", *sys.argv[1:]])
    return f"""# How the cost of `{options.method}` grows

`{command}`, seed {options.seed}. {measuring.machine()}

Synthetic tables, half numbers (some whole, some long-tailed) and half categories of five; black box: scaler, one-hot,
MLP (64, 32), {TRAINING_ROWS:,} training rows. Every line is a process of its own; seconds are the median, and lowest –
highest, of {plan.repeats} repeats. *peak MB* is the peak while explaining minus the memory before.

## Rows

{measuring.table(HEADER, by_rows)}

## Columns

{measuring.table(HEADER, by_columns)}
"""


def lines(columns: int, row_counts: Sequence[int], repeats: int, options: argparse.Namespace) -> list[list[str]]:
    print(f"{columns} columns: fitting", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit(Path(folder), columns, options.seed)
        return [line(folder, columns, rows, repeats, fitted, options) for rows in row_counts]


def line(folder: str, columns: int, rows: int, repeats: int, fitted: float, options: argparse.Namespace) -> list[str]:
    print(f"{columns} columns: {rows:,} rows", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "benchmarks.scale", "--method", options.method, "--seed", options.seed]
    command += ["--child", folder, columns, rows, repeats]
    done = subprocess.run(list(map(str, command)), cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        error = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
        return [f"{columns}", f"{rows:,}", f"{fitted:.1f}", error, *[""] * (len(HEADER) - 4)]
    found = json.loads(done.stdout.splitlines()[-1])
    return [
        f"{columns}",
        f"{rows:,}",
        f"{fitted:.1f}",
        measuring.spread(found["seconds"], "{:.3f}"),
        f"{1000 * np.median(found['seconds']) / rows:.3f}",
        f"{found['calls']}",
        f"{found['model_rows'] / rows:.1f}{found['compiled']}",
        f"{found['found']:.1f}",
        f"{found['peak']:.0f}" if found["peak"] is not None else "",
        f"{found['input']:.1f}",
    ]


def fit(folder: Path, columns: int, seed: int) -> float:
    """Train a model and fit an explainer, save both, and return the seconds of `fit`."""
    X = synthetic(TRAINING_ROWS, columns, seed)
    model = make_pipeline(preprocessing(), MLPClassifier((64, 32), max_iter=30, random_state=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, outcome(X, seed))
    started = perf_counter()
    explainer = FasterCE(model, random_state=seed).fit(X)
    seconds = perf_counter() - started
    explainer.save(folder / "explainer")
    joblib.dump(model, folder / "model.joblib")
    return seconds


def synthetic(rows: int, columns: int, seed: int) -> pd.DataFrame:
    """Return a table; each column has its own generator, so that a wider table contains the narrower one."""
    kinds = ("number", "category", "whole", "category", "tail", "category")
    return pd.DataFrame({f"c{j}": column(kinds[j % len(kinds)], rows, (seed, rows, j)) for j in range(columns)})


def column(kind: str, rows: int, seed: tuple[int, ...]) -> Any:
    generator = np.random.default_rng(seed)
    if kind == "category":
        return pd.Series(generator.choice(CATEGORIES, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05]), dtype="str")
    if kind == "whole":
        return generator.integers(0, 40, rows)
    return np.round(generator.normal(size=rows) if kind == "number" else generator.lognormal(0, 1, rows), 3)


def outcome(X: pd.DataFrame, seed: int) -> np.ndarray:
    """Return labels that depend on a few columns with one interaction; about half are yes."""
    generator = np.random.default_rng(seed)
    chosen = X.iloc[:, : min(12, X.shape[1])]
    parts = [values.to_numpy() if values.dtype.kind in "if" else (values == "a").to_numpy() for _, values in chosen.items()]
    parts = [(part - np.mean(part)) / np.std(part) for part in parts]
    score = np.stack(parts, axis=1) @ generator.normal(size=len(parts)) + parts[0] * parts[2]
    return np.where(score > np.median(score), "yes", UNWANTED)


def measure(folder: Path, columns: int, rows: int, repeats: int, method: str, seed: int) -> dict[str, Any]:
    """In the measured process: explain refused rows."""
    model = joblib.load(folder / "model.joblib")
    explainer = load(folder / "explainer", model)
    drawn = synthetic(max(4 * rows, 200), columns, seed + 1)
    refused = drawn[model.predict(drawn) == UNWANTED].iloc[:rows].reset_index(drop=True)
    if len(refused) < rows:
        raise RuntimeError(f"only {len(refused)} of {len(drawn)} rows are refused")
    del drawn
    explainer.explain(refused.iloc[:5], method)
    reset_peak()
    before = memory("VmRSS")
    result = explainer.explain(refused, method)
    peak = memory("VmHWM")
    seconds = measuring.seconds_of(lambda: explainer.explain(refused, method), repeats)
    compiled = getattr(result, "compiled", None)
    return {
        "seconds": seconds,
        "calls": result.usage.calls,
        "model_rows": result.usage.rows,
        "compiled": f" + {compiled.rows / rows:.1f} of the compiled model" if compiled is not None else "",
        "found": 100 * float((result.status == "found").mean()),
        "peak": None if before is None or peak is None else peak - before,
        "input": refused.memory_usage(deep=True).sum() / 2**20,
    }


def reset_peak() -> None:
    """Reset the peak memory of this process (Linux; elsewhere the column of memory stays empty)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def memory(entry: str) -> float | None:
    """Return an entry of /proc/self/status in MB, None without it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(f"{entry}:"))


if __name__ == "__main__":
    main()
