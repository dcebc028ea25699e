"""Prediction hyperplanes by region of the latent space, where one for the whole of it fits poorly.

The regions are the cells of k-means. Each has the global hyperplanes of all classes, adapted to its own points. Their
number is chosen by cross-validation: more only where they put clearly more held-out points on the right side.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fasterce.config import LatentConfig
from fasterce.latent.hyperplanes import Hyperplanes, adapted_svms, balance, linear_svms
from fasterce.latent.runtime import product
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = LatentConfig()


@dataclass(frozen=True)
class Regions:
    """Region r is where `centres[r]` is nearest; `normals[r, k]` and `offsets[r, k]` are its hyperplane of class k."""

    centres: Floats
    normals: Floats
    offsets: Floats

    @classmethod
    def whole(cls, planes: Hyperplanes) -> "Regions":
        """One region with the global hyperplanes."""
        return cls.one(*planes.of_class(np.arange(planes.classes)))

    @classmethod
    def one(cls, normals: Floats, offsets: Floats) -> "Regions":
        return cls(np.zeros((1, normals.shape[1])), np.stack([normals]), np.stack([offsets]))

    def __len__(self) -> int:
        return len(self.centres)

    def of(self, latent: Floats) -> Indices:
        """Return the region of each point."""
        return np.asarray(_squares_away(latent, self.centres).argmin(axis=1))

    def planes(self, latent: Floats, target: Indices) -> tuple[Floats, Floats]:
        """Return the hyperplane of each point's target class in its region: normals (rows, L) and offsets (rows,)."""
        region = self.of(latent)
        return self.normals[region, target], self.offsets[region, target]

    def heights(self, latent: Floats) -> Floats:
        """Return n·z + b per point and class, by the hyperplanes of its region."""
        region = self.of(latent)
        return np.asarray((self.normals[region] * latent[:, None, :]).sum(axis=2) + self.offsets[region])


@dataclass(frozen=True)
class Agreement:
    """Share of held-out points on the right side of the hyperplane of each class, averaged over classes and sides.

    With one hyperplane per class, and with those of the chosen regions.
    """

    one_plane: float
    regional: float


def fit_regions(
    latent: Floats,
    labels: Indices,
    origin: Indices,
    planes: Hyperplanes,
    seed: int,
    config: LatentConfig = DEFAULTS,
) -> tuple[Regions, Agreement]:
    """Choose the number of regions and fit their hyperplanes.

    Points with the same `origin` come from one row. `planes` are the global hyperplanes of the same points, which stay
    where regions gain nothing.
    """
    truth = labels[:, None] == np.arange(planes.classes)
    with threadpool_limits(limits=1):
        folds = Folds.of(latent, truth, origin, seed, config)
        one = chosen = folds.right(1)
        best = 1
        for count in config.region_counts:
            if count * config.points_per_region <= len(latent):
                tried = folds.right(count)
                if folds.clearly_better(tried, chosen):
                    best, chosen = count, tried
        regions = Regions.whole(planes)
        if best > 1:
            regions = _adapted(regions, _centres(latent, best, seed, config), latent, truth, config)
    return regions, Agreement(float(one.sum()), float(chosen.sum()))


@dataclass(frozen=True)
class Folds:
    """Points in a few parts, each held out once; points of one row are held out together."""

    latent: Floats
    truth: Mask
    source: Indices
    seen: tuple[Mask, ...]
    wholes: tuple[Regions, ...]
    seed: int
    config: LatentConfig

    @classmethod
    def of(cls, latent: Floats, truth: Mask, origin: Indices, seed: int, config: LatentConfig) -> "Folds":
        rows, source = np.unique(origin, return_inverse=True)
        fold = (np.random.default_rng(seed).permutation(len(rows)) % config.region_folds)[source]
        seen = tuple(fold != part for part in range(config.region_folds))
        wholes = tuple(Regions.one(*linear_svms(latent[points], truth[points], config)) for points in seen)
        return cls(latent, truth, source, seen, wholes, seed, config)

    def right(self, count: int) -> Floats:
        """Return what each point, held out, adds to the agreement of `count` regions; classes without points do not count."""
        heights = np.zeros(self.truth.shape)
        for seen, whole in zip(self.seen, self.wholes, strict=True):
            latent, truth = self.latent[seen], self.truth[seen]
            regions = whole
            if count > 1:
                centres = _centres(latent, count, self.seed, self.config)
                regions = _adapted(whole, centres, latent, truth, self.config)
            heights[~seen] = regions.heights(self.latent[~seen])
        seen_classes = self.truth.any(axis=0)
        weight = balance(self.truth) * seen_classes / (len(heights) * seen_classes.sum())
        return np.asarray((((heights > 0) == self.truth) * weight).sum(axis=1))

    def clearly_better(self, more: Floats, fewer: Floats) -> bool:
        gain = np.bincount(self.source, more - fewer)
        noise = self.config.region_standard_errors * gain.std() * len(gain) ** 0.5
        return bool(gain.sum() - noise >= self.config.region_min_gain)


def _centres(latent: Floats, count: int, seed: int, config: LatentConfig) -> Floats:
    from sklearn.cluster import KMeans  # noqa: PLC0415 - large, and only `fit` needs it

    with warnings.catch_warnings():
        # With fewer distinct points than regions, some regions stay empty. This is harmless.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(count, n_init=1, max_iter=config.kmeans_iterations, random_state=seed % 2**32).fit(latent)
    return np.ascontiguousarray(means.cluster_centers_, dtype=np.float64)


def _adapted(whole: Regions, centres: Floats, latent: Floats, truth: Mask, config: LatentConfig) -> Regions:
    away = _squares_away(latent, centres)
    nearest = away.argmin(axis=1)
    weight = balance(truth)
    normals, offsets = whole.normals[0], whole.offsets[0]
    adapted = []
    for region in range(len(centres)):
        used = _used(nearest == region, away[:, region], truth, config)
        points = used.any(axis=1)
        weights = (weight * used)[points]
        adapted.append(adapted_svms(normals, offsets, latent[points], truth[points], weights, config))
    return Regions(centres, np.stack([n for n, _ in adapted]), np.stack([b for _, b in adapted]))


def _used(member: Mask, away: Floats, truth: Mask, config: LatentConfig) -> Mask:
    """Return the points (points, classes) a region's hyperplanes are fitted to.

    Its own, and where these have too few on one side of a class, the nearest others on that side.
    """
    used = np.repeat(member[:, None], truth.shape[1], axis=1)
    enough = max(config.region_min_points_per_side, int(config.region_min_share_per_side * member.sum()))
    for label, holds in enumerate(truth.T):
        for side in (holds, ~holds):
            missing = enough - int((side & member).sum())
            if missing > 0:
                others = np.flatnonzero(side & ~member)
                used[others[np.argsort(away[others], kind="stable")[:missing]], label] = True
    return used


def _squares_away(latent: Floats, centres: Floats) -> Floats:
    """Return squared distances (points, centres), up to a constant per point, rounded in units of the largest.

    So a point belongs to the same region whichever points are evaluated with it.
    """
    middle = centres.mean(axis=0)
    around = centres - middle
    square = (around**2).sum(axis=1)
    unit = square.max() or 1.0
    squares = square - 2 * product(latent - middle, np.ascontiguousarray(around.T))
    return np.asarray(np.round(squares / unit, 9))
