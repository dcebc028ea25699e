"""A small stream of people whose data can shift, and models for it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, Schema, load
from fasterce.artifact.arrays import arrays_of


def people(rows: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """`shift` raises incomes by so many deviations and makes nurses as much rarer."""
    rng = np.random.default_rng(seed)
    odds = np.array([1.0, max(1.0 - 0.4 * shift, 0.1), 1.0])
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": (rng.normal(50, 15, rows) + 15 * shift).round(2),
            "savings": np.where(rng.random(rows) < 0.4, 0.0, rng.exponential(20, rows).round(1)),
            "job": rng.choice(["clerk", "nurse", "smith"], rows, p=odds / odds.sum()),
            "owner": rng.random(rows) < 0.5,
        }
    )


def truth(frame: pd.DataFrame, bar: float = 58.0) -> NDArray[Any]:
    points = frame["income"] + 0.4 * frame["savings"] + 10 * frame["owner"] + 4 * (frame["job"] == "nurse")
    return np.where(points.to_numpy() > bar, "yes", "no")


def strict(frame: pd.DataFrame) -> NDArray[Any]:
    """The same, asking for more."""
    return truth(frame, 70.0)


def schema(frame: pd.DataFrame) -> Schema:
    return Schema.infer(frame, immutable=["owner"], increasing=["age"])


def pipeline(frame: pd.DataFrame, bar: float = 58.0) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income", "savings"]), (OneHotEncoder(handle_unknown="ignore"), ["job", "owner"])
    )
    return make_pipeline(columns, LogisticRegression(C=10.0)).fit(frame, truth(frame, bar))


def same(one: FasterCE, other: FasterCE) -> bool:
    """Whether two explainers have learned the same, to the bit."""
    left, right = (arrays_of(e.state_.search, e.state_.statistics) for e in (one, other))
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def updated_twice(saved: Path, folder: Path, model: Any, parts: Iterable[pd.DataFrame]) -> tuple[FasterCE, FasterCE]:
    """Two explainers loaded and updated with the same parts; the second was saved and loaded after each."""
    one, other = load(saved, model), load(saved, model)
    for part in parts:
        one.update(part)
        other.update(part)
        other.save(folder / "between")
        other = load(folder / "between", model)
    return one, other
