"""Whether results of different calls agree with each other, and whether exhaustive search finds what a call missed.

Every measure is a number of queries, to be divided by another: `queries` for those of several calls, `found` for those about
the counterfactuals of `closest`, `sparse_found`, `short` and `narrow_none` for the others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.yardstick import brute
from benchmarks.yardstick.cases import Case
from fasterce import FasterCE
from fasterce.constraints import AtMost, Near

# A distance counts as smaller if it is by more than this share: sums of floats in another order differ.
TIE = 1e-6
# And by more than this: the library rounds distances to nine decimals.
ROUNDED = 1e-9
# Share of its change by which a number is moved back towards the query.
MOVED_BACK = 0.03
# Share of its value within which a number may change in the calls that often find nothing.
NARROW = 0.25
# Model rows that exhaustive search may use per query: for single changes, and for pairs.
SINGLES, PAIRS = 2500, 10_000
# Queries with fewer than three counterfactuals for which all pairs are tried.
MOST_SHORT = 10
# Counterfactuals per query requested by the call with `n`.
REQUESTED = 3


@dataclass
class Found:
    """The counterfactuals of one call.

    Parameters
    ----------
    query : ndarray of int
        Position of the explained row, ascending.
    codes : ndarray, shape (counterfactuals, features)
    distance, changes : ndarray
        As reported by the library.
    status : ndarray of str, one per query
    """

    query: np.ndarray
    codes: np.ndarray
    distance: np.ndarray
    changes: np.ndarray
    status: np.ndarray

    @classmethod
    def of(cls, case: Case, result: Any) -> "Found":
        table = result.to_frame()
        typed = table[list(case.schema.names)]
        # A column of the data called like one of ours makes the library append an underscore to its own.
        about = table.drop(columns=list(case.schema.names)).rename(columns=lambda name: str(name).rstrip("_"))
        codes = case.codes(typed) if len(table) else np.zeros((0, len(case.schema)))
        return cls(
            about["query"].to_numpy(dtype=int),
            codes,
            about["distance"].to_numpy(dtype=float),
            about["n_changed"].to_numpy(dtype=int),
            result.status.to_numpy(dtype=str),
        )

    def least(self, values: np.ndarray) -> np.ndarray:
        """Return the smallest of some values per query, infinite where there is no counterfactual."""
        least = np.full(len(self.status), np.inf)
        np.minimum.at(least, self.query, values)
        return least

    def first(self, values: np.ndarray) -> np.ndarray:
        """Return the value of the first counterfactual per query, infinite where there is none."""
        first = np.full(len(self.status), np.inf)
        query, position = np.unique(self.query, return_index=True)
        first[query] = values[position]
        return first


def measure(case: Case, explainer: FasterCE, count: int, distance: str = "gower") -> dict[str, Any]:
    """Explain the first `count` rows by several calls, and compare these with each other and with exhaustive search."""
    rows = case.rows.iloc[:count]
    options = {"target": case.target, "distance": distance, "diagnose": False}
    closest, sparse, several, every = (
        Found.of(case, explainer.explain(rows, method, n=n, **options))
        for method, n in (("closest", 1), ("sparse", 1), ("closest", REQUESTED), ("all", 1))
    )
    single = brute.singles(case, np.arange(len(rows)), SINGLES * len(rows))
    return {
        "queries": len(rows),
        "found": int((closest.status == "found").sum()),
        "none_found": int((closest.status == "none_found").sum()),
        **_invalid(case, [closest, sparse, several, every]),
        **_beaten(closest, sparse, several, every),
        **_beaten_by_single(case, closest, sparse, single, distance),
        **_minimal(case, closest, "closest"),
        **_minimal(case, sparse, "sparse"),
        **_short(case, several, single),
        **_refuted(closest, single),
        **_narrow(case, explainer, rows, options),
    }


def _invalid(case: Case, calls: list[Found]) -> dict[str, int]:
    """Counterfactuals that miss the target or have a value the schema does not allow; must be 0."""
    missed = sum(int((~case.reached(call.codes, call.query)).sum()) for call in calls)
    outside = sum(int((~case.allowed(call.codes, case.queries[call.query])).sum()) for call in calls)
    return {"invalid": missed, "not_allowed": outside}


def _smaller(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return first < second * (1 - TIE) - ROUNDED


def _beaten(closest: Found, sparse: Found, several: Found, every: Found) -> dict[str, Any]:
    """Guarantee (a): no counterfactual of another method or `n` costs less than `closest`."""
    best = closest.first(closest.distance)
    others = {
        "beaten_by_sparse": sparse.least(sparse.distance),
        "beaten_by_all": every.least(every.distance),
        "beaten_by_n3": several.least(several.distance),
    }
    beaten = {name: _smaller(other, best) for name, other in others.items()}
    least = np.minimum.reduce(list(others.values()))
    excess = np.divide(best, least, out=np.ones(len(best)), where=np.isfinite(best) & np.isfinite(least) & (least > 0))
    first = several.first(several.distance)
    changes = np.minimum.reduce([call.least(call.changes) for call in (closest, sparse, several, every)])
    return {
        **{name: int(mask.sum()) for name, mask in beaten.items()},
        "beaten": int(np.any(list(beaten.values()), axis=0).sum()),
        "largest_excess": round(float(excess.max(initial=1.0)), 4),
        "n3_first_worse": int(_smaller(best, first).sum()),
        "n3_first_differs": int((_smaller(best, first) | _smaller(first, best)).sum()),
        "sparse_found": int((sparse.status == "found").sum()),
        "sparse_more_changes": int((sparse.first(sparse.changes) > changes).sum()),
        "sparse_mean_changes": _mean(sparse.changes),
        "closest_mean_distance": _mean(closest.distance),
    }


def _mean(values: np.ndarray) -> float | None:
    return round(float(values.mean()), 6) if len(values) else None


def _beaten_by_single(
    case: Case, closest: Found, sparse: Found, single: tuple[np.ndarray, np.ndarray, np.ndarray], distance: str
) -> dict[str, int]:
    """Against the best single change of exhaustive search, in gower; `sparse` must find a single change if there is one."""
    query, feature, value = single
    there = np.zeros(len(closest.status), dtype=bool)
    there[query] = True
    missed = there & (sparse.first(sparse.changes) > 1)
    found = {"sparse_single_missed": int(missed.sum())}
    if distance == "gower":
        change = np.abs(value - case.queries[query, feature]) / case.span[feature]
        least = np.full(len(there), np.inf)
        np.minimum.at(least, query, np.where(case.numeric[feature], change, 1.0))
        found["beaten_by_single"] = int(_smaller(least, closest.first(closest.distance)).sum())
    return found


def _minimal(case: Case, call: Found, name: str) -> dict[str, int]:
    """Guarantee (b): reverting a change, or moving a number one step back, loses the target."""
    own = case.queries[call.query]
    changed = call.codes != own
    which, feature = np.nonzero(changed)
    before, after, scale = own[which, feature], call.codes[which, feature], case.scale[feature]
    toward = np.sign(before - after)
    step = (np.round(after * scale) + toward) / scale
    back = np.round((after + MOVED_BACK * (before - after)) * scale) / scale
    moves = {
        "unnecessary": (before, np.ones(len(which), dtype=bool)),
        "one_step_back": (step, case.numeric[feature] & (toward * (before - step) > 0)),
        "moved_back": (back, case.numeric[feature] & (back != after) & (toward * (before - back) > 0)),
    }
    found = {}
    for kind, (value, possible) in moves.items():
        codes = call.codes[which[possible]]
        codes[np.arange(len(codes)), feature[possible]] = value[possible]
        still = case.reached(codes, call.query[which[possible]])
        found[f"{name}_{kind}"] = len(np.unique(which[possible][still]))
    return found


def _short(case: Case, several: Found, single: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, int]:
    """Guarantee (c): fewer than three although exhaustive search finds another minimal set of features.

    A set is minimal if none of its changes suffices alone. Pairs are tried for a few of these queries.
    """
    count = np.bincount(several.query, minlength=len(several.status))
    short = np.flatnonzero((count < REQUESTED) & np.isin(several.status, ["found", "none_found"]))
    by_single, by_pair = 0, 0
    for k, i in enumerate(short):
        returned = [frozenset(np.flatnonzero(codes != case.queries[i])) for codes in several.codes[several.query == i]]
        alone = {frozenset([int(j)]) for j in single[1][single[0] == i]}
        if alone - set(returned):
            by_single += 1
        elif k < MOST_SHORT and brute.pairs(case, int(i), PAIRS) - set(returned):
            by_pair += 1
    return {"short": len(short), "short_refuted_by_single": by_single, "short_refuted_by_pair": by_pair}


def _refuted(closest: Found, single: tuple[np.ndarray, np.ndarray, np.ndarray]) -> dict[str, int]:
    nothing = np.flatnonzero(closest.status == "none_found")
    return {"none_found_refuted": int(np.isin(nothing, single[0]).sum())}


def _narrow(case: Case, explainer: FasterCE, rows: pd.DataFrame, options: dict[str, Any]) -> dict[str, int]:
    """Calls that often find nothing: at most one change, numbers within 25 % of their value."""
    near = [Near(feature.name, percent=100 * NARROW) for feature in case.schema.features if feature.numeric]
    result = explainer.explain(rows, constraints=[AtMost(1), *near], **options)
    nothing = np.flatnonzero(result.status.to_numpy(dtype=str) == "none_found")
    query, _, _ = brute.singles(case, nothing, SINGLES * len(rows), within=NARROW)
    return {
        "narrow_found": int((result.status == "found").sum()),
        "narrow_none": len(nothing),
        "narrow_refuted": len(np.unique(query)),
    }
