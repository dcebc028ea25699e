"""Encode codes as the matrix an autoencoder is trained on, and back.

A row of codes has one number per feature: the value of a numeric feature, the position of a category.
In the matrix numeric features come first, each standardised after an inverse hyperbolic sine that shortens long tails,
then one one-hot block per categorical feature. Categories beyond the most frequent ones, and those that do not occur,
get no column. Last come two columns (present, missing) per number that may be missing; a missing one is at its mean.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fasterce.data.profile import Profile, bend
from fasterce.data.schema import MISSING, Schema
from fasterce.typing import Floats, Indices

# Most one-hot columns per categorical feature; rarer categories get none.
MOST_SLOTS = 64


@dataclass(frozen=True)
class Block:
    """The one-hot columns of one categorical feature, or of whether a number is present (0) or missing (1)."""

    feature: int
    start: int
    codes: Indices
    slot_of: Indices

    @property
    def columns(self) -> slice:
        return slice(self.start, self.start + len(self.codes))


@dataclass(frozen=True)
class Codec:
    """Encoding of the codes of one schema, scaled by the profile of the training data."""

    schema: Schema
    profile: Profile

    @cached_property
    def numeric(self) -> Indices:
        return np.array([j for j, f in enumerate(self.schema.features) if f.numeric], dtype=np.intp)

    @cached_property
    def categorical(self) -> Indices:
        return np.array([j for j, f in enumerate(self.schema.features) if not f.numeric], dtype=np.intp)

    @cached_property
    def shares(self) -> dict[int, Floats]:
        """The share of each category, per categorical feature."""
        shares, offset = {}, 0
        for j in self.categorical:
            count = self.schema.features[j].n_codes
            shares[int(j)] = self.profile.frequency[offset : offset + count]
            offset += count
        return shares

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        blocks, start = [], len(self.numeric)
        for j, share in self.shares.items():
            ordered = np.argsort(-share, kind="stable")[:MOST_SLOTS]
            kept = np.sort(ordered[share[ordered] > 0])
            slot_of = np.full(len(share), -1, dtype=np.intp)
            slot_of[kept] = np.arange(len(kept))
            blocks.append(Block(j, start, kept, slot_of))
            start += len(kept)
        return tuple(blocks)

    @cached_property
    def nullable(self) -> Indices:
        """Positions of the numeric features that may be missing."""
        return np.array(self.schema.nullable_numbers, dtype=np.intp)

    @cached_property
    def missing_blocks(self) -> tuple[Block, ...]:
        start, both = len(self.numeric) + sum(len(block.codes) for block in self.blocks), np.arange(2)
        return tuple(Block(int(j), start + 2 * k, both, both) for k, j in enumerate(self.nullable))

    @property
    def one_hot(self) -> tuple[Block, ...]:
        """All blocks of columns of which exactly one is 1."""
        return self.blocks + self.missing_blocks

    @cached_property
    def observed(self) -> dict[int, Indices]:
        """The codes that occur in the data, per categorical feature, and the missing code where it may appear."""
        occurring = {}
        for j, share in self.shares.items():
            feature, seen = self.schema.features[j], np.flatnonzero(share > 0)
            appears = [int(feature.missing_code)] if feature.missing == "may_appear" else []
            occurring[j] = np.union1d(seen, appears).astype(np.intp)
        return occurring

    @cached_property
    def width(self) -> int:
        return len(self.numeric) + sum(len(block.codes) for block in self.one_hot)

    @cached_property
    def _numeric_profile(self) -> tuple[Floats, Floats, Floats, Floats]:
        columns = self.numeric
        profile = self.profile
        return profile.median[columns], profile.std[columns], profile.bent_mean[columns], profile.bent_std[columns]

    def encode(self, codes: Floats) -> Floats:
        """Return the matrix (rows, width) of codes (rows, features)."""
        matrix = np.zeros((len(codes), self.width))
        median, std, mean, deviation = self._numeric_profile
        matrix[:, : len(self.numeric)] = (bend(codes[:, self.numeric], median, std) - mean) / deviation
        rows = np.arange(len(codes))
        for block in self.blocks:
            slots = block.slot_of[codes[:, block.feature].astype(np.intp)]
            known = slots >= 0
            matrix[rows[known], block.start + slots[known]] = 1.0
        for block in self.missing_blocks:
            missing = codes[:, block.feature] == MISSING
            matrix[missing, np.searchsorted(self.numeric, block.feature)] = 0.0
            matrix[rows, block.start + missing] = 1.0
        return matrix

    def numbers(self, matrix: Floats) -> Floats:
        """Return the values of the numeric features of a matrix, one column each, not yet rounded."""
        median, std, mean, deviation = self._numeric_profile
        bent = np.clip(matrix[..., : len(self.numeric)] * deviation + mean, -30.0, 30.0)
        return np.asarray(np.sinh(bent) * std + median)

    def decode(self, matrix: Floats) -> Floats:
        """Return the codes of a matrix: plain values, most likely categories."""
        codes = np.empty((*matrix.shape[:-1], len(self.schema)))
        codes[..., self.numeric] = self.numbers(matrix)
        for block in self.blocks:
            codes[..., block.feature] = block.codes[matrix[..., block.columns].argmax(axis=-1)]
        for block in self.missing_blocks:
            codes[..., block.feature][matrix[..., block.columns].argmax(axis=-1) == 1] = MISSING
        return codes
