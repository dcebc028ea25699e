"""Prove that a query has no counterfactual, where the values it may take are few enough to evaluate all."""

import numpy as np

from fasterce.constraints.compile.domain import Domain
from fasterce.kernels.arrays import TREES, Scorer
from fasterce.kernels.score import outputs
from fasterce.search.query_targets import QueryTargets
from fasterce.search.space import margins, tree_levels
from fasterce.typing import Floats, Mask


def proven_infeasible(scorer: Scorer, domain: Domain, targets: QueryTargets, lowest: float, most: int) -> Mask:
    """Return which queries reach the target with none of the values they may take.

    All combinations are evaluated with the exact scorer, one value per cell of a tree ensemble. A query with more than `most`
    combinations is not proven, nor is any with an inexact scorer or constraints between columns.
    """
    proven = np.zeros(len(domain.base), dtype=bool)
    if not scorer.exact or domain.linked:
        return proven
    levels = tree_levels(scorer, domain) if scorer.kind == TREES else None
    for row in range(len(proven)):
        values = _every_value(domain.take(np.array([row])), levels, most)
        if values is not None:
            codes = combinations(values)
            reached = margins(scorer, outputs(scorer, codes), targets.take(np.full(len(codes), row)), lowest)
            proven[row] = not (reached > -scorer.error).any()
    return proven


def combinations(values: list[Floats]) -> Floats:
    """Return all combinations of the values of each feature (N, features)."""
    codes = np.zeros((1, 0))
    for each in values:
        codes = np.column_stack([np.repeat(codes, len(each), axis=0), np.tile(each, len(codes))])
    return codes


def _every_value(domain: Domain, levels: list[Floats] | None, most: int) -> list[Floats] | None:
    """Return the values each feature of a query may take, None if there are more than `most` combinations."""
    found, count = [], 1
    for j, own in enumerate(domain.base[0]):
        values = np.array([own])
        if domain.free[0, j]:
            every = _values(domain, j, None if levels is None else levels[j], most // count)
            if every is None:
                return None
            values = np.union1d(values, every)
        found.append(values)
        count *= len(values)
        if count > most:
            return None
    return found


def _values(domain: Domain, j: int, levels: Floats | None, most: int) -> Floats | None:
    if j in domain.allowed:
        return np.flatnonzero(domain.open_to(j)[0]).astype(np.float64)
    lower, upper = float(domain.lower[0, j]), float(domain.upper[0, j])
    missing = [] if domain.missing is None or not domain.may_become_missing(np.array([j]))[0, 0] else [domain.missing.code[j]]
    known = levels
    if known is None or (domain.step is not None and domain.step[j] > 0):
        count = (upper - lower) / domain.unit(j)
        if not count < most:
            return None
        known = np.asarray(lower + np.arange(int(count) + 2) * domain.unit(j), dtype=np.float64)
    inside = known[(known >= lower) & (known <= upper)]
    return np.concatenate([domain.round_flat(inside, j, np.zeros(len(inside), dtype=np.intp)), missing])
