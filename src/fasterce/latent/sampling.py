"""Sample latent points near the data and beyond it, and decode them to rows for the model."""

from dataclasses import dataclass

import numpy as np

from fasterce.config import LatentConfig
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.latent.runtime import Autoencoder
from fasterce.typing import Floats, Indices, Mask

DEFAULTS = LatentConfig()


@dataclass(frozen=True)
class Samples:
    """Latent points, the codes they decode to, and the encoded table of these codes (what the model saw).

    `anchor` is the encoded row a point was drawn around, -1 for one of the wider cloud.
    """

    latent: Floats
    codes: Floats
    matrix: Floats
    anchor: Indices

    def __len__(self) -> int:
        return len(self.latent)


def sample(encoded: Floats, autoencoder: Autoencoder, codec: Codec, seed: int, config: LatentConfig = DEFAULTS) -> Samples:
    """Draw half of the points close to a training row, a quarter around one, a quarter from a wider cloud.

    Points that decode to a value outside a declared range are left out, as in the paper, and as many drawn again.
    """
    rng = np.random.default_rng(seed)
    count = config.samples(encoded.shape[1])
    latent, codes, anchor = draw(encoded, autoencoder, codec, rng, count, config)
    for _ in range(config.redraws):
        if len(latent) == count:
            break
        more = draw(encoded, autoencoder, codec, rng, count, config)
        some = np.sort(rng.permutation(len(more[0]))[: count - len(latent)])
        pairs = zip((latent, codes, anchor), more, strict=True)
        latent, codes, anchor = (np.concatenate([old, new[some]]) for old, new in pairs)
    rounded = to_values(codes, codec)
    return Samples(latent, rounded, codec.encode(rounded), anchor)


def draw(
    encoded: Floats,
    autoencoder: Autoencoder,
    codec: Codec,
    rng: np.random.Generator,
    count: int,
    config: LatentConfig,
) -> tuple[Floats, Floats, Indices]:
    """Draw `count` points and return those that decode to values in declared ranges: points, codes, anchors."""
    dimensions = encoded.shape[1]
    anchor = rng.integers(len(encoded), size=count).astype(np.intp)
    spread = np.repeat([config.near_spread, config.around_spread], [count // 2, count - count // 2])
    centre, deviation = encoded.mean(axis=0), encoded.std(axis=0)
    noise = rng.normal(size=(count, dimensions)) * deviation
    latent = encoded[anchor] + noise * spread[:, None]
    cloud = slice(3 * count // 4, None)
    latent[cloud], anchor[cloud] = centre + config.cloud_spread * noise[cloud], -1
    codes = codec.decode(autoencoder.decode(latent))
    kept = within_declared_ranges(codes, codec, config.range_slack)
    return latent[kept], codes[kept], anchor[kept]


def within_declared_ranges(codes: Floats, codec: Codec, tolerance: float = DEFAULTS.range_slack) -> Mask:
    inside = np.ones(len(codes), dtype=bool)
    for j, feature in enumerate(codec.schema.features):
        if feature.numeric and feature.declared:
            slack = tolerance * min(feature.upper - feature.lower, codec.profile.span[j])
            within = (codes[:, j] >= feature.lower - slack) & (codes[:, j] <= feature.upper + slack)
            inside &= within | (codes[:, j] == MISSING)
    return inside


def to_values(codes: Floats, codec: Codec) -> Floats:
    """Round to the precision of each feature and clip to its range."""
    values = codes.copy()
    for j in codec.numeric:
        feature = codec.schema.features[j]
        low, high = (np.ceil(feature.lower), np.floor(feature.upper)) if feature.integer else (feature.lower, feature.upper)
        rounded = np.clip(np.round(codes[:, j], feature.decimals), low, high)
        values[:, j] = np.where(codes[:, j] == MISSING, MISSING, rounded) if feature.nullable else rounded
    return values
