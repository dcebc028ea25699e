"""Time of one query and of a batch, next to the model's own `predict`, and the cost of `fit`."""

from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measuring import metered
from benchmarks.yardstick.cases import Case
from fasterce import FasterCE

WARM_UP = 3
DIGITS = 4


def fit(case: Case) -> tuple[FasterCE, dict[str, Any]]:
    """Return a fitted explainer, and what `fit` took."""
    started, cpu = perf_counter(), process_time()
    with metered(case.model) as meter:
        explainer = FasterCE(case.model, case.schema, random_state=0, progress=False).fit(case.X_train)
    return explainer, {
        "fit_seconds": round(perf_counter() - started, 2),
        "fit_cpu_seconds": round(process_time() - cpu, 2),
        "fit_model_calls": meter.calls,
        "fit_model_rows": meter.rows,
        "fit_model_seconds": round(meter.seconds, 2),
    }


def measure(case: Case, explainer: FasterCE, count: int, batch: int, distance: str = "gower") -> dict[str, Any]:
    """Time `count` queries one by one, and a batch of `batch`."""
    options = {"target": case.target, "distance": distance, "diagnose": False}
    return _one_by_one(case, explainer, count, options) | _batch(case, explainer, batch, options)


def _one_by_one(case: Case, explainer: FasterCE, count: int, options: dict[str, Any]) -> dict[str, Any]:
    """From a one-row table to the table of its counterfactual; `predict` of one and two rows in turn with it."""
    single = [case.rows.iloc[[i % len(case.rows)]] for i in range(count + WARM_UP)]
    double = [case.rows.iloc[[i % len(case.rows), (i + 1) % len(case.rows)]] for i in range(count + WARM_UP)]
    took: dict[str, list[float]] = {name: [] for name in ("predict_one", "predict_two", "query", "outside_model", "calls")}
    for one, two in zip(single, double, strict=True):
        took["predict_one"].append(_seconds(lambda one=one: case.model.predict(one)))
        took["predict_two"].append(_seconds(lambda two=two: case.model.predict(two)))
        with metered(case.model) as meter:
            took["query"].append(_seconds(lambda one=one: explainer.explain(one, **options).counterfactuals))
        took["outside_model"].append(took["query"][-1] - meter.seconds)
        took["calls"].append(meter.calls)
    counted = {name: np.array(values[WARM_UP:]) for name, values in took.items()}
    found = {"query_calls": round(float(counted.pop("calls").mean()), 2)}
    for name, seconds in counted.items():
        found[f"{name}_ms_p50"] = round(1000 * float(np.median(seconds)), DIGITS)
        found[f"{name}_ms_p95"] = round(1000 * float(np.quantile(seconds, 0.95)), DIGITS)
    excess = counted["query"] - counted["predict_two"]
    return found | {"query_minus_predict_two_ms_p50": round(1000 * float(np.median(excess)), DIGITS)}


def _seconds(action: Any) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


def _batch(case: Case, explainer: FasterCE, size: int, options: dict[str, Any]) -> dict[str, Any]:
    """CPU of this process outside the model, per query; model calls and rows per query."""
    rows = batch_rows(case, size)
    explainer.explain(rows.iloc[:WARM_UP], **options)
    with metered(case.model) as predicting:
        case.model.predict(rows)
    started, cpu = perf_counter(), process_time()
    with metered(case.model) as meter:
        result = explainer.explain(rows, **options)
        result.counterfactuals  # noqa: B018 - the table is made when first used
    return {
        "batch_rows": len(rows),
        "batch_found": int((result.status == "found").sum()),
        "batch_own_cpu_ms": round(1000 * (process_time() - cpu - meter.cpu) / len(rows), DIGITS),
        "batch_model_cpu_ms": round(1000 * meter.cpu / len(rows), DIGITS),
        "batch_predict_cpu_ms": round(1000 * predicting.cpu / len(rows), DIGITS),
        "batch_wall_ms": round(1000 * (perf_counter() - started) / len(rows), DIGITS),
        "batch_model_calls": meter.calls,
        "batch_model_rows": round(meter.rows / len(rows), 3),
    }


def batch_rows(case: Case, size: int) -> pd.DataFrame:
    """Return distinct rows to explain: those of the case, then crossings of two of them."""
    generator, found = np.random.default_rng(0), case.rows
    for _ in range(20):
        if len(found) >= size:
            break
        first, second = (
            case.rows.iloc[generator.integers(len(case.rows), size=size)].reset_index(drop=True) for _ in range(2)
        )
        mixed = first.where(generator.random(first.shape) < 0.5, second).astype(case.rows.dtypes.to_dict())
        if case.low is not None:
            mixed = mixed[case.model.predict(mixed) < case.low]
        found = pd.concat([found, mixed]).drop_duplicates()
    return found.iloc[:size].reset_index(drop=True)
