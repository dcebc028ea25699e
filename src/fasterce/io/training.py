"""Read a whole table at once: training data for `inspect` and `fit`."""

from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from fasterce.data import value_types
from fasterce.data.date_text import ISO, date_format, read_dates
from fasterce.data.dtypes import Dtype
from fasterce.data.schema import Feature, Schema
from fasterce.data.table import PassthroughColumn, Table
from fasterce.errors import InputError, unknown
from fasterce.io import cells, parquet
from fasterce.io.delimited import CsvFormat
from fasterce.io.locations import Source
from fasterce.io.source import TableFile, find_columns, open_table, repeated
from fasterce.typing import Objects

# Rows read at a time, before they are joined.
BATCH = 50_000
# Where a table read with `dates` has the formats that are not ISO, by column: a key of its `attrs`.
DATE_FORMATS = "date_formats"
TEXT = pd.Series(["text"]).dtype  # objects before pandas 3
PLAIN_WHOLE = r"^\s*[+-]?(0|[1-9][0-9]{0,17})\s*$"
NOT_A_QUANTITY = r"^\s*[+-]?(0[0-9]|[0-9]{19,}\s*$)"
BOOLEAN = r"^\s*([Tt]rue|[Ff]alse|TRUE|FALSE)\s*$"


def read_table(
    path: Source,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    schema: Schema | Table | None = None,
    dates: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV or Parquet file into a DataFrame.

    Without a schema every column is kept, and CSV cells are read as what all cells of their column are: whole numbers,
    numbers, booleans, else text. Numbers with leading zeros or more than 18 digits are codes and stay text.

    Parameters
    ----------
    path : str or path
        A file, also gzipped, an address, or "-" for CSV on standard input.
    separator, encoding : str, optional
        Of a CSV file; None detects the separator and expects UTF-8.
    decimal, thousands : str, optional
        The marks in the numbers of a CSV file.
    schema : Schema or Table, optional
        Read its columns only, in its types.
    dates : sequence of str, optional
        Without a schema: columns of a CSV file that are dates or times.

    Returns
    -------
    DataFrame

    Raises
    ------
    InputError
        If the file cannot be read, or a cell does not fit the schema.
    """
    csv = CsvFormat(separator, encoding, decimal, thousands)
    if schema is None:
        return _guessed(path, csv, dates)
    features = schema.schema if isinstance(schema, Table) else schema
    unknown_types = (np.dtype(object),) * len(features)
    with closing(open_table(path, csv, features.names)) as file:
        known = schema if isinstance(schema, Table) else Table(features, unknown_types)
        places = find_columns(file.fields.names, known, None, (), file.name)
        cells.check_types(features.features, file.fields, places.features, file.name)
        columns = _columns(file, [*places.features, *places.passthrough.values()])
    own, others = columns[: len(features)], columns[len(features) :]
    passed = dict(zip(places.passthrough, others, strict=True))
    table = schema if isinstance(schema, Table) else _table(schema, own, passed, file.format)
    frame = cells.to_frame(table, own, passed=passed, csv=file.format)
    problem = table.read(frame).first_problem
    if problem is not None and problem.row is not None:
        raise InputError("io.bad_row", source=file.name, position=problem.row + 1, fault=problem.without_row())
    return frame


def _table(schema: Schema, columns: Sequence[pa.Array], passed: Mapping[Hashable, pa.Array], csv: CsvFormat) -> Table:
    """Return the types pandas would give the columns if it knew the schema."""
    types = tuple(_dtype(feature, array, csv) for feature, array in zip(schema.features, columns, strict=True))
    guessed = {name: pd.Series(_guess(array, csv)) for name, array in passed.items()}
    others = tuple(PassthroughColumn(name, values.dtype) for name, values in guessed.items())
    return Table(schema, types, passthrough=others, columns=(*schema.names, *guessed))


def _guessed(path: Source, csv: CsvFormat, dates: Sequence[str]) -> pd.DataFrame:
    with closing(open_table(path, csv)) as file:
        if isinstance(file, parquet.ParquetFile):
            with parquet.read_errors(path):
                found = file.file.read()
            floats = pa.schema([f.with_type(pa.float64()) if pa.types.is_decimal(f.type) else f for f in found.schema])
            return found.cast(floats.with_metadata(found.schema.metadata)).to_pandas()
        names = [name.strip() or f"column {k + 1}" for k, name in enumerate(file.fields.names)]
        columns = _columns(file, range(len(names)))
    if same := repeated(names):
        raise InputError("io.repeated_columns", source=file.name, received=same)
    for name in dates:
        if name not in names:
            raise InputError(unknown("io.unknown_column", name, names, source=file.name))
    formats = {name: _date_format(name, columns[names.index(name)], file.name) for name in dates}
    guessed = {name: _guess(array, csv, formats.get(name)) for name, array in zip(names, columns, strict=True)}
    frame = pd.DataFrame(guessed, columns=names)
    frame.attrs[DATE_FORMATS] = {name: format for name, format in formats.items() if format != ISO}
    return frame


def _date_format(name: str, given: pa.Array, source: str) -> str:
    """Return the format of a column of dates."""
    texts = pd.Series(given.to_pandas()).where(~cells.is_missing(given))
    found = date_format(texts)
    if found is None:
        present = texts.dropna()
        first = None if present.empty else present.iloc[0]
        raise InputError("io.not_dates", option="dates", source=source, column=name, received=first)
    return found


def _columns(file: TableFile, places: Sequence[int]) -> list[pa.Array]:
    """Return whole columns as they are in the file."""
    pieces = [[pa.array([], type=cells.plain_type(file.fields.field(place).type))] for place in places]
    for raw in file.read(places, BATCH):
        if raw.malformed:
            fault = raw.malformed[min(raw.malformed)]
            raise InputError("io.uneven_lines", source=file.name, expected=len(file.fields), fault=fault)
        for column, place in zip(pieces, places, strict=True):
            column.append(raw.columns[place])
    return [pa.concat_arrays(column) for column in pieces]


def _guess(given: pa.Array, csv: CsvFormat, dates: str | None = None) -> pd.Series | Objects:
    """Return a column of text as what all its cells are, or as dates of this format."""
    if not cells.is_text(given.type):
        return given.to_pandas()
    missing, texts = cells.is_missing(given), csv.numbers(given)
    if dates is not None:
        return read_dates(pd.Series(given.to_pandas()).where(~missing), dates)
    there = texts.filter(pa.array(~missing))
    if _all(there, BOOLEAN):
        values = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), "true").to_numpy(zero_copy_only=False)
        return values if not missing.any() else pd.Series(np.where(missing, np.nan, values.astype(object)), dtype=object)
    if not missing.any() and _all(there, PLAIN_WHOLE):
        return np.fromiter(map(int, texts.to_pylist()), np.int64, len(texts))
    if _all(there, cells.NUMBER) and not pc.any(pc.match_substring_regex(there, NOT_A_QUANTITY)).as_py():
        return cells.numbers_of(texts)[0]
    return pd.Series(pc.if_else(pa.array(missing), pa.scalar(None, pa.string()), given).to_pandas(), dtype=TEXT)


def _all(texts: pa.Array, pattern: str) -> bool:
    return len(texts) > 0 and bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _dtype(feature: Feature, given: pa.Array, csv: CsvFormat) -> Dtype:
    if feature.value_type != value_types.NUMBER:
        return value_types.usual_dtype(feature.value_type)
    text = cells.is_text(given.type)
    array = csv.numbers(cells.as_text(given)) if text and feature.numeric else given
    missing = array.null_count > 0 or (text and bool(cells.is_missing(cells.as_text(array)).any()))
    if feature.numeric:
        whole = _all(cells.as_text(array), PLAIN_WHOLE) if text else pa.types.is_integer(array.type)
        return np.dtype(np.int64 if whole and not missing else np.float64)
    kinds = {type(category) for category in feature.categories}
    if kinds == {str}:
        return TEXT
    if len(kinds) == 1 and not missing:
        return np.dtype({bool: np.bool_, int: np.int64, float: np.float64}.get(kinds.pop(), object))
    return np.dtype(object)
