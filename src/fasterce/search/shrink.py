"""Candidates between a counterfactual and its query: one change less, or a smaller change of one number."""

import numpy as np

from fasterce.constraints.compile.domain import Domain
from fasterce.search.distance import Distance
from fasterce.search.pool import Pool
from fasterce.typing import Floats

# Shares of the way back to the query at which a number is tried, beside where margins interpolate to zero.
SHARES = (0.1, 0.3, 0.6)
# Factors of the way at which margins interpolate to zero, since they rarely are linear.
AROUND = (0.9, 1.02)
# Numbers of a candidate that are tried.
NUMBERS = 2


def without_one_change(codes: Floats, base: Floats) -> Floats:
    """Return candidates (rows, K, features) without each of their changes in turn; the base where there are fewer changes."""
    rows, count, features = codes.shape
    changed = codes != base[:, None, :]
    most = int(changed.sum(axis=2).max(initial=0))
    feature = np.argsort(~changed, axis=2, kind="stable")[:, :, :most]
    fewer = np.repeat(codes[:, :, None, :], most, axis=2)
    own = np.take_along_axis(np.repeat(base[:, None, :], count, axis=1), feature, 2)
    np.put_along_axis(fewer, feature[..., None], own[..., None], axis=3)
    there = np.take_along_axis(changed, feature, 2)[..., None]
    return np.where(there, fewer, base[:, None, None, :]).reshape(rows, count * most, features)


def less_of_one_number(
    best: Pool, codes: Floats, failed: Floats, start: Floats, domain: Domain, distance: Distance
) -> Floats:
    """Return candidates with a smaller change of one number, of those that can save most.

    Parameters
    ----------
    best : Pool
        Candidates (rows, R, features) that reach the target.
    codes, failed : ndarray of shape (rows, M, features) and (rows, M)
        Rows that were evaluated, and the margins of those that do not reach the target; -inf for the others.
    start : ndarray of shape (rows,)
        The margin of each query.
    domain : Domain
    distance : Distance

    Returns
    -------
    ndarray of shape (rows, K, features)
        The base where there is no smaller change.
    """
    rows, _, features = best.codes.shape
    floor, below = _floors(best, codes, failed, start, domain.base)
    saving = np.where(best.valid[:, :, None], distance.shrinkable(best.codes, floor), 0.0)
    saving = saving * domain.free[:, None, :] if domain.linked else saving
    feature = np.argsort(-saving, axis=2, kind="stable")[:, :, :NUMBERS]
    here, there = np.take_along_axis(best.codes, feature, 2)[..., None], np.take_along_axis(floor, feature, 2)[..., None]
    spare = np.maximum(best.lead[..., None, None], 0.0)
    crossing = np.clip(spare / np.maximum(spare - np.take_along_axis(below, feature, 2)[..., None], 1e-12), 0.0, 1.0)
    shares = np.concatenate([crossing * AROUND, np.broadcast_to(SHARES, (*feature.shape, len(SHARES)))], axis=3)
    value = domain.round_own(here + shares * (there - here), feature)
    between = (np.minimum(here, there) < value) & (value < np.maximum(here, there))
    between &= np.take_along_axis(saving, feature, 2)[..., None] > 0
    smaller = np.broadcast_to(best.codes[:, :, None, None, :], (*value.shape, features)).copy()
    np.put_along_axis(smaller, np.broadcast_to(feature[..., None, None], (*value.shape, 1)), value[..., None], axis=4)
    smaller = np.where(between[..., None], smaller, domain.base[:, None, None, None, :])
    return smaller.reshape(rows, smaller.shape[1] * smaller.shape[2] * smaller.shape[3], features)


def _floors(best: Pool, codes: Floats, failed: Floats, start: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Return for each number of each candidate the nearest value toward the base that is known to fail, and its margin.

    A row that fails although its other changes are as large or larger counts, too. Where none is known it is the value of
    the base, with the margin of the query.
    """
    floor = np.repeat(base[:, None, :], best.codes.shape[1], axis=1)
    below = np.broadcast_to(np.minimum(start, 0.0)[:, None, None], floor.shape).copy()
    for k in range(best.codes.shape[1]):
        rows, m = np.nonzero(np.isfinite(failed) & best.valid[:, k, None])
        tried, found, query = codes[rows, m], best.codes[rows, k], base[rows]
        differs = tried != found
        smaller = differs & ~((found != query) & ((found - query) * (tried - found) > 0))
        alike = smaller.sum(axis=1) == 1
        rows, m, smaller = rows[alike], m[alike], smaller[alike]
        j = smaller.argmax(axis=1)
        value, own, query = codes[rows, m, j], best.codes[rows, k, j], base[rows, j]
        between = (value - query) * (own - value) >= 0
        rows, m, j, value, own = rows[between], m[between], j[between], value[between], own[between]
        farthest_first = np.argsort(-np.abs(value - own), kind="stable")
        rows, m, j, value = rows[farthest_first], m[farthest_first], j[farthest_first], value[farthest_first]
        floor[rows, k, j], below[rows, k, j] = value, failed[rows, m]
    return floor, below
