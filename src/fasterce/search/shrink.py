"""Candidates between a counterfactual and its query: one change less."""

import numpy as np

from fasterce.typing import Floats


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
