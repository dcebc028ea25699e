"""A model with moods, for workers to load as `tests.serve.models:moody`: what it does is a cell of the row it is asked
about, and no search can change that cell."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fasterce import FasterCE, Schema
from fasterce.config import Config, SurrogateConfig

MOODS = ["calm", "raises", "nan", "shape", "count", "hangs", "slow", "exits", "killed", "eats", "lies", "grows"]
CONFIG = Config(
    surrogate=SurrogateConfig(edited_rows_per_feature=300, min_edited_rows=1_000, steps_per_feature=10, min_steps=60)
)


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """The columns are of all kinds that JSON cannot tell apart: whole, floating, single, text, boolean, missing."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.normal(50, 15, rows).clip(5, 120).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(2).astype(np.float32),
            "years": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(0, 30, rows)),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "owner": rng.random(rows) < 0.5,
            "mood": pd.Categorical(["calm"] * rows, MOODS),
        }
    )


def points(frame: pd.DataFrame) -> np.ndarray:
    years = frame["years"].to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(
        frame["income"].to_numpy(dtype=float)
        - 0.8 * frame["debt"].to_numpy(dtype=float)
        + 0.2 * frame["age"].to_numpy(dtype=float)
        + 0.1 * np.nan_to_num(years)
        + 12 * frame["owner"].to_numpy(dtype=bool)
        + 6 * (frame["job"] == "nurse").to_numpy(dtype=bool)
    )


class Moody:
    """Every row is scored by itself, to the last bit the same in any company."""

    classes_ = np.array(["bad", "good"])

    def __init__(self, calm: bool = False) -> None:
        self.calm = calm
        self.calls = 0

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        chance = np.array([1 / (1 + np.exp(-(one - 55.0) / 5 - 1e-9)) for one in points(frame)])
        found = np.stack([1 - chance, chance], axis=1)
        return found if self.calm else self._in_the_mood(frame, found)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        found = self.predict_proba(frame)
        if found.shape[1:] != (2,):
            return found
        labels = self.classes_[found.argmax(axis=1)].astype(object)
        labels[np.isnan(found[:, 0])] = np.nan
        return labels

    def _in_the_mood(self, frame: pd.DataFrame, found: np.ndarray) -> np.ndarray:
        mood = frame["mood"].astype(str).to_numpy()
        self.calls += 1
        if (mood == "raises").any():
            raise ValueError("I will not say")
        if (mood == "hangs").any():
            time.sleep(1e6)
        if (mood == "slow").any():
            time.sleep(0.05)
        if (mood == "exits").any():
            os._exit(3)
        if (mood == "killed").any():
            os.kill(os.getpid(), signal.SIGKILL)
        if (mood == "eats").any():
            return np.ones((1 << 45, 2))
        if (mood == "grows").any():
            held = []
            while True:
                held.append(np.ones(1 << 22))
        if (mood == "count").any():
            return found[:-1]
        if (mood == "shape").any():
            return np.ones((len(frame), 3))
        found[mood == "nan"] = np.nan
        lies = mood == "lies"
        found[lies] = found[lies][:, :: 1 if self.calls % 2 else -1]
        return found


moody = Moody()
calm = Moody(calm=True)


class Limit:
    """A number."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return 100 * points(frame)


limit = Limit()


def saved(folder: Path, model: Any, seed: int = 0, **options: Any) -> FasterCE:
    """A small explainer, fitted in a second and saved."""
    data = people(seed=seed)
    schema = Schema.infer(data, immutable=["mood"], increasing=["age"], ranges={"income": (0, 200)})
    usual: dict[str, Any] = {"latent_dim": 3, "progress": False, "compile": "never", "random_state": seed, "config": CONFIG}
    explainer = FasterCE(model, schema, **usual | options).fit(data)
    explainer.save(folder)
    return explainer


def as_json(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as a client sends them."""
    return [
        {
            **{"age": int(row.age), "income": float(row.income), "debt": float(str(np.float32(row.debt)))},
            **{"years": None if np.isnan(row.years) else int(row.years), "job": row.job, "owner": bool(row.owner)},
            "mood": row.mood,
        }
        for row in frame.itertuples()
    ]


def refused(count: int = 12, seed: int = 1) -> pd.DataFrame:
    data = people(200, seed)
    return data[Moody(calm=True).predict(data) == "bad"].head(count).reset_index(drop=True)


def dies() -> Any:
    """A model that takes its process with it when it is loaded."""
    os._exit(9)
