"""What every variant of the search is given: what was learned in `fit`, and the rows to explain."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder
from fasterce.profile import Floats
from fasterce.schema import MISSING
from fasterce.search import levels
from fasterce.search.directions import unit
from fasterce.search.distance import Distance
from fasterce.search.goal import NO_LIMIT, Goal, Indices
from fasterce.search.hyperplanes import Hyperplanes
from fasterce.search.judge import Judge
from fasterce.search.levels import Levels
from fasterce.search.project import Domain
from fasterce.search.regions import Regions
from fasterce.surrogate.runtime import Singles32, Surrogate

MOST_CELLS = 100_000_000
MOST_READ = 1_000


@dataclass(frozen=True)
class Knowledge:
    """What `fit` leaves behind.

    examples     rows, real or decoded, with the class the model gave them
    distance     the plain one (gower) in which realism is measured
    typical      for each class how far its rows usually are from the next one of their class
    groups       for each feature the number of its group: features of one group change together
    prototypes   centres of each class in latent space
    lowest       scores below this count as this: a forest's chance of nothing is no more than a small one
    surrogate    the model's distilled copy, None where it could not be trained
    """

    codec: Codec
    autoencoder: Autoencoder
    hyperplanes: Hyperplanes
    regions: Regions
    examples: Floats
    example_classes: Indices
    distance: Distance
    typical: Floats
    groups: Indices
    prototypes: Floats
    prototype_classes: Indices
    lowest: float = NO_LIMIT
    surrogate: Surrogate | None = None

    @cached_property
    def coarse_levels(self) -> Levels:
        return levels.coarse_levels(self.codec)

    @cached_property
    def dense_levels(self) -> Levels:
        return levels.dense_levels(self.codec, [] if self.surrogate is None else self.surrogate.tables)

    @cached_property
    def fine_levels(self) -> Levels:
        return levels.fine_levels(self.codec)

    @cached_property
    def nearest_levels(self) -> Indices:
        return levels.nearest_level(self.codec)

    @cached_property
    def example_matrix(self) -> Floats:
        return self.codec.encode(self.examples)

    def place(self, codes: Floats) -> Floats:
        """Codes as points whose squared distance counts a changed category as 1 and a number by its share of the range."""
        matrix = self.codec.encode(codes)
        numbers = len(self.codec.numeric)
        values = codes if not len(self.codec.gappy) else np.where(codes == MISSING, self.codec.profile.median, codes)
        matrix[:, :numbers] = values[:, self.codec.numeric] / self.codec.profile.span[self.codec.numeric]
        matrix[:, numbers:] *= 0.5**0.5
        return matrix

    @cached_property
    def example_places(self) -> NDArray[np.float32]:
        return self.place(self.examples).astype(np.float32)

    @cached_property
    def example_latent(self) -> Floats:
        return self.autoencoder.encode(self.example_matrix)

    @cached_property
    def example_outputs(self) -> Singles32 | None:
        """What the copy puts out for every example (examples, C)."""
        if self.surrogate is None:
            return None
        parts = [self.examples[start : start + MOST_READ] for start in range(0, len(self.examples), MOST_READ)]
        return np.concatenate([self.surrogate.outputs_of(part[:, None])[:, 0] for part in parts])

    def planes_of(self, latent: Floats, classes: Indices, regional: bool) -> tuple[Floats, Floats]:
        """The prediction hyperplane of a class for each point: that of its region, or the one of the whole space."""
        return self.regions.planes(latent, classes) if regional else self.hyperplanes.of_class(classes)


@dataclass(frozen=True)
class Task:
    """Rows to explain, what they may become, and whom to ask.

    named     features the caller asked to vary, by position; empty when any may
    margin    how far to go beyond the first point that flips
    step      the paper's δε, in latent units
    priced    the distance to keep small, if not the one realism is measured by
    start     the model's margin of each row as it is, where known
    realism   how much staying near known examples weighs, from 0 (only distance counts) to 1
    diversity how much several answers should differ in what they change, from 0 (only distance counts) to 1
    regional  whether each row goes by the prediction hyperplane of its region, or all by the one of the whole space
    """

    knowledge: Knowledge
    domain: Domain
    judge: Judge
    named: tuple[int, ...] = ()
    step: float = 0.1
    margin: float = 0.0
    regional: bool = True
    priced: Distance | None = None
    start: Floats | None = None
    realism: float = 0.5
    diversity: float = 0.5

    def parts(self, rows: Indices, questions: int) -> list[Indices]:
        """`rows` in parts, so that so many candidates of each row of a part fit in memory together."""
        size = max(1, MOST_CELLS // (questions * self.domain.row.shape[1]))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def take(self, rows: Indices) -> "Task":
        start = None if self.start is None else self.start[rows]
        return replace(self, domain=self.domain.take(rows), judge=self.judge.take(rows), start=start)

    def by_one_hyperplane(self) -> "Task":
        return replace(self, regional=False)

    @property
    def goal(self) -> Goal:
        return self.judge.goal

    @property
    def distance(self) -> Distance:
        return self.priced or self.knowledge.distance

    @cached_property
    def latent(self) -> Floats:
        return self.knowledge.autoencoder.encode(self.knowledge.codec.encode(self.domain.base))

    @cached_property
    def decoded(self) -> Floats:
        """The decoder's picture of the rows as they are: what movement is measured from."""
        return self.knowledge.autoencoder.decode(self.latent)

    @cached_property
    def prediction_planes(self) -> tuple[Floats, Floats]:
        return self.goal.planes(self.knowledge, self.latent, self.regional)

    @cached_property
    def toward_target(self) -> Floats:
        return unit(self.prediction_planes[0])

    @cached_property
    def feature_planes(self) -> tuple[Floats, Floats]:
        """One hyperplane a feature and row: a numeric feature's own, for a categorical one that of the row's category."""
        planes, codec = self.knowledge.hyperplanes, self.knowledge.codec
        rows = len(self.domain.base)
        normals = np.zeros((rows, len(codec.schema), planes.normals.shape[1]))
        offsets = np.zeros((rows, len(codec.schema)))
        normals[:, codec.numeric] = planes.normals[: len(codec.numeric)]
        offsets[:, codec.numeric] = planes.offsets[: len(codec.numeric)]
        for block in codec.blocks:
            slot = block.slot_of[self.domain.base[:, block.feature].astype(np.intp)]
            known = (slot >= 0)[:, None]
            normals[:, block.feature] = np.where(known, planes.normals[block.start + slot], 0.0)
            offsets[:, block.feature] = np.where(known[:, 0], planes.offsets[block.start + slot], 0.0)
        return normals, offsets
