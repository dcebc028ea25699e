"""What the numbers of a numeric column stand for: plain numbers, decimals, dates, times, durations or periods.

Inside the library every numeric value is a float. A date is counted in days and a time in seconds since 1970-01-01 (in UTC
where the column has a time zone), a duration in days or seconds, and a period (`pandas.Period`) in its own frequency.
"""

import datetime
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from fasterce.data.dtypes import Column, Dtype
from fasterce.typing import Floats, Indices, Mask

NUMBER, DECIMAL, DATE, DATETIME = "number", "decimal", "date", "datetime"
DAYS, SECONDS = "timedelta[D]", "timedelta[s]"
NAMES = (NUMBER, DECIMAL, DATE, DATETIME, DAYS, SECONDS, "period[FREQUENCY]")
PERIOD = re.compile(r"period\[(.+)\]")
EPOCH = pd.Timestamp(0)
MICROSECONDS = {DATE: 86_400_000_000, DAYS: 86_400_000_000, DATETIME: 1_000_000, SECONDS: 1_000_000}
# Decimals of a second that a 64-bit float holds for the times of this century.
MOST_SECOND_PLACES = 6


def is_known(name: object) -> bool:
    """Return whether a text names a value type; a period names its frequency."""
    return isinstance(name, str) and (name in NAMES[:-1] or frequency(name) is not None)


def is_time(name: str) -> bool:
    """Return whether values are dates, times, durations or periods."""
    return name not in (NUMBER, DECIMAL)


def frequency(name: str) -> str | None:
    """Return the frequency of a period type, None for any other type."""
    found = PERIOD.fullmatch(name)
    if found is None:
        return None
    try:
        return str(pd.PeriodDtype(found.group(1)).name)[len("period[") : -1]
    except (TypeError, ValueError):
        return None


def detect(column: pd.Series) -> str | None:
    """Return the value type of a column that is not made of plain numbers, None for text, booleans and plain numbers."""
    dtype, types = column.dtype, pd.api.types
    if isinstance(dtype, pd.PeriodDtype):
        return str(dtype.name)
    if types.is_timedelta64_dtype(dtype) or str(dtype).startswith("duration["):
        return DAYS if _whole(column, DAYS) else SECONDS
    if types.is_datetime64_any_dtype(dtype) or str(dtype).startswith(("timestamp[", "date32", "date64")):
        zone = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
        return DATE if zone is None and _whole(column, DATE) else DATETIME
    if str(dtype).startswith("decimal"):
        return DECIMAL
    return _detect_objects(column) if dtype == np.dtype(object) else None


def _detect_objects(column: pd.Series) -> str | None:
    kinds = {type(value) for value in column.dropna()}
    if not kinds:
        return None
    if all(issubclass(kind, Decimal) for kind in kinds):
        return DECIMAL
    if all(issubclass(kind, datetime.date) for kind in kinds):
        dates_only = not any(issubclass(kind, datetime.datetime) for kind in kinds)
        return DATE if dates_only else DATETIME
    if all(issubclass(kind, datetime.timedelta) for kind in kinds):
        return DAYS if _whole(column, DAYS) else SECONDS
    return None


def _whole(column: pd.Series, name: str) -> bool:
    found = to_numbers(column, name)
    found = found[np.isfinite(found)]
    return bool((found == np.round(found)).all())


def to_numbers(column: pd.Series, name: str) -> Floats:
    """Return a column as numbers, NaN where a value is missing or of another type. ISO text is read as a date or time."""
    dtype = column.dtype
    if isinstance(dtype, pd.PeriodDtype) and dtype.name == name:
        return _from_integers(column.array.asi8, column.isna().to_numpy(), 1)
    if name in (DATE, DATETIME) and pd.api.types.is_datetime64_any_dtype(dtype) and not str(dtype).endswith("[pyarrow]"):
        naive = column if getattr(dtype, "tz", None) is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        return _from_integers(naive.to_numpy("datetime64[us]").astype(np.int64), column.isna().to_numpy(), MICROSECONDS[name])
    if name in (DAYS, SECONDS) and pd.api.types.is_timedelta64_dtype(dtype) and not str(dtype).endswith("[pyarrow]"):
        counts = column.to_numpy("timedelta64[us]").astype(np.int64)
        return _from_integers(counts, column.isna().to_numpy(), MICROSECONDS[name])
    return np.array([to_number(value, name) for value in column.astype(object)], dtype=np.float64)


def _from_integers(counts: Indices, missing: Mask, unit: int) -> Floats:
    return np.where(missing, np.nan, counts / unit)


def to_number(value: object, name: str) -> float:
    """Return one value as a number, NaN for a missing value or one of another type."""
    try:
        if value is None or value is pd.NA or value is pd.NaT or isinstance(value, bool):
            return math.nan
        if not is_time(name):
            return float(value) if isinstance(value, (Real, Decimal)) else math.nan
        if isinstance(value, Real) and not isinstance(value, (np.datetime64, np.timedelta64)):
            return math.nan
        return _time_number(value, name)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return math.nan


def _time_number(value: Any, name: str) -> float:
    period = frequency(name)
    if period is not None:
        return float(pd.Period(value, period).ordinal)
    if name in (DAYS, SECONDS):
        return float(pd.Timedelta(value) / pd.Timedelta(MICROSECONDS[name], "us"))
    moment = pd.Timestamp(value.to_timestamp() if isinstance(value, pd.Period) else value)
    moment = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
    return float((moment - EPOCH) / pd.Timedelta(MICROSECONDS[name], "us"))


def to_value(number: float, name: str) -> Any:
    """Return the value a number stands for, as Python or pandas holds it."""
    if name == DECIMAL:
        return Decimal(repr(float(number)))
    period = frequency(name)
    if period is not None:
        return pd.Period(ordinal=round(number), freq=period)
    passed = pd.Timedelta(round(number * MICROSECONDS[name]), "us")
    if name in (DAYS, SECONDS):
        return passed
    moment = datetime.datetime(1970, 1, 1) + passed.to_pytimedelta()
    return moment.date() if name == DATE and moment.time() == datetime.time() else moment


def usual_dtype(name: str) -> Dtype:
    """Return the dtype pandas gives values of this type when it reads them from a file."""
    if name == DECIMAL:
        return np.dtype(object)
    if frequency(name) is not None:
        return pd.PeriodDtype(frequency(name))
    return np.dtype("datetime64[us]" if name in (DATE, DATETIME) else "timedelta64[us]")


def as_text(value: object) -> str:
    """Return a value as text; a duration of whole days without hours."""
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime.timedelta) else str(value)


def to_column(numbers: Floats, missing: Mask | None, dtype: Dtype, name: str, blank: float | None = math.nan) -> Column:
    """Return numbers as a column of this dtype; `blank` marks a missing value in a column of objects."""
    absent = np.zeros(len(numbers), dtype=bool) if missing is None else missing
    if name in MICROSECONDS and not (dtype == np.dtype(object) or str(dtype).endswith("[pyarrow]")):
        counts = np.where(absent, 0, np.round(np.where(absent, 0.0, numbers) * MICROSECONDS[name])).astype(np.int64)
        return _as_times(counts, absent, dtype, name)
    values: Iterable[Any] = (None if gone else to_value(number, name) for number, gone in zip(numbers, absent, strict=True))
    listed = list(values)
    if dtype != np.dtype(object):
        return pd.array(listed, dtype=dtype)
    found = np.empty(len(listed), dtype=object)
    found[:] = [blank if value is None else value for value in listed]
    return found


def _as_times(counts: Indices, absent: Mask, dtype: Dtype, name: str) -> Column:
    if name in (DAYS, SECONDS):
        passed = counts.astype("timedelta64[us]")
        passed[absent] = np.timedelta64("NaT", "us")
        return passed.astype(dtype)
    moments = counts.astype("datetime64[us]")
    moments[absent] = np.datetime64("NaT", "us")
    zone = getattr(dtype, "tz", None)
    if zone is None:
        return moments.astype(dtype)
    return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone).astype(dtype).array


def unit(name: str) -> str:
    """Return the unit in which numbers of this type are counted, empty for plain numbers."""
    period = frequency(name)
    if period is not None:
        return f"periods of {period}"
    return {DATE: "days", DAYS: "days", DATETIME: "seconds", SECONDS: "seconds"}.get(name, "")
