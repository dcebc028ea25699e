"""Make a valid candidate smaller: drop changes that are not needed, shrink those that are.

Each step evaluates all rows at once. No step makes a candidate invalid: it is taken only if the model agrees.
"""

from dataclasses import dataclass

import numpy as np

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain
from fasterce.search.distance import Distance, filled_or_emptied
from fasterce.search.judge import Candidates, Verdict
from fasterce.search.pool import Pool
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = SearchConfig()


@dataclass(frozen=True)
class Parts:
    """The changed features of one candidate per row, padded: `feature` (rows, m), `used` is False for padding."""

    codes: Floats
    feature: Indices
    used: Mask


def changed_parts(codes: Floats, valid: Mask, base: Floats) -> Parts:
    changed = (codes != base) & valid[:, None]
    most = int(changed.sum(axis=1).max(initial=0))
    order = np.argsort(~changed, axis=1, kind="stable")[:, :most]
    return Parts(codes, order, np.take_along_axis(changed, order, 1))


def one_by_one(parts: Parts, base: Floats) -> tuple[Candidates, Candidates]:
    """Return the candidate without each change, and the row with each change alone."""
    shape = (*parts.feature.shape, base.shape[1])
    index = parts.feature[:, :, None]
    without = np.broadcast_to(parts.codes[:, None, :], shape).copy()
    alone = np.broadcast_to(base[:, None, :], shape).copy()
    np.put_along_axis(without, index, np.take_along_axis(base, parts.feature, 1)[:, :, None], axis=2)
    np.put_along_axis(alone, index, np.take_along_axis(parts.codes, parts.feature, 1)[:, :, None], axis=2)
    several = parts.used & (parts.used.sum(axis=1) > 1)[:, None]
    return Candidates(without, several), Candidates(alone, several)


def keep_most_needed(parts: Parts, without: Verdict, alone: Verdict, base: Floats, price: Floats) -> Candidates:
    """Return the k most needed changes for every k, ordered by need, and by need per cost."""
    need = np.where(parts.used, _finite(alone.margin) - _finite(without.margin), -np.inf)
    lowest = np.where(parts.used, need, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    highest = need.max(axis=1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        relative = np.where(parts.used, (need - lowest) / np.maximum(highest - lowest, 1e-9), 0.0)
    worth = np.where(parts.used, relative / (0.05 + np.take_along_axis(price, parts.feature, 1)), -np.inf)
    families = [_prefixes(parts, np.argsort(-order, axis=1, kind="stable"), base) for order in (need, worth)]
    return Candidates(
        np.concatenate([family.codes for family in families], axis=1),
        np.concatenate([family.open for family in families], axis=1),
    )


def _prefixes(parts: Parts, order: Indices, base: Floats) -> Candidates:
    feature = np.take_along_axis(parts.feature, order, 1)
    used = np.take_along_axis(parts.used, order, 1)
    count = parts.used.sum(axis=1)
    codes, opened = [], []
    current = base.copy()
    every = np.arange(len(base))
    for k in range(feature.shape[1] - 1):
        j = feature[:, k]
        current = current.copy()
        current[every, j] = np.where(used[:, k], parts.codes[every, j], current[every, j])
        codes.append(current)
        opened.append(used[:, k] & (k + 1 < count))
    if not codes:
        return Candidates(np.zeros((len(base), 0, base.shape[1])), np.zeros((len(base), 0), dtype=bool))
    return Candidates(np.stack(codes, axis=1), np.stack(opened, axis=1))


def undone(pool: Pool, base: Floats) -> Candidates:
    """Return the cheapest candidate of every row without each of its changes."""
    best = pool.best(1)
    return one_by_one(changed_parts(best.codes[:, 0], best.valid[:, 0], base), base)[0]


@dataclass(frozen=True)
class Bracket:
    """For each candidate the one numeric change to shrink now: its feature (rows, R) and values (rows, R, sections)
    from the floor, known to be too small, up to where the change stands."""

    feature: Indices
    value: Floats
    candidates: Candidates


def bracket(pool: Pool, domain: Domain, distance: Distance, sections: int = DEFAULTS.shrink_sections) -> Bracket:
    """Cut the bracket that costs most into sections."""
    rows, _, features = pool.codes.shape
    width = distance.shrinkable(pool.codes, pool.floor)
    if domain.linked:
        width = width * domain.free[:, None, :]
    feature = width.argmax(axis=2)
    index = feature[..., None]
    here, there = np.take_along_axis(pool.codes, index, 2), np.take_along_axis(pool.floor, index, 2)
    value = there + (here - there) * np.arange(1, sections) / sections
    value = domain.round_own(value, feature)
    codes = np.repeat(pool.codes[:, :, None, :], sections - 1, axis=2)
    np.put_along_axis(codes, np.broadcast_to(index[:, :, None], (*value.shape, 1)), value[..., None], axis=3)
    shrinks = distance.graded[feature][..., None] & ~filled_or_emptied(here, there)
    between = shrinks & (np.minimum(here, there) < value) & (value < np.maximum(here, there)) & pool.valid[..., None]
    flat = (rows, value.shape[1] * value.shape[2])
    return Bracket(feature, value, Candidates(codes.reshape(*flat, features), between.reshape(flat)))


def shrink(pool: Pool, tried: Bracket, verdict: Verdict, domain: Domain, distance: Distance) -> Pool:
    """Move each change to the smallest value that keeps the target, its floor to the largest that does not."""
    valid, opened = verdict.valid.reshape(tried.value.shape), tried.candidates.open.reshape(tried.value.shape)
    index = tried.feature[..., None]
    position = np.arange(tried.value.shape[2])
    smallest = np.where(valid, position, len(position)).min(axis=2, keepdims=True)
    failed = opened & ~valid & (position < smallest)
    largest = np.where(failed, position, -1).max(axis=2, keepdims=True)
    codes, floor = pool.codes.copy(), pool.floor.copy()
    _put_where(codes, index, np.asarray(smallest < len(position)), _at(tried.value, smallest))
    codes = domain.complete(codes)
    _put_where(floor, index, largest >= 0, _at(tried.value, largest))
    untried = np.asarray(~opened.any(axis=2, keepdims=True))
    _put_where(floor, index, untried, np.take_along_axis(codes, index, 2))
    cost = np.where(pool.valid, distance.total(codes, domain.row[:, None, :]), np.inf)
    margin = _at(verdict.margin.reshape(tried.value.shape), smallest)
    lead = np.where(smallest < len(position), margin, pool.lead[..., None])[..., 0]
    return Pool(codes, pool.valid, cost, floor, lead)


def _at(values: Floats, position: Indices) -> Floats:
    return np.take_along_axis(values, np.clip(position, 0, values.shape[2] - 1), 2)


def _put_where(codes: Floats, index: Indices, where: Mask, value: Floats) -> None:
    np.put_along_axis(codes, index, np.where(where, value, np.take_along_axis(codes, index, 2)), axis=2)


def _finite(margin: Floats) -> Floats:
    """Return margins, with a very low one for candidates that were not evaluated or failed."""
    return np.where(np.isfinite(margin), margin, -1e3)
