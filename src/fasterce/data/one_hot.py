"""Find groups of 0/1 columns that are one category in one-hot form."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fasterce.data.detect import LIMITS
from fasterce.typing import Floats, Indices

MARKS = "_=.:- /"
# Rows checked first, before all rows are.
FIRST_ROWS = 2000
# Expected rows with two flags if the columns were unrelated; from this number on, having none is not chance.
EXPECTED_OVERLAPS = 10.0


@dataclass(frozen=True)
class Group:
    """Columns of which exactly one is 1 in every row, or at most one if one category has no column."""

    names: tuple[Hashable, ...]
    exactly_one: bool


def find_groups(table: pd.DataFrame, names: Sequence[Hashable]) -> list[Group]:
    """Return the groups among these columns: those with a common prefix, then neighbours, then those without a column
    for one category (as `pd.get_dummies(drop_first=True)` makes them)."""
    flags = [(place, name) for place, name in enumerate(names) if _is_flag(table[name])]
    if len(flags) < 2:
        return []
    matrix = np.column_stack([table[name].to_numpy(dtype=np.float64) for _, name in flags])
    search = _Search([name for _, name in flags], np.array([place for place, _ in flags]), matrix)
    return [*search.with_prefix(exactly_one=True), *search.neighbours(), *search.with_prefix(exactly_one=False)]


def _is_flag(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype) or column.isna().any():
        return False
    if column.dtype == np.dtype(object):
        return all(isinstance(value, bool) for value in column)
    if pd.api.types.is_bool_dtype(column.dtype):
        return True
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return False
    return bool(np.isin(column.to_numpy(dtype=np.float64), (0.0, 1.0)).all())


class _Search:
    """The 0/1 columns of a table; a column is in one group at most."""

    def __init__(self, names: list[Hashable], places: Indices, matrix: Floats) -> None:
        self.names, self.places, self.matrix = names, places, matrix
        self.taken: set[int] = set()

    def with_prefix(self, exactly_one: bool) -> Iterator[Group]:
        sets = {tuple(found) for found in _by_prefix(self.names).values()}
        for columns in sorted(sets, key=lambda columns: (-len(columns), columns)):
            if len(columns) > 1 and not self.taken & set(columns) and self._is_group(columns, exactly_one):
                yield self._take(columns, exactly_one)

    def neighbours(self) -> Iterator[Group]:
        """Yield runs of columns, one beside the other, of which exactly one is 1 in every row."""
        start, count = 0, len(self.names)
        while start < count and len(self.matrix) >= LIMITS.rows:
            end = self._end_of_run(start)
            if end:
                yield self._take(tuple(range(start, end)), True)
            start = end or start + 1

    def _end_of_run(self, start: int) -> int:
        """Return the column after the run that starts here, 0 if there is none."""
        total = np.zeros(len(self.matrix))
        for k in range(start, len(self.names)):
            if k in self.taken or self.places[k] != self.places[start] + k - start:
                return 0
            total += self.matrix[:, k]
            if (total > 1).any():
                return 0
            if k > start and (total == 1).all():
                return k + 1
        return 0

    def _is_group(self, columns: tuple[int, ...], exactly_one: bool) -> bool:
        for rows in (self.matrix[:FIRST_ROWS], self.matrix):
            together = rows[:, columns].sum(axis=1)
            if (together > 1).any() or (exactly_one and (together != 1).any()):
                return False
        if exactly_one:
            return len(self.matrix) > 0
        shares = self.matrix[:, columns].mean(axis=0)
        pairs = (shares.sum() ** 2 - (shares**2).sum()) / 2
        return bool(len(self.matrix) * pairs >= EXPECTED_OVERLAPS)

    def _take(self, columns: tuple[int, ...], exactly_one: bool) -> Group:
        self.taken |= set(columns)
        return Group(tuple(self.names[k] for k in columns), exactly_one)


def _by_prefix(names: Sequence[Hashable]) -> dict[str, list[int]]:
    """Return the positions of the names with each prefix, cut before any mark; names without a mark have none."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        text = str(name)
        cuts = [at for at, letter in enumerate(text) if letter in MARKS and at > 0]
        for prefix in {text[:at] for at in cuts} or {""}:
            found.setdefault(prefix, []).append(k)
    return found
