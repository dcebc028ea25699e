"""Codes <-> the matrix an autoencoder sees.

A row of codes has one number a feature: the value of a numeric feature, the category's position of a categorical one.
In the matrix numeric features come first, each standardised after an inverse hyperbolic sine that tames long tails,
then one one-hot block for each categorical feature. Categories beyond the most frequent ones, and those nobody has,
get no column. Last come two columns (there, missing) for each number that may be missing; a missing one is as its mean.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fasterce.profile import Floats, Profile, bend
from fasterce.schema import MISSING, Schema

MOST_SLOTS = 64

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Block:
    """The one-hot columns of one categorical feature, or of whether a number is there (0) or missing (1)."""

    feature: int
    start: int
    codes: Indices
    slot_of: Indices

    @property
    def columns(self) -> slice:
        return slice(self.start, self.start + len(self.codes))


@dataclass(frozen=True)
class Codec:
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
        """For every categorical feature how frequent each category is."""
        shares, offset = {}, 0
        for j in self.categorical:
            count = self.schema.features[j].states
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
    def gappy(self) -> Indices:
        """Numbers that may be missing."""
        return np.array([j for j in self.numeric if self.schema.features[j].gappy], dtype=np.intp)

    @cached_property
    def gaps(self) -> tuple[Block, ...]:
        start, both = len(self.numeric) + sum(len(block.codes) for block in self.blocks), np.arange(2)
        return tuple(Block(int(j), start + 2 * k, both, both) for k, j in enumerate(self.gappy))

    @property
    def one_hot(self) -> tuple[Block, ...]:
        """All blocks of columns of which one is on."""
        return self.blocks + self.gaps

    @cached_property
    def held(self) -> dict[int, Indices]:
        """For every categorical feature the codes someone has, and missing where it may appear."""
        held = {}
        for j, share in self.shares.items():
            feature, some = self.schema.features[j], np.flatnonzero(share > 0)
            appears = [int(feature.absent)] if feature.missing == "may_appear" else []
            held[j] = np.union1d(some, appears).astype(np.intp)
        return held

    @cached_property
    def width(self) -> int:
        return len(self.numeric) + sum(len(block.codes) for block in self.one_hot)

    @cached_property
    def _numeric_profile(self) -> tuple[Floats, Floats, Floats, Floats]:
        columns = self.numeric
        profile = self.profile
        return profile.median[columns], profile.std[columns], profile.bent_mean[columns], profile.bent_std[columns]

    def encode(self, codes: Floats) -> Floats:
        matrix = np.zeros((len(codes), self.width))
        median, std, mean, deviation = self._numeric_profile
        matrix[:, : len(self.numeric)] = (bend(codes[:, self.numeric], median, std) - mean) / deviation
        rows = np.arange(len(codes))
        for block in self.blocks:
            slots = block.slot_of[codes[:, block.feature].astype(np.intp)]
            known = slots >= 0
            matrix[rows[known], block.start + slots[known]] = 1.0
        for block in self.gaps:
            absent = codes[:, block.feature] == MISSING
            matrix[absent, np.searchsorted(self.numeric, block.feature)] = 0.0
            matrix[rows, block.start + absent] = 1.0
        return matrix

    def numbers(self, matrix: Floats) -> Floats:
        """The numeric features' values a matrix stands for, one column each, not yet rounded."""
        median, std, mean, deviation = self._numeric_profile
        bent = np.clip(matrix[..., : len(self.numeric)] * deviation + mean, -30.0, 30.0)
        return np.asarray(np.sinh(bent) * std + median)

    def decode(self, matrix: Floats) -> Floats:
        """The codes a matrix stands for: plain values, most likely categories."""
        codes = np.empty((*matrix.shape[:-1], len(self.schema)))
        codes[..., self.numeric] = self.numbers(matrix)
        for block in self.blocks:
            codes[..., block.feature] = block.codes[matrix[..., block.columns].argmax(axis=-1)]
        for block in self.gaps:
            codes[..., block.feature][matrix[..., block.columns].argmax(axis=-1) == 1] = MISSING
        return codes
