"""Run treecf's exact search for the rows of a problem file; in treecf's own virtual environment, without our package.

`python treecf_rows.py PROBLEM MODEL` prints one JSON object per row, {"row", "proof", "values"}; `values` is the
counterfactual or null. It stops when the time of the whole problem is over, or if the first few rows have no proof.

Numbers are counted in steps of the schema, so that allowed values are whole numbers. The thresholds of the trees, which see
scaled numbers, are replaced by ones between two steps, found by scaling the steps on both sides as the pipeline does.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np
from treecf import Counterfactual, Explainer, Grid, OneHot, Range, Target
from treecf.ir import EnsembleIR, Node, SplitOp

# Rows without a proof after which the others are not tried.
FEW = 5


def main(problem_file: str, model_file: str) -> None:
    problem = json.loads(Path(problem_file).read_text())
    model = json.loads(Path(model_file).read_text()) if model_file.endswith(".json") else joblib.load(model_file)
    warnings.simplefilter("ignore")
    explainer = _explainer(model, problem)
    started, proofs = perf_counter(), []
    for row, (values, (low, high)) in enumerate(zip(problem["rows"], problem["targets"], strict=True)):
        hopeless = len(proofs) >= FEW and not set(proofs) & {"optimal", "certified"}
        if hopeless or perf_counter() - started > problem["seconds"]:
            break
        target = Target.raw(range=(-np.inf if low is None else low, np.inf if high is None else high))
        limit = problem["seconds_per_row"]
        found = explainer.explain(np.array(values), target, backend="exact", time_budget_s=limit, seed=0)
        proofs.append(found.proof)
        changed = found.x_cf.tolist() if isinstance(found, Counterfactual) else None
        print(json.dumps({"row": row, "proof": found.proof, "values": changed}), flush=True)


def _explainer(model: object, problem: dict) -> Explainer:
    normalizers = np.array(problem["normalizers"])
    ir = in_steps(Explainer(model, normalizers=normalizers).ir, problem)
    names = ir.feature_names
    return Explainer(
        ir,
        normalizers=normalizers,
        constraints=[
            *(Range(names[k], low, high) for k, (low, high) in enumerate(problem["ranges"])),
            *(OneHot(tuple(names[k] for k in range(*group))) for group in problem["groups"]),
        ],
        value_policy={names[k]: Grid(1.0) for k in range(len(problem["ranges"]))},
    )


def in_steps(ir: EnsembleIR, problem: dict) -> EnsembleIR:
    """Return the trees with thresholds in steps of the schema."""
    trees = [replace(tree, nodes=tuple(_node(node, problem) for node in tree.nodes)) for tree in ir.trees]
    return replace(ir, trees=tuple(trees))


def _node(node: Node, problem: dict) -> Node:
    if node.feature is None or node.feature >= len(problem["scale"]):
        return node
    scale, mean, deviation = (problem[name][node.feature] for name in ("scale", "mean", "deviation"))

    def goes_left(value: np.ndarray) -> np.ndarray:
        scaled = (value - mean) / deviation
        return scaled < node.threshold if node.op is SplitOp.LT else scaled <= node.threshold

    steps = np.floor((node.threshold * deviation + mean) * scale) + np.arange(-3.0, 4.0)
    low = steps[np.flatnonzero(goes_left(steps / scale))[-1]]
    high = low + 1
    for own, count in zip(problem["own"][node.feature], problem["own_steps"][node.feature], strict=True):
        if low < count < high:
            low, high = (count, high) if goes_left(np.array(own)) else (low, count)
    return replace(node, threshold=float((low + high) / 2))


if __name__ == "__main__":
    main(*sys.argv[1:])
