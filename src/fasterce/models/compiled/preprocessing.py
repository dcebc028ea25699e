"""The steps before a model's last one, learned by probing: codes -> the matrix the last step gets.

Where every output column depends on one feature, the steps are a table: a block of outputs per category and a straight line
per number. NumPy looks these up many times faster than the steps compute them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from fasterce.data.dtypes import is_single
from fasterce.data.schema import MISSING, Feature
from fasterce.data.table import Table
from fasterce.models.compiled.model import NotCompiledError
from fasterce.models.compiled.session import Inputs
from fasterce.typing import Floats, Indices, Mask, Objects

Transform = Callable[[pd.DataFrame], Any]

MATRIX = "matrix"
# Values per numeric feature at which the preprocessing is observed, and how many of them are evenly spaced over the range.
PROBED_VALUES = 24
EVEN_VALUES = 9
# Most cells of a matrix the preprocessing may return (160 MB in double precision).
MOST_CELLS = 20_000_000
# Relative errors that are rounding, in double and in single precision.
DOUBLE_SLACK, SINGLE_SLACK = 1e-9, 4e-6
# Values at which a nonlinear transform is tabulated.
KNOTS = 4_096
# Relative error of such a table, and the share of rows that must be within it; a step between two knots is not seen.
CURVE_SLACK, MOST_NEAR = 1e-3, 0.99


@dataclass(frozen=True)
class StoredDtypes:
    """Numeric features the model's columns hold as whole numbers or in single precision."""

    whole: Indices
    single: Indices

    @classmethod
    def of(cls, table: Table) -> "StoredDtypes":
        numeric = [j for j, feature in enumerate(table.schema.features) if feature.numeric]
        whole = [j for j in numeric if pd.api.types.is_integer_dtype(table.dtypes[j])]
        return cls(_indices(whole), _indices([j for j in numeric if is_single(table.dtypes[j])]))

    def apply(self, codes: Floats) -> Floats:
        """Return numbers as the model's columns would hold them."""
        codes = codes.copy()
        if len(self.whole):
            codes[:, self.whole] = np.trunc(codes[:, self.whole])
        if len(self.single):
            codes[:, self.single] = codes[:, self.single].astype(np.float32)
        return codes


@dataclass(frozen=True)
class LinearOutputs:
    """Numeric features scaled and shifted: `outputs[k]` is a linear function of `features[k]`."""

    features: Indices
    outputs: Indices
    slope: Floats
    intercept: Floats
    missing: Floats
    """Outputs for a missing number."""

    def write(self, codes: Floats, matrix: Objects, zero_is_missing: bool) -> None:
        values = codes[:, self.features]
        missing = values == MISSING
        values *= self.slope
        values += self.intercept
        if missing.any():
            values = np.where(missing, self.missing, values)
        if zero_is_missing:
            values[values == 0] = np.nan
        matrix[: len(codes), self.outputs] = values


@dataclass(frozen=True)
class CurvedOutput:
    """One nonlinear function of a numeric feature, such as a logarithm or bins: known at knots, linear between them."""

    feature: int
    output: int
    knots: Floats
    heights: Floats
    missing: float

    def write(self, codes: Floats, matrix: Objects, zero_is_missing: bool) -> None:
        values = np.interp(codes[:, self.feature], self.knots, self.heights)
        values[codes[:, self.feature] == MISSING] = self.missing
        matrix[: len(codes), self.output] = np.where(values == 0, np.nan, values) if zero_is_missing else values


@dataclass(frozen=True)
class OneHotOutputs:
    """Categorical features whose categories each differ from the base row in one output at most, as one-hot does.

    The categories of all features are numbered in one sequence, each feature's from its `start`; category k writes
    `value[k]` to column `output[k]`.
    """

    features: Indices
    start: Indices
    output: Indices
    value: Objects

    def write(self, codes: Floats, matrix: Objects) -> None:
        cells = codes[:, self.features].astype(np.intp) + self.start
        places = self.output[cells]
        places += (np.arange(len(codes)) * matrix.shape[1])[:, None]
        matrix.reshape(-1)[places] = self.value[cells]


@dataclass(frozen=True)
class CategoryOutputs:
    """A categorical feature with a full row of outputs per category."""

    feature: int
    outputs: Indices
    rows: Objects

    def write(self, codes: Floats, matrix: Objects) -> None:
        matrix[: len(codes), self.outputs] = self.rows[codes[:, self.feature].astype(np.intp)]


@dataclass(frozen=True)
class TablePreprocessor:
    """Every output starts as in `base`; the other parts write the outputs that depend on a feature."""

    base: Objects
    lines: LinearOutputs
    curves: tuple[CurvedOutput, ...]
    switches: OneHotOutputs
    lookups: tuple[CategoryOutputs, ...]
    stored: StoredDtypes
    zero_is_missing: bool = False

    @property
    def width(self) -> int:
        return len(self.base)

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        matrix = np.empty((rows, self.width), dtype=self.base.dtype)
        matrix[:] = self.base
        codes = self.stored.apply(codes)
        self.lines.write(codes, matrix, self.zero_is_missing)
        for curve in self.curves:
            curve.write(codes, matrix, self.zero_is_missing)
        if len(self.switches.features):
            self.switches.write(codes, matrix)
        for lookup in self.lookups:
            lookup.write(codes, matrix)
        return {MATRIX: matrix}

    def with_dtype(self, dtype: DTypeLike) -> "TablePreprocessor":
        """Return one that writes a matrix of another dtype. Linear outputs stay double: a threshold may be a value itself."""
        return replace(
            self,
            base=self._missing(self.base).astype(dtype),
            switches=replace(self.switches, value=self._missing(self.switches.value).astype(dtype)),
            lookups=tuple(replace(one, rows=self._missing(one.rows).astype(dtype)) for one in self.lookups),
        )

    def _missing(self, values: Objects) -> Objects:
        return np.where(values == 0, np.nan, values) if self.zero_is_missing else values


@dataclass(frozen=True)
class ColumnPreprocessor:
    """The model's own columns, one input each, for a graph of all steps."""

    names: tuple[str, ...]
    categories: tuple[Objects | None, ...]
    dtypes: tuple[DTypeLike, ...]

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        padded = codes if len(codes) == rows else np.vstack([codes, np.repeat(codes[:1], rows - len(codes), axis=0)])
        return {name: self._column(j, padded[:, j])[:, None] for j, name in enumerate(self.names)}

    def _column(self, j: int, codes: Floats) -> Objects:
        known = self.categories[j]
        return codes.astype(self.dtypes[j]) if known is None else known[codes.astype(np.intp)]


def column_preprocessor(table: Table, number: DTypeLike) -> ColumnPreprocessor:
    """Return numbers in one floating dtype, whole categories as they are, text as text."""
    features = table.schema.features
    categories = tuple(None if feature.numeric else _typed(feature, number) for feature in features)
    return ColumnPreprocessor(tuple(str(name) for name in table.schema.names), categories, (number,) * len(features))


def _typed(feature: Feature, number: DTypeLike) -> Objects:
    if all(isinstance(value, str) for value in feature.categories):
        return np.array(feature.categories, dtype=object)
    if all(isinstance(value, bool) for value in feature.categories):
        return np.array(feature.categories, dtype=np.int64)
    if all(isinstance(value, (int, float)) for value in feature.categories):
        return np.array(feature.categories, dtype=number)
    raise NotCompiledError("models.compile_mixed_column", column=feature.name)


@dataclass(frozen=True)
class Prober:
    """Applies a transformer to one known row with single features replaced."""

    transform: Transform
    table: Table
    row: Floats

    def outputs_at(self, features: list[int], values: list[Floats]) -> list[Objects]:
        """Return for each feature the outputs at its values, all other features as in the row."""
        ends = np.cumsum([len(some) for some in values])
        rows = np.repeat(self.row[None], ends[-1], axis=0)
        for j, some, end in zip(features, values, ends, strict=True):
            rows[end - len(some) : end, j] = some
        seen = as_matrix(self.transform(self.table.frame(rows)))
        if np.isinf(seen).any():
            raise NotCompiledError("models.compile_not_finite")
        return np.split(seen, ends[:-1])


def learn_preprocessor(transform: Transform, table: Table, codes: Floats, zero_is_missing: bool) -> TablePreprocessor:
    """Return a preprocessor equal to `transform` on the rows in `codes`; raises `NotCompiledError`."""
    prober = Prober(transform, table, codes[0])
    features = list(range(len(table.schema)))
    probes = [probe_values(feature, codes[:, j]) for j, feature in enumerate(table.schema.features)]
    seen = prober.outputs_at(features, probes)
    slack = rounding_of(seen[0], table)
    preprocessor = _assemble(prober, codes, probes, [rows.astype(np.float64) for rows in seen], slack)
    _check_outputs(preprocessor, as_matrix(transform(table.frame(codes))).astype(np.float64), codes, slack)
    return replace(preprocessor, zero_is_missing=zero_is_missing)


def rounding_of(outputs: Objects, table: Table) -> float:
    """Return the relative error that counts as rounding."""
    return SINGLE_SLACK if outputs.dtype == np.float32 or any(is_single(dtype) for dtype in table.dtypes) else DOUBLE_SLACK


def probe_values(feature: Feature, codes: Floats) -> Floats:
    """Return every category, or numbers from one end of a feature's range to the other; a missing value is the last."""
    if not feature.numeric:
        return np.arange(feature.n_codes, dtype=np.float64)
    return with_missing(feature, spread(feature, codes, PROBED_VALUES, EVEN_VALUES))


def with_missing(feature: Feature, numbers: Floats) -> Floats:
    return np.append(numbers, MISSING) if feature.nullable else numbers


def spread(feature: Feature, codes: Floats, known: int, even: int) -> Floats:
    """Return values of the rows and values between them, in order."""
    seen = np.unique(codes[codes != MISSING])
    some = seen[np.unique(np.linspace(0, len(seen) - 1, known).astype(np.intp))] if len(seen) else np.zeros(1)
    wide = np.concatenate([some, [end for end in (feature.lower, feature.upper) if np.isfinite(end)]])
    low, high = wide.min(), wide.max()
    # A number that is the same in all rows needs a second value to show how the model treats it.
    high = high if high > low else low + 1
    between = np.linspace(low, high, even)
    if feature.integer:
        between = np.arange(low, high + 1) if high - low < even else np.round(between)
    return np.unique(np.concatenate([wide, between]))


def as_matrix(transformed: Any) -> Objects:
    """Return the output of a transformer as a dense matrix of numbers, pandas categories as their positions."""
    if hasattr(transformed, "toarray"):
        _check_size(transformed.shape)
        transformed = transformed.toarray()
    elif isinstance(transformed, pd.DataFrame):
        transformed = np.column_stack([_numbers(transformed[name]) for name in transformed.columns])
    matrix = np.asarray(transformed)
    _check_size(matrix.shape)
    return matrix if matrix.dtype == np.float32 else matrix.astype(np.float64)


def _numbers(column: pd.Series) -> Floats:
    if isinstance(column.dtype, pd.CategoricalDtype):
        places = column.cat.codes.to_numpy().astype(np.float64)
        return np.where(places < 0, np.nan, places)
    if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)):
        raise NotCompiledError("models.compile_text", column=column.name)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _check_size(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] * shape[1] > MOST_CELLS:
        raise NotCompiledError("models.compile_size", received=shape)


def _assemble(prober: Prober, codes: Floats, probes: list[Floats], seen: list[Floats], slack: float) -> TablePreprocessor:
    table = prober.table
    first = prober.outputs_at([0], [prober.row[:1]])[0][0].astype(np.float64)
    base = first.copy()
    lines: list[tuple[int, int, float, float, float]] = []
    curves: list[CurvedOutput] = []
    switches: list[tuple[int, Indices, Floats]] = []
    lookups: list[CategoryOutputs] = []
    owned = _owned(first, seen)
    if np.isnan(np.delete(first, np.concatenate(owned))).any():
        raise NotCompiledError("models.compile_not_finite")
    for j, outputs in enumerate(owned):
        rows = seen[j][:, outputs]
        feature = table.schema.features[j]
        if feature.numeric:
            rows, missing = (rows[:-1], rows[-1]) if feature.nullable else (rows, rows[-1])
            if np.isnan(rows).any():
                raise NotCompiledError("models.compile_not_finite")
            fitted = [_line(probes[j][: len(rows)], column, slack) for column in rows.T]
            found = list(zip(outputs.tolist(), fitted, missing.tolist(), strict=True))
            lines += [(j, output, *line, gap) for output, line, gap in found if line]
            curves += _curves(prober, j, codes[:, j], [output for output, line, _ in found if line is None])
        elif (switch := _switch(rows, outputs, base)) is not None:
            switches.append((j, *switch))
        elif len(outputs):
            lookups.append(CategoryOutputs(j, outputs, rows))
    return TablePreprocessor(
        base, _linear_outputs(lines), tuple(curves), _one_hot_outputs(switches), tuple(lookups), StoredDtypes.of(table)
    )


def _owned(first: Floats, seen: list[Floats]) -> list[Indices]:
    """Return for every feature the outputs that change with it."""
    owned = [np.flatnonzero(_differs(rows, first).any(axis=0)) for rows in seen]
    every = np.concatenate(owned)
    if len(np.unique(every)) < len(every):
        raise NotCompiledError("models.compile_mixing")
    return owned


def _differs(one: Floats, other: Floats) -> Mask:
    return np.asarray((one != other) & ~(np.isnan(one) & np.isnan(other)))


def _line(values: Floats, outputs: Floats, slack: float) -> tuple[float, float] | None:
    slope = (outputs[-1] - outputs[0]) / (values[-1] - values[0])
    intercept = outputs[0] - slope * values[0]
    straight = np.allclose(values * slope + intercept, outputs, rtol=0, atol=slack * float(np.abs(outputs).max()))
    return (float(slope), float(intercept)) if straight else None


def _curves(prober: Prober, j: int, codes: Floats, outputs: list[int]) -> list[CurvedOutput]:
    if not outputs:
        return []
    feature = prober.table.schema.features[j]
    knots = spread(feature, codes, KNOTS, KNOTS)
    rows = prober.outputs_at([j], [with_missing(feature, knots)])[0].astype(np.float64)
    heights, missing = rows[: len(knots)], rows[-1]
    if np.isnan(heights[:, outputs]).any():
        raise NotCompiledError("models.compile_not_finite")
    return [CurvedOutput(j, output, knots, heights[:, output], float(missing[output])) for output in outputs]


def _switch(rows: Floats, outputs: Indices, base: Floats) -> tuple[Indices, Floats] | None:
    """Return where each category differs from most categories, if in one output at most; sets `base` to the majority."""
    usual = np.array([_most_frequent(column) for column in rows.T])
    differs = rows != usual
    if len(outputs) == 0 or np.isnan(rows).any() or differs.sum(axis=1).max() > 1:
        return None
    base[outputs] = usual
    place = differs.argmax(axis=1)
    return outputs[place], rows[np.arange(len(rows)), place]


def _most_frequent(column: Floats) -> float:
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])


def _linear_outputs(lines: list[tuple[int, int, float, float, float]]) -> LinearOutputs:
    lines = sorted(lines, key=lambda line: line[1])
    features, outputs = _indices([line[0] for line in lines]), _indices([line[1] for line in lines])
    return LinearOutputs(features, outputs, *(np.array([line[k] for line in lines], dtype=np.float64) for k in (2, 3, 4)))


def _indices(positions: list[int]) -> Indices:
    return np.array(positions, dtype=np.intp)


def _one_hot_outputs(switches: list[tuple[int, Indices, Floats]]) -> OneHotOutputs:
    sizes = [len(outputs) for _, outputs, _ in switches]
    return OneHotOutputs(
        _indices([j for j, _, _ in switches]),
        np.cumsum([0, *sizes])[:-1].astype(np.intp),
        np.concatenate([np.zeros(0, dtype=np.intp), *(outputs for _, outputs, _ in switches)]),
        np.concatenate([np.zeros(0), *(values for _, _, values in switches)]),
    )


def _check_outputs(preprocessor: TablePreprocessor, wanted: Floats, codes: Floats, slack: float) -> None:
    """Check that linear and categorical outputs are exact, and that curved ones are close on nearly all rows."""
    found = preprocessor.inputs(codes, len(codes))[MATRIX]
    largest = np.abs(wanted, where=~np.isnan(wanted), out=np.zeros_like(wanted)).max(axis=0)
    error = np.where(_differs(found, wanted), np.nan_to_num(np.abs(found - wanted), nan=np.inf) / (largest + slack), 0.0)
    curved = np.zeros(preprocessor.width, dtype=bool)
    curved[[curve.output for curve in preprocessor.curves]] = True
    near = (error[:, curved] <= CURVE_SLACK).all(axis=1)
    if not bool((error[:, ~curved] <= 10 * slack).all()) or near.mean() < MOST_NEAR:
        raise NotCompiledError("models.compile_not_separate")
