"""Convert the cells of a file to a frame in the types the explainer was fitted with.

A cell that cannot be read stays in its row as an `UnreadCell`, for which `Table.read` reports a problem of that row alone.
"""

import re
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from fasterce.data.dtypes import EXACT, Dtype, as_single, exact_limits, is_integer, is_single
from fasterce.data.number_text import KNOWN, NumberText
from fasterce.data.schema import MISSING, Feature
from fasterce.data.table import Table
from fasterce.data.value_types import to_numbers
from fasterce.errors import InputError, Problem, make_problem
from fasterce.io.delimited import CsvFormat
from fasterce.typing import Floats, Mask, Objects

NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
NO_VALUE = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
BOOLEANS = {"true": True, "false": False}
LONGEST_CELL = 60
PLAIN = CsvFormat()
# Characters; a longer integer is read as a float, since no category is as long.
LONGEST_WHOLE = 400

CellValue = str | bool | int | float | None


class UnreadCell(str):
    """A cell as it is in the file, with a problem that says what may be wrong with it."""

    problem: Problem | None

    def __new__(cls, text: str, problem: Problem | None = None) -> "UnreadCell":
        made = super().__new__(cls, text)
        made.problem = problem
        return made

    def __repr__(self) -> str:
        shown = repr(str(self))
        if self.problem is None:
            return shown
        return f"{shown[:LONGEST_CELL]}{'…' if len(shown) > LONGEST_CELL else ''} ({self.problem.text().rstrip('.')})"


class MalformedLine(UnreadCell):
    """Takes the place of the first cell of a line that does not have as many cells as the header."""

    def __repr__(self) -> str:
        return str(self.problem).rstrip(".")


def to_frame(
    table: Table,
    columns: Sequence[pa.Array],
    malformed: Mapping[int, Problem] | None = None,
    passed: Mapping[Hashable, pa.Array] | None = None,
    csv: CsvFormat = PLAIN,
) -> pd.DataFrame:
    """Return a frame like those of `fit`.

    Parameters
    ----------
    table : Table
        The features and their types.
    columns : sequence of Arrow arrays
        One per feature; a column with cells that do not fit becomes one of objects.
    malformed : mapping, optional
        The problems of lines that could not be split into cells, by position.
    passed : mapping, optional
        Passthrough columns that the file has.
    csv : CsvFormat, optional
        How numbers are written.
    """
    rows = len(columns[0])
    if malformed:
        # The columns of their cells are unknown.
        bad = pa.array(np.isin(np.arange(rows), list(malformed)))
        columns = [pc.if_else(bad, pa.scalar(None, array.type), array) for array in columns]
    codes = np.zeros((rows, len(table.schema)))
    exceptions: dict[int, Objects] = {}
    for j, (feature, array) in enumerate(zip(table.schema.features, columns, strict=True)):
        plain = array.cast(pa.string()) if pa.types.is_null(array.type) else decoded(array)
        codes[:, j], given = _read_column(feature, table.dtypes[j], plain, csv)
        if given is not None:
            exceptions[j] = given
    if malformed:
        typed = pd.Series(table.column(0, codes[:, 0]), dtype=object).to_numpy(dtype=object, copy=True)
        exceptions[0] = exceptions.get(0, typed)
        for row, problem in malformed.items():
            exceptions[0][row] = MalformedLine("", problem)
    frame = table.frame(codes)
    for one in table.passthrough:
        if one.name in (passed or {}):
            frame[one.name] = _passed((passed or {})[one.name], one.dtype, csv)
    for j, given in exceptions.items():
        frame[table.schema.names[j]] = pd.Series(given, dtype=object)
    return frame


def _passed(array: pa.Array, dtype: Dtype, csv: CsvFormat) -> pd.Series:
    """Return a passthrough column in its dtype, missing values where a cell does not fit."""
    if not is_text(array.type):
        values = pd.Series(array.to_pandas())
    elif pd.api.types.is_bool_dtype(dtype) or not pd.api.types.is_numeric_dtype(dtype):
        values = pd.Series(pc.if_else(pa.array(is_missing(array)), pa.scalar(None, pa.string()), array).to_pandas())
    else:
        exact = [_exact(text) for text in csv.numbers(array).to_pylist()]
        whole = is_integer(dtype) and not any(value is None for value in exact)
        values = pd.Series(exact, dtype=dtype if whole else np.float64)
    if pd.api.types.is_datetime64_any_dtype(dtype):
        values = pd.to_datetime(values, errors="coerce", utc=getattr(dtype, "tz", None) is not None)
    try:
        return values.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return values


def _exact(text: str | None) -> float | None:
    try:
        return int(text or "")
    except ValueError:
        return float(text) if text and re.fullmatch(NUMBER, text) else None


def _read_column(feature: Feature, dtype: Dtype, array: pa.Array, csv: CsvFormat) -> tuple[Floats, Objects | None]:
    if not feature.numeric:
        return _read_categories(feature, dtype, array)
    if feature.is_time:
        return _read_times(feature, array)
    return _read_numbers(feature, dtype, csv.numbers(as_text(array)) if is_text(array.type) else array)


def _read_times(feature: Feature, array: pa.Array) -> tuple[Floats, Objects | None]:
    """Read dates, times, durations or periods: ISO text, or values of an Arrow type."""
    if is_text(array.type):
        encoded = as_text(array).dictionary_encode()
        known = np.array([feature.number(text.strip()) for text in encoded.dictionary.to_pylist()] + [np.nan])
        values, missing = known[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], is_missing(as_text(array))
    else:
        values = to_numbers(pd.Series(array.to_pandas()), feature.value_type)
        missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False))
    good = np.isfinite(values) & ~missing
    if (good | (missing & feature.nullable)).all():
        return np.where(missing, feature.missing_code, values), None
    given = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        given[row] = feature.value(float(value)) if good[row] else None
        if not good[row] and not missing[row]:
            given[row] = UnreadCell(str(array[row].as_py()))
    return np.zeros(len(values)), given


def numbers_of(array: pa.Array) -> tuple[Floats, Mask]:
    """Return values as correctly rounded floats, and which of them are numbers; text is read cell by cell."""
    if is_text(array.type):
        texts = as_text(array)
        good = pc.fill_null(pc.match_substring_regex(texts, NUMBER), False).to_numpy(zero_copy_only=False)
        values = np.full(len(texts), np.nan)
        values[good] = np.fromiter(map(float, texts.filter(pa.array(good)).to_pylist()), np.float64, int(good.sum()))
        return values, good
    if pa.types.is_decimal(array.type):
        # Arrow's own cast is not correctly rounded.
        values = np.array([np.nan if value is None else float(value) for value in array.to_pylist()], dtype=np.float64)
        return values, ~np.isnan(values)
    is_number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    numbers = array if is_number else array.cast(pa.float64())
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    return values, ~np.isnan(values)


def is_missing(texts: pa.Array) -> Mask:
    """Find cells without a value: null, blank, or a word such as NA."""
    bare = pc.utf8_trim_whitespace(texts)
    missing = pc.or_(pc.fill_null(pc.equal(bare, ""), True), pc.is_in(bare, value_set=pa.array(NO_VALUE)))
    return np.asarray(missing.to_numpy(zero_copy_only=False))


def as_text(array: pa.Array) -> pa.Array:
    """Return any Arrow text as plain strings."""
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def decoded(array: pa.Array) -> pa.Array:
    """Return a dictionary array as its values."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def column(table: pa.Table, place: int) -> pa.Array:
    """Return one column in one piece, with dictionaries decoded."""
    pieces = [decoded(piece) for piece in table.column(place).chunks]
    return pa.concat_arrays(pieces) if pieces else pa.array([], type=plain_type(table.schema.field(place).type))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def kind_of(type: pa.DataType) -> str:
    """Return what values of a type are: "text", "number", "boolean", "null", "date", else "other"."""
    inner = plain_type(type)
    kinds = {
        "text": is_text(inner),
        "number": pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner),
        "boolean": pa.types.is_boolean(inner),
        "null": pa.types.is_null(inner),
        "date": pa.types.is_temporal(inner),
    }
    return next((name for name, holds in kinds.items() if holds), "other")


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def check_types(features: Sequence[Feature], fields: pa.Schema, places: Sequence[int], source: str) -> None:
    """Raise for a column of nested values, or of dates where the feature is not a date."""
    for feature, place in zip(features, places, strict=True):
        type = fields.field(place).type
        kind = kind_of(type)
        if kind == "other" or (kind == "date" and not feature.is_time):
            code = "io.date_column" if kind == "date" else "io.column_type"
            raise InputError(code, column=feature.name, source=source, type=str(type))


def _read_numbers(feature: Feature, dtype: Dtype, array: pa.Array) -> tuple[Floats, Objects | None]:
    values, good = numbers_of(array)
    missing = is_missing(as_text(array)) if is_text(array.type) else ~good
    if is_single(dtype):
        values = as_single(values)
    fits = _fits(values, dtype, array) & good & (values != MISSING)
    if (fits | (missing & feature.nullable)).all():
        return np.where(missing, feature.missing_code, values), None
    given = values.astype(object)
    if is_integer(dtype):
        given[fits] = values[fits].astype(np.int64).astype(object)
    given[missing] = None
    for row in np.flatnonzero(~fits & ~missing):
        given[row] = _unread_number(array[int(row)].as_py(), bool(good[row]), values[row])
    return np.zeros(len(values)), given


def _fits(values: Floats, dtype: Dtype, given: pa.Array) -> Mask:
    """Find the numbers that are finite and, for a column of whole numbers, whole and held exactly."""
    finite = np.isfinite(values)
    if not is_integer(dtype):
        return finite
    low, high = exact_limits(dtype)
    fits = finite & (values == np.round(values)) & (values >= low) & (values <= high)
    for row in np.flatnonzero(fits & (np.abs(values) == EXACT)):
        fits[row] = re.fullmatch(f"[+-]?{EXACT}", str(given[int(row)].as_py()).strip()) is not None
    return np.asarray(fits)


def _unread_number(given: CellValue, is_number: bool, value: float) -> UnreadCell | float:
    """Return what takes the place of a number that does not fit: the number itself, or its text with a problem."""
    if isinstance(given, str) and not is_number:
        return UnreadCell(given, _other_marks(given.strip()))
    if abs(value) >= EXACT and np.isfinite(value):
        return UnreadCell(str(given), Problem("io.not_exact"))
    return UnreadCell(given, Problem("io.too_large")) if isinstance(given, str) and np.isinf(value) else float(value)


def _other_marks(text: str) -> Problem | None:
    """Return which options read a number with a decimal comma or thousands separators, None if the text is no number."""
    ways = [one for one in KNOWN if re.fullmatch(one.pattern, text)]
    if not ways or not ways[0].options:
        return None
    code = "io.decimal_comma" if ways[0].decimal == "," else "io.thousands_separator"
    # "1,234" can be either.
    either = NumberText(",") in ways[1:]
    return make_problem("io.comma" if either else code, options=ways[0].options)


def _read_categories(feature: Feature, dtype: Dtype, array: pa.Array) -> tuple[Floats, Objects | None]:
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    look_up = Categories(feature, is_single(dtype))
    found = [look_up.value(value) for value in distinct] + [None]
    places = np.array([look_up.place(value) for value in found])
    index = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    codes = places[index]
    if not np.isnan(codes).any():
        return codes, None
    given = np.empty(len(found), dtype=object)
    given[:] = found
    return np.zeros(len(array)), given[index]


class Categories:
    """The categories of a feature as a file may write them: text as it is, numbers and booleans in any notation."""

    def __init__(self, feature: Feature, single: bool) -> None:
        self.absent = feature.missing_code if feature.nullable else np.nan
        self.single = single
        self.places = {category: place for place, category in enumerate(feature.categories)}
        self.texts = {c: c for c in feature.categories if isinstance(c, str)}
        self.booleans = {word: value for word, value in BOOLEANS.items() if any(c is value for c in feature.categories)}
        self.numbers = {c: c for c in feature.categories if isinstance(c, (bool, int, float))}

    def value(self, given: CellValue) -> CellValue:
        """Return the category of a cell, None if it has no value, else the cell itself."""
        if not isinstance(given, str):
            return None if given is None or pd.isna(given) else self.numbers.get(self._held(given), given)
        if given in self.texts:
            return given
        bare = given.strip()
        if bare in self.texts:
            return bare
        if bare.lower() in self.booleans:
            return self.booleans[bare.lower()]
        if self.numbers and re.fullmatch(NUMBER, bare):
            whole = re.fullmatch(r"[+-]?[0-9]+", bare) and len(bare) < LONGEST_WHOLE
            number = self._held(int(bare) if whole else float(bare))
            if number in self.numbers:
                return self.numbers[number]
        return None if bare == "" or bare in NO_VALUE else UnreadCell(given)

    def place(self, value: CellValue) -> float:
        """Return the code of a category, NaN for anything else."""
        return self.absent if value is None else self.places.get(value, np.nan)

    def _held(self, number: float) -> float:
        """Return a number as the model's type holds it."""
        with np.errstate(over="ignore"):
            return float(np.float32(number)) if self.single and not isinstance(number, bool) else number
