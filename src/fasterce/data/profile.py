"""What the training data looks like, feature by feature: the only statistics the search knows."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasterce.schema import MISSING, Schema

LEVELS = 129

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """Arrays with one entry (or row) a feature, in the schema's order.

    Categorical features hold their codes' span in `low`/`high` and ones elsewhere, so that arrays stay rectangular.
    `bent_mean` and `bent_std` are taken after `bend`.
    `levels` are quantiles over people, `spread` over distinct values: together they reach into the bulk and the tail.
    `frequency` strings the category shares of all categorical features together, where a value may be missing with the
    share of those at the end. Numbers are measured where they are not missing.
    """

    low: Floats
    high: Floats
    median: Floats
    std: Floats
    mad: Floats
    bent_mean: Floats
    bent_std: Floats
    levels: Floats
    spread: Floats
    frequency: Floats

    @classmethod
    def measure(cls, codes: Floats, schema: Schema) -> "Profile":
        shares = [
            np.bincount(codes[:, j].astype(np.intp), minlength=f.states) / len(codes)
            for j, f in enumerate(schema.features)
            if not f.numeric
        ]
        measured = _measured(codes)
        for j, feature in enumerate(schema.features):
            there = codes[:, j] != MISSING
            if feature.numeric and feature.gappy and there.any():
                for name, values in _measured(codes[there, j : j + 1]).items():
                    measured[name][j] = values[0]
        return cls(**measured, frequency=np.concatenate(shares) if shares else np.zeros(0))

    @property
    def span(self) -> Floats:
        return positive(self.high - self.low)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _measured(codes: Floats) -> dict[str, Floats]:
    median = np.median(codes, axis=0)
    std = codes.std(axis=0)
    mad = np.median(np.abs(codes - median), axis=0)
    bent = bend(codes, median, positive(std))
    return {
        "low": codes.min(axis=0),
        "high": codes.max(axis=0),
        "median": median,
        "std": positive(std),
        "mad": positive(mad, std),
        "bent_mean": bent.mean(axis=0),
        "bent_std": positive(bent.std(axis=0)),
        "levels": np.quantile(codes, np.linspace(0, 1, LEVELS), axis=0, method="nearest").T.copy(),
        "spread": np.stack([_quantiles(np.unique(column)) for column in codes.T]),
    }


def bend(values: Floats, median: Floats, std: Floats) -> Floats:
    """An inverse hyperbolic sine around the median: straight in the middle, a logarithm in the tails."""
    return np.asarray(np.arcsinh((values - median) / std))


def _quantiles(values: Floats) -> Floats:
    return np.asarray(np.quantile(values, np.linspace(0, 1, LEVELS), method="nearest"))


def positive(values: Floats, otherwise: Floats | None = None) -> Floats:
    """Scales to divide by: a zero becomes the fallback, or one for a constant column."""
    filled = values if otherwise is None else np.where(values > 0, values, otherwise)
    return np.where(filled > 1e-12, filled, 1.0)
