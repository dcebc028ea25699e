"""Labelled latent points -> one hyperplane for every numeric feature, every category and every class.

h = (n, b): n·z + b estimates a numeric feature's standardised value (lasso), or is positive where a category or a
class holds (linear SVM). All lassos share one Gram matrix, all SVMs one batched descent.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Lasso

from fasterce.profile import Floats

LASSO_PENALTY = 1e-3
SVM_PENALTY = 1e-3
SVM_STEPS, ADAPTING_STEPS = 60, 30
ADAPTING_PENALTY = 5.0


@dataclass(frozen=True)
class Hyperplanes:
    """Rows of `normals` are the columns of the codec's matrix, then one for each class.

    `fit` is R² for a numeric feature and accuracy for the others; `base` is what guessing would reach.
    """

    normals: Floats
    offsets: Floats
    fit: Floats
    base: Floats
    classes: int

    @property
    def features(self) -> slice:
        return slice(0, len(self.normals) - self.classes)

    def of_class(self, target: NDArray[np.intp]) -> tuple[Floats, Floats]:
        rows = len(self.normals) - self.classes + target
        return self.normals[rows], self.offsets[rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in ("normals", "offsets", "fit", "base")}


def fit_hyperplanes(latent: Floats, matrix: Floats, numeric: int, answers: NDArray[np.intp], classes: int) -> Hyperplanes:
    """`matrix` is what the points decode to, `numeric` how many of its columns are continuous."""
    continuous = _lassos(latent, matrix[:, :numeric])
    truth = np.concatenate([matrix[:, numeric:] > 0.5, answers[:, None] == np.arange(classes)], axis=1)
    separating = linear_svms(latent, truth)
    normals = np.concatenate([continuous[0], separating[0]])
    offsets = np.concatenate([continuous[1], separating[1]])
    estimate = latent @ normals.T + offsets
    fit = np.concatenate(
        [_r_squared(matrix[:, :numeric], estimate[:, :numeric]), ((estimate[:, numeric:] > 0) == truth).mean(axis=0)]
    )
    share = truth.mean(axis=0)
    base = np.concatenate([np.zeros(numeric), np.maximum(share, 1 - share)])
    return Hyperplanes(normals, offsets, fit, base, classes)


def _lassos(latent: Floats, values: Floats) -> tuple[Floats, Floats]:
    dimensions = latent.shape[1]
    if values.shape[1] == 0:
        return np.zeros((0, dimensions)), np.zeros(0)
    centre, means = latent.mean(axis=0), values.mean(axis=0)
    centred = np.asfortranarray(latent - centre)
    lasso = Lasso(alpha=LASSO_PENALTY, fit_intercept=False, random_state=0, precompute=centred.T @ centred, max_iter=2000)
    normals = lasso.fit(centred, values - means).coef_.reshape(values.shape[1], dimensions)
    return normals, means - normals @ centre


def linear_svms(latent: Floats, truth: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Squared-hinge SVMs for all columns of `truth` at once.

    Both sides of a column weigh the same, so that a rare category has a hyperplane too.
    """
    scaled, inverse, centre = _standardised(latent)
    share = truth.mean(axis=0)
    both = (share > 0) & (share < 1)
    weight = balance(truth) / len(truth)
    found = _descend(scaled, truth, weight, 0.0, _largest_curvature(scaled, weight), SVM_PENALTY, SVM_STEPS)
    normals = found[:-1].T * inverse * both[:, None]
    offsets = np.where(both, found[-1] - normals @ centre, np.where(share >= 1, 1.0, -1.0))
    return normals, offsets


def adapted_svms(
    normals: Floats, offsets: Floats, latent: Floats, truth: NDArray[np.bool_], weight: Floats
) -> tuple[Floats, Floats]:
    """The given hyperplanes, one a column of `truth`, bent to these weighted points: the fewer there are, the less."""
    scaled, inverse, centre = _standardised(latent)
    weight = weight / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    curvature = np.array([np.linalg.eigvalsh(scaled.T @ (scaled * w[:, None]))[-1] for w in weight.T])
    given = latent @ normals.T + offsets
    penalty = ADAPTING_PENALTY * latent.shape[1] / len(latent)
    change = _descend(scaled, truth, weight, given, curvature, penalty, ADAPTING_STEPS)
    turn = change[:-1].T * inverse
    return normals + turn, offsets + change[-1] - turn @ centre


def balance(truth: NDArray[np.bool_]) -> Floats:
    """Weights that make both sides of a column count the same, 1 on average."""
    share = truth.mean(axis=0)
    both = (share > 0) & (share < 1)
    return np.asarray(np.where(truth, 0.5 / np.where(both, share, 0.5), 0.5 / np.where(both, 1 - share, 0.5)))


def _standardised(latent: Floats) -> tuple[Floats, Floats, Floats]:
    """Points with mean 0 and deviation 1 and a last column of ones, the inverse deviations, the centre."""
    centre, deviation = latent.mean(axis=0), latent.std(axis=0)
    alive = deviation > 1e-9 * np.maximum(np.abs(centre), deviation.max(initial=0.0))
    inverse = np.where(alive, 1.0 / np.where(alive, deviation, 1.0), 0.0)
    return np.column_stack([(latent - centre) * inverse, np.ones(len(latent))]), inverse, centre


def _descend(
    scaled: Floats,
    truth: NDArray[np.bool_],
    weight: Floats,
    given: Floats | float,
    curvature: Floats,
    penalty: float,
    steps: int,
) -> Floats:
    """What added to the `given` heights has the least weighted squared hinge loss, by Nesterov's accelerated descent."""
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
    """Bounds, column by column, on the loss's second derivative: the smaller of two, each too large by itself."""
    gram = scaled.T @ scaled / len(scaled)
    by_heaviest_row = weight.max(axis=0) * len(scaled) * np.linalg.eigvalsh(gram)[-1]
    by_trace = (scaled**2).sum(axis=1) @ weight
    return np.asarray(np.minimum(by_heaviest_row, by_trace))


def _r_squared(values: Floats, estimate: Floats) -> Floats:
    spread = ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    rest = ((values - estimate) ** 2).sum(axis=0)
    return np.asarray(np.where(spread > 0, 1 - rest / np.where(spread > 0, spread, 1.0), 1.0))
