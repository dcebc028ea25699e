"""Who belongs to which group: a column of the table, a Series of one's own, numbers cut into bands."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.errors import InputError, unknown_name
from fasterce.explanation import Explanation

MISSING = "missing"


@dataclass(frozen=True)
class Groups:
    """One attribute: the groups' labels in order, and for every row explained the position of its group's label.

    `feature` is the attribute's position in the table, None where it is not in it.
    """

    name: Hashable
    labels: tuple[Any, ...]
    of_row: NDArray[np.intp]
    feature: int | None


def read_groups(explanation: Explanation, groups: Any, bands: int) -> list[Groups]:
    """`groups` as `recourse_gap` takes them: one attribute or several."""
    if isinstance(groups, pd.Series):
        return [_of_series(explanation, groups.name if groups.name is not None else "group", groups, bands)]
    if isinstance(groups, Mapping):
        read = [_of_series(explanation, name, series, bands) for name, series in groups.items()]
    elif isinstance(groups, list):
        read = [_of_column(explanation, name, bands) for name in dict.fromkeys(groups)]
    elif isinstance(groups, Hashable):
        read = [_of_column(explanation, groups, bands)]
    else:
        expected = "a column name, a list of them, a Series or a dict of Series"
        raise InputError(f"groups must be {expected}; got {type(groups).__name__}.")
    if not read:
        raise InputError("groups must name at least one column or Series; got none.")
    return read


def _of_column(explanation: Explanation, name: Hashable, bands: int) -> Groups:
    schema = explanation.table.schema
    if name not in schema.names:
        raise InputError(unknown_name("group column", name, schema.names))
    feature = schema[name]
    return _grouped(explanation, name, explanation.rows[name], bands if feature.numeric else None)


def _of_series(explanation: Explanation, name: Hashable, series: Any, bands: int) -> Groups:
    if not isinstance(series, pd.Series):
        raise InputError(f"Groups {name!r} must be a pandas Series; got {type(series).__name__}.")
    number = pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype)
    return _grouped(explanation, name, _aligned(explanation.rows.index, name, series), bands if number else None)


def _aligned(index: pd.Index, name: Hashable, series: pd.Series) -> pd.Series:
    """The Series in the order of the rows; it must have exactly their labels."""
    if len(series) != len(index):
        raise InputError(
            f"Groups {name!r} must have one value for each of the {len(index)} rows explained; "
            f"got {len(series)} (expected: series.loc[explanation.rows.index])."
        )
    if series.index.equals(index):
        return series
    if not series.index.is_unique or not index.is_unique:
        raise InputError(f"Groups {name!r} must have the index of the rows explained; got another one, with repeated labels.")
    strange = series.index.difference(index, sort=False)
    if len(strange):
        raise InputError(f"Groups {name!r} must have the index of the rows explained; got the label {strange[0]!r:.100}.")
    return series.reindex(index)


def _grouped(explanation: Explanation, name: Hashable, values: pd.Series, bands: int | None) -> Groups:
    if bands is not None:
        # Rows that could not be explained may hold anything; what is no number counts as missing.
        values = pd.to_numeric(values, errors="coerce")
    if bands is not None and values.nunique() > bands:
        of_row, labels = _bands(values.to_numpy(dtype=np.float64, na_value=np.nan), bands)
    else:
        of_row, labels = _kinds(name, values)
    if (of_row < 0).any():
        of_row = np.where(of_row < 0, len(labels), of_row)
        labels.append(MISSING if MISSING not in labels else f"{MISSING} (no value)")
    names = explanation.table.schema.names
    return Groups(name, tuple(labels), of_row.astype(np.intp), names.index(name) if name in names else None)


def _kinds(name: Hashable, values: pd.Series) -> tuple[NDArray[np.intp], list[Any]]:
    """Each value a group, in the order of its categories if it has any, else sorted; -1 where there is no value."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.cat.remove_unused_categories()
        return values.cat.codes.to_numpy(dtype=np.intp), list(values.cat.categories)
    try:
        codes, kinds = pd.factorize(values)
    except TypeError as error:
        raise InputError(f"Groups {name!r} must hold plain values such as text or numbers; got {error}.") from error
    order = _sorted(list(kinds))
    place = np.empty(len(order) + 1, dtype=np.intp)
    place[order], place[-1] = np.arange(len(order)), -1
    return place[codes], [kinds[k] for k in order]


def _sorted(kinds: list[Any]) -> list[int]:
    try:
        return sorted(range(len(kinds)), key=lambda k: kinds[k])
    except TypeError:
        return sorted(range(len(kinds)), key=lambda k: (type(kinds[k]).__name__, str(kinds[k])))


def _bands(values: NDArray[np.float64], bands: int) -> tuple[NDArray[np.intp], list[Any]]:
    """About as many rows in each band; equal values stay together, so there may be fewer bands than wanted."""
    known = ~np.isnan(values)
    cuts = np.unique(np.quantile(values[known], np.arange(1, bands) / bands, method="inverted_cdf"))
    top = values[known].max()
    below = cuts[cuts < top]
    # Where most people share the highest value, the others are a band of their own.
    cuts = below if len(below) else values[known & (values < top)].max(keepdims=True)
    raw = np.where(known, np.searchsorted(cuts, values, side="left"), -1)
    used = np.unique(raw[known])
    of_row = np.where(known, np.searchsorted(used, raw), -1).astype(np.intp)
    labels: list[Any] = [_ends(values[of_row == k]) for k in range(len(used))]
    return of_row, labels


def _ends(values: NDArray[np.float64]) -> str:
    low, high = values.min(), values.max()
    return f"{low:.6g}" if low == high else f"{low:.6g} – {high:.6g}"
