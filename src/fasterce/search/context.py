"""The context of one search: the fitted state, the queries and their domain, and the options."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from fasterce.config import SearchConfig
from fasterce.constraints.compile.domain import Domain
from fasterce.fitting.state import SearchState
from fasterce.kernels.arrays import Found, Scorer
from fasterce.latent.directions import unit
from fasterce.options import PaperOptions
from fasterce.search.distance import Distance
from fasterce.search.evaluator import Evaluator
from fasterce.search.pool import Pool
from fasterce.search.query_targets import QueryTargets
from fasterce.search.space import CandidateSearch
from fasterce.typing import Floats, Indices


@dataclass
class SharedPool:
    """Candidates that several methods choose from, None until they are found; `found` by the exact scorer alone."""

    pool: Pool | None = None
    found: Found | None = None
    searching: bool = False


@dataclass(frozen=True)
class SearchContext:
    """Queries, their domain, and how candidates are evaluated.

    named     features to vary, by position; empty when any may
    margin    how far to go beyond the first point that reaches the target
    paper     hyperparameters of the paper's line search
    priced    the distance to minimize, if not the one realism is measured by
    start     the margin of each query, where known
    lead      its lead (see `QueryTargets.leads`), where known
    realism   weight of the distance to known examples, from 0 (none) to 1
    diversity weight of differences between counterfactuals of a query, from 0 (none) to 1
    scorer    the exact scorer of the model, if there is one
    wanted    counterfactuals per query, or to choose from
    free      whether candidates are evaluated by a compiled model, not by the user's
    regional  whether each query uses the prediction hyperplane of its region, or that of the whole space
    """

    state: SearchState
    domain: Domain
    evaluator: Evaluator
    named: tuple[int, ...] = ()
    paper: PaperOptions = field(default_factory=PaperOptions)
    margin: float = 0.0
    regional: bool = True
    priced: Distance | None = None
    start: Floats | None = None
    lead: Floats | None = None
    realism: float = 0.5
    diversity: float = 0.5
    scorer: Scorer | None = None
    wanted: int = 2
    free: bool = False

    @cached_property
    def shared(self) -> SharedPool:
        """The candidates of all methods."""
        return SharedPool()

    def parts(self, rows: Indices, model_rows: int) -> list[Indices]:
        """Split `rows` into parts so that `model_rows` candidates per row of a part fit in memory."""
        size = max(1, self.config.max_cells // (model_rows * self.domain.row.shape[1]))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def take(self, rows: Indices) -> "SearchContext":
        start, lead = (None if known is None else known[rows] for known in (self.start, self.lead))
        return replace(self, domain=self.domain.take(rows), evaluator=self.evaluator.take(rows), start=start, lead=lead)

    def by_one_hyperplane(self) -> "SearchContext":
        return replace(self, regional=False)

    @property
    def config(self) -> SearchConfig:
        """Tuning constants of the search."""
        return self.state.config.search

    @property
    def targets(self) -> QueryTargets:
        return self.evaluator.targets

    @property
    def distance(self) -> Distance:
        return self.priced or self.state.distance

    @property
    def searches_exactly(self) -> bool:
        """Whether candidates are found with the exact scorer, without evaluating any."""
        return self.scorer is not None and not self.domain.calls_functions

    @property
    def is_costly(self) -> bool:
        """Whether the exact scorer is so slow that a query gets less effort."""
        return self.scorer is not None and len(self.scorer.network.bias) > self.config.costly_units

    def search_exactly(self, starts: Floats | None = None, config: SearchConfig | None = None) -> Found:
        """Return candidates by the exact scorer; `starts` (queries, S, features) are rows to improve as well."""
        assert self.scorer is not None
        config = config or (self.config.costly if self.is_costly else self.config)
        search = CandidateSearch(self.scorer, self.distance, config, self.state.dense_levels)
        return search.run(self.domain, self.targets, lowest=self.evaluator.lowest, starts=starts, wanted=self.wanted)

    @cached_property
    def latent(self) -> Floats:
        return self.state.autoencoder.encode(self.state.codec.encode(self.domain.base))

    @cached_property
    def decoded(self) -> Floats:
        """The decoded queries, from which movement is measured."""
        return self.state.autoencoder.decode(self.latent)

    @cached_property
    def prediction_planes(self) -> tuple[Floats, Floats]:
        return self.targets.planes(self.state, self.latent, self.regional)

    @cached_property
    def toward_target(self) -> Floats:
        return unit(self.prediction_planes[0])

    @cached_property
    def feature_planes(self) -> tuple[Floats, Floats]:
        """One hyperplane per row and feature: for a categorical feature that of the category of the row."""
        planes, codec = self.state.hyperplanes, self.state.codec
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
