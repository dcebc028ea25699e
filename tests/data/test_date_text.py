"""The format of dates that a table has as text."""

import pandas as pd
import pytest

from fasterce.data.date_text import date_format, is_ambiguous, read_dates, written_call

DAYS = pd.date_range("2020-02-01", periods=40)


@pytest.mark.parametrize(
    "format", ["%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%Y/%m/%d", "%Y.%m.%d %H:%M:%S"]
)
def test_the_format_is_found_and_the_line_works(format: str) -> None:
    X = pd.DataFrame({"day": DAYS.strftime(format)})
    assert date_format(X["day"]) == format
    assert not is_ambiguous(X["day"], format)
    exec(written_call("'day'", X["day"], format), {"X": X, "pd": pd})
    assert X["day"].tolist() == DAYS.tolist()


@pytest.mark.parametrize(
    "texts",
    [
        ["2020-02-01", "2020-02-13"],
        ["2020-02-01T10:00:00", "2020-02-13 11:00"],
        ["2020-02-01 10:00+01:00", "2020-07-13 11:00+02:00"],
        [" 2020-02-01", None],
    ],
)
def test_iso_text_is_read_by_the_line(texts: list[str]) -> None:
    X = pd.DataFrame({"day": texts})
    assert date_format(X["day"]) == "ISO8601"
    read = read_dates(X["day"], "ISO8601")
    exec(written_call("'day'", X["day"], "ISO8601"), {"X": X, "pd": pd})
    assert pd.api.types.is_datetime64_any_dtype(X["day"].dtype)
    assert X["day"].dropna().tolist() == read.dropna().tolist()


def test_dates_that_could_be_read_either_way_are_reported() -> None:
    X = pd.Series(["01.02.2020", "03.04.2020"])
    assert date_format(X) == "%d.%m.%Y"
    assert is_ambiguous(X, "%d.%m.%Y")
    slashes = X.str.replace(".", "/")
    assert date_format(slashes) == "%m/%d/%Y"
    assert is_ambiguous(slashes, "%m/%d/%Y")


@pytest.mark.parametrize("texts", [["31.02.2020"], ["13.13.2020"], ["1.2"], ["12"], ["soon"], ["01.02.2020", "x"], [None]])
def test_other_text_has_no_format(texts: list[str]) -> None:
    assert date_format(pd.Series(texts, dtype=object)) is None
