"""The problem a rival solves, in its own process: the model, training rows and rows to explain, the same for all rivals.

Times are processor times, which a busy machine hardly changes. Two parts are measured separately: time in the model, and time
of conversions (a rival's arrays to the typed tables the model was trained on, or sending them to the process that has the
model). Conversions are subtracted from the rival's time.
"""

import json
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any

import joblib
import numpy as np
import pandas as pd

from benchmarks.rivals.remote_model import RemoteModel

# Written by `venvs` into an environment that cannot read our model file: the path of the interpreter that can.
PROJECT_PYTHON = Path(sys.prefix) / ".project_python"


@dataclass
class Usage:
    """Model calls and rows, and seconds in the model and in conversions."""

    calls: int = 0
    rows: int = 0
    model_seconds: float = 0.0
    conversion_seconds: float = 0.0


@dataclass
class Problem:
    """`immutable` and `ranges` are the constraints, `count` is the number of counterfactuals wanted per row."""

    folder: Path
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self.spec = json.loads((self.folder / "spec.json").read_text())
        train = pd.read_parquet(self.folder / "train.parquet")
        self.y_train = train.pop("").to_numpy()
        self.X_train = train
        self.rows = pd.read_parquet(self.folder / "rows.parquet")
        self.columns = list(train.columns)
        self.numeric = [j for j, name in enumerate(self.columns) if name in self.spec["numeric"]]
        self.categorical = [j for j, name in enumerate(self.columns) if name in self.spec["categories"]]
        self.seed = self.spec["seed"]
        self.target = self.spec["target"]
        self.count = self.spec.get("count", 1)
        self.immutable = [self.columns.index(name) for name in self.spec.get("immutable", ())]
        self.ranges = {self.columns.index(name): tuple(pair) for name, pair in self.spec.get("ranges", {}).items()}
        python = PROJECT_PYTHON.read_text() if PROJECT_PYTHON.exists() else None
        self.remote = RemoteModel(self.folder, python, len(self.columns)) if python else None
        if self.remote is None:
            self._check_versions()
            self.model = joblib.load(self.folder / "model.joblib")

    def _check_versions(self) -> None:
        """Raise unless the libraries have the versions that wrote the model file."""
        for name, ours in self.spec["versions"].items():
            if version(name) != ours:
                raise RuntimeError(f"{name} is {version(name)} here, the black box was made with {ours}")

    @property
    def free(self) -> list[int]:
        """The columns that may change."""
        return [j for j in range(len(self.columns)) if j not in self.immutable]

    def limits(self, j: int) -> tuple[float, float, int]:
        """Return the lowest and highest permitted value and the decimals of a numeric column."""
        low, high, decimals = self.spec["numeric"][self.columns[j]]
        least, most = self.ranges.get(j, (low, high))
        return max(low, least), min(high, most), decimals

    def categories(self, j: int) -> list[Any]:
        return self.spec["categories"][self.columns[j]]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Return rows as an array: numbers as they are, a category as its position. For systems that work on arrays."""
        started = process_time()
        codes = np.empty(frame.shape)
        for j, name in enumerate(self.columns):
            column = frame[name]
            codes[:, j] = column if j in self.numeric else pd.Index(self.categories(j)).get_indexer(column)
        self.usage.conversion_seconds += process_time() - started
        return codes

    def frame(self, codes: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({name: self._column(j, codes[:, j]) for j, name in enumerate(self.columns)})

    def _column(self, j: int, codes: np.ndarray) -> Any:
        dtype = self.X_train.dtypes.iloc[j]
        if j not in self.numeric:
            return pd.array(self.categories(j), dtype=dtype).take(codes.astype(np.intp))
        return np.round(codes, self.spec["numeric"][self.columns[j]][2]).astype(dtype)

    def typed(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame[self.columns].astype(self.X_train.dtypes.to_dict())

    def predict_proba(self, rows: Any) -> np.ndarray:
        """Return the model's probabilities for a table or codes; calls, rows and time are recorded in `usage`."""
        started = process_time()
        probabilities, inside = self._predict_remote(rows) if self.remote else self._predict_here(rows)
        self.usage.model_seconds += inside
        self.usage.conversion_seconds += process_time() - started - inside
        self.usage.calls += 1
        self.usage.rows += len(probabilities)
        return probabilities

    def _predict_here(self, rows: Any) -> tuple[np.ndarray, float]:
        frame = self.typed(rows) if isinstance(rows, pd.DataFrame) else self.frame(rows)
        ready = process_time()
        return self.model.predict_proba(frame), process_time() - ready

    def _predict_remote(self, rows: Any) -> tuple[np.ndarray, float]:
        before = self.usage.conversion_seconds
        codes = self.codes(self.typed(rows)) if isinstance(rows, pd.DataFrame) else np.asarray(rows)
        self.usage.conversion_seconds = before
        return self.remote.predict_proba(codes)
