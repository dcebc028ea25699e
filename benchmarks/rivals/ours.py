"""fasterce itself, as a rival among rivals: same rows, same clock, in our own environment.

`variant` is a method ("closest", "sparse", "realistic") or "robust" (closest, holding under 95 % of small noise);
"-untwinned" evaluates the black box itself and no compiled model. Distances are gower, as the other systems' are judged by
it, or with "-euclidean" Euclidean. A regression is explained as such. The paper's engine is in `benchmarks.paper`.
"""

import shutil
from dataclasses import replace
from time import process_time
from typing import Any

import pandas as pd

from benchmarks.at_least import AtLeast
from benchmarks.rivals.problem import Problem
from fasterce import FasterCE, Schema, load
from fasterce.data.schema import Feature

ROBUST = 0.95
UNTWINNED, EUCLIDEAN = "-untwinned", "-euclidean"


class Rival:
    def __init__(self, problem: Problem, variant: str) -> None:
        self.problem = problem
        self.options = options(problem, variant)
        counted(problem)
        self.explainer, self.setup_seconds = fitted(problem)
        if variant.endswith(UNTWINNED):
            self.explainer.state_ = replace(self.explainer.state_, compiled=None)
        self.twins: list[Any] = []

    def explain(self, row: pd.DataFrame) -> Any:
        result = self.explain_batch(row)
        self.twins += [result.compiled] if result.compiled is not None else []
        return result

    def notes(self) -> list[str]:
        """Rows evaluated with the compiled model instead of the black box; they are in no count of ours."""
        if not self.twins:
            return ["not compiled"]
        rows = sum(compiled.rows for compiled in self.twins) / len(self.twins)
        return [f"and {rows:.0f} rows of a compiled model that agrees {self.twins[0].agreement:.2%}"]

    def explain_batch(self, rows: pd.DataFrame) -> Any:
        return self.explainer.explain(rows, target=target(self.problem), **self.options)

    def table(self, answer: Any) -> pd.DataFrame | None:
        found = answer.to_frame()
        return self.problem.typed(found) if len(found) else None


def fitted(problem: Problem) -> tuple[FasterCE, float]:
    """Learned once a problem and kept in its folder, with the time it took: variants ask the same explainer."""
    kept, took, model = problem.folder / "explainer", problem.folder / "explainer.seconds", explained(problem)
    if took.exists():
        return load(kept, model), float(took.read_text())
    started = process_time()
    explainer = FasterCE(model, schema(problem), random_state=problem.seed, progress=False).fit(problem.X_train)
    seconds = process_time() - started
    shutil.rmtree(kept, ignore_errors=True)
    explainer.save(kept)
    took.write_text(repr(seconds))
    return explainer, seconds


def explained(problem: Problem) -> Any:
    """Return the model itself: of a regression the regressor."""
    return problem.model.regressor if isinstance(problem.model, AtLeast) else problem.model


def target(problem: Problem) -> Any:
    return (problem.model.low, None) if isinstance(problem.model, AtLeast) else problem.wanted


def options(problem: Problem, variant: str) -> dict[str, Any]:
    method = variant.removesuffix(UNTWINNED).removesuffix(EUCLIDEAN)
    distance = "euclidean" if variant.endswith(EUCLIDEAN) else "gower"
    given: dict[str, Any] = {"distance": distance, "n": problem.count, "diagnose": False}
    if method == "robust":
        given |= {"robust": ROBUST}
    given |= {"permitted_range": {problem.columns[j]: pair for j, pair in problem.ranges.items()}} if problem.ranges else {}
    return given | {"method": "closest" if method == "robust" else method}


def schema(problem: Problem) -> Schema:
    """As dumped; features that must not change are its own, ranges are asked for with each call."""
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


def counted(problem: Problem) -> None:
    """The clock is kept on the model's own methods: a wrapper would hide what model it is."""
    model = explained(problem)
    for name in ("predict", "predict_proba"):
        if hasattr(model, name):
            setattr(model, name, counting(problem, getattr(model, name)))


def counting(problem: Problem, question: Any) -> Any:
    def ask(rows: Any, *rest: Any, **named: Any) -> Any:
        started, clock = process_time(), problem.clock
        try:
            return question(rows, *rest, **named)
        finally:
            clock.model += process_time() - started
            clock.calls += 1
            clock.rows += len(rows)

    return ask
