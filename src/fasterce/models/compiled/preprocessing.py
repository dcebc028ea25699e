"""What comes before a model's last step, learned by probing: codes -> the matrix the last step sees.

Where every output column depends on one feature, the steps are a table: a block of outputs for every category and a
straight line for every number. NumPy looks that up many times faster than the steps themselves compute it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fasterce.codec import Indices
from fasterce.profile import Floats
from fasterce.schema import Feature
from fasterce.table import Table, is_single
from fasterce.twin.engine import Inputs

Transform = Callable[[pd.DataFrame], Any]

MATRIX = "matrix"
PROBED_VALUES = 24
EVEN_VALUES = 9
MOST_CELLS = 20_000_000
DOUBLE_SLACK, SINGLE_SLACK = 1e-9, 4e-6
KNOTS = 4_096
CURVE_SLACK, MOST_NEAR = 1e-3, 0.99


class NoFrontError(Exception):
    """The steps are not a table; the sentence says why."""


class Front(Protocol):
    """Makes a graph's inputs of codes."""

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        """The inputs for these codes, padded with anything harmless to a number of rows."""
        ...


@dataclass(frozen=True)
class Lines:
    """Numeric features scaled and shifted: `outputs[k]` is a straight line through `features[k]`."""

    features: Indices
    outputs: Indices
    slope: Floats
    intercept: Floats

    def write(self, codes: Floats, matrix: NDArray[Any], zero_is_missing: bool) -> None:
        values = codes[:, self.features]
        values *= self.slope
        values += self.intercept
        if zero_is_missing:
            values[values == 0] = np.nan
        matrix[: len(codes), self.outputs] = values


@dataclass(frozen=True)
class Curve:
    """One output that bends a numeric feature, such as a logarithm or bins: known at knots, straight between them."""

    feature: int
    output: int
    knots: Floats
    heights: Floats

    def write(self, codes: Floats, matrix: NDArray[Any], zero_is_missing: bool) -> None:
        values = np.interp(codes[:, self.feature], self.knots, self.heights)
        matrix[: len(codes), self.output] = np.where(values == 0, np.nan, values) if zero_is_missing else values


@dataclass(frozen=True)
class Switches:
    """Categorical features whose every category differs from the base row in one output at most, as one-hot does.

    The categories of all features stand in one row, each feature's from its `start`; `output` and `value` say what
    a category writes and where.
    """

    features: Indices
    start: Indices
    output: Indices
    value: NDArray[Any]

    def write(self, codes: Floats, matrix: NDArray[Any]) -> None:
        cells = codes[:, self.features].astype(np.intp) + self.start
        places = self.output[cells]
        places += (np.arange(len(codes)) * matrix.shape[1])[:, None]
        matrix.reshape(-1)[places] = self.value[cells]


@dataclass(frozen=True)
class Lookup:
    """A categorical feature with a full row of outputs for every category."""

    feature: int
    outputs: Indices
    rows: NDArray[Any]

    def write(self, codes: Floats, matrix: NDArray[Any]) -> None:
        matrix[: len(codes), self.outputs] = self.rows[codes[:, self.feature].astype(np.intp)]


@dataclass(frozen=True)
class TableFront:
    """Every output starts as in `base`; lines, curves, switches and lookups write the ones that depend on a feature."""

    base: NDArray[Any]
    lines: Lines
    curves: tuple[Curve, ...]
    switches: Switches
    lookups: tuple[Lookup, ...]
    whole: Indices
    single: Indices
    zero_is_missing: bool = False

    @property
    def width(self) -> int:
        return len(self.base)

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        matrix = np.empty((rows, self.width), dtype=self.base.dtype)
        matrix[:] = self.base
        codes = self._as_held(codes)
        self.lines.write(codes, matrix, self.zero_is_missing)
        for curve in self.curves:
            curve.write(codes, matrix, self.zero_is_missing)
        if len(self.switches.features):
            self.switches.write(codes, matrix)
        for lookup in self.lookups:
            lookup.write(codes, matrix)
        return {MATRIX: matrix}

    def held_as(self, dtype: Any) -> "TableFront":
        """The same front writing a matrix of another type. Lines stay double: a tree's threshold may be a value itself."""
        return replace(
            self,
            base=self._missing(self.base).astype(dtype),
            switches=replace(self.switches, value=self._missing(self.switches.value).astype(dtype)),
            lookups=tuple(replace(one, rows=self._missing(one.rows).astype(dtype)) for one in self.lookups),
        )

    def _as_held(self, codes: Floats) -> Floats:
        """Numbers as the model's columns would hold them."""
        codes = codes.copy()
        if len(self.whole):
            codes[:, self.whole] = np.trunc(codes[:, self.whole])
        if len(self.single):
            codes[:, self.single] = codes[:, self.single].astype(np.float32)
        return codes

    def _missing(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.where(values == 0, np.nan, values) if self.zero_is_missing else values


@dataclass(frozen=True)
class ColumnsFront:
    """The model's own columns, one input each, for a graph that holds all steps."""

    names: tuple[str, ...]
    categories: tuple[NDArray[Any] | None, ...]
    dtypes: tuple[Any, ...]

    def inputs(self, codes: Floats, rows: int) -> Inputs:
        padded = codes if len(codes) == rows else np.vstack([codes, np.repeat(codes[:1], rows - len(codes), axis=0)])
        return {name: self._column(j, padded[:, j])[:, None] for j, name in enumerate(self.names)}

    def _column(self, j: int, codes: Floats) -> NDArray[Any]:
        known = self.categories[j]
        return codes.astype(self.dtypes[j]) if known is None else known[codes.astype(np.intp)]


def columns_front(table: Table, number: Any) -> ColumnsFront:
    """Numbers in one floating type, whole categories as they are, words as words."""
    features = table.schema.features
    categories = tuple(None if feature.numeric else _typed(feature, number) for feature in features)
    return ColumnsFront(tuple(str(name) for name in table.schema.names), categories, (number,) * len(features))


def _typed(feature: Feature, number: Any) -> NDArray[Any]:
    if all(isinstance(value, str) for value in feature.categories):
        return np.array(feature.categories, dtype=object)
    if all(isinstance(value, bool) for value in feature.categories):
        return np.array(feature.categories, dtype=np.int64)
    if all(isinstance(value, (int, float)) for value in feature.categories):
        return np.array(feature.categories, dtype=number)
    raise NoFrontError(f"column {feature.name!r} mixes words and numbers")


@dataclass(frozen=True)
class Prober:
    """Shows a transformer one known row with single features replaced."""

    transform: Transform
    table: Table
    row: Floats

    def see(self, features: list[int], values: list[Floats]) -> list[NDArray[Any]]:
        """For each feature the outputs at its values, all other features as in the row."""
        ends = np.cumsum([len(some) for some in values])
        asked = np.repeat(self.row[None], ends[-1], axis=0)
        for j, some, end in zip(features, values, ends, strict=True):
            asked[end - len(some) : end, j] = some
        seen = as_matrix(self.transform(self.table.frame(asked)))
        if not np.isfinite(seen).all():
            raise NoFrontError("its steps give missing or infinite values")
        return np.split(seen, ends[:-1])


def learn_front(transform: Transform, table: Table, codes: Floats, zero_is_missing: bool) -> TableFront:
    """The table that does what `transform` does, proven on the rows in `codes`; raises `NoFrontError`."""
    prober = Prober(transform, table, codes[0])
    features = list(range(len(table.schema)))
    probes = [_probe(feature, codes[:, j]) for j, feature in enumerate(table.schema.features)]
    seen = prober.see(features, probes)
    slack = SINGLE_SLACK if seen[0].dtype == np.float32 or any(is_single(dtype) for dtype in table.dtypes) else DOUBLE_SLACK
    front = _assemble(prober, codes, probes, [rows.astype(np.float64) for rows in seen], slack)
    _prove(front, as_matrix(transform(table.frame(codes))).astype(np.float64), codes, slack)
    return replace(front, zero_is_missing=zero_is_missing)


def _probe(feature: Feature, codes: Floats) -> Floats:
    """Every category, or numbers from one end of a feature's range to the other."""
    if not feature.numeric:
        return np.arange(len(feature.categories), dtype=np.float64)
    return _spread(feature, codes, PROBED_VALUES, EVEN_VALUES)


def _spread(feature: Feature, codes: Floats, known: int, even: int) -> Floats:
    """Values rows have and values between, in order."""
    seen = np.unique(codes)
    some = seen[np.unique(np.linspace(0, len(seen) - 1, known).astype(np.intp))]
    wide = np.concatenate([some, [end for end in (feature.lower, feature.upper) if np.isfinite(end)]])
    low, high = wide.min(), wide.max()
    between = np.linspace(low, high if high > low else low + 1, even)
    if feature.integer:
        between = np.arange(low, high + 1) if high - low < even else np.round(between)
    return np.unique(np.concatenate([wide, between]))


def as_matrix(transformed: Any) -> NDArray[Any]:
    """What a transformer gave as a dense matrix of numbers, pandas categories as their positions."""
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
        return np.asarray(column.cat.codes.to_numpy(), dtype=np.float64)
    if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)):
        raise NoFrontError(f"its last step is given text in column {column.name!r}")
    return np.asarray(column.to_numpy(dtype=np.float64))


def _check_size(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] * shape[1] > MOST_CELLS:
        raise NoFrontError(f"its steps give a matrix of shape {shape}, too large to learn as a table")


def _assemble(prober: Prober, codes: Floats, probes: list[Floats], seen: list[Floats], slack: float) -> TableFront:
    table = prober.table
    first = prober.see([0], [prober.row[:1]])[0][0].astype(np.float64)
    base = first.copy()
    lines: list[tuple[int, int, float, float]] = []
    curves: list[Curve] = []
    switches: list[tuple[int, Indices, Floats]] = []
    lookups: list[Lookup] = []
    for j, outputs in enumerate(_owned(first, seen)):
        rows = seen[j][:, outputs]
        if table.schema.features[j].numeric:
            fitted = [_line(probes[j], column, slack) for column in rows.T]
            lines += [(j, int(output), *line) for output, line in zip(outputs, fitted, strict=True) if line]
            bent = [int(output) for output, line in zip(outputs, fitted, strict=True) if line is None]
            curves += _curves(prober, j, codes[:, j], bent)
        elif (switch := _switch(rows, outputs, base)) is not None:
            switches.append((j, *switch))
        elif len(outputs):
            lookups.append(Lookup(j, outputs, rows))
    numeric = [j for j, feature in enumerate(table.schema.features) if feature.numeric]
    whole = [j for j in numeric if pd.api.types.is_integer_dtype(table.dtypes[j])]
    single = [j for j in numeric if is_single(table.dtypes[j])]
    return TableFront(
        base, _lines_of(lines), tuple(curves), _switches_of(switches), tuple(lookups), _indices(whole), _indices(single)
    )


def _owned(first: Floats, seen: list[Floats]) -> list[Indices]:
    """For every feature the outputs that change with it."""
    owned = [np.flatnonzero((rows != first).any(axis=0)) for rows in seen]
    every = np.concatenate(owned)
    if len(np.unique(every)) < len(every):
        raise NoFrontError("its steps mix columns")
    return owned


def _line(values: Floats, outputs: Floats, slack: float) -> tuple[float, float] | None:
    slope = (outputs[-1] - outputs[0]) / (values[-1] - values[0])
    intercept = outputs[0] - slope * values[0]
    straight = np.allclose(values * slope + intercept, outputs, rtol=0, atol=slack * float(np.abs(outputs).max()))
    return (float(slope), float(intercept)) if straight else None


def _curves(prober: Prober, j: int, codes: Floats, outputs: list[int]) -> list[Curve]:
    if not outputs:
        return []
    knots = _spread(prober.table.schema.features[j], codes, KNOTS, KNOTS)
    rows = prober.see([j], [knots])[0].astype(np.float64)
    return [Curve(j, output, knots, rows[:, output]) for output in outputs]


def _switch(rows: Floats, outputs: Indices, base: Floats) -> tuple[Indices, Floats] | None:
    """Where each category differs from what most categories give, if in one output at most; sets `base` to the latter."""
    usual = np.array([_most_frequent(column) for column in rows.T])
    differs = rows != usual
    if len(outputs) == 0 or differs.sum(axis=1).max() > 1:
        return None
    base[outputs] = usual
    place = differs.argmax(axis=1)
    return outputs[place], rows[np.arange(len(rows)), place]


def _most_frequent(column: Floats) -> float:
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])


def _lines_of(lines: list[tuple[int, int, float, float]]) -> Lines:
    lines = sorted(lines, key=lambda line: line[1])
    features, outputs = _indices([line[0] for line in lines]), _indices([line[1] for line in lines])
    return Lines(features, outputs, np.array([line[2] for line in lines]), np.array([line[3] for line in lines]))


def _indices(positions: list[int]) -> Indices:
    return np.array(positions, dtype=np.intp)


def _switches_of(switches: list[tuple[int, Indices, Floats]]) -> Switches:
    sizes = [len(outputs) for _, outputs, _ in switches]
    return Switches(
        _indices([j for j, _, _ in switches]),
        np.cumsum([0, *sizes])[:-1].astype(np.intp),
        np.concatenate([np.zeros(0, dtype=np.intp), *(outputs for _, outputs, _ in switches)]),
        np.concatenate([np.zeros(0), *(values for _, _, values in switches)]),
    )


def _prove(front: TableFront, wanted: Floats, codes: Floats, slack: float) -> None:
    """Exact rows throughout where there are lines and tables alone; nearly all of them where curves come near only."""
    found = front.inputs(codes, len(codes))[MATRIX]
    error = np.abs(found - wanted) / (np.abs(wanted).max(axis=0) + slack)
    curved = np.zeros(front.width, dtype=bool)
    curved[[curve.output for curve in front.curves]] = True
    near = (error[:, curved] <= CURVE_SLACK).all(axis=1)
    if not bool((error[:, ~curved] <= 10 * slack).all()) or near.mean() < MOST_NEAR:
        raise NoFrontError("its steps do not treat each column on its own")
