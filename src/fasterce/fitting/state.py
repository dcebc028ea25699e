"""The state of a fitted explainer, and the part of it that the search uses."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fasterce.config import Config
from fasterce.data.codec import Codec
from fasterce.data.schema import MISSING
from fasterce.latent.hyperplanes import Hyperplanes
from fasterce.latent.regions import Regions
from fasterce.latent.runtime import Autoencoder
from fasterce.search import levels
from fasterce.search.distance import Distance
from fasterce.search.levels import Levels
from fasterce.surrogate.knots import extra_knots
from fasterce.surrogate.runtime import NO_LIMIT, Surrogate
from fasterce.typing import Floats, Floats32, Indices, Mask

if TYPE_CHECKING:
    from fasterce.data.table import Table
    from fasterce.fitting.report import FitReport
    from fasterce.fitting.statistics import TrainingStatistics
    from fasterce.models.compiled.model import CompiledModel
    from fasterce.models.predictor import Numbers


@dataclass(frozen=True)
class SearchState:
    """The part of the fitted state that the search uses.

    examples     rows, real or decoded, with the class the model gave them
    distance     the plain one (gower) in which realism is measured
    typical      for each class how far its rows usually are from the next one of their class
    groups       for each feature the number of its group: features of one group change together
    prototypes   centres of each class in latent space
    lowest       scores below this count as this: a forest's chance of nothing is no more than a small one
    surrogate    the network that approximates the model, None where it could not be trained
    config       tuning constants
    unread       for each feature whether the model was seen never to read it; empty where that was not measured
    samples      latent points, with the class the model gave what they decode to; the hyperplanes are fitted to them
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
    config: Config = field(default_factory=Config)
    unread: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    samples: Floats32 = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    sample_classes: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @cached_property
    def read(self) -> Mask:
        """Which features the model reads, as far as known: all of them where that was not measured."""
        return ~self.unread if len(self.unread) else np.ones(len(self.codec.schema), dtype=bool)

    @cached_property
    def relevant(self) -> Mask:
        """Features the model reads, and those that change together with one of them."""
        return np.asarray(np.isin(self.groups, self.groups[self.read]))

    @cached_property
    def distances(self) -> dict[str, Distance]:
        """Distances by name that calls have made."""
        return {}

    @cached_property
    def coarse_levels(self) -> Levels:
        return levels.coarse_levels(self.codec, self.config.search)

    @cached_property
    def dense_levels(self) -> Levels:
        if self.surrogate is None:
            return levels.dense_levels(self.codec, config=self.config.search)
        bends = extra_knots(self.surrogate.tables, self.codec, self.config.surrogate)
        return levels.dense_levels(self.codec, bends, self.config.search)

    @cached_property
    def fine_levels(self) -> Levels:
        return levels.fine_levels(self.codec, self.config.search)

    @cached_property
    def example_matrix(self) -> Floats:
        return self.codec.encode(self.examples)

    def place(self, codes: Floats) -> Floats:
        """Codes as points whose squared distance counts a changed category as 1 and a number by its share of the range."""
        matrix = self.codec.encode(codes)
        numbers = len(self.codec.numeric)
        values = codes if not len(self.codec.nullable) else np.where(codes == MISSING, self.codec.profile.median, codes)
        matrix[:, :numbers] = values[:, self.codec.numeric] / self.codec.profile.span[self.codec.numeric]
        matrix[:, numbers:] *= 0.5**0.5
        return matrix

    @cached_property
    def example_places(self) -> Floats32:
        return self.place(self.examples).astype(np.float32)

    @cached_property
    def example_latent(self) -> Floats:
        return self.autoencoder.encode(self.example_matrix)

    @cached_property
    def example_outputs(self) -> Floats32 | None:
        """Return the surrogate's outputs (examples, C) for every example."""
        if self.surrogate is None:
            return None
        size = self.config.fit.surrogate_batch_rows
        parts = [self.examples[start : start + size] for start in range(0, len(self.examples), size)]
        return np.concatenate([self.surrogate.outputs_of(part[:, None])[:, 0] for part in parts])

    def planes_of(self, latent: Floats, classes: Indices, regional: bool) -> tuple[Floats, Floats]:
        """The prediction hyperplane of a class for each point: that of its region, or the one of the whole space."""
        return self.regions.planes(latent, classes) if regional else self.hyperplanes.of_class(classes)


@dataclass(frozen=True)
class FittedState:
    """Everything that `fit` learned.

    table       schema and dtypes of the training table
    search      what the search works with
    report      quality of the learned parts
    classes     labels of the model, by position
    use_scores  whether scores of the model are used beside its labels
    statistics  of the rows seen so far, for `update` and `drift`
    compiled    the compiled model, None where there is none
    numbers     scale of the predictions of a regression model, None for a classifier
    """

    table: "Table"
    search: SearchState
    report: "FitReport"
    classes: tuple[Hashable, ...]
    use_scores: bool
    statistics: "TrainingStatistics"
    compiled: "CompiledModel | None" = None
    numbers: "Numbers | None" = None
