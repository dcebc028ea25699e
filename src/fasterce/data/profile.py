"""Statistics of the training data per feature."""

from dataclasses import dataclass, fields

import numpy as np

from fasterce.data.schema import MISSING, Schema
from fasterce.typing import Floats

# Quantiles kept per feature: 128 equal steps.
LEVELS = 129


@dataclass(frozen=True)
class Profile:
    """Arrays with one entry (or row) per feature, in the schema's order; missing numbers are left out.

    Categorical features hold the span of their codes in `low` and `high` and ones elsewhere, so that arrays stay
    rectangular.

    Parameters
    ----------
    low, high, median, std, mad : array of shape (features,)
    bent_mean, bent_std : array of shape (features,)
        Mean and standard deviation after `bend`.
    levels : array of shape (features, 129)
        Quantiles over rows, for the bulk of the data.
    spread : array of shape (features, 129)
        Quantiles over distinct values, for the tails.
    frequency : array
        The shares of the categories of all categorical features, one feature after the other; a feature that may be
        missing has that share at its end.
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
        """Measure the codes (rows, features) of the training data."""
        shares = [
            np.bincount(codes[:, j].astype(np.intp), minlength=f.n_codes) / len(codes)
            for j, f in enumerate(schema.features)
            if not f.numeric
        ]
        measured = _measured(codes)
        for j in schema.nullable_numbers:
            present = codes[codes[:, j] != MISSING, j : j + 1]
            if len(present):
                put_column(measured, j, _measured(present))
        return cls(**measured, frequency=np.concatenate(shares) if shares else np.zeros(0))

    @property
    def span(self) -> Floats:
        """The range of each feature, 1 for a constant one."""
        return positive(self.high - self.low)

    def arrays(self) -> dict[str, Floats]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _measured(codes: Floats) -> dict[str, Floats]:
    median = np.median(codes, axis=0)
    mad = np.median(np.abs(codes - median), axis=0)
    levels = _quantiles(codes).T.copy()
    return summarise_values(codes, codes, None, median=median, std=codes.std(axis=0), mad=mad, levels=levels)


def summarise_values(
    points: Floats, known: Floats, weight: Floats | None, *, median: Floats, std: Floats, mad: Floats, levels: Floats
) -> dict[str, Floats]:
    """Return the numeric part of a profile: of points (N, features) with their weights, and of all values known."""
    bent = bend(points, median, positive(std))
    bent_mean = np.average(bent, axis=0, weights=weight)
    return {
        "low": known.min(axis=0),
        "high": known.max(axis=0),
        "median": median,
        "std": positive(std),
        "mad": positive(mad, std),
        "bent_mean": bent_mean,
        "bent_std": positive(np.sqrt(np.average((bent - bent_mean) ** 2, axis=0, weights=weight))),
        "levels": levels,
        "spread": np.stack([_quantiles(np.unique(column)) for column in known.T]),
    }


def put_column(summary: dict[str, Floats], j: int, of_column: dict[str, Floats]) -> None:
    """Replace one feature of a summary by a summary of that feature alone."""
    for name, values in of_column.items():
        summary[name][j] = values[0]


def bend(values: Floats, median: Floats, std: Floats) -> Floats:
    """Return the inverse hyperbolic sine around the median: linear in the middle, logarithmic in the tails."""
    return np.asarray(np.arcsinh((values - median) / std))


def _quantiles(values: Floats) -> Floats:
    return np.asarray(np.quantile(values, np.linspace(0, 1, LEVELS), axis=0, method="nearest"))


def positive(values: Floats, otherwise: Floats | None = None) -> Floats:
    """Return scales to divide by: a zero becomes the fallback, or 1 for a constant column."""
    filled = values if otherwise is None else np.where(values > 0, values, otherwise)
    return np.where(filled > 1e-12, filled, 1.0)
