"""Filters of a batch (`--where`), evaluated on Arrow columns and on what the model predicts.

A comparison with a missing value is neither true nor false, as in SQL.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fasterce.config import BatchConfig
from fasterce.constraints import filter as filters
from fasterce.constraints.filter import And, ColumnName, Compare, CompareFormulas, Condition, IsNull, Not, Or
from fasterce.errors import InputError, ModelError, Problem, unknown
from fasterce.explainer import FasterCE
from fasterce.io import Chunk, cells
from fasterce.models.predictions import FAILED
from fasterce.models.predictor import Predictor
from fasterce.typing import Mask

FEWEST_FAILED = BatchConfig().min_failed_rows
OPERATIONS = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
BOOLEANS = ("true", "false")

Column = Callable[[ColumnName], pa.Array]
# The lowest and highest value of a column in a row group, None if not known.
Bounds = Callable[[str], tuple[Any, Any] | None]


@dataclass(frozen=True)
class Filter:
    """A condition on rows, as a part on columns of the input and a part that needs the model.

    `position` is the class whose probability `score` is.
    """

    of_input: Condition | None = None
    of_model: Condition | None = None
    position: int = 0

    @classmethod
    def parse(cls, text: str | None, explainer: FasterCE, target: object) -> "Filter":
        """Parse a condition and check it against the model."""
        if text is None:
            return cls()
        of_input, of_model = filters.split(filters.parse_filter(text))
        if of_model is None:
            return cls(of_input)
        if explainer.state_.numbers is None:
            of_model = filters.with_classes(of_model, explainer.classes_)
        uses_score = filters.SCORE in {name.text for name in filters.names_of(of_model)}
        return cls(of_input, of_model, _class_position(explainer, target) if uses_score else 0)

    @property
    def parts(self) -> list[Condition]:
        return [part for part in (self.of_input, self.of_model) if part is not None]

    @property
    def columns(self) -> list[str]:
        """The columns of the input it needs."""
        return sorted({name.text for part in self.parts for name in filters.names_of(part) if not name.from_model})

    def select(self, batch: Chunk, predictor: Predictor) -> Chunk:
        """Return the rows for which the condition is true.

        A row that cannot be read or evaluated is kept, to be reported by its status.
        """
        if self.of_input is not None:
            batch = batch.take(_true(evaluate(self.of_input, lambda name: batch.column(name.text))))
        if self.of_model is None or not len(batch):
            return batch
        reading = predictor.table.read(batch.frame)
        readable = np.ones(len(batch), dtype=bool)
        readable[list(reading.problems)] = False
        part, names = batch.take(readable), {name.text for name in filters.names_of(self.of_model) if name.from_model}
        codes = reading.codes[readable]
        frame = predictor.table.as_returned(part.frame, np.arange(len(part)), codes, codes)
        predicted, failed = _predict(predictor, frame, names, self.position)

        def column(name: ColumnName) -> pa.Array:
            return predicted[name.text] if name.from_model else part.column(name.text)

        keep, unfiltered = np.ones(len(batch), dtype=bool), np.zeros(len(batch), dtype=bool)
        keep[readable] = _true(evaluate(self.of_model, column)) | failed
        check_model_is_up(failed, predictor.error().problem)
        unfiltered[readable] = failed
        return replace(batch, unfiltered=unfiltered).take(keep)


def _predict(predictor: Predictor, frame: pd.DataFrame, names: set[str], position: int) -> tuple[dict[str, pa.Array], Mask]:
    """Return predictions and scores of rows by name, and the rows the model failed on."""
    columns: dict[str, pa.Array] = {}
    any_failed: Mask = np.zeros(len(frame), dtype=bool)
    for name in sorted(names):
        raw = name == filters.SCORE or predictor.numbers is not None
        predictions = predictor.verify(frame, raw)
        failed = predictions.classes == FAILED
        if raw:
            place = 0 if predictor.numbers is not None else position
            missing = np.full((len(frame), place + 1), np.nan)
            values = missing if predictions.values is None else predictions.values
            columns[name] = pa.array(values[:, place], mask=failed)
        else:
            labels = np.array([*map(str, predictor.classes), ""], dtype=object)
            columns[name] = pa.array(labels[predictions.classes], pa.string(), mask=failed)
        any_failed |= failed
    return columns, any_failed


def check_model_is_up(failed: Mask, reason: Problem | str) -> None:
    """Raise if a model fails on every one of many rows; a model that fails on some gives them a status."""
    if len(failed) >= FEWEST_FAILED and failed.all():
        raise ModelError("batch.model_down", rows=len(failed), reason=reason)


def _true(found: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)


def _class_position(explainer: FasterCE, target: object) -> int:
    """Return the class whose probability `score` is: the target, or the second of two."""
    if explainer.state_.numbers is not None:
        return 0
    predictor = explainer._predictor()
    if not (predictor.use_scores and predictor.has_chances):
        raise InputError("batch.no_scores", option="where")
    if target is not None and target in explainer.classes_:
        return predictor.position(target)
    if len(explainer.classes_) != 2:
        raise InputError("batch.score_needs_target", option="where")
    return 1


def evaluate(condition: Condition, column: Column) -> pa.Array:
    """Return true, false or null for every row; `column` gives the values of a name."""
    match condition:
        case And(left, right):
            return pc.and_kleene(evaluate(left, column), evaluate(right, column))
        case Or(left, right):
            return pc.or_kleene(evaluate(left, column), evaluate(right, column))
        case Not(inner):
            return pc.invert(evaluate(inner, column))
        case IsNull(name):
            return pc.is_null(column(name), nan_is_null=True)
        case CompareFormulas():
            return _compare_formulas(condition, column)
        case Compare(name):
            return _compare(condition, cells.decoded(column(name)))


def check_types(condition: Condition, types: Mapping[str, pa.DataType], source: str) -> None:
    """Check that the columns of a filter exist in `source` and can be compared with what they are compared with."""
    for leaf in filters.leaves(condition):
        names = [name for _, name in leaf.names] if isinstance(leaf, CompareFormulas) else [leaf.name]
        for name in names:
            if name.from_model:
                continue
            if name.text not in types:
                raise InputError(unknown("batch.where_unknown_column", name.text, types, option="where", source=source))
            kind, details = cells.kind_of(types[name.text]), {"option": "where", "column": name.text}
            if isinstance(leaf, CompareFormulas) and kind not in ("number", "text", "null"):
                raise InputError("batch.where_not_numbers", received=str(types[name.text]), **details)
            if isinstance(leaf, Compare) and kind in ("date", "other"):
                raise InputError("batch.where_unsupported_column", received=str(types[name.text]), **details)
            if isinstance(leaf, Compare) and kind == "boolean" and not isinstance(leaf.value, bool):
                raise InputError("batch.where_boolean_column", received=leaf.value, **details)
            if isinstance(leaf, Compare) and kind == "number" and isinstance(leaf.value, (bool, str)):
                raise InputError("batch.where_number_column", received=leaf.value, **details)


def _compare(leaf: Compare, array: pa.Array) -> pa.Array:
    value, operation = leaf.value, OPERATIONS[leaf.op]
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.bool_())
    if isinstance(value, str):
        return operation(cells.as_text(array), value)
    if not cells.is_text(array.type):
        plain = array.cast(pa.float64()) if pa.types.is_decimal(array.type) else array
        found = operation(plain, pa.scalar(value))
        return pc.if_else(pc.is_nan(plain), None, found) if pa.types.is_floating(plain.type) else found
    texts = cells.as_text(array)
    if isinstance(value, bool):
        words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        known = pc.is_in(words, value_set=pa.array(BOOLEANS))
        return operation(pc.if_else(known, pc.equal(words, "true"), None), value)
    numbers, known = cells.numbers_of(array)
    return operation(pa.array(numbers, mask=~known), float(value))


def _compare_formulas(leaf: CompareFormulas, column: Column) -> pa.Array:
    """Return null where a value is missing or no number, or a formula has no finite value."""
    read = {alias: cells.numbers_of(cells.decoded(column(name))) for alias, name in leaf.names}
    columns = {alias: numbers for alias, (numbers, _) in read.items()}
    left, right = leaf.comparison.left.evaluate(columns), leaf.comparison.right.evaluate(columns)
    known = np.logical_and.reduce([known for _, known in read.values()]) & np.isfinite(left) & np.isfinite(right)
    left, right = (pa.array(np.broadcast_to(side, known.shape), mask=~known) for side in (left, right))
    return OPERATIONS[leaf.comparison.op](left, right)


def unwanted_groups(metadata: pq.FileMetaData, condition: Condition) -> set[int]:
    """Return the row groups of a Parquet file in which a filter on columns of the input holds for no row."""
    columns = {metadata.schema.column(k).path: k for k in range(metadata.num_columns)}
    return {
        group
        for group in range(metadata.num_row_groups)
        if not _possible(condition, partial(_bounds, metadata.row_group(group), columns))
    }


def _bounds(group: pq.RowGroupMetaData, columns: Mapping[str, int], name: str) -> tuple[object, object] | None:
    statistics = group.column(columns[name]).statistics if name in columns else None
    return (statistics.min, statistics.max) if statistics is not None and statistics.has_min_max else None


def _possible(condition: Condition, bounds: Bounds) -> bool:
    """Return whether the filter may hold for some row; true where nothing is known."""
    match condition:
        case And(left, right):
            return _possible(left, bounds) and _possible(right, bounds)
        case Or(left, right):
            return _possible(left, bounds) or _possible(right, bounds)
        case Compare(name) if (known := bounds(name.text)) is not None:
            return _within(condition, *known)
        case _:
            return True


def _within(leaf: Compare, low: Any, high: Any) -> bool:
    value: Any = leaf.value
    # A bound and a value of different kinds (text that is read as a number) cannot be compared.
    if isinstance(value, str) != isinstance(low, str) or isinstance(value, bool) != isinstance(low, bool):
        return True
    try:
        possible = {
            "==": low <= value <= high,
            # Bounds of long texts may be cut short: equal bounds do not mean that all values are equal.
            "!=": True,
            "<": low < value,
            "<=": low <= value,
            ">": high > value,
            ">=": high >= value,
        }
    except TypeError:
        return True
    return bool(possible[leaf.op])
