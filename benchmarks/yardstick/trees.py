"""The nearest counterfactual of a tree ensemble, by treecf's exact search in a virtual environment of its own.

treecf gets what the trees get, scaled numbers and one-hot columns. Its normalizers make its distance gower_l1, numbers keep the
range and decimals of the schema, and one-hot columns stay one-hot.
"""

import json
import os
import subprocess
import tempfile
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from benchmarks import venvs
from benchmarks.yardstick.milp import Optimum
from benchmarks.yardstick.worlds import World

RUNNER = Path(__file__).with_name("treecf_rows.py")
MODELS = ("XGB", "LGBM", "RandomForest", "GradientBoosting", "HistGradientBoosting")
# How far beyond the boundary a score must be: scores are sums of 32-bit floats.
MARGIN = 1e-6
# Numbers that are tried one step farther where the model does not confirm a counterfactual, and the cost this may add.
MOST_MOVED = 6
STEP_COST = 1e-3
PROVEN = ("optimal", "certified")


def supports(world: World) -> bool:
    """Return whether treecf reads the model of a world."""
    return type(world.model[-1]).__name__.startswith(MODELS)


def nearest(world: World, queries: np.ndarray, seconds_per_row: float, seconds: float) -> dict[int, Optimum]:
    """Return the nearest counterfactuals by gower_l1 of the queries that were reached within the time."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.json"
        problem.write_text(json.dumps(_problem(world, queries) | {"seconds_per_row": seconds_per_row, "seconds": seconds}))
        model = _write_model(world.model[-1], Path(folder))
        command = [venvs.python_of("treecf"), str(RUNNER), str(problem), str(model)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": ""})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["treecf failed without a message"])[-1])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {int(queries[line["row"]]): _optimum(world, int(queries[line["row"]]), line) for line in lines}


def _write_model(estimator: Any, folder: Path) -> Path:
    """Write a model for treecf: LightGBM, which its environment does not have, as the JSON dump it reads."""
    if hasattr(estimator, "booster_"):
        path = folder / "model.json"
        path.write_text(json.dumps(estimator.booster_.dump_model()))
        return path
    path = folder / "model.joblib"
    joblib.dump(estimator, path)
    return path


def _problem(world: World, queries: np.ndarray) -> dict[str, Any]:
    numeric = np.flatnonzero(world.numeric)
    mean, deviation = _scaling(world)
    low, high = ((end / world.scale)[numeric] for end in world.grid)
    ranges = np.column_stack([low, high])
    # The query's own value may lie between the last multiple and the end of the range.
    ends = np.column_stack([world.own[queries][:, numeric].min(axis=0), world.own[queries][:, numeric].max(axis=0)])
    ranges = np.column_stack([np.minimum(ranges[:, 0], ends[:, 0]), np.maximum(ranges[:, 1], ends[:, 1])])
    sizes = [len(feature.categories) for feature in world.schema.features if not feature.numeric]
    starts = np.cumsum([len(numeric), *sizes])
    prices = np.concatenate([world.span[numeric] / deviation, np.full(sum(sizes), 2.0)])
    slack = 1e-9
    return {
        "rows": np.asarray(world.model[0].transform(world.rows.iloc[queries]), dtype=float).tolist(),
        "targets": [_target(world, int(query)) for query in queries],
        "normalizers": prices.tolist(),
        "ranges": ((ranges - mean[:, None]) / deviation[:, None] + [-slack, slack]).tolist(),
        "grids": np.column_stack([1 / (world.scale[numeric] * deviation), (low - mean) / deviation]).tolist(),
        "groups": [(int(start), int(stop)) for start, stop in pairwise(starts) if stop - start > 1],
    }


def _scaling(world: World) -> tuple[np.ndarray, np.ndarray]:
    if not world.numeric.any():
        return np.zeros(0), np.zeros(0)
    scaler = world.model[0].named_transformers_["standardscaler"]
    return scaler.mean_, scaler.scale_


def _target(world: World, query: int) -> tuple[float | None, float | None]:
    """Return the interval of treecf's raw score: a log-odds, a forest's share of class 1, or the number predicted."""
    if world.low is not None:
        return world.low + MARGIN, None
    boundary = 0.5 if type(world.model[-1]).__name__.startswith("RandomForest") else 0.0
    if world.predictions[query] == world.model.classes_[0]:
        return boundary + MARGIN, None
    return None, boundary if boundary else -MARGIN


def _optimum(world: World, query: int, line: dict[str, Any]) -> Optimum:
    """Return the counterfactual as codes, on the schema's grid and confirmed by the model."""
    proven = line["proof"] in PROVEN
    if line["values"] is None:
        return Optimum(None, proven)
    numeric, own = np.flatnonzero(world.numeric), world.own[query]
    mean, deviation = _scaling(world)
    values, codes = np.array(line["values"]), own.copy()
    raw = values[: len(numeric)] * deviation + mean
    changed = np.abs(raw - own[numeric]) > 1e-7 * np.maximum(1.0, np.abs(own[numeric]))
    codes[numeric] = np.where(changed, np.round(raw * world.scale[numeric]) / world.scale[numeric], own[numeric])
    start = len(numeric)
    for j in np.flatnonzero(~world.numeric):
        stop = start + len(world.schema.features[j].categories)
        codes[j], start = values[start:stop].argmax(), stop
    found = _confirmed(world, query, codes)
    if found is None:
        return Optimum(None, False)
    close = world.gower(found, own) <= (1 + STEP_COST) * world.gower(codes, own) + 1e-12
    return Optimum(found, proven and bool(close))


def _confirmed(world: World, query: int, codes: np.ndarray) -> np.ndarray | None:
    """Return the counterfactual, or the nearest one with some numbers one step farther, that the model confirms.

    Where an allowed value equals a threshold, the last bit of scaling decides, and treecf scales in another order.
    """
    own = world.own[query]
    moved = np.flatnonzero(world.numeric & (codes != own))[:MOST_MOVED]
    options = np.array(list(product((0, 1), repeat=len(moved))), dtype=float).reshape(2 ** len(moved), len(moved))
    tried = np.repeat(codes[None], len(options), axis=0)
    away = np.sign(codes - own)[moved]
    tried[:, moved] = np.round(codes[moved] * world.scale[moved] + options * away) / world.scale[moved]
    tried = tried[world.allowed(tried, own)]
    tried = tried[world.reached(tried, np.full(len(tried), query))]
    return tried[world.gower(tried, own).argmin()] if len(tried) else None
