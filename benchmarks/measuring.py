"""What the benchmarks share: the time spent inside a model, the machine, and tables with medians and spread."""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PACKAGES = ("numpy", "pandas", "scikit-learn", "xgboost-cpu", "onnxruntime", "torch")
QUESTIONS = ("predict", "predict_proba")


@dataclass
class Inside:
    seconds: float = 0.0


@contextmanager
def timed(model: Any) -> Iterator[Inside]:
    """Seconds inside the model. Its own methods are covered on the instance: a wrapper would hide what model it is."""
    inside = Inside()
    for name in QUESTIONS:
        setattr(model, name, _timed_call(getattr(model, name), inside))
    try:
        yield inside
    finally:
        for name in QUESTIONS:
            delattr(model, name)


def _timed_call(question: Callable[..., Any], inside: Inside) -> Callable[..., Any]:
    def ask(*rows: Any, **options: Any) -> Any:
        started = perf_counter()
        try:
            return question(*rows, **options)
        finally:
            inside.seconds += perf_counter() - started

    return ask


def seconds_of(action: Callable[[], Any], repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        started = perf_counter()
        action()
        found.append(perf_counter() - started)
    return found


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Median and, where they differ as written, lowest and highest; nothing where there is nothing."""
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
    """Of the last 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def threads() -> int:
    """How many our own process may use: as many as everybody else's."""
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
