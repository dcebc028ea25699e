"""What the numbers of a numeric column represent: plain numbers, decimals, dates, times, durations or periods.

Inside the library every numeric value is a float. A date is counted in days and a time in seconds since 1970-01-01 (in UTC
where the column has a time zone), a duration in days or seconds, and a period (`pandas.Period`) in its own frequency. Times
of a column with a time zone are read, returned and written in that zone.
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
NAMES = (NUMBER, DECIMAL, DATE, DATETIME, DAYS, SECONDS, "datetime[ZONE]", "period[FREQUENCY]")
PERIOD = re.compile(r"period\[(.+)\]")
ZONED = re.compile(r"datetime\[(.+)\]")
# Such a text is ambiguous without a format: day and month may be exchanged.
AMBIGUOUS = re.compile(r"\s*\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b.*")
EPOCH = pd.Timestamp(0)
MICROSECONDS = {DATE: 86_400_000_000, DAYS: 86_400_000_000, DATETIME: 1_000_000, SECONDS: 1_000_000}


def is_known(name: object) -> bool:
    """Return whether a text names a value type; a period names its frequency, and a time may name its zone."""
    return isinstance(name, str) and (name in NAMES[:-2] or frequency(name) is not None or zone(name) is not None)


def is_datetime(name: str) -> bool:
    """Return whether values are times, with a time zone or without."""
    return name == DATETIME or ZONED.fullmatch(name) is not None


def zone(name: str) -> str | None:
    """Return the time zone of a type of times, None for any other type."""
    found = ZONED.fullmatch(name)
    if found is None:
        return None
    try:
        pd.DatetimeTZDtype("us", found.group(1))
    except (TypeError, ValueError, LookupError):
        return None
    return found.group(1)


def zoned(tz: datetime.tzinfo | str | None) -> str:
    """Return the value type of times in this zone; one that has no name of its own is written as its offset, or as UTC."""
    if tz is None:
        return DATETIME
    named = f"datetime[{tz}]"
    if zone(named) is not None:
        return named
    offset = tz.utcoffset(None) if isinstance(tz, datetime.tzinfo) else None
    fixed = "UTC" if offset is None else str(datetime.timezone(offset))
    return f"datetime[{fixed}]"


def _microseconds(name: str) -> int:
    """Return the microseconds of one unit of dates, times and durations."""
    return MICROSECONDS[DATETIME if is_datetime(name) else name]


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
        tz = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
        return DATE if tz is None and _whole(column, DATE) else zoned(tz)
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
        if not any(issubclass(kind, datetime.datetime) for kind in kinds):
            return DATE
        zones = {getattr(value, "tzinfo", None) for value in column.dropna()}
        return zoned(zones.pop() if len(zones) == 1 else None if None in zones else "UTC")
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
    is_date = name == DATE or is_datetime(name)
    if is_date and pd.api.types.is_datetime64_any_dtype(dtype) and not str(dtype).endswith("[pyarrow]"):
        counts = _naive(column, zone(name)).to_numpy("datetime64[us]").astype(np.int64)
        return _from_integers(counts, column.isna().to_numpy(), _microseconds(name))
    if name in (DAYS, SECONDS) and pd.api.types.is_timedelta64_dtype(dtype) and not str(dtype).endswith("[pyarrow]"):
        counts = column.to_numpy("timedelta64[us]").astype(np.int64)
        return _from_integers(counts, column.isna().to_numpy(), MICROSECONDS[name])
    return np.array([to_number(value, name) for value in column.astype(object)], dtype=np.float64)


def _naive(column: pd.Series, zone: str | None) -> pd.Series:
    """Return times in UTC without a zone; those without one are in `zone` if there is one."""
    if column.dt.tz is None and zone is None:
        return column
    if column.dt.tz is None:
        column = column.dt.tz_localize(zone, ambiguous=np.ones(len(column), dtype=bool), nonexistent="shift_forward")
    return column.dt.tz_convert("UTC").dt.tz_localize(None)


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


def _time_number(value: object, name: str) -> float:
    period = frequency(name)
    if period is not None:
        return float(pd.Period(value, period).ordinal)
    if name in (DAYS, SECONDS):
        return float(pd.Timedelta(value) / pd.Timedelta(MICROSECONDS[name], "us"))
    if isinstance(value, str) and AMBIGUOUS.fullmatch(value):
        return math.nan
    moment = pd.Timestamp(value.to_timestamp() if isinstance(value, pd.Period) else value)
    if moment.tz is None and zone(name) is not None:
        moment = moment.tz_localize(zone(name), ambiguous=True, nonexistent="shift_forward")
    moment = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
    return float((moment - EPOCH) / pd.Timedelta(_microseconds(name), "us"))


def to_value(number: float, name: str) -> Any:
    """Return the value a number stands for, as Python or pandas holds it."""
    if name == DECIMAL:
        return Decimal(repr(float(number)))
    period = frequency(name)
    if period is not None:
        return pd.Period(ordinal=round(number), freq=period)
    passed = pd.Timedelta(round(number * _microseconds(name)), "us")
    if name in (DAYS, SECONDS):
        return passed
    moment = datetime.datetime(1970, 1, 1) + passed.to_pytimedelta()
    own = zone(name)
    if own is not None:
        return pd.Timestamp(moment, tz="UTC").tz_convert(own).to_pydatetime()
    return moment.date() if name == DATE and moment.time() == datetime.time() else moment


def usual_dtype(name: str) -> Dtype:
    """Return the dtype pandas gives values of this type when it reads them from a file."""
    if name == DECIMAL:
        return np.dtype(object)
    if frequency(name) is not None:
        return pd.PeriodDtype(frequency(name))
    if zone(name) is not None:
        return pd.DatetimeTZDtype("us", zone(name))
    return np.dtype("datetime64[us]" if name in (DATE, DATETIME) else "timedelta64[us]")


def as_text(value: object) -> str:
    """Return a value as text; a duration of whole days without hours."""
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime.timedelta) else str(value)


def to_column(numbers: Floats, missing: Mask | None, dtype: Dtype, name: str, blank: float | None = math.nan) -> Column:
    """Return numbers as a column of this dtype; `blank` marks a missing value in a column of objects."""
    absent = np.zeros(len(numbers), dtype=bool) if missing is None else missing
    counted = name in MICROSECONDS or is_datetime(name)
    if counted and not (dtype == np.dtype(object) or str(dtype).endswith("[pyarrow]")):
        counts = np.where(absent, 0, np.round(np.where(absent, 0.0, numbers) * _microseconds(name))).astype(np.int64)
        return _as_times(counts, absent, dtype, name)
    values: Iterable[object] = (
        None if gone else to_value(number, name) for number, gone in zip(numbers, absent, strict=True)
    )
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
    tz = getattr(dtype, "tz", None)
    if tz is None:
        return moments.astype(dtype)
    return pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(tz).astype(dtype).array


def unit(name: str) -> str:
    """Return the unit in which numbers of this type are counted, empty for plain numbers."""
    period = frequency(name)
    if period is not None:
        return f"periods of {period}"
    return {DATE: "days", DAYS: "days", SECONDS: "seconds"}.get(name, "seconds" if is_datetime(name) else "")
