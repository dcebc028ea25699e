"""Distance of `closest` against the proven optimum: of treecf for trees, of a MILP for networks and linear models.

Optima are kept in `benchmarks/.work/optima`: they depend on the data and the model, not on the library.
"""

import hashlib
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.yardstick import milp, trees
from benchmarks.yardstick.cases import Case
from benchmarks.yardstick.consistency import Found
from benchmarks.yardstick.milp import SLACK, Optimum
from fasterce import FasterCE

KEPT = Path(__file__).parents[1] / ".work" / "optima"
# Change it when optima are computed otherwise, so that kept ones are computed again.
VERSION = 1
NEAR = 1.01
# Below this share of the optimum a distance contradicts the proof. On grids of millions of steps HiGHS is off by up to the
# slack it is given; a smaller distance counts as the optimum itself.
CONTRADICTION = 1 - SLACK


def supported(case: Case) -> bool:
    """Return whether there is an exact method for the model."""
    return trees.supports(case) or milp.supports(case)


def measure(
    case: Case, explainer: FasterCE, count: int, seconds_per_row: float = 4.0, seconds: float = 60.0
) -> dict[str, Any]:
    """Compare the first `count` rows; exact search may take `seconds` in all."""
    result = explainer.explain(case.rows.iloc[:count], target=case.target, distance="gower", diagnose=False)
    closest = Found.of(case, result)
    own = case.queries[closest.query]
    distance = np.full(len(closest.status), np.inf)
    valid = case.reached(closest.codes, closest.query) & case.allowed(closest.codes, own)
    distance[closest.query[valid]] = case.gower(closest.codes, own)[valid]
    return compare(distance, optima(case, distance, seconds_per_row, seconds))


def compare(distance: np.ndarray, optimum: dict[int, float | None]) -> dict[str, Any]:
    """Return measures of distances (infinite where nothing was found) against proven optima by query (None: not proven)."""
    proven = np.array([query for query, value in optimum.items() if value is not None], dtype=int)
    best = np.array([optimum[query] for query in proven], dtype=float)
    both = np.isfinite(best) & np.isfinite(distance[proven])
    ours, best_of_both = distance[proven][both], best[both]
    contradicted = int((ours < best_of_both * CONTRADICTION).sum())
    best_of_both = np.minimum(best_of_both, ours)
    ratio = ours / np.maximum(best_of_both, 1e-12)
    return {
        "queries": len(distance),
        "tried": len(optimum),
        "proven": len(proven),
        "compared": int(both.sum()),
        "missed": int((np.isfinite(best) & ~np.isfinite(distance[proven])).sum()),
        "contradicted": contradicted,
        "mean_distance": _rounded(ours.mean()) if len(ours) else None,
        "mean_optimum": _rounded(best_of_both.mean()) if len(ours) else None,
        "ratio_of_means": _rounded(ours.mean() / best_of_both.mean()) if len(ours) else None,
        "worst_ratio": _rounded(ratio.max()) if len(ours) else None,
        "within": int((ratio <= NEAR).sum()),
        "rows": {int(q): [_rounded(d), _rounded(b)] for q, d, b in zip(proven[both], ours, best_of_both, strict=True)},
    }


def _rounded(value: Any) -> float:
    return round(float(value), 6)


def optima(case: Case, distance: np.ndarray, seconds_per_row: float, seconds: float) -> dict[int, float | None]:
    """Return the optimal distance by query: infinite if there is provably no counterfactual, None if nothing was proven."""
    path = KEPT / f"{case.data}-{case.model_name}-{fingerprint(case)}.json"
    kept = {int(query): value for query, value in json.loads(path.read_text()).items()} if path.exists() else {}
    missing = np.array([query for query in range(len(distance)) if kept.get(query) is None], dtype=int)
    if len(missing):
        exact = _by_treecf if trees.supports(case) else _by_milp
        kept |= exact(case, missing, distance, seconds_per_row, seconds)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept))
    return {query: kept[query] for query in sorted(kept) if query < len(distance)}


def fingerprint(case: Case) -> str:
    """Return a digest of the rows, the schema and what the model predicts."""
    digest = hashlib.sha256(json.dumps([VERSION, case.schema.to_dict(), case.low], default=str).encode())
    outputs = getattr(case.model, "predict_proba", case.model.predict)(case.X_train)
    for array in (case.queries, case.training, np.round(outputs, 6)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:12]


def _by_treecf(
    case: Case, queries: np.ndarray, distance: np.ndarray, seconds_per_row: float, seconds: float
) -> dict[int, float | None]:
    found = trees.nearest(case, queries, seconds_per_row, seconds)
    return {query: _value(case, query, optimum, np.inf) for query, optimum in found.items()}


def _by_milp(
    case: Case, queries: np.ndarray, distance: np.ndarray, seconds_per_row: float, seconds: float
) -> dict[int, float | None]:
    """No counterfactual nearer than the known one means that the known one is the nearest."""
    network, started, found = milp.Network.of(case), perf_counter(), {}
    for query in queries:
        if perf_counter() - started > seconds:
            break
        known = float(distance[query]) if np.isfinite(distance[query]) else None
        optimum = milp.nearest(case, network, int(query), known, seconds_per_row)
        found[int(query)] = _value(case, int(query), optimum, np.inf if known is None else known)
    return found


def _value(case: Case, query: int, optimum: Optimum, otherwise: float) -> float | None:
    if not optimum.proven:
        return None
    return otherwise if optimum.codes is None else float(case.gower(optimum.codes, case.queries[query]))
