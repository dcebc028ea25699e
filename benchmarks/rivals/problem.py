"""What a rival is given, in its own process: the same model, training rows and refused rows, and a clock.

All times are processor time, which a busy machine does not stretch. Two parts are counted apart: time inside the model, and
time in our glue (turning a rival's arrays into the typed frames the model was trained on, or sending them to where the model
is). Glue is taken off the rival's time.
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

from benchmarks.rivals.far import Far

# Written by `venvs` into an environment whose own pins cannot read our model file: the interpreter that can.
KEEPER = Path(sys.prefix) / ".keeper"


@dataclass
class Clock:
    calls: int = 0
    rows: int = 0
    model: float = 0.0
    glue: float = 0.0


@dataclass
class Problem:
    """`immutable` and `ranges` are the constraints asked for, `count` how many counterfactuals a row."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

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
        self.wanted = self.spec["wanted"]
        self.count = self.spec.get("count", 1)
        self.immutable = [self.columns.index(name) for name in self.spec.get("immutable", ())]
        self.ranges = {self.columns.index(name): tuple(pair) for name, pair in self.spec.get("ranges", {}).items()}
        self.far = Far(self.folder, KEEPER.read_text(), len(self.columns)) if KEEPER.exists() else None
        if self.far is None:
            self._check_versions()
            self.model = joblib.load(self.folder / "model.joblib")

    def _check_versions(self) -> None:
        """The model file is read by the very versions that wrote it, or not at all."""
        for name, ours in self.spec["versions"].items():
            if version(name) != ours:
                raise RuntimeError(f"{name} is {version(name)} here, the black box was made with {ours}")

    @property
    def free(self) -> list[int]:
        """The columns that may change."""
        return [j for j in range(len(self.columns)) if j not in self.immutable]

    def limits(self, j: int) -> tuple[float, float, int]:
        """Lowest and highest value and decimals of a numeric column, within the range asked for."""
        low, high, decimals = self.spec["numeric"][self.columns[j]]
        least, most = self.ranges.get(j, (low, high))
        return max(low, least), min(high, most), decimals

    def categories(self, j: int) -> list[Any]:
        return self.spec["categories"][self.columns[j]]

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Numbers as they are, a category as its position: what systems that work on arrays are given."""
        started = process_time()
        codes = np.empty(frame.shape)
        for j, name in enumerate(self.columns):
            column = frame[name]
            codes[:, j] = column if j in self.numeric else pd.Index(self.categories(j)).get_indexer(column)
        self.clock.glue += process_time() - started
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

    def ask(self, frame_or_codes: Any) -> np.ndarray:
        """The model's probabilities, counted and timed."""
        started = process_time()
        answer, inside = self._ask_far(frame_or_codes) if self.far else self._ask_here(frame_or_codes)
        self.clock.model += inside
        self.clock.glue += process_time() - started - inside
        self.clock.calls += 1
        self.clock.rows += len(answer)
        return answer

    def _ask_here(self, given: Any) -> tuple[np.ndarray, float]:
        frame = self.typed(given) if isinstance(given, pd.DataFrame) else self.frame(given)
        ready = process_time()
        return self.model.predict_proba(frame), process_time() - ready

    def _ask_far(self, given: Any) -> tuple[np.ndarray, float]:
        glue = self.clock.glue
        codes = self.codes(self.typed(given)) if isinstance(given, pd.DataFrame) else np.asarray(given)
        self.clock.glue = glue
        return self.far.ask(codes)
