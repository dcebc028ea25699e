"""A system that fails in many ways, by `variant`; the runner has to record each failure."""

import os
import time
from typing import Any

import numpy as np
import pandas as pd

WANTED_ROW = 1
SECONDS_OF_A_HANG = 600
SECONDS_OF_A_SLOW_ROW = 0.06


class Rival:
    def __init__(self, problem: Any, variant: str) -> None:
        self.problem, self.variant = problem, variant
        accepted = problem.predict_proba(problem.X_train).argmax(axis=1) == problem.target
        self.accepted = problem.X_train[accepted].iloc[:1]
        if variant == "fails at set-up":
            raise ValueError("no such model")

    def explain(self, row: pd.DataFrame) -> Any:
        position = row.index[0]
        if self.variant == "hangs" and position == WANTED_ROW:
            time.sleep(SECONDS_OF_A_HANG)
        if self.variant == "slow":
            started = time.process_time()
            while time.process_time() < started + SECONDS_OF_A_SLOW_ROW:
                pass
        if self.variant == "hangs always":
            time.sleep(SECONDS_OF_A_HANG)
        if self.variant == "dies" and position == WANTED_ROW:
            os._exit(3)
        if self.variant == "raises" and position == WANTED_ROW:
            raise RuntimeError("lost my way")
        return None if self.variant == "none" else row

    def explain_batch(self, rows: pd.DataFrame) -> Any:
        if self.variant == "no batch":
            raise RuntimeError("one at a time, please")
        return rows

    def table(self, row: pd.DataFrame) -> Any:  # noqa: PLR0911 - one line per failure
        good = self.accepted.set_axis(row.index)
        number, category = self.problem.columns[self.problem.numeric[0]], self.problem.columns[self.problem.categorical[0]]
        match self.variant:
            case "input":
                return row
            case "unknown category":
                return good.assign(**{category: "no such category"})
            case "out of range":
                return good.assign(**{number: good[number] + 10**6})
            case "missing values":
                return good.astype(object).assign(**{number: np.nan})
            case "columns":
                return good.drop(columns=number)
            case "garbage":
                return "a poem"
            case "empty":
                return good.iloc[:0]
            case "frozen":
                return good
        print("chatter on the standard output")
        return good
