"""A mixed table for adapters: whole numbers, fractions, text, booleans, with and without gaps, and what depends on it."""

from typing import Any

import numpy as np
import pandas as pd

from fasterce import FasterCE, Schema
from fasterce.config import Config
from fasterce.models.adapters import adapt
from fasterce.testing import check_adapter

IDENTITY = (lambda matrix: matrix, lambda latent: latent)
JOBS = ["clerk", "nurse", "smith"]
HOMES = ["own", "rent", "with family"]


def applicants(rows: int = 400, seed: int = 0, gaps: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "pay": rng.normal(50, 15, rows).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "job": rng.choice(JOBS, rows),
            "home": rng.choice(HOMES, rows),
            "spouse": rng.random(rows) < 0.5,
        }
    )
    if gaps:
        frame.loc[rng.random(rows) < 0.1, "pay"] = np.nan
        frame.loc[rng.random(rows) < 0.1, "job"] = None
    return frame


def strength(frame: pd.DataFrame) -> np.ndarray:
    pay = frame["pay"].fillna(45).to_numpy()
    return pay - frame["debt"].to_numpy() + 12 * (frame["job"] == "nurse").to_numpy() + 8 * frame["spouse"].to_numpy()


def two(frame: pd.DataFrame, names: Any = (0, 1)) -> np.ndarray:
    return np.array(names)[(strength(frame) > 38).astype(int)]


def three(frame: pd.DataFrame, names: Any = (0, 1, 2)) -> np.ndarray:
    return np.array(names)[np.digitize(strength(frame), [28, 48])]


def categorical(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(job=frame["job"].astype("category"), home=frame["home"].astype("category"))


def explainer(model: Any, X: pd.DataFrame, **settings: Any) -> FasterCE:
    """A quick explainer of everything in `X`."""
    quick: dict[str, Any] = {"autoencoder": IDENTITY, "compile": "never", "config": Config.fast()}
    return FasterCE(model, Schema.infer(X), **quick | settings).fit(X)


def check_explained(model: Any, X: pd.DataFrame, labels: Any, rows: int = 10, target: Any = None) -> None:
    """Most rows are answered, and the original model confirms every answer."""
    result = explainer(model, X).explain(X.head(rows), target=target)
    assert set(result.status) <= {"found", "already_target"}
    found = (result.status == "found").to_numpy()
    assert found.sum() >= 3
    counterfactuals = result.counterfactuals[found].astype(X.dtypes.to_dict())
    assert (np.asarray(labels(counterfactuals)) == result.target[found].to_numpy()).all()


def two_or_three(X: pd.DataFrame, many: bool) -> Any:
    return three(X) if many else two(X)


def check_classes(model: Any, X: pd.DataFrame, many: bool) -> Any:
    """Adapt a booster of two or three classes, check its predictions, and return the adapted one."""
    adapted: Any = adapt(model)
    assert (adapted.predict(X) == two_or_three(X, many)).mean() > 0.85
    assert adapted.classes_.tolist() == ([0, 1, 2] if many else [0, 1])
    check_adapter(model, X.head(80))
    return adapted
