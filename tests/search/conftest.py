"""Toy worlds for the search: models that are formulas over codes, an identity for an autoencoder, rules by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.config import Config
from fasterce.constraints.compile.domain import Domain
from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.fitting.state import SearchState
from fasterce.latent import prototypes
from fasterce.latent.hyperplanes import fit_hyperplanes
from fasterce.latent.regions import Regions
from fasterce.latent.runtime import Autoencoder, Callables
from fasterce.latent.sampling import sample
from fasterce.models.predictions import Predictions
from fasterce.search.context import SearchContext
from fasterce.search.distance import Distance
from fasterce.search.evaluator import Evaluator
from fasterce.search.query_targets import Named
from fasterce.surrogate.runtime import Surrogate
from fasterce.surrogate.train import _Tables, edited_rows, train_surrogate
from fasterce.typing import Floats

IDENTITY = Callables(lambda matrix: matrix, lambda latent: latent)


@dataclass
class ToyModel:
    """Class 1 where `lead(codes) > 0`; with scores whose margin is the lead itself, or labels only. Remembers model_rows."""

    lead: Callable[[Floats], Floats]
    graded: bool = True
    model_rows: list[Floats] = field(default_factory=list)

    def __call__(self, codes: Floats) -> Predictions:
        self.model_rows.append(codes.copy())
        lead = np.asarray(self.lead(codes), dtype=float)
        scores = np.stack([-lead, lead], axis=1) / 2 if self.graded else None
        return Predictions((lead > 0).astype(np.intp), scores)

    def label(self, codes: Floats) -> np.ndarray:
        return (np.asarray(self.lead(codes)) > 0).astype(np.intp)


class Toys:
    """Everything a test needs to set a scene."""

    Model = ToyModel
    identity = IDENTITY

    @staticmethod
    def frame(rows: int = 300, seed: int = 0) -> pd.DataFrame:
        """a, b in 0..10 with two decimals, job one of p q r s, k a whole number in 0..20."""
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "a": rng.uniform(0, 10, rows).round(2),
                "job": rng.choice(list("pqrs"), rows),
                "b": rng.uniform(0, 10, rows).round(2),
                "k": rng.integers(0, 21, rows),
            }
        )
        frame.loc[:1, ["a", "b"]] = [[0.0, 0.0], [10.0, 10.0]]
        frame.loc[:1, "k"] = [0, 20]
        return frame

    @staticmethod
    def codec(frame: pd.DataFrame, **constraints: Any) -> tuple[Codec, Floats]:
        schema = Schema.infer(frame, **constraints)
        codes = Table.like(frame, schema).read(frame).codes
        return Codec(schema, Profile.measure(codes, schema)), codes

    @staticmethod
    def domain(
        codec: Codec,
        rows: Any,
        *,
        base: Any = None,
        frozen: Sequence[int] = (),
        lower: dict[int, float] | None = None,
        upper: dict[int, float] | None = None,
        allowed: dict[int, Sequence[int]] | None = None,
        single: Sequence[int] = (),
    ) -> Domain:
        features = codec.schema.features
        row = np.atleast_2d(np.asarray(rows, dtype=float))
        low = np.tile([f.lower if f.numeric else 0.0 for f in features], (len(row), 1))
        high = np.tile([f.upper if f.numeric else len(f.categories) - 1.0 for f in features], (len(row), 1))
        for j, bound in (lower or {}).items():
            low[:, j] = bound
        for j, bound in (upper or {}).items():
            high[:, j] = bound
        open_to_all = {}
        for block in codec.blocks:
            mask = np.ones(len(features[block.feature].categories), dtype=bool)
            if allowed and block.feature in allowed:
                mask[:] = False
                mask[list(allowed[block.feature])] = True
            open_to_all[block.feature] = mask
        free = np.ones(row.shape, dtype=bool)
        free[:, list(frozen)] = False
        return Domain(
            row=row,
            base=row.copy() if base is None else np.atleast_2d(np.asarray(base, dtype=float)),
            free=free,
            lower=low,
            upper=high,
            allowed=open_to_all,
            decimals=np.array([f.decimals for f in features], dtype=np.int64),
            integer=np.array([f.numeric and f.integer for f in features]),
            single=np.isin(np.arange(len(features)), list(single)),
            numeric=codec.numeric,
        )

    @staticmethod
    def state(codec: Codec, codes: Floats, model: ToyModel, autoencoder: Autoencoder = IDENTITY) -> SearchState:
        samples = sample(autoencoder.encode(codec.encode(codes)), autoencoder, codec, 0)
        labels = model.label(samples.codes)
        planes = fit_hyperplanes(samples.latent, samples.matrix, len(codec.numeric), labels, 2)
        distance = Distance.gower(codec.profile.span, codec.numeric)
        kept = np.concatenate([np.flatnonzero(labels == label)[:500] for label in (0, 1)])
        examples = samples.codes[kept]
        centres, centre_classes = prototypes.prototypes(samples.latent, labels, 0)
        return SearchState(
            codec=codec,
            autoencoder=autoencoder,
            hyperplanes=planes,
            regions=Regions.whole(planes),
            examples=examples,
            example_classes=labels[kept],
            distance=distance,
            typical=prototypes.typical_distances(distance, examples, labels[kept], 2),
            groups=prototypes.linked_groups(codes, codec),
            prototypes=centres,
            prototype_classes=centre_classes,
        )

    @staticmethod
    def copy_of(
        codec: Codec, parts: dict[int, Callable[[Floats], Floats]], constant: float, error: float = 0.05
    ) -> Surrogate:
        """A copy that gives class 1 a lead of `constant` plus, for some features, a part that depends on their value:
        exact at the knots, straight in between."""
        tables = _Tables(codec)
        lead = np.zeros(len(tables.knots))
        for j, part in parts.items():
            mine = slice(tables.start[j], tables.start[j + 1])
            lead[mine] = part(tables.knots[mine])
        return Surrogate(
            knots=tables.knots,
            entries=np.stack([lead, -lead], axis=1).astype(np.float32),
            start=tables.start,
            numeric=tables.numeric,
            bias=np.array([constant, -constant], dtype=np.float32),
            weight=np.array([[1.0], [-1.0]], dtype=np.float32),
            offset=np.zeros(1, dtype=np.float32),
            error=error,
            agreement=1.0,
        )

    @staticmethod
    def any_copy(codec: Codec, classes: int = 2, seed: int = 0, hidden: int = 96) -> Surrogate:
        """A copy of nothing: random tables and weights."""
        rng, tables, outputs = np.random.default_rng(seed), _Tables(codec), 1 if classes == 2 else classes
        return Surrogate(
            knots=tables.knots,
            entries=rng.normal(size=(len(tables.knots), hidden)).astype(np.float32),
            start=tables.start,
            numeric=tables.numeric,
            bias=rng.normal(size=hidden).astype(np.float32),
            weight=rng.normal(size=(hidden, outputs)).astype(np.float32),
            offset=rng.normal(size=outputs).astype(np.float32),
            error=0.3,
            agreement=0.9,
        )

    @staticmethod
    def trained(codec: Codec, codes: Floats, model: ToyModel) -> Surrogate | None:
        """A surrogate as `fit` trains it, with few steps."""
        config = replace(Config.fast().surrogate, min_steps=400, hidden=48)
        rows = edited_rows(codes, model.label(codes), codec, np.random.default_rng(0), config=config)
        found = ToyModel(model.lead, model.graded)(rows)
        return train_surrogate(rows, found, codec, 2, 0, config=config)

    def context(self, state: SearchState, domain: Domain, model: ToyModel, **options: Any) -> SearchContext:
        """Wants, for every row, the class the model does not give it now."""
        lead = np.asarray(model.lead(domain.row), dtype=float)
        target = (lead <= 0).astype(np.intp)
        start = -np.abs(lead) if model.graded else np.full(len(lead), -1.0)
        evaluator = Evaluator(model, Named(target), model.graded)
        return SearchContext(state, domain, evaluator, start=start, lead=start, **options)

    def scene(
        self, lead: Callable[[Floats], Floats], rows: Any, *, graded: bool = True, **constraints: Any
    ) -> tuple[SearchContext, ToyModel]:
        """The standard frame, a model and rows to explain; `copy` makes a surrogate from the codec, `trained` trains one."""
        options = {name: constraints.pop(name) for name in ("named", "margin", "paper") if name in constraints}
        copy = constraints.pop("copy", None)
        trained = constraints.pop("trained", False)
        codec, codes = self.codec(self.frame())
        model = ToyModel(lead, graded)
        surrogate = self.trained(codec, codes, model) if trained else copy and copy(codec)
        state = replace(self.state(codec, codes, model), surrogate=surrogate)
        return self.context(state, self.domain(codec, rows, **constraints), model, **options), model


@pytest.fixture(scope="session")
def toys() -> Toys:
    return Toys()
