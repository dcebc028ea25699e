"""The columns of a model's last step as functions of codes: which values of a feature go left at a split."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fasterce.data.dtypes import Dtype, exact_limits, is_integer, is_single
from fasterce.data.table import Table
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.preprocessing import MATRIX, TablePreprocessor, Transform, as_matrix
from fasterce.typing import Floats, Indices, Mask, Objects

# Rows of one call of the preprocessing while edges are searched, and most points per edge and call.
MOST_ROWS = 16_384
MOST_POINTS = 15
# Cells of the matrix of one call: 16 MB, which stay in a processor's cache.
MOST_CELLS = 2_000_000
# Factor by which the distance from a guessed edge grows, from one position and the rounding of one operation.
STEP_FACTOR = 64
EPSILON = float(np.finfo(np.float64).eps)
# Calls after which an edge counts as beyond the possible values of a feature.
MOST_CALLS = 11
# Owners of columns that do not depend on a feature.
CONSTANT = -1


@dataclass(frozen=True)
class Columns:
    """The columns of the matrix the last step gets.

    Parameters
    ----------
    transform : callable
        The steps before the last one.
    table : Table
    preprocessor : TablePreprocessor
        The same steps, learned as a table.
    row : ndarray of shape (features,)
        A known row.
    """

    transform: Transform
    table: Table
    preprocessor: TablePreprocessor
    row: Floats

    @cached_property
    def owner(self) -> Indices:
        """The feature each column depends on, `CONSTANT` if on none."""
        table = self.preprocessor
        found = np.full(table.width, CONSTANT, dtype=np.intp)
        found[table.lines.outputs] = table.lines.features
        for curve in table.curves:
            found[curve.output] = curve.feature
        start = np.append(table.switches.start, len(table.switches.output))
        for k, j in enumerate(table.switches.features):
            found[table.switches.output[start[k] : start[k + 1]]] = j
        for lookup in table.lookups:
            found[lookup.outputs] = lookup.feature
        return found

    @cached_property
    def by_code(self) -> Floats:
        """The matrix at codes 0, 1, 2, ... of all categorical features at once (codes, columns)."""
        features = self.table.schema.features
        sizes = [feature.n_codes for feature in features if not feature.numeric]
        rows = np.repeat(self.row[None], max(sizes, default=1), axis=0)
        for j, feature in enumerate(features):
            if not feature.numeric:
                rows[:, j] = np.minimum(np.arange(len(rows)), feature.n_codes - 1)
        return np.asarray(self.preprocessor.inputs(rows, len(rows))[MATRIX])

    @cached_property
    def missing(self) -> Floats:
        """The value of each column of a number where the number is missing."""
        found = np.full(self.preprocessor.width, np.nan)
        found[self.preprocessor.lines.outputs] = self.preprocessor.lines.missing
        for curve in self.preprocessor.curves:
            found[curve.output] = curve.missing
        return np.where(found == 0, np.nan, found) if self.preprocessor.zero_is_missing else found

    @cached_property
    def falling(self) -> Mask:
        """Which columns of numbers fall as the number rises."""
        found = np.zeros(self.preprocessor.width, dtype=bool)
        found[self.preprocessor.lines.outputs] = self.preprocessor.lines.slope < 0
        for curve in self.preprocessor.curves:
            found[curve.output] = bool((np.diff(curve.heights) < 0).any())
        return found

    def check_monotone(self, columns: Indices) -> None:
        """Refuse columns that rise and fall with their number."""
        for curve in self.preprocessor.curves:
            steps = np.diff(curve.heights)
            if curve.output in columns and (steps < 0).any() and (steps > 0).any():
                raise NotCompiledError("models.compile_not_monotone", column=self.table.schema.names[curve.feature])

    def edges(self, columns: Indices, thresholds: Floats) -> Floats:
        """Return for each split of a number the last value on its side of small values.

        Parameters
        ----------
        columns : ndarray of shape (S,)
            Columns of numbers.
        thresholds : ndarray of shape (S,)
            Column values up to this go to the left child.

        Returns
        -------
        ndarray of shape (S,)
            The largest number whose column is at most the threshold, or above it where the column falls. Infinite if no
            number is, or if every number is.
        """
        self.check_monotone(columns)
        slope, intercept = (values[columns] for values in self.lines)
        # All numbers go one way if their column is always the same, or if the threshold is not finite.
        flat = slope == 0
        small = np.where(flat, intercept <= thresholds, (thresholds > 0) != self.falling[columns])
        found = np.where(small, np.inf, -np.inf)
        sought = np.isfinite(thresholds) & ~flat
        found[sought] = _EdgeSearch(self, columns[sought], thresholds[sought]).run()
        return found

    @cached_property
    def lines(self) -> tuple[Floats, Floats]:
        """Slope and intercept of each column that is a straight line, 1 and 0 of others."""
        slope, intercept = np.ones(self.preprocessor.width), np.zeros(self.preprocessor.width)
        lines = self.preprocessor.lines
        slope[lines.outputs], intercept[lines.outputs] = lines.slope, lines.intercept
        return slope, intercept

    def values(self, columns: Indices, numbers: Floats) -> Floats:
        """Return the value of column `columns[s]` at each of `numbers[s]` of its feature (S, points)."""
        owner = self.owner[columns]
        rank = np.zeros(len(columns), dtype=np.intp)
        order = np.argsort(owner, kind="stable")
        first = np.searchsorted(owner[order], owner[order])
        rank[order] = np.arange(len(order)) - first
        block = max(1, MOST_CELLS // (numbers.shape[1] * self.preprocessor.width))
        found = np.empty(numbers.shape)
        for start in range(0, int(rank.max()) + 1, block):
            part = np.flatnonzero((rank >= start) & (rank < start + block))
            found[part] = self._values(columns[part], numbers[part], rank[part] - start)
        return found

    def _values(self, columns: Indices, numbers: Floats, rank: Indices) -> Floats:
        """Return column values from one call; numbers of one feature have different ranks."""
        points = numbers.shape[1]
        rows = np.repeat(self.row[None], (rank.max() + 1) * points, axis=0)
        places = rank[:, None] * points + np.arange(points)
        rows[places, self.owner[columns][:, None]] = numbers
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = as_matrix(self.transform(self.table.frame(rows)))
        return np.asarray(matrix[places, columns[:, None]], dtype=np.float64)


class _EdgeSearch:
    """Bisection over the numbers a column's dtype can hold, in their order, of all splits at once."""

    def __init__(self, columns: Columns, places: Indices, thresholds: Floats) -> None:
        self.columns = columns
        self.places = places
        self.thresholds = thresholds
        dtypes, owner = columns.table.dtypes, columns.owner[places]
        self.whole = np.array([is_integer(dtype) for dtype in dtypes], dtype=bool)[owner]
        self.single = np.array([is_single(dtype) for dtype in dtypes], dtype=bool)[owner]
        self.falling = columns.falling[places]
        limits = np.array([_step_limits(dtype) for dtype in dtypes], dtype=np.int64)[owner]
        self.first, self.last = limits[:, 0], limits[:, 1]

    def run(self) -> Floats:
        if len(self.places) == 0:
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):
            low, high, bounded = self._bracket()
            self._narrow(low, high, bounded)
            found = self._last_double(low)
        return np.where(bounded == 0, found, np.copysign(np.inf, bounded))

    def _bracket(self) -> tuple[Indices, Indices, Floats]:
        """Return positions on both sides of each edge, and -inf or inf signs where there is no edge."""
        guess, scale = self._guess()
        start = np.clip(self._steps(guess), self.first, self.last - 1)
        low, high = start.copy(), start + 1
        todo = np.arange(len(guess))
        bounded = np.zeros(len(guess))
        for call in range(MOST_CALLS):
            below, above = self._small(todo, np.stack([low[todo], high[todo]], axis=1)).T
            bounded[todo] = np.where(below, np.where(above, 1.0, 0.0), -1.0)
            # A side that has been found is not searched again.
            high[todo[~below]], low[todo[above]] = low[todo[~below]], high[todo[above]]
            steps, reach = STEP_FACTOR**call, scale * EPSILON * float(STEP_FACTOR) ** call
            lower = np.minimum(np.maximum(low, self.first + steps) - steps, self._steps(guess - reach))
            upper = np.maximum(np.minimum(high, self.last - steps) + steps, self._steps(guess + reach))
            low[todo[~below]] = np.maximum(lower, self.first)[todo[~below]]
            high[todo[above]] = np.minimum(upper, self.last)[todo[above]]
            todo = todo[~below | above]
            if len(todo) == 0:
                break
        self._split_at_zero(low, high, bounded)
        return low, high, bounded

    def _split_at_zero(self, low: Indices, high: Indices, bounded: Floats) -> None:
        """Leave one side of zero: positions on both sides may differ by more than an integer holds."""
        todo = np.flatnonzero((low < 0) & (high > 0) & (bounded == 0))
        if len(todo):
            small = self._small(todo, np.zeros((len(todo), 1), dtype=np.int64))[:, 0]
            low[todo[small]] = 0
            high[todo[~small]] = 0

    def _narrow(self, low: Indices, high: Indices, bounded: Floats) -> None:
        while True:
            todo = np.flatnonzero((high - low > 1) & (bounded == 0))
            if len(todo) == 0:
                return
            points = int(np.clip(MOST_ROWS // len(todo), 1, MOST_POINTS))
            share = np.arange(1, points + 1)
            gap = high[todo] - low[todo]
            steps = low[todo][:, None] + np.minimum(np.maximum(gap // (points + 1), 1)[:, None] * share, (gap - 1)[:, None])
            small = self._small(todo, steps)
            count = small.sum(axis=1)
            ends = np.concatenate([low[todo][:, None], steps, high[todo][:, None]], axis=1)
            rows = np.arange(len(todo))
            low[todo], high[todo] = ends[rows, count], ends[rows, count + 1]

    def _small(self, todo: Indices, steps: Indices) -> Mask:
        """Return whether values lie on the side of small numbers."""
        values = self._values(todo, steps)
        found = self.columns.values(self.places[todo], values)
        return np.asarray((found <= self.thresholds[todo][:, None]) != self.falling[todo][:, None])

    def _guess(self) -> tuple[Floats, Floats]:
        """Return where the learned table has the edges, and the size of the numbers that were rounded there."""
        preprocessor, places = self.columns.preprocessor, self.places
        slope, intercept = self.columns.lines
        found = (self.thresholds - intercept[places]) / slope[places]
        scale = np.abs(found) + np.abs(intercept / slope)[places]
        for curve in preprocessor.curves:
            rows = places == curve.output
            sign = -1.0 if self.columns.falling[curve.output] else 1.0
            place = np.searchsorted(sign * curve.heights, sign * self.thresholds[rows], side="right") - 1
            found[rows] = curve.knots[np.maximum(place, 0)]
            scale[rows] = np.abs(curve.knots).max()
        return found, scale

    def _steps(self, values: Floats) -> Indices:
        """Return the position of values among the numbers of their dtype."""
        singles = np.clip(values, -SINGLE_MAX, SINGLE_MAX).astype(np.float32)
        whole = np.floor(np.clip(values, -(2.0**53), 2.0**53)).astype(np.int64)
        return np.where(self.whole, whole, np.where(self.single, _order32(singles), _order64(values)))

    def _values(self, todo: Indices, steps: Indices) -> Floats:
        whole, single = self.whole[todo][:, None], self.single[todo][:, None]
        singles = _at32(np.clip(steps, -LAST32, LAST32))
        return np.where(whole, steps, np.where(single, singles, _at64(steps)))

    def _last_double(self, low: Indices) -> Floats:
        """Return the last double that the dtype stores as the number at a position."""
        # Fractions are cut off, so that 2.9 is 2 and -2.9 is -2.
        whole = np.where(low >= 0, np.nextafter(low + 1.0, -np.inf), low)
        return np.where(
            self.whole, whole, np.where(self.single, last_rounded(_at32(np.clip(low, -LAST32, LAST32))), _at64(low))
        )


def _step_limits(dtype: Dtype) -> tuple[int, int]:
    """Return the first and last position among the numbers of a dtype."""
    if is_integer(dtype):
        return exact_limits(dtype)
    return (-LAST32, LAST32) if is_single(dtype) else (-LAST64, LAST64)


SINGLE_MAX = float(np.finfo(np.float32).max)


def _order64(values: Floats) -> Indices:
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _at64(order: Indices) -> Floats:
    bits = np.where(order < 0, np.iinfo(np.int64).min - order, order)
    return np.asarray(bits.view(np.float64))


def _order32(values: Objects) -> Indices:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, np.iinfo(np.int32).min - bits, bits)


def _at32(order: Indices) -> Floats:
    bits = np.where(order < 0, np.iinfo(np.int32).min - order, order).astype(np.int32)
    return np.asarray(bits.view(np.float32).astype(np.float64))


LAST32 = int(_order32(np.array([SINGLE_MAX]))[0])
LAST64 = int(_order64(np.array([np.finfo(np.float64).max]))[0])


def last_rounded(singles: Floats) -> Floats:
    """Return the largest double that rounds to each single-precision number: halves are rounded to even."""
    order = _order32(singles)
    middle = (singles + _at32(np.minimum(order + 1, LAST32))) / 2
    even = order % 2 == 0
    return np.where(even, middle, np.nextafter(middle, -np.inf))


def single_threshold(thresholds: Floats, strict: bool) -> Floats:
    """Return the largest double that, rounded to single precision, is below a threshold, or at most the threshold."""
    with np.errstate(over="ignore"):
        singles = thresholds.astype(np.float32)
    order = _order32(singles)
    too_large = singles.astype(np.float64) >= thresholds if strict else singles.astype(np.float64) > thresholds
    found = last_rounded(_at32(np.clip(order - too_large, -LAST32, LAST32)))
    return np.where(np.isinf(thresholds), thresholds, found)
