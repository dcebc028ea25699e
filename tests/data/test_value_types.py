"""Dates, durations, periods and decimals as numbers, and back."""

import datetime
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema
from fasterce.data import value_types
from fasterce.data.table import Table
from fasterce.errors import SchemaError

COLUMNS: dict[str, Any] = {
    "date": pd.to_datetime(["2020-02-29", "1969-12-31", None]),
    "datetime": pd.to_datetime(["2020-02-29 12:30:01", "1969-12-31 23:59:59.250000", None], format="ISO8601"),
    "zoned": pd.to_datetime(["2020-03-29 01:30", "2020-10-25 02:30", None]).tz_localize("Europe/Berlin", ambiguous=True),
    "python date": pd.Series([datetime.date(2020, 2, 29), datetime.date(1969, 12, 31), None], dtype=object),
    "days": pd.to_timedelta([3, -1, None], unit="D"),
    "seconds": pd.to_timedelta([1.5, -1, None], unit="s"),
    "month": pd.PeriodIndex(["2020-02", "1969-12", None], freq="M"),
    "decimal": pd.Series([Decimal("12.50"), Decimal("-0.1"), None], dtype=object),
    "arrow date": pd.array([datetime.date(2020, 2, 29), datetime.date(1969, 12, 31), None], dtype="date32[day][pyarrow]"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_comes_back_as_it_was(name: str) -> None:
    frame = pd.DataFrame({"x": COLUMNS[name]})
    table = Table.like(frame, Schema.infer(frame))
    reading = table.read(frame)
    assert not reading.problems
    back = table.frame(reading.codes)["x"]
    assert back.dtype == frame["x"].dtype
    assert [value for value in back if not pd.isna(value)] == [value for value in frame["x"] if not pd.isna(value)]
    assert back.isna().tolist() == [False, False, True]


def test_rows_may_write_a_date_as_text_but_not_as_a_number() -> None:
    frame = pd.DataFrame({"start": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    table = Table.like(frame, Schema.infer(frame))
    rows = pd.DataFrame(
        {"start": ["2020-05-01", datetime.date(2020, 5, 1), 5, "soon", np.datetime64("2020-05-01")]}, dtype=object
    )
    reading = table.read(rows)
    assert (reading.codes[[0, 1, 4], 0] == (datetime.date(2020, 5, 1) - datetime.date(1970, 1, 1)).days).all()
    assert reading.problems[2].text() == "Column 'start' must be a date; got '5' (row 2)."
    assert list(reading.problems) == [2, 3]


def test_times_to_the_nanosecond_are_kept_where_nothing_changes() -> None:
    moments = pd.to_datetime(["2020-01-01 00:00:00.123456789", "2020-01-02 00:00:01"], format="ISO8601")
    frame = pd.DataFrame({"t": moments, "x": [1.0, 2.0]})
    table = Table.like(frame, Schema.infer(frame))
    codes = table.read(frame).codes
    after = codes.copy()
    after[:, 1] += 1
    assert table.as_returned(frame, np.arange(len(frame)), codes, after)["t"].tolist() == frame["t"].tolist()
    assert table.rewrite(frame, codes, after)["t"].tolist() == frame["t"].tolist()


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "date"), (3, "datetime"), ("soon", "date"), (None, "decimal"), ("3 days", "date"), ("12", "decimal")],
)
def test_what_is_of_another_type_is_no_number(value: Any, name: str) -> None:
    assert math.isnan(value_types.to_number(value, name))


def test_an_unknown_type_is_refused() -> None:
    fields = {"name": "x", "kind": "numeric", "value_type": "moment", "lower": 0, "upper": 1}
    from fasterce.data.schema import Feature

    with pytest.raises(SchemaError, match="must have a value type, one of 'number', 'decimal', 'date'"):
        Feature.from_dict(fields)
    assert value_types.frequency("period[nonsense]") is None


ZONES: dict[str, Any] = {
    "numpy": pd.to_datetime(["2020-07-01 12:00", "2020-12-01 12:00"]).tz_localize("Europe/Berlin"),
    "arrow": pd.array(
        pd.to_datetime(["2020-07-01 12:00", "2020-12-01 12:00"]).tz_localize("Europe/Berlin"),
        dtype="timestamp[us, tz=Europe/Berlin][pyarrow]",
    ),
    "object": pd.Series(
        [datetime.datetime(2020, month, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")) for month in (7, 12)], dtype=object
    ),
}


@pytest.mark.parametrize("name", ZONES)
def test_times_are_read_returned_and_written_in_their_own_zone(name: str) -> None:
    frame = pd.DataFrame({"t": ZONES[name]})
    schema = Schema.infer(frame)
    feature = schema["t"]
    assert feature.value_type == "datetime[Europe/Berlin]"
    assert [feature.text(end) for end in (feature.lower, feature.upper)] == [
        "2020-07-01 12:00:00+02:00",
        "2020-12-01 12:00:00+01:00",
    ]
    assert feature.number("2020-07-01 12:00") == feature.lower  # without an offset, in the zone of the column
    assert feature.number("2020-07-01 10:00+00:00") == feature.lower
    table = Table.like(frame, schema)
    codes = table.read(frame).codes
    back = table.frame(codes)["t"]
    assert back.dtype == frame["t"].dtype
    assert [str(value) for value in back] == [str(value) for value in frame["t"]]
    assert str(table.value(0, codes[1, 0])) == "2020-12-01 12:00:00+01:00"
    assert Schema.from_dict(schema.to_dict()) == schema


def test_times_without_a_zone_are_in_that_of_the_column() -> None:
    frame = pd.DataFrame({"t": ZONES["numpy"]})
    table = Table.like(frame, Schema.infer(frame))
    naive = pd.DataFrame({"t": pd.to_datetime(["2020-07-01 12:00", "2020-12-01 12:00"])})
    assert (table.read(naive).codes == table.read(frame).codes).all()


@pytest.mark.parametrize(
    ("tz", "named"),
    [
        ("UTC", "datetime[UTC]"),
        (datetime.timezone(datetime.timedelta(hours=-5)), "datetime[UTC-05:00]"),
        (ZoneInfo("Asia/Tokyo"), "datetime[Asia/Tokyo]"),
        (None, "datetime"),
    ],
)
def test_a_zone_has_a_name_that_can_be_read_again(tz: Any, named: str) -> None:
    assert value_types.zoned(tz) == named
    assert value_types.is_known(named)
    assert not value_types.is_known("datetime[Nowhere/Land]")


def test_day_and_month_are_not_guessed() -> None:
    frame = pd.DataFrame({"start": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    schema = Schema.infer(frame)
    rows = pd.DataFrame({"start": ["03.02.2020", "2020-02-03"]})
    reading = Table.like(frame, schema).read(rows)
    assert "in the order year-month-day" in reading.problems[0].text()
    german = schema.declare({"start": {"format": "%d.%m.%Y"}})
    reading = Table.like(frame, german).read(rows)
    assert not reading.problems
    assert reading.codes[0, 0] == reading.codes[1, 0]
    assert german["start"].text(float(reading.codes[0, 0])) == "03.02.2020"
    with pytest.raises(SchemaError, match="must write a date with day, month and year"):
        schema.declare({"start": {"format": "%d.%m."}})
