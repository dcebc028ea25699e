"""Toy worlds for the search: models that are formulas over codes, an identity for an autoencoder, rules by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.codec import Codec
from fasterce.latent.runtime import Autoencoder, Callables
from fasterce.latent.sampling import sample
from fasterce.profile import Floats, Profile
from fasterce.schema import Schema
from fasterce.search.distance import Distance
from fasterce.search.hyperplanes import fit_hyperplanes
from fasterce.search.judge import Judge
from fasterce.search.project import Domain
from fasterce.search.regions import Regions
from fasterce.search.task import Knowledge, Task
from fasterce.table import Table

IDENTITY = Callables(lambda matrix: matrix, lambda latent: latent)


@dataclass(frozen=True)
class Said:
    classes: np.ndarray
    scores: Floats | None = None


@dataclass
class ToyModel:
    """Class 1 where `lead(codes) > 0`; with scores whose margin is the lead itself, or labels only. Remembers questions."""

    lead: Callable[[Floats], Floats]
    graded: bool = True
    questions: list[Floats] = field(default_factory=list)

    def __call__(self, codes: Floats) -> Said:
        self.questions.append(codes.copy())
        lead = np.asarray(self.lead(codes), dtype=float)
        scores = np.stack([-lead, lead], axis=1) / 2 if self.graded else None
        return Said((lead > 0).astype(np.intp), scores)

    def label(self, codes: Floats) -> np.ndarray:
        return (np.asarray(self.lead(codes)) > 0).astype(np.intp)


class Toys:
    """Everything a test needs to set a scene."""

    Model = ToyModel
    Said = Said
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
    def codec(frame: pd.DataFrame, **rules: Any) -> tuple[Codec, Floats]:
        schema = Schema.infer(frame, **rules)
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
    def knowledge(codec: Codec, codes: Floats, model: ToyModel, autoencoder: Autoencoder = IDENTITY) -> Knowledge:
        samples = sample(autoencoder.encode(codec.encode(codes)), autoencoder, codec, 0)
        labels = model.label(samples.codes)
        planes = fit_hyperplanes(samples.latent, samples.matrix, len(codec.numeric), labels, 2)
        distance = Distance.gower(codec.profile.span, codec.numeric)
        kept = np.concatenate([np.flatnonzero(labels == label)[:500] for label in (0, 1)])
        examples = samples.codes[kept]
        typical = float(np.mean([distance.total(examples, row).min() for row in codes[:100]]))
        return Knowledge(codec, autoencoder, planes, Regions.whole(planes), examples, labels[kept], distance, typical)

    def task(self, knowledge: Knowledge, domain: Domain, model: ToyModel, **options: Any) -> Task:
        """Wants, for every row, the class the model does not give it now."""
        lead = np.asarray(model.lead(domain.row), dtype=float)
        target = (lead <= 0).astype(np.intp)
        return Task(knowledge, domain, Judge(model, target, model.graded), **options)

    def scene(
        self, lead: Callable[[Floats], Floats], rows: Any, *, graded: bool = True, **rules: Any
    ) -> tuple[Task, ToyModel]:
        """The standard frame, a model and rows to explain, in one go."""
        options = {name: rules.pop(name) for name in ("named", "margin", "step") if name in rules}
        codec, codes = self.codec(self.frame())
        model = ToyModel(lead, graded)
        task = self.task(self.knowledge(codec, codes, model), self.domain(codec, rows, **rules), model, **options)
        return task, model


@pytest.fixture(scope="session")
def toys() -> Toys:
    return Toys()
