"""People for tests, made of numbers drawn with a seed."""

import numpy as np
import pandas as pd


def people(rows: int = 500, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "pay": rng.normal(50, 15, rows).round(1),
            "debt": rng.gamma(2.0, 10.0, rows).round(1),
            "job": rng.choice(["clerk", "nurse", "smith"], rows),
            "own": rng.random(rows) < 0.5,
        },
        index=[f"p{k}" for k in range(rows)],
    )
