"""What a rival is given, in its own process: the same model, training rows and refused rows, and a clock.

Two clocks run besides the wall: time inside the model, and time in our glue (turning a rival's arrays into the typed
frames the model was trained on). Glue is taken off the rival's time.
"""

import json
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import pandas as pd


@dataclass
class Clock:
    calls: int = 0
    rows: int = 0
    model: float = 0.0
    glue: float = 0.0


@dataclass
class Problem:
    folder: Path
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.spec = json.loads((self.folder / "spec.json").read_text())
        self._check_versions()
        train = pd.read_parquet(self.folder / "train.parquet")
        self.y_train = train.pop("").to_numpy()
        self.X_train = train
        self.rows = pd.read_parquet(self.folder / "rows.parquet")
        self.model = joblib.load(self.folder / "model.joblib")
        self.columns = list(train.columns)
        self.numeric = [j for j, name in enumerate(self.columns) if name in self.spec["numeric"]]
        self.categorical = [j for j, name in enumerate(self.columns) if name in self.spec["categories"]]
        self.seed = self.spec["seed"]
        self.wanted = self.spec["wanted"]

    def _check_versions(self) -> None:
        """The model file is read by the very versions that wrote it, or not at all."""
        for name, ours in self.spec["versions"].items():
            if version(name) != ours:
                raise RuntimeError(f"{name} is {version(name)} here, the black box was made with {ours}")

    def limits(self, j: int) -> tuple[float, float, int]:
        """Lowest and highest value and decimals of a numeric column."""
        low, high, decimals = self.spec["numeric"][self.columns[j]]
        return low, high, decimals

    def categories(self, j: int) -> list[Any]:
        return self.spec["categories"][self.columns[j]]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Numbers as they are, a category as its position: what systems that work on arrays are given."""
        started = perf_counter()
        codes = np.empty(frame.shape)
        for j, name in enumerate(self.columns):
            column = frame[name]
            codes[:, j] = column if j in self.numeric else pd.Index(self.categories(j)).get_indexer(column)
        self.clock.glue += perf_counter() - started
        return codes

    def frame(self, codes: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({name: self._column(j, codes[:, j]) for j, name in enumerate(self.columns)})

    def _column(self, j: int, codes: np.ndarray) -> Any:
        dtype = self.X_train.dtypes.iloc[j]
        if j not in self.numeric:
            return pd.array(self.categories(j), dtype=dtype).take(codes.astype(np.intp))
        return np.round(codes, self.limits(j)[2]).astype(dtype)

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame[self.columns].astype(self.X_train.dtypes.to_dict())

    def ask(self, frame_or_codes: Any) -> np.ndarray:
        """The model's probabilities, counted and timed."""
        started = perf_counter()
        frame = self.typed(frame_or_codes) if isinstance(frame_or_codes, pd.DataFrame) else self.frame(frame_or_codes)
        ready = perf_counter()
        answer = self.model.predict_proba(frame)
        self.clock.glue += ready - started
        self.clock.model += perf_counter() - ready
        self.clock.calls += 1
        self.clock.rows += len(frame)
        return answer
