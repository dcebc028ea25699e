"""A model that hangs on demand: it decides by amount and duration of a credit, and one pair of values blocks it."""

from time import sleep

import numpy as np
import pandas as pd

HANGS_AT = {"credit_amount": 6_666.0, "duration": 60.0}


class Amounts:
    classes_ = np.array(["bad", "good"])

    def predict_proba(self, rows: pd.DataFrame) -> np.ndarray:
        amount, duration = (rows[name].to_numpy(dtype=float) for name in HANGS_AT)
        while ((amount == HANGS_AT["credit_amount"]) & (duration == HANGS_AT["duration"])).any():
            sleep(1)
        score = 3.0 - amount / 1500 - duration / 24
        good = 1 / (1 + np.exp(-score))
        return np.stack([1 - good, good], axis=1)

    def predict(self, rows: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.classes_[self.predict_proba(rows).argmax(axis=1)])


hangs = Amounts()
