"""Fit one hyperplane per numeric feature, category and class to labelled latent points.

h = (n, b): n·z + b estimates a numeric feature's standardised value (lasso), or is positive where a category or a
class holds (linear SVM). All lassos share one Gram matrix, all SVMs one batched descent.
"""

from dataclasses import dataclass

import numpy as np

from fasterce.config import LatentConfig
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = LatentConfig()


@dataclass(frozen=True)
class Hyperplanes:
    """Normals n and offsets b: one per column of the encoded table, then one per class.

    `fit` is R² for a numeric feature and accuracy for the others; `base` is the same of a constant guess.
    """

    normals: Floats
    offsets: Floats
    fit: Floats
    base: Floats
    classes: int

    @property
    def features(self) -> slice:
        return slice(0, len(self.normals) - self.classes)

    def of_class(self, target: Indices) -> tuple[Floats, Floats]:
        rows = len(self.normals) - self.classes + target
        return self.normals[rows], self.offsets[rows]

    def arrays(self) -> dict[str, Floats]:
        return {name: getattr(self, name) for name in ("normals", "offsets", "fit", "base")}


def fit_hyperplanes(
    latent: Floats, matrix: Floats, numeric: int, labels: Indices, classes: int, config: LatentConfig = DEFAULTS
) -> Hyperplanes:
    """Fit to points (rows, L), what they decode to (rows, columns; the first `numeric` continuous) and their labels."""
    continuous = _lassos(latent, matrix[:, :numeric], config)
    truth = np.concatenate([matrix[:, numeric:] > 0.5, labels[:, None] == np.arange(classes)], axis=1)
    separating = linear_svms(latent, truth, config)
    normals = np.concatenate([continuous[0], separating[0]])
    offsets = np.concatenate([continuous[1], separating[1]])
    estimate = latent @ normals.T + offsets
    fit = np.concatenate(
        [r_squared(matrix[:, :numeric], estimate[:, :numeric]), ((estimate[:, numeric:] > 0) == truth).mean(axis=0)]
    )
    share = truth.mean(axis=0)
    base = np.concatenate([np.zeros(numeric), np.maximum(share, 1 - share)])
    return Hyperplanes(normals, offsets, fit, base, classes)


def _lassos(latent: Floats, values: Floats, config: LatentConfig) -> tuple[Floats, Floats]:
    from sklearn.linear_model import Lasso  # noqa: PLC0415 - large, and only `fit` needs it

    dimensions = latent.shape[1]
    if values.shape[1] == 0:
        return np.zeros((0, dimensions)), np.zeros(0)
    centre, means = latent.mean(axis=0), values.mean(axis=0)
    centred = np.asfortranarray(latent - centre)
    gram = centred.T @ centred
    lasso = Lasso(alpha=config.lasso_penalty, fit_intercept=False, random_state=0, precompute=gram, max_iter=2000)
    normals = lasso.fit(centred, values - means).coef_.reshape(values.shape[1], dimensions)
    return normals, means - normals @ centre


def linear_svms(latent: Floats, truth: Mask, config: LatentConfig = DEFAULTS) -> tuple[Floats, Floats]:
    """Fit squared-hinge SVMs for all columns of `truth` at once.

    Both sides of a column weigh the same, so that a rare category has a hyperplane too.
    """
    scaled, inverse, centre = _standardised(latent)
    share = truth.mean(axis=0)
    both = (share > 0) & (share < 1)
    weight = balance(truth) / len(truth)
    curvature = _largest_curvature(scaled, weight)
    found = _descend(scaled, truth, weight, 0.0, curvature, config.svm_penalty, config.svm_steps)
    normals = found[:-1].T * inverse * both[:, None]
    offsets = np.where(both, found[-1] - normals @ centre, np.where(share >= 1, 1.0, -1.0))
    return normals, offsets


def adapted_svms(
    normals: Floats, offsets: Floats, latent: Floats, truth: Mask, weight: Floats, config: LatentConfig = DEFAULTS
) -> tuple[Floats, Floats]:
    """Adapt hyperplanes, one per column of `truth`, to weighted points: the fewer points, the less they change."""
    scaled, inverse, centre = _standardised(latent)
    weight = weight / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    curvature = np.array([np.linalg.eigvalsh(scaled.T @ (scaled * w[:, None]))[-1] for w in weight.T])
    given = latent @ normals.T + offsets
    penalty = config.adapting_penalty * latent.shape[1] / len(latent)
    change = _descend(scaled, truth, weight, given, curvature, penalty, config.adapting_steps)
    turn = change[:-1].T * inverse
    return normals + turn, offsets + change[-1] - turn @ centre


def balance(truth: Mask) -> Floats:
    """Return weights that make both sides of a column count the same, 1 on average."""
    share = truth.mean(axis=0)
    both = (share > 0) & (share < 1)
    return np.asarray(np.where(truth, 0.5 / np.where(both, share, 0.5), 0.5 / np.where(both, 1 - share, 0.5)))


def _standardised(latent: Floats) -> tuple[Floats, Floats, Floats]:
    """Return points with mean 0, deviation 1 and a last column of ones; the inverse deviations; the centre."""
    centre, deviation = latent.mean(axis=0), latent.std(axis=0)
    alive = deviation > 1e-9 * np.maximum(np.abs(centre), deviation.max(initial=0.0))
    inverse = np.where(alive, 1.0 / np.where(alive, deviation, 1.0), 0.0)
    return np.column_stack([(latent - centre) * inverse, np.ones(len(latent))]), inverse, centre


def _descend(
    scaled: Floats,
    truth: Mask,
    weight: Floats,
    given: Floats | float,
    curvature: Floats,
    penalty: float,
    steps: int,
) -> Floats:
    """Minimise the weighted squared hinge loss of `given` plus a linear function, by Nesterov's accelerated descent."""
    sign = np.where(truth, 1.0, -1.0)
    step = 1.0 / (2 * curvature + penalty)
    current = ahead = np.zeros((scaled.shape[1], truth.shape[1]))
    for k in range(steps):
        slack = np.maximum(0.0, 1 - sign * (given + scaled @ ahead))
        gradient = -2 * scaled.T @ (weight * sign * slack) + penalty * ahead
        following = ahead - step * gradient
        ahead = following + k / (k + 3) * (following - current)
        current = following
    return current


def _largest_curvature(scaled: Floats, weight: Floats) -> Floats:
    """Bound the second derivative of the loss per column: the smaller of two upper bounds."""
    gram = scaled.T @ scaled / len(scaled)
    by_heaviest_row = weight.max(axis=0) * len(scaled) * np.linalg.eigvalsh(gram)[-1]
    by_trace = (scaled**2).sum(axis=1) @ weight
    return np.asarray(np.minimum(by_heaviest_row, by_trace))


def r_squared(values: Floats, estimate: Floats, constant: float = 1.0) -> Floats:
    """Return the share of the variance of each column that the estimate explains; `constant` for a constant column."""
    spread = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    rest = ((values - estimate) ** 2).sum(axis=0)
    return np.asarray(np.where(spread > 0, 1 - rest / np.where(spread > 0, spread, 1.0), constant))
