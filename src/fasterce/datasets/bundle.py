"""The `Dataset` record and reading of the bundled Parquet files."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.resources import files

import pandas as pd

from fasterce.data.schema import Schema
from fasterce.errors import MissingExtraError

Ranges = dict[Hashable, tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A dataset ready for use.

    Parameters
    ----------
    name : str
    X : pandas.DataFrame
        The features.
    y : pandas.Series
        The labels.
    schema : Schema
        The columns and how they may change.
    description : str
        Source, licence, and what was done to the published table.
    raw : pandas.DataFrame
        The table as published.
    wanted : str
        The favourable label.
    codes : mapping
        The published codes of readable categories, by column.
    """

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
    """Return the published table, with NumPy numbers and the default text type of pandas."""
    try:
        import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError("pyarrow", "data", "Reading the bundled datasets") from error
    source = files("fasterce.datasets").joinpath("data", f"{name}.parquet")
    with source.open("rb") as stream:
        return pd.read_parquet(stream, engine="pyarrow")
