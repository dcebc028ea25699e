"""Cells of a file -> a frame in the types the explainer was fitted with.

A cell that cannot be read stays in its row as an `Unread` text, which `Table.read` turns into that row's `invalid_input`;
the other rows are not touched by it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fasterce.errors import InputError
from fasterce.profile import Floats
from fasterce.schema import MISSING, Feature
from fasterce.table import EXACT, Table, as_single, is_single

NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
NO_VALUE = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
BOOLEANS = {"true": True, "false": False}

Mask = NDArray[np.bool_]
Objects = NDArray[Any]


class Unread(str):
    """A cell as it stands in the file, and what may be wrong with it."""

    hint: str

    def __new__(cls, text: str, hint: str = "") -> "Unread":
        made = super().__new__(cls, text)
        made.hint = hint
        return made

    def __repr__(self) -> str:
        shown = repr(str(self))
        return f"{shown[:60]}{'…' if len(shown) > 60 else ''} ({self.hint})" if self.hint else shown


class Misfit(str):
    """Stands in the place of a line that has not the cells the header promises; reads as what was found instead."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def to_frame(table: Table, columns: Sequence[pa.Array], misfits: Mapping[int, str] | None = None) -> pd.DataFrame:
    """A frame like those of `fit` from one Arrow array a feature; columns with cells that do not fit hold plain objects.

    `misfits` are lines that could not be split into cells, by their position: what was found instead.
    """
    rows = len(columns[0])
    codes = np.zeros((rows, len(table.schema)))
    exceptions: dict[int, Objects] = {}
    for j, array in enumerate(columns):
        codes[:, j], given = _read(table, j, array)
        if given is not None:
            exceptions[j] = given
    if misfits:
        exceptions[0] = _with_misfits(table, columns[0], exceptions.get(0), codes[:, 0], misfits)
    frame = table.frame(codes)
    for j, given in exceptions.items():
        frame[table.schema.names[j]] = pd.Series(given, dtype=object)
    return frame


def numbers_of(texts: pa.Array) -> tuple[Floats, Mask]:
    """Texts as correctly rounded floats, and which of them are numbers at all."""
    good = pc.fill_null(pc.match_substring_regex(texts, NUMBER), False).to_numpy(zero_copy_only=False)
    values = np.full(len(texts), np.nan)
    values[good] = np.fromiter(map(float, texts.filter(pa.array(good)).to_pylist()), np.float64, int(good.sum()))
    return values, good


def _blank(texts: pa.Array) -> Mask:
    """Cells without a value: null, empty or only spaces."""
    empty = pc.equal(pc.utf8_trim_whitespace(texts), "")
    return np.asarray(pc.fill_null(empty, True).to_numpy(zero_copy_only=False))


def says_no_value(texts: pa.Array) -> Mask:
    """Blank cells, and those that say in words that there is no value."""
    words = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(NO_VALUE))
    return np.asarray(_blank(texts) | words.to_numpy(zero_copy_only=False))


def as_text(array: pa.Array) -> pa.Array:
    """Any Arrow text as plain strings."""
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def decoded(array: pa.Array) -> pa.Array:
    """Dictionary columns as the values they stand for."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def check_kind(name: Any, kind: pa.DataType, where: str) -> None:
    """Only text, numbers and booleans can be cells; dates and nested values are told."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    numeric = pa.types.is_integer(inner) or pa.types.is_floating(inner) or pa.types.is_decimal(inner)
    if not (numeric or is_text(inner) or pa.types.is_boolean(inner) or pa.types.is_null(inner)):
        advice = " (convert it to a number)" if pa.types.is_temporal(inner) else ""
        raise InputError(f"Column {name!r} of {where} must hold numbers, text or booleans; got {kind}{advice}.")


def _read(table: Table, j: int, array: pa.Array) -> tuple[Floats, Objects | None]:
    """One column as codes; where cells do not fit, as plain objects too."""
    feature = table.schema.features[j]
    array = decoded(array)
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if feature.numeric:
        return _read_numbers(feature, table.dtypes[j], array)
    return _read_categories(feature, table.dtypes[j], array)


def _read_numbers(feature: Feature, dtype: Any, array: pa.Array) -> tuple[Floats, Objects | None]:
    if is_text(array.type):
        texts = as_text(array)
        values, good = numbers_of(texts)
        missing = says_no_value(texts)
    else:
        texts = None
        values = _typed_numbers(array)
        missing = np.isnan(values)
        good = ~missing
    if is_single(dtype):
        with np.errstate(over="ignore"):
            values = as_single(values)
    fits = _fits(values, dtype, array if texts is None else texts) & good & (values != MISSING)
    if (fits | (missing & feature.gappy)).all():
        return np.where(missing, feature.absent, values), None
    given = values.astype(object)
    if pd.api.types.is_integer_dtype(dtype):
        given[fits] = values[fits].astype(np.int64).astype(object)
    given[missing] = None
    for row in np.flatnonzero(~fits & ~missing):
        given[row] = _unread_number(array[int(row)].as_py(), bool(good[row]), values[row])
    return np.zeros(len(values)), given


def _typed_numbers(array: pa.Array) -> Floats:
    if pa.types.is_decimal(array.type) or pa.types.is_boolean(array.type):
        array = array.cast(pa.float64())
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _fits(values: Floats, dtype: Any, given: pa.Array) -> Mask:
    """Whether numbers are finite and, where whole ones are wanted, whole and held exactly."""
    finite = np.isfinite(values)
    if not pd.api.types.is_integer_dtype(dtype):
        return finite
    limits = np.iinfo(dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", np.int64))
    fits = finite & (values == np.round(values)) & (values >= limits.min) & (values <= limits.max) & (np.abs(values) <= EXACT)
    for row in np.flatnonzero(fits & (np.abs(values) == EXACT)):
        fits[row] = re.fullmatch(f"[+-]?{EXACT}", str(given[int(row)].as_py()).strip()) is not None
    return np.asarray(fits)


def _unread_number(given: Any, is_number: bool, value: float) -> Any:
    """What stands in the frame for a number that does not fit: the number itself, or the text with a hint."""
    if isinstance(given, str) and not is_number:
        return Unread(given, _hint(given))
    if abs(value) >= EXACT and np.isfinite(value):
        return Unread(str(given), "not held exactly: beyond 2**53")
    return Unread(given, "larger than a float can hold") if isinstance(given, str) and np.isinf(value) else float(value)


def _hint(text: str) -> str:
    bare = text.strip()
    if re.fullmatch(r"[+-]?[0-9]{1,3}([ ,'\u00a0\u202f][0-9]{3})+(\.[0-9]*)?", bare):
        return "numbers are written without thousands separators, and with a decimal point"
    if re.fullmatch(r"[+-]?[0-9.' \u00a0\u202f]*,[0-9]*", bare):
        return "a decimal comma; expected a decimal point"
    return ""


def _read_categories(feature: Feature, dtype: Any, array: pa.Array) -> tuple[Floats, Objects | None]:
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
    """A feature's categories as they may be written: text as it is, numbers and booleans as anyone writes them."""

    def __init__(self, feature: Feature, single: bool) -> None:
        self.absent = feature.absent if feature.gappy else np.nan
        self.single = single
        self.places = {category: place for place, category in enumerate(feature.categories)}
        self.texts = {c: c for c in feature.categories if isinstance(c, str)}
        self.booleans = {word: value for word, value in BOOLEANS.items() if any(c is value for c in feature.categories)}
        self.numbers = {c: c for c in feature.categories if isinstance(c, (bool, int, float))}

    def value(self, given: Any) -> Any:
        """The category a cell stands for, None if it has no value, else the cell itself."""
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
            number = self._held(int(bare) if re.fullmatch(r"[+-]?[0-9]+", bare) and len(bare) < 400 else float(bare))
            if number in self.numbers:
                return self.numbers[number]
        return None if bare == "" or bare in NO_VALUE else Unread(given)

    def place(self, value: Any) -> float:
        """The code of a category, NaN for anything that is none."""
        return self.absent if value is None else self.places.get(value, np.nan)

    def _held(self, number: Any) -> Any:
        with np.errstate(over="ignore"):
            return float(np.float32(number)) if self.single and not isinstance(number, bool) else number


def _with_misfits(table: Table, array: pa.Array, given: Objects | None, codes: Floats, misfits: Mapping[int, str]) -> Objects:
    """The first column as objects, with what was found in place of a line where its cell would be."""
    if given is None:
        typed = pd.Series(table.column(0, codes), dtype=object)
        given = typed.to_numpy(dtype=object, copy=True)
    for row, said in misfits.items():
        given[row] = Misfit(said)
    return given
