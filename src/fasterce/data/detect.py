"""Detect columns that are not features: ids, free text, empty and constant columns."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fasterce.data.dtypes import EXACT
from fasterce.typing import Floats

ID, TEXT, EMPTY, CONSTANT, TOO_LARGE = "id", "text", "empty", "constant", "too_large"
REASONS = {
    ID: "looks like an id",
    TEXT: "is free text",
    EMPTY: "is empty",
    CONSTANT: "is constant",
    TOO_LARGE: "has whole numbers beyond 2**53",
}
# Texts of a column tried first, before all of them are.
FIRST_TEXTS = 200
ID_WORDS = frozenset({"id", "ids", "uid", "uuid", "guid", "key", "index", "idx", "rownum", "serial", "hash", "ssn", "iban"})
# Names of columns that count the rows; that of a column without a name is what pandas calls it.
COUNT_WORDS = frozenset({"unnamed", "row", "no", "nr", "number", "record", "sequence", "seq", "case", "obs", "observation"})


@dataclass(frozen=True)
class DetectionLimits:
    """When a column counts as an id or as free text.

    Parameters
    ----------
    rows : int
        Rows below which no column is an id or free text: in a small table most columns have distinct values.
    distinct : float
        Share of rows with a value of their own, at least; ids may repeat where rows were drawn with replacement.
    many : int
        Distinct texts up to which a column is categorical, unless every row has its own.
    words, characters : float
        Mean length of a text from which it is free text: in words where nearly every row has its own, or in characters.
    """

    rows: int = 20
    distinct: float = 0.9
    many: int = 50
    words: float = 4.0
    characters: float = 40.0


LIMITS = DetectionLimits()


def reason(column: pd.Series, limits: DetectionLimits = LIMITS) -> str | None:
    """Return why a column is not a feature, a key of `REASONS`; None for a feature."""
    present = column.dropna()
    if present.empty:
        return EMPTY if len(column) else None
    if pd.api.types.is_bool_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return None
    is_number = pd.api.types.is_numeric_dtype(column.dtype)
    return _of_numbers(present, column, limits) if is_number else _of_objects(present, column, limits)


def _of_objects(present: pd.Series, column: pd.Series, limits: DetectionLimits) -> str | None:
    try:
        distinct = int(present.nunique())
    except TypeError:
        return None
    if _are_too_large(present):
        return TOO_LARGE
    if distinct == 1 and len(present) == len(column) >= limits.rows:
        return CONSTANT
    return _of_text(present, distinct, limits) if isinstance(present.iloc[0], str) else None


def _of_numbers(present: pd.Series, column: pd.Series, limits: DetectionLimits) -> str | None:
    if pd.api.types.is_integer_dtype(column.dtype) and bool(((present > EXACT) | (present < -EXACT)).any()):
        return TOO_LARGE
    if pd.api.types.is_complex_dtype(column.dtype):
        return None
    values = present.to_numpy(dtype=np.float64)
    if len(present) == len(column) >= limits.rows and (values == values[0]).all():
        return CONSTANT
    return ID if len(column) >= limits.rows and _is_id(values, str(column.name), limits) else None


def _is_id(values: Floats, name: str, limits: DetectionLimits) -> bool:
    """Return whether whole numbers are ids: nearly all distinct, with the name of an id or of a row number."""
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return False
    distinct = len(np.unique(values))
    if distinct < limits.distinct * len(values):
        return False
    if has_word(name, ID_WORDS):
        return True
    counted = distinct == len(values) and values.min() in (0, 1) and values.max() - values.min() == len(values) - 1
    return bool(counted) and has_word(name, COUNT_WORDS)


def _are_too_large(present: pd.Series) -> bool:
    """Return whether objects are Python integers too large for any integer type of a column."""
    return all(type(value) is int for value in present) and any(abs(value) >= 2**63 for value in present)


def _of_text(present: pd.Series, distinct: int, limits: DetectionLimits) -> str | None:
    if distinct <= limits.many and not (len(present) >= limits.rows and distinct == len(present)):
        return None
    texts = present.astype(str)
    own = distinct >= limits.distinct * len(present)
    is_long = float(texts.str.len().mean()) >= limits.characters
    if is_long or (own and float(texts.str.split().str.len().mean()) >= limits.words):
        return TEXT
    return ID if own else None


def stripped_texts(column: pd.Series) -> pd.Series | None:
    """Return the values of a column of text without spaces around them, None for a column of anything else."""
    if pd.api.types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
        return None
    present = column.dropna()
    if present.empty or not all(isinstance(value, str) for value in present.head(FIRST_TEXTS)):
        return None
    return present.astype(str).str.strip()


def words(name: object) -> list[str]:
    """Return the words of a column name: snake case, camel case, spaces and digits are cut."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", str(name))
    return [word.lower() for word in re.split(r"[^A-Za-z]+", spaced) if word]


def has_word(name: object, known: frozenset[str]) -> bool:
    """Return whether a column name has one of these words."""
    return any(word in known for word in words(name))
