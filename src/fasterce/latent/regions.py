"""Prediction hyperplanes by region of the latent space, where one for the whole of it fits poorly.

The regions are the cells of k-means. Each has the global hyperplanes of all classes, bent to its own points. How many
regions there are is measured: more only where they put clearly more held-out points on the right side.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fasterce.latent.runtime import product
from fasterce.profile import Floats
from fasterce.search.hyperplanes import Hyperplanes, adapted_svms, balance, linear_svms

COUNTS = (4, 8, 16)
POINTS_A_REGION = 50
FOLDS = 3
WORTHWHILE, STANDARD_ERRORS = 0.005, 2.0
FEWEST_OF_A_SIDE, LEAST_SHARE = 10, 0.2
KMEANS_ROUNDS = 20

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


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
        return np.asarray(_squares_away(latent, self.centres).argmin(axis=1))

    def planes(self, latent: Floats, target: Indices) -> tuple[Floats, Floats]:
        """Each point's own hyperplane of its wanted class: normals (rows, L) and offsets (rows,)."""
        region = self.of(latent)
        return self.normals[region, target], self.offsets[region, target]

    def heights(self, latent: Floats) -> Floats:
        """n·z + b of every point for every class, by the hyperplanes of its region."""
        region = self.of(latent)
        return np.asarray((self.normals[region] * latent[:, None, :]).sum(axis=2) + self.offsets[region])


@dataclass(frozen=True)
class Agreement:
    """Share of held-out points on the right side of a class's hyperplane, every class and both its sides counting the
    same: with one hyperplane a class, and with those of the regions chosen."""

    one_plane: float
    regional: float


def fit_regions(
    latent: Floats, answers: Indices, origin: Indices, planes: Hyperplanes, seed: int
) -> tuple[Regions, Agreement]:
    """`origin` says which points come from the same row. `planes` are the global ones of the same points; they are what
    is left where regions gain nothing."""
    truth = answers[:, None] == np.arange(planes.classes)
    with threadpool_limits(limits=1):
        folds = Folds.of(latent, truth, origin, seed)
        one = chosen = folds.right(1)
        best = 1
        for count in COUNTS:
            if count * POINTS_A_REGION <= len(latent):
                tried = folds.right(count)
                if folds.clearly_better(tried, chosen):
                    best, chosen = count, tried
        regions = Regions.whole(planes)
        if best > 1:
            regions = _bent(regions, _centres(latent, best, seed), latent, truth)
    return regions, Agreement(float(one.sum()), float(chosen.sum()))


@dataclass(frozen=True)
class Folds:
    """Points in a few parts, each held out once. What comes from one row is held out together: of the samples around it,
    some must not vouch for the others."""

    latent: Floats
    truth: Mask
    source: Indices
    seen: tuple[Mask, ...]
    wholes: tuple[Regions, ...]
    seed: int

    @classmethod
    def of(cls, latent: Floats, truth: Mask, origin: Indices, seed: int) -> "Folds":
        rows, source = np.unique(origin, return_inverse=True)
        fold = (np.random.default_rng(seed).permutation(len(rows)) % FOLDS)[source]
        seen = tuple(fold != part for part in range(FOLDS))
        wholes = tuple(Regions.one(*linear_svms(latent[points], truth[points])) for points in seen)
        return cls(latent, truth, source, seen, wholes, seed)

    def right(self, count: int) -> Floats:
        """What each point, held out, adds to the agreement of `count` regions; classes never answered do not count."""
        heights = np.zeros(self.truth.shape)
        for seen, whole in zip(self.seen, self.wholes, strict=True):
            latent, truth = self.latent[seen], self.truth[seen]
            regions = whole if count == 1 else _bent(whole, _centres(latent, count, self.seed), latent, truth)
            heights[~seen] = regions.heights(self.latent[~seen])
        answered = self.truth.any(axis=0)
        weight = balance(self.truth) * answered / (len(heights) * answered.sum())
        return np.asarray((((heights > 0) == self.truth) * weight).sum(axis=1))

    def clearly_better(self, more: Floats, fewer: Floats) -> bool:
        gain = np.bincount(self.source, more - fewer)
        noise = STANDARD_ERRORS * gain.std() * len(gain) ** 0.5
        return bool(gain.sum() - noise >= WORTHWHILE)


def _centres(latent: Floats, count: int, seed: int) -> Floats:
    with warnings.catch_warnings():
        # Fewer distinct points than regions: some regions stay empty, which costs nothing.
        warnings.simplefilter("ignore", ConvergenceWarning)
        means = KMeans(count, n_init=1, max_iter=KMEANS_ROUNDS, random_state=seed % 2**32).fit(latent)
    return np.ascontiguousarray(means.cluster_centers_, dtype=np.float64)


def _bent(whole: Regions, centres: Floats, latent: Floats, truth: Mask) -> Regions:
    away = _squares_away(latent, centres)
    nearest = away.argmin(axis=1)
    weight = balance(truth)
    normals, offsets = whole.normals[0], whole.offsets[0]
    bent = []
    for region in range(len(centres)):
        used = _used(nearest == region, away[:, region], truth)
        points = used.any(axis=1)
        bent.append(adapted_svms(normals, offsets, latent[points], truth[points], (weight * used)[points]))
    return Regions(centres, np.stack([n for n, _ in bent]), np.stack([b for _, b in bent]))


def _used(member: Mask, away: Floats, truth: Mask) -> Mask:
    """Which points (points, classes) a region's hyperplanes are fitted to: its own, and where these hardly know one side
    of a class, the nearest others on that side, so that the hyperplane still shows the way there."""
    used = np.repeat(member[:, None], truth.shape[1], axis=1)
    enough = max(FEWEST_OF_A_SIDE, int(LEAST_SHARE * member.sum()))
    for label, holds in enumerate(truth.T):
        for side in (holds, ~holds):
            missing = enough - int((side & member).sum())
            if missing > 0:
                others = np.flatnonzero(side & ~member)
                used[others[np.argsort(away[others], kind="stable")[:missing]], label] = True
    return used


def _squares_away(latent: Floats, centres: Floats) -> Floats:
    """Squared distances (points, centres) less a number of each point's own, in units in which they can be rounded:
    a point goes to the same region whatever points stand beside it."""
    middle = centres.mean(axis=0)
    around = centres - middle
    square = (around**2).sum(axis=1)
    unit = square.max() or 1.0
    squares = square - 2 * product(latent - middle, np.ascontiguousarray(around.T))
    return np.asarray(np.round(squares / unit, 9))
