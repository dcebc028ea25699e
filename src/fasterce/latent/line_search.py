"""A batched line search in latent space: all points of all rows at once, in one model call."""

import numpy as np
from numpy.typing import NDArray

from fasterce.typing import Floats

# Increment of the step length, in units of the latent space, and the number of points per direction (as in the paper).
STEP = 0.1
STEPS = 20
# Points before the hyperplane, as shares of the distance to it: the model's own boundary may come earlier.
NEARER = np.array([0.25, 0.5, 0.75])


def cumulative(step: float = STEP, steps: int = STEPS) -> Floats:
    """How far beyond the start the k-th point lies: the increments grow by `step`, so step * k (k + 1) / 2."""
    k = np.arange(steps + 1)
    return step * k * (k + 1) / 2


def increments(step: float, eps_max: float, growth: str = "linear") -> Floats:
    """How far beyond the start each point of the paper's line search lies: the sum of the increments up to it.

    The first increment is 0, the next is `step`; then they grow by `step` ("linear") or double, up to `eps_max`.
    """
    ratio = eps_max / step * (1 + 1e-12)
    if growth == "linear":
        return cumulative(step, int(ratio))
    doubled = 2.0 ** np.arange(np.floor(np.log2(ratio)) + 1) if ratio >= 1 else np.zeros(0)
    return step * np.concatenate([[0.0], np.cumsum(doubled)])


def distances_to_walk(gap: Floats, step: float = STEP, steps: int = STEPS) -> Floats:
    """Distances from z for every row: a few points before the hyperplane (`gap` away), then the growing steps beyond.

    A row on the wanted side of the hyperplane (gap <= 0) starts from its own point.
    """
    ahead = np.maximum(gap, 0.0)[:, None]
    return np.concatenate([ahead * NEARER, ahead + cumulative(step, steps - len(NEARER))], axis=1)


def along(start: Floats, direction: Floats, distance: Floats) -> Floats:
    """Points (rows, K, L) at the given distances."""
    return start[:, None, :] + distance[:, :, None] * direction[:, None, :]


def first(valid: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The first valid step of every row, -1 where there is none."""
    return np.where(valid.any(axis=1), valid.argmax(axis=1), -1)
