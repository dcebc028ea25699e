"""Hyperplanes -> directions to walk, orthogonal to what must not change, and closed-form projections.

Everything is batched: the first axis is the row to explain. A QR factorisation of the normals, stacked on a small
multiple of the identity, serves the full-rank and the rank-deficient case alike: where the normals span the whole
space no direction is orthogonal to all of them, and a larger ridge trades a little leaking for some way ahead.
"""

import numpy as np

from fasterce.typing import Floats

# Ridge of the projection: only keeps the factorisation stable.
TINY_RIDGE = 1e-6
# The same where the normals span the space: how much of a direction may leak into what must not change.
LEAKY_RIDGE = 0.3
# Share of a direction's length below which it counts as spanned by the normals.
SPANNED = 1e-3


def unit(vectors: Floats) -> Floats:
    """Vectors of length one; a zero vector stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def orthogonal_part(directions: Floats, normals: Floats) -> Floats:
    """Return the part of unit `directions` (rows, L) orthogonal to `normals` (rows, r, L), scaled to unit length."""
    if normals.shape[1] == 0:
        return unit(directions)
    left = _remove(directions, unit(normals), TINY_RIDGE)
    spanned = np.linalg.norm(left, axis=-1, keepdims=True) < SPANNED * np.linalg.norm(directions, axis=-1, keepdims=True)
    if spanned.any():
        left = np.where(spanned, _remove(directions, unit(normals), LEAKY_RIDGE), left)
    return unit(left)


def each_without_others(normals: Floats) -> Floats:
    """Return the part of each of the `normals` (rows, r, L) orthogonal to the others, scaled to unit length.

    The same as `orthogonal_part` for each of them, with one factorisation per row: the columns of the pseudo-inverse.
    """
    planes = unit(normals)
    left, share = _dual(planes, TINY_RIDGE)
    spanned = share < SPANNED
    if spanned.any():
        left = np.where(spanned[..., None], _dual(planes, LEAKY_RIDGE)[0], left)
    return left


def _dual(planes: Floats, ridge: float) -> tuple[Floats, Floats]:
    """Return unit vectors orthogonal to all planes but one each, and the share of that one's normal they keep."""
    gram = planes @ np.swapaxes(planes, 1, 2) + ridge * np.eye(planes.shape[1])
    inverse: Floats = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    left = (inverse @ planes) / np.diagonal(inverse, axis1=1, axis2=2)[..., None]
    return unit(left), np.asarray(np.linalg.norm(left, axis=-1))


def _remove(directions: Floats, normals: Floats, ridge: float) -> Floats:
    count = normals.shape[1]
    damping = np.broadcast_to(ridge**0.5 * np.eye(count), (len(normals), count, count))
    stacked = np.concatenate([np.swapaxes(normals, 1, 2), damping], axis=1)
    factor: Floats = np.asarray(np.linalg.qr(stacked)[0], dtype=np.float64)
    basis = factor[:, : normals.shape[2]]
    return np.asarray(directions - _times(basis, _times(np.swapaxes(basis, 1, 2), directions)))


def project_on(points: Floats, normals: Floats, offsets: Floats) -> Floats:
    """The nearest point on the intersection of hyperplanes n·z + b = 0, in closed form (least squares if empty)."""
    length = np.linalg.norm(normals, axis=-1)
    scale = np.where(length > 0, length, 1.0)
    planes, beyond = normals / scale[..., None], (_times(normals, points) + offsets) / scale
    gram = planes @ np.swapaxes(planes, 1, 2) + TINY_RIDGE * np.eye(planes.shape[1])
    steps: Floats = np.asarray(np.linalg.solve(gram, beyond[..., None])[..., 0], dtype=np.float64)
    return np.asarray(points - _times(np.swapaxes(planes, 1, 2), steps))


def height(points: Floats, normals: Floats, offsets: Floats) -> Floats:
    """Signed distance of every point from its own hyperplane (0 where there is none)."""
    length = np.linalg.norm(normals, axis=-1)
    value = (points * normals).sum(axis=-1) + offsets
    return np.asarray(np.where(length > 0, value / np.where(length > 0, length, 1.0), 0.0))


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray((matrices * vectors[:, None, :]).sum(axis=-1))
