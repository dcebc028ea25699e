"""A small mixed table and models that are formulas over its codes."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from fasterce.data.codec import Codec
from fasterce.data.profile import Profile
from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.models.predictions import Predictions
from fasterce.typing import Floats


def points(codes: Floats) -> Floats:
    """Bent in the first column, straight in the second, a step for one category of the third."""
    return np.abs(codes[:, 0] - 4.0) + 0.8 * codes[:, 1] + 3.0 * (codes[:, 2] == 2) - 7.0


def scored(codes: Floats) -> Predictions:
    lead = points(codes)
    return Predictions((lead > 0).astype(np.intp), np.stack([-lead, lead], axis=1) / 2)


def labelled(codes: Floats) -> Predictions:
    return Predictions((points(codes) > 0).astype(np.intp))


def three(codes: Floats) -> Predictions:
    scores = np.stack([points(codes), codes[:, 1] - 3.0, 6.0 - codes[:, 0]], axis=1)
    return Predictions(scores.argmax(axis=1), scores)


class Small:
    predictions: ClassVar[dict[str, Callable[[Floats], Predictions]]] = {"scores": scored, "labels": labelled, "three": three}
    points = staticmethod(points)

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"a": rng.uniform(0, 10, 900).round(2), "b": rng.uniform(0, 10, 900).round(1), "c": rng.choice(list("pqrs"), 900)}
        )
        self.schema = Schema.infer(frame)
        self.codes = Table.like(frame, self.schema).read(frame).codes
        self.codec = Codec(self.schema, Profile.measure(self.codes, self.schema))

    def fresh(self, rows: int = 600) -> Floats:
        rng = np.random.default_rng(1)
        return np.column_stack([rng.uniform(0, 10, rows), rng.uniform(0, 10, rows), rng.integers(4, size=rows)]).astype(float)


@pytest.fixture(scope="session")
def small() -> Any:
    return Small()
