"""Assign rows to groups: by a column of the table, by a Series, or by bands of a number."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from fasterce.data.dtypes import sorted_values
from fasterce.errors import InputError, unknown
from fasterce.explanation import Explanation
from fasterce.typing import Floats, Indices

MISSING = "missing"

GroupsLike: TypeAlias = Hashable | list[Hashable] | pd.Series | Mapping[Hashable, pd.Series]
"""Groups as `recourse_gap` takes them: a column, a list of columns, a Series, or Series by name."""


@dataclass(frozen=True)
class Groups:
    """One attribute that splits rows into groups.

    Parameters
    ----------
    name : hashable
        The attribute.
    labels : tuple
        The labels of its groups, in order.
    of_row : ndarray of shape (rows,)
        The position in `labels` of each row's group.
    feature : int or None
        The position of the attribute in the table, None where it is not a column.
    """

    name: Hashable
    labels: tuple[Hashable, ...]
    of_row: Indices
    feature: int | None


def read_groups(explanation: Explanation, groups: GroupsLike, bands: int) -> list[Groups]:
    """Return the groups of every attribute; numbers of more than `bands` values are cut into bands."""
    if isinstance(groups, pd.Series):
        return [_of_series(explanation, groups.name if groups.name is not None else "group", groups, bands)]
    if isinstance(groups, Mapping):
        found = [_of_series(explanation, name, series, bands) for name, series in groups.items()]
    elif isinstance(groups, list):
        found = [_of_column(explanation, name, bands) for name in dict.fromkeys(groups)]
    elif isinstance(groups, Hashable):
        found = [_of_column(explanation, groups, bands)]
    else:
        raise InputError("fairness.not_groups", option="groups", received=type(groups).__name__)
    if not found:
        raise InputError("fairness.no_columns", option="groups")
    return found


def _of_column(explanation: Explanation, name: Hashable, bands: int) -> Groups:
    schema = explanation.table.schema
    if name not in schema.names:
        raise InputError(unknown("fairness.unknown_group", name, schema.names, option="groups"))
    return _grouped(explanation, name, explanation.rows[name], bands if schema[name].numeric else None)


def _of_series(explanation: Explanation, name: Hashable, series: pd.Series, bands: int) -> Groups:
    if not isinstance(series, pd.Series):
        raise InputError("fairness.not_a_series", column=name, received=type(series).__name__)
    number = pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype)
    return _grouped(explanation, name, _aligned(explanation.rows.index, name, series), bands if number else None)


def _aligned(index: pd.Index, name: Hashable, series: pd.Series) -> pd.Series:
    """Return the Series in the order of the rows; it must have exactly their labels."""
    if len(series) != len(index):
        raise InputError("fairness.group_count", column=name, expected=len(index), received=len(series))
    if series.index.equals(index):
        return series
    if not series.index.is_unique or not index.is_unique:
        raise InputError("fairness.repeated_labels", column=name)
    strange = series.index.difference(index, sort=False)
    if len(strange):
        raise InputError("fairness.other_index", column=name, received=strange[0])
    return series.reindex(index)


def _grouped(explanation: Explanation, name: Hashable, values: pd.Series, bands: int | None) -> Groups:
    if bands is not None:
        # Rows with invalid input may hold anything; what is not a number counts as missing.
        values = pd.to_numeric(values, errors="coerce")
    if bands is not None and values.nunique() > bands:
        of_row, labels = _bands(values.to_numpy(dtype=np.float64, na_value=np.nan), bands)
    else:
        of_row, labels = _categories(name, values)
    if (of_row < 0).any():
        of_row = np.where(of_row < 0, len(labels), of_row)
        labels.append(MISSING if MISSING not in labels else f"{MISSING} (no value)")
    names = explanation.table.schema.names
    return Groups(name, tuple(labels), of_row.astype(np.intp), names.index(name) if name in names else None)


def _categories(name: Hashable, values: pd.Series) -> tuple[Indices, list[Hashable]]:
    """Return the position of each row's value, -1 if it is missing, and the values: by category order, else sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.cat.remove_unused_categories()
        return values.cat.codes.to_numpy(dtype=np.intp), list(values.cat.categories)
    try:
        codes, found = pd.factorize(values)
    except TypeError as error:
        raise InputError("fairness.not_plain_values", column=name, received=str(error)) from error
    labels = sorted_values(found)
    position = {label: k for k, label in enumerate(labels)}
    place = np.array([*(position[label] for label in found), -1], dtype=np.intp)
    return place[codes], labels


def _bands(values: Floats, bands: int) -> tuple[Indices, list[Hashable]]:
    """Cut numbers into bands of about as many rows each; equal values stay together, so there may be fewer bands."""
    known = ~np.isnan(values)
    cuts = np.unique(np.quantile(values[known], np.arange(1, bands) / bands, method="inverted_cdf"))
    top = values[known].max()
    below = cuts[cuts < top]
    # Where most rows share the highest value, the others are one band.
    cuts = below if len(below) else values[known & (values < top)].max(keepdims=True)
    raw = np.where(known, np.searchsorted(cuts, values, side="left"), -1)
    used = np.unique(raw[known])
    of_row = np.where(known, np.searchsorted(used, raw), -1).astype(np.intp)
    ends = [(values[of_row == k].min(), values[of_row == k].max()) for k in range(len(used))]
    return of_row, [f"{low:.6g}" if low == high else f"{low:.6g} – {high:.6g}" for low, high in ends]
