"""What every bundled dataset shares: the `Dataset` record and reading the Parquet file."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files

import pandas as pd

from fasterce.errors import MissingExtraError
from fasterce.schema import Schema

Ranges = dict[Hashable, tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table ready for use: features, labels, what may change, and the table as published."""

    name: str
    X: pd.DataFrame
    y: pd.Series
    schema: Schema
    description: str
    raw: pd.DataFrame
    wanted: str
    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows, columns = self.X.shape
        return f"Dataset({self.name!r}: {rows:,} rows, {columns} features, wanted {self.y.name} {self.wanted!r})"


def read_raw(name: str) -> pd.DataFrame:
    """The published table, with plain NumPy numbers and pandas' own text."""
    try:
        import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", "Reading the bundled datasets") from error
    source = files("fasterce.datasets").joinpath("data", f"{name}.parquet")
    with source.open("rb") as stream:
        return pd.read_parquet(stream, engine="pyarrow")
