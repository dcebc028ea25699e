"""Shared by the benchmarks: time spent in a model, facts about the machine, and tables with medians and spread."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter, process_time
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
METHODS = ("predict", "predict_proba", "decision_function")
PACKAGES = ("numpy", "pandas", "scikit-learn", "xgboost-cpu", "onnxruntime", "torch")


@dataclass
class Meter:
    """Calls, rows and time of a model since the meter was created."""

    calls: int = 0
    rows: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


@contextmanager
def metered(model: Any) -> Iterator[Meter]:
    """Count calls, rows and time of a model. Its methods are replaced on the instance: a wrapper would hide its type."""
    meter, names = Meter(), [name for name in METHODS if hasattr(model, name)]
    for name in names:
        setattr(model, name, _metered_call(getattr(model, name), meter))
    try:
        yield meter
    finally:
        for name in names:
            delattr(model, name)


def _metered_call(method: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    def call(rows: Any, *arguments: Any, **options: Any) -> Any:
        started, cpu = perf_counter(), process_time()
        try:
            return method(rows, *arguments, **options)
        finally:
            meter.seconds += perf_counter() - started
            meter.cpu += process_time() - cpu
            meter.calls += 1
            meter.rows += len(rows)

    return call


def seconds_of(action: Callable[[], Any], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        started = perf_counter()
        action()
        found.append(perf_counter() - started)
    return found


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Return the median and, if they differ as formatted, the lowest and highest value; empty without values."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    if not known:
        return ""
    middle, low, high = (form.format(value) for value in (np.median(known), min(known), max(known)))
    return middle if low == high else f"{middle} ({low} – {high})"


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def package_versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def load() -> list[float]:
    """Return the load averages of the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def threads() -> int:
    """Return the number of threads of our own process, the same as for every rival."""
    return int(os.environ.get(THREADS[0], "1"))


def facts() -> dict[str, Any]:
    threads = {name: os.environ.get(name, "1") for name in THREADS}
    return {"cpu": platform.machine(), "cores": os.cpu_count(), "system": platform.system(), "threads": threads} | {
        "versions": package_versions()
    }


def machine() -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    threads = ", ".join(f"{name}={os.environ.get(name, 'unset')}" for name in THREADS)
    busy = ", ".join(f"{value:.1f}" for value in load())
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, load {busy} (1, 5, 15 min); "
        f"Python {platform.python_version()}, {versions}; {threads} for every process."
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
