"""Dates and times written as text: which format a column has."""

import json
import re
import warnings
from collections.abc import Iterator, Mapping

import pandas as pd

from fasterce.data.detect import FIRST_TEXTS, stripped_texts

# Year first, or day and month (or month and day) first; a time may follow.
YEAR_FIRST = re.compile(r"\d{4}([-/.])\d{1,2}[-/.]\d{1,2}([T ].*)?")
YEAR_LAST = re.compile(r"\d{1,2}([-/.])\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?")
TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S")
ISO = "ISO8601"


def date_format(column: pd.Series) -> str | None:
    """Return the format of a column whose every text is a date: `ISO8601`, or one of `strptime`; None if there is none.

    If the order of day and month is ambiguous, the day comes first, except between slashes.
    """
    stripped = stripped_texts(column)
    if stripped is None:
        return None
    first = stripped.head(FIRST_TEXTS)
    if not (first.str.fullmatch(YEAR_FIRST).all() or first.str.fullmatch(YEAR_LAST).all()):
        return None
    distinct = stripped.drop_duplicates()
    return next((one for one in _candidates(first.iloc[0]) if _reads(first, one) and _reads(distinct, one)), None)


def is_ambiguous(column: pd.Series, format: str) -> bool:
    """Return whether a column can be read with day and month exchanged as well."""
    if "%d" not in format or format.startswith("%Y"):
        return False
    other = format.replace("%d", "%x").replace("%m", "%d").replace("%x", "%m")
    return _reads(column.dropna().astype(str).str.strip().drop_duplicates(), other)


def read_dates(column: pd.Series, format: str) -> pd.Series:
    """Return texts of this format as dates or times; several offsets of time zones become UTC."""
    stripped = column.where(column.isna(), column.astype(str).str.strip())
    arguments = next((one for one in _arguments(format) if _converts(stripped, one)), {"format": format})
    return pd.Series(pd.to_datetime(stripped, **arguments))


def written_call(name: str, column: pd.Series, format: str) -> str:
    """Return the code that converts the column; `name` is a Python literal."""
    plain: list[dict[str, object]] = [{}] if format == ISO else []
    arguments = next((one for one in (*plain, *_arguments(format)) if _converts(column, one)), {"format": format})
    written = "".join(f", {key}={json.dumps(value) if isinstance(value, str) else value}" for key, value in arguments.items())
    return f"X[{name}] = pd.to_datetime(X[{name}]{written})"


def _arguments(format: str) -> list[dict[str, object]]:
    """Return the arguments of `pd.to_datetime` to try one after another."""
    usual: dict[str, object] = {"format": format}
    return [usual, usual | {"utc": True}] if format == ISO else [usual]


def _converts(texts: pd.Series, arguments: Mapping[str, object]) -> bool:
    try:
        with warnings.catch_warnings():
            # pandas before 3 warns about several time zones and returns objects.
            warnings.simplefilter("ignore", FutureWarning)
            found = pd.Series(pd.to_datetime(texts, **arguments))
    except (ValueError, OverflowError):
        return False
    return bool(pd.api.types.is_datetime64_any_dtype(found.dtype))


def _candidates(text: str) -> Iterator[str]:
    found = YEAR_FIRST.fullmatch(text)
    if found is not None and found.group(1) == "-":
        yield ISO
    if found is not None:
        days = ["%Y{0}%m{0}%d"]
    else:
        found = YEAR_LAST.fullmatch(text)
        if found is None:
            return
        year = "%Y" if len(found.group(2)) == 4 else "%y"
        days = [f"%d{{0}}%m{{0}}{year}", f"%m{{0}}%d{{0}}{year}"]
        days = days[::-1] if found.group(1) == "/" else days
    for day in days:
        for time in TIMES:
            yield day.format(found.group(1)) + time


def _reads(texts: pd.Series, format: str) -> bool:
    return any(_converts(texts, one) for one in _arguments(format))
