"""Run treecf's exact search for the rows of a problem file; in treecf's own virtual environment, without our package.

`python treecf_rows.py PROBLEM MODEL`: prints one JSON object per row, {"row", "proof", "values"}; `values` is the encoded
counterfactual or null. Stops when the time of the whole problem is over, or if the first few rows have no proof.
"""

import json
import sys
import warnings
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np
from treecf import Counterfactual, Explainer, Grid, OneHot, Range, Target

# Rows without a proof after which the others are not tried.
FEW = 5


def main(problem_file: str, model_file: str) -> None:
    problem = json.loads(Path(problem_file).read_text())
    model = json.loads(Path(model_file).read_text()) if model_file.endswith(".json") else joblib.load(model_file)
    warnings.simplefilter("ignore")
    names = Explainer(model, normalizers=np.array(problem["normalizers"])).ir.feature_names
    explainer = Explainer(
        model,
        normalizers=np.array(problem["normalizers"]),
        constraints=[
            *(Range(names[k], low, high) for k, (low, high) in enumerate(problem["ranges"])),
            *(OneHot(tuple(names[k] for k in range(*group))) for group in problem["groups"]),
        ],
        value_policy={names[k]: Grid(step, anchor) for k, (step, anchor) in enumerate(problem["grids"])},
    )
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


if __name__ == "__main__":
    main(*sys.argv[1:])
