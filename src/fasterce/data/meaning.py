"""How the values of a column are written for people: numbers by a format, and units."""

import datetime
import re
import warnings
from collections.abc import Hashable

from fasterce.errors import SchemaError

# Separated thousands, decimals, and whole number, decimal number or per cent: what both Python and the page can write.
NUMBER_FORMAT = re.compile(r"(?P<group>,?)(?:\.(?P<places>\d{1,2}))?(?P<type>[df%]?)")
# The narrow no-break space between a number and its unit.
NARROW = "\u202f"


def check_number_format(given: str, column: Hashable) -> None:
    """Raise SchemaError for a format that is not known."""
    found = NUMBER_FORMAT.fullmatch(given)
    if found is None or (found["type"] == "d" and found["places"]):
        raise SchemaError("data.unknown_format", column=column, received=given)


def check_date_format(given: str, column: Hashable) -> None:
    """Raise SchemaError for a format that does not write a date so that it can be read again."""
    moment = datetime.datetime(2001, 12, 30)
    with warnings.catch_warnings():
        # Python 3.13 warns of formats without a year, which are refused here.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            same = datetime.datetime.strptime(moment.strftime(given), given).date() == moment.date()
        except ValueError:
            same = False
    if not same:
        raise SchemaError("data.unknown_date_format", column=column, received=given)


def parsed_date(text: str, format: str) -> datetime.datetime | str:
    """Return the date or time of a text, the text itself where it has another format."""
    try:
        return datetime.datetime.strptime(text.strip(), format)
    except ValueError:
        return text


def formatted(value: float, format: str, decimals: int) -> str:
    """Return a number by its format; without decimals in the format, at most `decimals` without trailing zeros."""
    found = NUMBER_FORMAT.fullmatch(format)
    assert found is not None
    group = found["group"] if format else ","
    percent = "%" if found["type"] == "%" else ""
    if percent:
        value, decimals = 100 * value, max(decimals - 2, 0)
    if found["places"]:
        written = f"{value:{group}.{found['places']}f}"
    else:
        written = f"{value:{group}.{0 if found['type'] == 'd' else decimals}f}"
        written = written.rstrip("0").rstrip(".") if "." in written else written
    written = "0" if written == "-0" else written
    return f"{written}{NARROW}%" if percent else written


def with_unit(written: str, unit: str) -> str:
    """Return a written number with its unit; of "month|months" the first word is for one.

    >>> with_unit("1", "month|months"), with_unit("24", "month|months"), with_unit("4,519", "DM")
    ('1 month', '24 months', '4,519 DM')
    """
    one, _, many = unit.partition("|")
    word = many if many and written != "1" else one
    return f"{written} {word}" if word else written
