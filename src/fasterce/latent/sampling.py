"""Latent points near the data and beyond it, decoded to rows the model can be asked about."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder
from fasterce.profile import Floats
from fasterce.schema import MISSING

FEWEST, MOST, PER_DIMENSION = 4000, 12000, 200
NEAR, FAR, BEYOND = 0.25, 1.0, 1.5


@dataclass(frozen=True)
class Samples:
    """Latent points, the codes they decode to, and the matrix of these codes (what the model really saw).

    `anchor` is which encoded row a point was drawn around, -1 for one of the wider cloud.
    """

    latent: Floats
    codes: Floats
    matrix: Floats
    anchor: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.latent)


def sample(encoded: Floats, autoencoder: Autoencoder, codec: Codec, seed: int) -> Samples:
    """Half of the points close to a training row, a quarter around one, a quarter from a wider cloud.

    Points that decode to a value outside a declared range are left out, as the paper asks.
    """
    rng = np.random.default_rng(seed)
    dimensions = encoded.shape[1]
    count = int(np.clip(PER_DIMENSION * dimensions, FEWEST, MOST))
    anchor = rng.integers(len(encoded), size=count).astype(np.intp)
    spread = np.repeat([NEAR, NEAR, FAR], [count // 4, count // 2 - count // 4, count - count // 2])
    centre, deviation = encoded.mean(axis=0), encoded.std(axis=0)
    noise = rng.normal(size=(count, dimensions)) * deviation
    latent = encoded[anchor] + noise * spread[:, None]
    cloud = slice(3 * count // 4, None)
    latent[cloud], anchor[cloud] = centre + BEYOND * noise[cloud], -1
    codes = codec.decode(autoencoder.decode(latent))
    kept = within_declared_ranges(codes, codec)
    rounded = to_values(codes[kept], codec)
    return Samples(latent[kept], rounded, codec.encode(rounded), anchor[kept])


def within_declared_ranges(codes: Floats, codec: Codec) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    inside = np.ones(len(codes), dtype=bool)
    for j, feature in enumerate(codec.schema.features):
        if feature.numeric and feature.declared:
            slack = 0.05 * min(feature.upper - feature.lower, codec.profile.span[j])
            within = (codes[:, j] >= feature.lower - slack) & (codes[:, j] <= feature.upper + slack)
            inside &= within | (codes[:, j] == MISSING)
    return inside


def to_values(codes: Floats, codec: Codec) -> Floats:
    """Rounded to each feature's precision and clipped to its range: rows that could exist."""
    values = codes.copy()
    for j in codec.numeric:
        feature = codec.schema.features[j]
        low, high = (np.ceil(feature.lower), np.floor(feature.upper)) if feature.integer else (feature.lower, feature.upper)
        rounded = np.clip(np.round(codes[:, j], feature.decimals), low, high)
        values[:, j] = np.where(codes[:, j] == MISSING, MISSING, rounded) if feature.gappy else rounded
    return values
