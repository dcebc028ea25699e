"""People and models to make records of."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fasterce import FasterCE, Schema
from fasterce.config import Config, SurrogateConfig

SAME = (lambda matrix: matrix, lambda latent: latent)
CONFIG = replace(
    Config.fast(),
    surrogate=SurrogateConfig(edited_rows_per_feature=500, min_edited_rows=2_500, steps_per_feature=20, min_steps=120),
)
NUMBERS = ["age", "income", "debt"]


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.normal(50, 15, rows).clip(5, 120).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(2).astype(np.float32),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "owner": rng.random(rows) < 0.5,
        },
        index=[f"p{k}" for k in range(rows)],
    )


def points(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(
        frame["income"].to_numpy(dtype=float)
        - 0.8 * frame["debt"].to_numpy(dtype=float)
        + 0.2 * frame["age"].to_numpy(dtype=float)
        + 12 * frame["owner"].to_numpy(dtype=bool)
        + 6 * (frame["job"] == "nurse").to_numpy(dtype=bool)
    )


class Bank:
    """Every row is scored by itself, to the last bit the same in any company; an age of 79 breaks it."""

    classes_ = np.array(["bad", "good"])

    def __init__(self, cut: float = 55.0) -> None:
        self.cut = cut
        self.calls: list[str] = []

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        self.calls.append("predict_proba")
        if (frame["age"] == 79).any():
            raise ValueError("no one is 79")
        chance = np.array([1 / (1 + np.exp(-(one - self.cut) / 5 - 1e-9)) for one in points(frame)])
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        found = self.classes_[self.predict_proba(frame).argmax(axis=1)]
        self.calls[-1] = "predict"
        return found


class Grades:
    """Three classes, by labels alone."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return np.array(["poor", "fair", "fine"])[np.digitize(points(frame), [45, 60])]


class Limit:
    """A number."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return 100 * points(frame)


def constraints(frame: pd.DataFrame) -> Schema:
    return Schema.infer(frame, immutable=["job"], increasing=["age"], ranges={"income": (0, 200)})


def fitted(model: Any, frame: pd.DataFrame | None = None, schema: Schema | None = None, **options: Any) -> FasterCE:
    data = people().query("age != 79") if frame is None else frame
    schema = constraints(data) if frame is None else schema
    usual: dict[str, Any] = {"autoencoder": SAME, "progress": False, "compile": "never", "config": CONFIG}
    return FasterCE(model, schema, **usual | options).fit(data)


def pipeline() -> Any:
    """A real model."""
    data = people()
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["job", "owner"]))
    return make_pipeline(columns, LogisticRegression()).fit(data, np.where(points(data) > 55, "good", "bad"))


def refused(model: Any, rows: int = 12, seed: int = 1) -> pd.DataFrame:
    data = people(200, seed).query("age != 79")
    return data[model.predict(data) == "bad"].head(rows)
