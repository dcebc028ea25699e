"""A small explainer with every kind of column, and files of its rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import FasterCE, Schema
from fasterce.config import Config

GRADES = ["low", "mid", "high"]


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pay = rng.normal(50, 15, rows).round(1)
    pay[rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "pay": pay,
            "weight": rng.normal(70, 10, rows).round(1).astype(np.float32),
            "zip": rng.choice(["01", "02", "1"], rows),
            "own": rng.random(rows) < 0.5,
            "code": rng.integers(1, 4, rows),
            "grade": pd.Categorical(rng.choice(GRADES, rows), GRADES, ordered=True),
        }
    )


def approve(frame: pd.DataFrame) -> Any:
    points = frame["pay"].fillna(45).to_numpy() + 0.3 * frame["age"].to_numpy() + 12 * frame["own"].to_numpy(dtype=bool)
    return np.where(points + 6 * (frame["zip"] == "01").to_numpy(dtype=bool) > 70, "yes", "no")


def identity(matrix: Any) -> Any:
    return matrix


def fit(frame: pd.DataFrame, model: Any = approve, schema: Schema | None = None, **settings: Any) -> FasterCE:
    found = schema or Schema.infer(frame, categorical=["code"], increasing=["age"])
    return FasterCE(model, found, autoencoder=(identity, identity), progress=False, config=Config.fast(), **settings).fit(
        frame
    )


@pytest.fixture(scope="session")
def explainer() -> FasterCE:
    return fit(people(300))


@pytest.fixture(name="people")
def sixty_people() -> pd.DataFrame:
    return people(60, seed=1)


@pytest.fixture(scope="session")
def some_people() -> Callable[..., pd.DataFrame]:
    return people


@pytest.fixture(scope="session")
def fitted() -> Callable[..., FasterCE]:
    """Explainers of their own for tests that change them."""
    return lambda seed=0, frame=None, **how: fit(people(300, seed) if frame is None else frame, **how)
