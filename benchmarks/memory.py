"""Peak memory of explaining files of growing length, each in a process of its own: `make bench-memory`."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measuring import machine, table
from fasterce import FasterCE, io, load

COLUMNS = 15
CHUNK = 5_000
MEAN_OFTEN_REFUSED, MEAN_RARELY_REFUSED = 0.0, 1.9
EXPLAINER = "explainer"
HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument(
        "--every-row", action="store_true", help="use rows that all have to be searched, instead of a few percent"
    )
    parser.add_argument("--out", type=Path, default=HERE / "results" / "memory.md")
    parser.add_argument("--one", nargs=2, metavar=("FILE", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        measure(*map(Path, options.one))
        return
    report = f"{machine()}\n\n{compare(options.rows, options.every_row)}\n"
    print(report)
    options.out.write_text(
        f"# Peak memory of files explained chunk by chunk (`make bench-memory`)\n\n{report}", encoding="utf-8"
    )


def compare(sizes: Sequence[int], every_row: bool) -> str:
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        # Fitted here, so that the memory of `fit` is not in that of the processes that explain.
        FasterCE(approve, progress=False).fit(random_rows(500, MEAN_OFTEN_REFUSED)).save(Path(folder) / EXPLAINER)
        for rows in sizes:
            found = [measure_in_process(Path(folder), rows, every_row, kind) for kind in ("csv", "parquet")]
            lines.append(
                [
                    f"{rows:,}",
                    *(f"{peak:.0f} MB (before {before:.0f}), {searched:.0%} searched" for before, peak, searched in found),
                ]
            )
    return table(["rows", "CSV to CSV", "Parquet to Parquet"], lines)


def measure_in_process(folder: Path, rows: int, every_row: bool, kind: str) -> list[float]:
    source = folder / f"rows.{kind}"
    frame = random_rows(rows, MEAN_OFTEN_REFUSED if every_row else MEAN_RARELY_REFUSED)
    frame = frame[approve(frame) == "no"].sample(rows, replace=True, random_state=0) if every_row else frame
    frame.to_csv(source, index=False) if kind == "csv" else frame.to_parquet(source, row_group_size=rows)
    command = [sys.executable, "-m", "benchmarks.memory", "--one", str(source), str(folder / f"out.{kind}")]
    return [float(part) for part in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def measure(source: Path, target: Path) -> None:
    explainer = load(source.parent / EXPLAINER, approve)
    explainer.progress = False
    before = peak()
    done = io.run(explainer, source, target, options={"target": "yes", "diagnose": False}, chunk_rows=CHUNK)
    print(before, peak(), done.found / done.rows)


def random_rows(rows: int, mean: float) -> pd.DataFrame:
    drawn = np.random.default_rng(0).normal(mean, 1, (rows, COLUMNS)).round(3)
    return pd.DataFrame(drawn, columns=[f"c{k}" for k in range(COLUMNS)])


def approve(frame: pd.DataFrame) -> np.ndarray:
    return np.where(frame["c0"] + 0.3 * frame["c1"] > 0.5, "yes", "no")


def peak() -> float:
    """Return the peak memory in MB; `getrusage` of a new process starts with the peak of its parent."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    main()
