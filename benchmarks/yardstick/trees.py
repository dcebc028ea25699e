"""The nearest counterfactual of a tree ensemble, by treecf's exact search in a virtual environment of its own.

Its normalizers make its distance gower_l1, numbers keep the range and decimals of the schema, one-hot columns stay one-hot.
"""

import json
import os
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks import venvs
from benchmarks.yardstick.cases import Case
from benchmarks.yardstick.milp import Optimum

RUNNER = Path(__file__).with_name("treecf_rows.py")
MODELS = ("XGB", "LGBM", "RandomForest", "GradientBoosting", "HistGradientBoosting")
# How far beyond the boundary a score must be: scores are sums of 32-bit floats.
MARGIN = 1e-6
PROVEN = ("optimal", "certified")


def supports(case: Case) -> bool:
    """Return whether treecf reads the model of a case."""
    return type(case.model[-1]).__name__.startswith(MODELS)


def nearest(case: Case, queries: np.ndarray, seconds_per_row: float, seconds: float) -> dict[int, Optimum]:
    """Return the nearest counterfactuals by gower_l1 of the queries that were reached within the time."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.json"
        problem.write_text(json.dumps(_problem(case, queries) | {"seconds_per_row": seconds_per_row, "seconds": seconds}))
        model = _write_model(case.model[-1], Path(folder))
        command = [venvs.python_of("treecf"), str(RUNNER), str(problem), str(model)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": ""})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["treecf failed without a message"])[-1])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {int(queries[line["row"]]): _optimum(case, int(queries[line["row"]]), line) for line in lines}


def _write_model(estimator: Any, folder: Path) -> Path:
    """Write a model for treecf: LightGBM, which its environment does not have, as the JSON dump it reads."""
    if hasattr(estimator, "booster_"):
        path = folder / "model.json"
        path.write_text(json.dumps(estimator.booster_.dump_model()))
        return path
    path = folder / "model.joblib"
    joblib.dump(estimator, path)
    return path


def _problem(case: Case, queries: np.ndarray) -> dict[str, Any]:
    numeric = np.flatnonzero(case.numeric)
    own, scale = case.queries[queries][:, numeric], case.scale[numeric]
    steps = own * scale
    whole = np.round(steps)
    steps = np.where(np.abs(steps - whole) <= 1e-6, whole, steps)
    low, high = (end[numeric] for end in case.grid)
    sizes = [len(feature.categories) for feature in case.schema.features if not feature.numeric]
    starts = np.cumsum([len(numeric), *sizes])
    scaler = case.model[0].named_transformers_["standardscaler"] if len(numeric) else None
    encoded = np.asarray(case.model[0].transform(case.rows.iloc[queries]), dtype=float)
    return {
        "rows": np.hstack([steps, encoded[:, len(numeric) :]]).tolist(),
        "targets": [_target(case, int(query)) for query in queries],
        "normalizers": np.concatenate([case.span[numeric] * scale, np.full(sum(sizes), 2.0)]).tolist(),
        # The query's own value may lie between the last step and the end of the range.
        "ranges": np.column_stack([np.minimum(low, steps.min(axis=0)), np.maximum(high, steps.max(axis=0))]).tolist(),
        "groups": [(int(start), int(stop)) for start, stop in pairwise(starts) if stop - start > 1],
        "scale": scale.tolist(),
        "mean": [] if scaler is None else scaler.mean_.tolist(),
        "deviation": [] if scaler is None else scaler.scale_.tolist(),
        "own": own.T.tolist(),
        "own_steps": steps.T.tolist(),
    }


def _target(case: Case, query: int) -> tuple[float | None, float | None]:
    """Return the interval of treecf's raw score: a log-odds, a forest's share of class 1, or the number predicted.

    A forest predicts the first class if both have the same share.
    """
    if case.low is not None:
        return case.low + MARGIN, None
    boundary = 0.5 if type(case.model[-1]).__name__.startswith("RandomForest") else 0.0
    if case.predictions[query] == case.model.classes_[0]:
        return boundary + MARGIN, None
    return None, boundary + 1e-9 if boundary else -MARGIN


def _optimum(case: Case, query: int, line: dict[str, Any]) -> Optimum:
    """Return the counterfactual as codes; not proven unless the model confirms it."""
    proven = line["proof"] in PROVEN
    if line["values"] is None:
        return Optimum(None, proven)
    numeric, own, values = np.flatnonzero(case.numeric), case.queries[query], np.array(line["values"])
    codes, steps, scale = own.copy(), values[: len(numeric)], case.scale[numeric]
    codes[numeric] = np.where(np.abs(steps - own[numeric] * scale) <= 1e-6, own[numeric], np.round(steps) / scale)
    start = len(numeric)
    for j in np.flatnonzero(~case.numeric):
        stop = start + len(case.schema.features[j].categories)
        codes[j], start = values[start:stop].argmax(), stop
    valid = bool(case.reached(codes[None], np.array([query]))[0] and case.allowed(codes, own))
    return Optimum(codes if valid else None, proven and valid)
