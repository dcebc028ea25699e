"""Three bundled datasets; nothing is downloaded.

`data/` has one Parquet file per dataset, the table as published, and one TOML file: target, description, and how the columns
may change.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING

import pandas as pd

from fasterce.constraints.io import from_dict
from fasterce.data.schema import Schema, infer
from fasterce.errors import InputError, import_extra, unknown
from fasterce.typing import JsonObject

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["Dataset", "load", "names"]

_NAMES = ("adult", "german_credit", "lending_club")
_ALIASES = {"german": "german_credit", "lending": "lending_club"}
_RISKS = {1: "good", 2: "bad"}
_GOOD_STATUSES = ["Current", "Fully Paid"]
_TIME_SINCE = ["months_since_last_delinq", "months_since_90d_late", "months_since_last_credit_inquiry"]
_HOW_COLUMNS_CHANGE = ("categorical", "immutable", "increasing", "decreasing")


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


def names() -> tuple[str, ...]:
    """Return the names of the bundled datasets.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> names()
    ('adult', 'german_credit', 'lending_club')
    """
    return _NAMES


def load(name: str, *, codes: bool = False) -> Dataset:
    """Load a bundled dataset.

    Parameters
    ----------
    name : str
        "adult", "german_credit" or "lending_club"; "german" and "lending" are short for these.
    codes : bool, default=False
        Whether German Credit keeps its published codes ('A11') instead of readable categories.

    Returns
    -------
    Dataset

    Raises
    ------
    InputError
        If the name is unknown, or another dataset than German Credit is loaded with `codes`.
    """
    canonical = _ALIASES.get(name, name)
    if canonical not in _NAMES:
        raise InputError(unknown("data.unknown_dataset", name, [*_NAMES, *_ALIASES], option="name"))
    if codes and canonical != "german_credit":
        raise InputError("data.dataset_without_codes", option="codes", received=name)
    about = tomllib.loads(_file(f"{canonical}.toml").read_text(encoding="utf-8"))
    raw = _read_raw(canonical)
    X, y = raw.drop(columns=[about["target"], *about.get("left_out", ())]), raw[about["target"]].copy()
    if canonical == "adult":
        X = _name_the_unknown(X)
    elif canonical == "german_credit":
        X, y = X if codes else _with_readable_categories(X, about["codes"]), y.map(_RISKS)
    else:
        X, y = _whole_numbers_as_int(_fill_missing(X)), y.isin(_GOOD_STATUSES).map({True: "good", False: "bad"})
    schema = _schema(X, about, readable=not codes)
    return Dataset(canonical, X, y, schema, about["description"], raw, about["wanted"], about.get("codes", {}))


def _schema(X: pd.DataFrame, about: JsonObject, readable: bool) -> Schema:
    """Return the schema; an order of categories is declared for readable ones."""
    changes = {name: about[name] for name in _HOW_COLUMNS_CHANGE if name in about}
    columns = {name: dict(entries) for name, entries in about["columns"].items() if name in X}
    for entries in columns.values():
        if not readable and "categories" in entries:
            for entry in ("categories", "ordered", "preferred"):
                del entries[entry]
    constraints = from_dict(about.get("constraints", ()))
    schema = infer(X, changes, about.get("ranges"), constraints)
    return schema.declare(columns, target=about["wanted"], unwanted=about["unwanted"], outcomes=about["outcomes"])


def _file(name: str) -> "Traversable":
    return files("fasterce.datasets").joinpath("data", name)


def _read_raw(name: str) -> pd.DataFrame:
    """Return the published table, with NumPy numbers and the default text type of pandas."""
    import_extra("pyarrow", "data", "Reading the bundled datasets")
    with _file(f"{name}.parquet").open("rb") as stream:
        return pd.read_parquet(stream, engine="pyarrow")


def _name_the_unknown(X: pd.DataFrame) -> pd.DataFrame:
    text = X.select_dtypes(exclude="number").columns
    return X.assign(**{column: X[column].replace("?", "Unknown") for column in text})


def _with_readable_categories(X: pd.DataFrame, codes: JsonObject) -> pd.DataFrame:
    readable = {column: {code: category for category, code in mapping.items()} for column, mapping in codes.items()}
    return X.assign(**{column: X[column].map(mapping) for column, mapping in readable.items()})


def _fill_missing(X: pd.DataFrame) -> pd.DataFrame:
    individual = X["application_type"] == "individual"
    debt_to_income = X["debt_to_income"].fillna(X["debt_to_income_joint"])
    verification = X["verification_income_joint"].mask(individual, "Not joint").fillna("Unknown")
    return X.assign(
        **{column: X[column].fillna(X[column].max()) for column in _TIME_SINCE},
        debt_to_income=debt_to_income,
        annual_income_joint=X["annual_income_joint"].fillna(X["annual_income"]),
        debt_to_income_joint=X["debt_to_income_joint"].fillna(debt_to_income),
        verification_income_joint=verification,
        emp_length=X["emp_length"].fillna(0),
        num_accounts_120d_past_due=X["num_accounts_120d_past_due"].fillna(0),
    )


def _whole_numbers_as_int(X: pd.DataFrame) -> pd.DataFrame:
    whole = [column for column in X.select_dtypes("float64") if (X[column] % 1 == 0).all()]
    return X.astype(dict.fromkeys(whole, "int64"))
