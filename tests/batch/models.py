"""Models that workers load by their import path; what they do to a row is a function of the row."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CLASSES = np.array(["granted", "refused"])
TRAP = "FASTERCE_TEST_TRAP"


class Grants:
    """Pay less debt, with a little for nurses, as a chance."""

    classes_ = CLASSES

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        points = frame["pay"].to_numpy(dtype=float) - 0.8 * frame["debt"].to_numpy(dtype=float)
        points = points + 5 * (frame["job"] == "nurse").to_numpy(dtype=bool) - 32
        chance = 1 / (1 + np.exp(-points / 10))
        return np.stack([chance, 1 - chance], axis=1)

    def predict(self, frame: pd.DataFrame) -> Any:
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]


class Trapped(Grants):
    """The same, but once somebody of the age 99 is asked about, `spring` is called."""

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        if (frame["age"] == 99).any() and os.environ.get(TRAP):
            self.spring(Path(os.environ[TRAP]))
        return super().predict_proba(frame)

    def spring(self, trap: Path) -> None:
        raise RuntimeError("out of order")


class Killing(Trapped):
    """Ends its process, once: the trap is a file that is there only before."""

    def spring(self, trap: Path) -> None:
        if trap.exists():
            trap.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


class KillingAlways(Trapped):
    def spring(self, trap: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Grants):
    def predict_proba(self, frame: pd.DataFrame) -> Any:
        time.sleep(0.05)
        return super().predict_proba(frame)


class SlowKilling(Slow, Killing):
    """Takes its time, and ends its process once."""


class Fussy(Grants):
    """Raises about any question with somebody of the age 98 in it."""

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        if (frame["age"] == 98).any():
            raise ValueError("nobody is 98")
        return super().predict_proba(frame)


grants, trapped, killing, killing_always = Grants(), Trapped(), Killing(), KillingAlways()
slow, slow_killing, fussy = Slow(), SlowKilling(), Fussy()
