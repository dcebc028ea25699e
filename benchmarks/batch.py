"""Rows per second with one and two workers, local and on Ray, and memory of growing batches: `make bench-batch`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.measuring import machine, table
from benchmarks.processes import family, processor_seconds, resident_mb
from fasterce import FasterCE, batch, datasets

HERE = Path(__file__).parent
POLL_SECONDS = 0.2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description=__doc__)
    parser.add_argument("--speed-rows", type=int, default=100_000, help="rows of the comparison of backends")
    parser.add_argument("--memory-rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--shard-rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--backends", nargs="+", default=["local", "ray"])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "batch.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        measure(json.loads(options.one))
        return
    with tempfile.TemporaryDirectory() as folder:
        artifact = prepare(Path(folder))
        parts = [speed(Path(folder), artifact, options), memory(Path(folder), artifact, options)]
    command = f"python -m benchmarks.batch {' '.join(sys.argv[1:])}".strip()
    head = f"# Batches: rows per second and memory (`make bench-batch`)\n\n`{command}`\n\n{machine()}\n\n"
    report = head + "\n\n".join(part for part in parts if part) + "\n"
    print(report)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(report, encoding="utf-8")


def prepare(folder: Path) -> Path:
    """Adult with a logistic regression, fitted and saved with its model."""
    data = datasets.load("adult")
    numbers, texts = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts))
    model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.X, data.y)
    skops.io.dump(model, folder / "model.skops")
    FasterCE(model, data.schema, progress=False).fit(data.X).save(folder / "adult.fasterce", folder / "model.skops")
    refused = model.predict(data.X) == model.classes_[0]
    data.X[refused].to_parquet(folder / "refused.parquet", index=False)
    data.X[~refused].to_parquet(folder / "granted.parquet", index=False)
    return folder / "adult.fasterce"


def write_rows(folder: Path, rows: int, searched: float) -> Path:
    """Write rows to a file, of which a share `searched` is refused, so that they have to be searched."""
    target = folder / f"rows-{rows}-{searched}.parquet"
    rng = np.random.default_rng(rows)
    refused, granted = (pd.read_parquet(folder / f"{name}.parquet") for name in ("refused", "granted"))
    writer = None
    for start in range(0, rows, 50_000):
        count = min(50_000, rows - start)
        count_refused = round(count * searched)
        drawn = [
            refused.iloc[rng.integers(0, len(refused), count_refused)],
            granted.iloc[rng.integers(0, len(granted), count - count_refused)],
        ]
        part = pa.Table.from_pandas(pd.concat(drawn, ignore_index=True).assign(person=range(start, start + count)))
        writer = writer or pq.ParquetWriter(target, part.schema)
        writer.write_table(part.cast(writer.schema))
    writer.close()
    return target


def speed(folder: Path, artifact: Path, options: argparse.Namespace) -> str:
    source = write_rows(folder, options.speed_rows, 1.0)
    lines, slowest, digests = [], {}, set()
    for backend in options.backends:
        for workers in options.workers:
            result = run_in_process(folder, artifact, source, backend, workers, options.shard_rows)
            slowest.setdefault(backend, result["rows_each_second"])
            digests.add(result["digest"])
            against = result["rows_each_second"] / slowest[backend]
            lines.append(
                [
                    backend,
                    str(workers),
                    f"{result['rows_each_second']:,.0f}",
                    f"{against:.2f} ×",
                    f"{result['worker_ms']:.2f} ms",
                    f"{result['processor_ms']:.2f} ms",
                    f"{result['output_bytes']:.0f} bytes",
                    f"{result['seconds']:.1f} s",
                    f"{result['begin']:.1f} s",
                ]
            )
    head = [
        "backend",
        "workers",
        "rows/s",
        "against one worker",
        "explaining, per row",
        "processor time, per row",
        "output, per row",
        "whole run",
        "until the first shard",
    ]
    same = "the same bytes in every run" if len(digests) == 1 else f"{len(digests)} DIFFERENT outputs"
    text = f"## Speed\n\n{options.speed_rows:,} rows of Adult, all of which have to be searched, in shards of "
    text += f"{options.shard_rows:,}; {same}. Rows/s and processor time are from the end of the first shard to that of the "
    text += "last. Explaining is wall time in the workers, processor time is of all processes of the run.\n\n"
    return text + table(head, lines)


def memory(folder: Path, artifact: Path, options: argparse.Namespace) -> str:
    if not options.memory_rows:
        return ""
    lines = []
    for rows in options.memory_rows:
        source = write_rows(folder, rows, 0.03)
        result = run_in_process(folder, artifact, source, "local", 1, options.shard_rows)
        lines.append(
            [f"{rows:,}", f"{result['driver_mb']:.0f} MB", f"{result['worker_mb']:.0f} MB", f"{result['seconds']:.0f} s"]
        )
        source.unlink()
    head = ["rows", "peak of the first process", "peak of a worker", "whole run"]
    return "## Memory\n\nOne worker; about 3 rows of 100 have to be searched.\n\n" + table(head, lines)


def run_in_process(
    folder: Path, artifact: Path, source: Path, backend: str, workers: int, shard_rows: int
) -> dict[str, float]:
    """Run once in a process of its own."""
    output = folder / f"out-{backend}-{workers}-{source.stem}"
    job = [str(artifact), str(source), str(output), backend, workers, shard_rows]
    command = [sys.executable, "-m", "benchmarks.batch", "--one", json.dumps(job)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(job: Sequence) -> None:
    artifact, source, output, backend, workers, shard_rows = job
    moments: list[tuple[float, int, float]] = []
    monitor = MemoryMonitor()
    monitor.start()
    target = datasets.load("adult").y.unique()
    report = batch.explain(
        artifact,
        source,
        output,
        backend=backend,
        workers=workers,
        shard_rows=shard_rows,
        id_column="person",
        options={"target": sorted(target)[1], "diagnose": False},
        progress=lambda status: moments.append((status.seconds, status.shards_done, processor_time())),
    )
    monitor.stop()
    if not report.complete:
        raise SystemExit(str(report))
    end, _, used = next(moment for moment in moments if moment[1] == report.shards)
    begin, done, before = next(moment for moment in moments if moment[1] >= 1)
    after = (report.shards - done) * report.rows / report.shards
    result = {
        "rows_each_second": after / (end - begin) if end > begin else report.rows / report.seconds,
        "processor_ms": 1000 * (used - before) / after if after else 0.0,
        "worker_ms": 1000 * report.counts.summary.seconds / report.rows,
        "seconds": report.seconds,
        "begin": begin,
        "output_bytes": sum(file.stat().st_size for file in Path(output).rglob("*.parquet")) / report.rows,
        "digest": digest(Path(output)),
        "driver_mb": monitor.peak[0],
        "worker_mb": monitor.peak[1],
    }
    print(json.dumps(result))


def processor_time() -> float:
    return sum(map(processor_seconds, family(os.getpid())))


def digest(output: Path) -> str:
    files = {}
    for record in sorted(output.glob("_shards/*.json")):
        files.update(json.loads(record.read_text())["files"])
    return json.dumps(files, sort_keys=True)


class MemoryMonitor(threading.Thread):
    """The peak memory of this process, and of the largest process it started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = [0.0, 0.0]
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(POLL_SECONDS):
            first, *others = map(resident_mb, family(os.getpid()))
            self.peak = [max(self.peak[0], first), max(self.peak[1], *others, 0.0)]

    def stop(self) -> None:
        self.stopped.set()
        self.join()


if __name__ == "__main__":
    main()
