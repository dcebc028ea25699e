"""fasterce as one of the systems: same rows, same measurement, in our own environment.

`variant` is a method ("closest", "sparse", "realistic") or "robust" (`closest` with `robust=0.95`). With the suffix
"-uncompiled" it evaluates the black box itself instead of a compiled model, with "-euclidean" the distance is Euclidean
instead of gower. A regressor is explained as a regressor. The paper's engine is in `benchmarks.paper`.
"""

import shutil
from dataclasses import replace
from time import process_time
from typing import Any

import pandas as pd

from benchmarks.rivals.problem import Problem
from benchmarks.threshold import ThresholdClassifier
from fasterce import FasterCE, Schema, load
from fasterce.data.schema import Feature

ROBUST = 0.95
UNCOMPILED, EUCLIDEAN = "-uncompiled", "-euclidean"


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        self.options = options(problem, variant)
        count_usage(problem)
        self.explainer, self.setup_seconds = fitted(problem)
        if variant.endswith(UNCOMPILED):
            self.explainer.state_ = replace(self.explainer.state_, compiled=None)
        self.compiled: list[Any] = []

    def explain(self, row: pd.DataFrame) -> Any:
        result = self.explain_batch(row)
        self.compiled += [result.compiled] if result.compiled is not None else []
        return result

    def notes(self) -> list[str]:
        """Name the rows evaluated with the compiled model instead of the black box, which `usage` does not count."""
        if not self.compiled:
            return ["not compiled"]
        rows = sum(compiled.rows for compiled in self.compiled) / len(self.compiled)
        return [f"and {rows:.0f} rows of a compiled model that agrees {self.compiled[0].agreement:.2%}"]

    def explain_batch(self, rows: pd.DataFrame) -> Any:
        return self.explainer.explain(rows, target=target(self.problem), **self.options)

    def table(self, result: Any) -> pd.DataFrame | None:
        found = result.to_frame()
        return self.problem.typed(found) if len(found) else None


def fitted(problem: Problem) -> tuple[FasterCE, float]:
    """Return the explainer and the seconds of `fit`; both are kept in the problem's folder, for all variants."""
    saved, timing, model = problem.folder / "explainer", problem.folder / "explainer.seconds", explained_model(problem)
    if timing.exists():
        return load(saved, model), float(timing.read_text())
    started = process_time()
    explainer = FasterCE(model, schema(problem), random_state=problem.seed, progress=False).fit(problem.X_train)
    seconds = process_time() - started
    shutil.rmtree(saved, ignore_errors=True)
    explainer.save(saved)
    timing.write_text(repr(seconds))
    return explainer, seconds


def explained_model(problem: Problem) -> Any:
    """Return the model itself, for a regression the regressor."""
    return problem.model.regressor if isinstance(problem.model, ThresholdClassifier) else problem.model


def target(problem: Problem) -> Any:
    return (problem.model.low, None) if isinstance(problem.model, ThresholdClassifier) else problem.target


def options(problem: Problem, variant: str) -> dict[str, Any]:
    method = variant.removesuffix(UNCOMPILED).removesuffix(EUCLIDEAN)
    distance = "euclidean" if variant.endswith(EUCLIDEAN) else "gower"
    given: dict[str, Any] = {"distance": distance, "n": problem.count, "diagnose": False}
    if method == "robust":
        given |= {"robust": ROBUST}
    given |= {"permitted_range": {problem.columns[j]: pair for j, pair in problem.ranges.items()}} if problem.ranges else {}
    return given | {"method": "closest" if method == "robust" else method}


def schema(problem: Problem) -> Schema:
    """Return the schema of the problem; immutable columns are part of it, ranges are passed to each call."""
    frozen = {problem.columns[j] for j in problem.immutable}
    features = []
    for j, name in enumerate(problem.columns):
        if j in problem.numeric:
            low, high, decimals = problem.spec["numeric"][name]
            whole = pd.api.types.is_integer_dtype(problem.X_train[name])
            limits = {"lower": low, "upper": high, "decimals": decimals, "integer": whole}
            features.append(Feature(name, "numeric", mutable=name not in frozen, **limits))
        else:
            features.append(Feature(name, "categorical", tuple(problem.categories(j)), mutable=name not in frozen))
    return Schema(tuple(features))


def count_usage(problem: Problem) -> None:
    """Count on the model's own methods: a wrapper would hide what model it is."""
    model = explained_model(problem)
    for name in ("predict", "predict_proba"):
        if hasattr(model, name):
            setattr(model, name, counted(problem, getattr(model, name)))


def counted(problem: Problem, method: Any) -> Any:
    def call(rows: Any, *arguments: Any, **named: Any) -> Any:
        started, usage = process_time(), problem.usage
        try:
            return method(rows, *arguments, **named)
        finally:
            usage.model_seconds += process_time() - started
            usage.calls += 1
            usage.rows += len(rows)

    return call
