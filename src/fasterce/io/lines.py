"""Explain a chunk: a pandas frame of rows becomes an Arrow table of lines.

There is one line per counterfactual, and exactly one line (rank null) for a row that has none. The columns and their types
depend on the explainer, the target and the columns kept, never on the rows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from fasterce.data import value_types
from fasterce.data.dtypes import Dtype, is_integer, is_single
from fasterce.data.schema import Feature
from fasterce.data.table import Table
from fasterce.explanation import Change, Explanation
from fasterce.io.source import Positions
from fasterce.options import check_known, defaults
from fasterce.search.target import ANY_OTHER
from fasterce.typing import Indices, Objects

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

PREFIX = "cf_"
# Digits of the model's numbers: the last bits of its sums may depend on how many rows it evaluates at once.
DIGITS = 9
MEASURES = ("distance", "new_score", "nn_ratio", "robust", "ensemble_agreement")


def explain_chunk(
    explainer: "FasterCE",
    frame: pd.DataFrame,
    options: Mapping[str, object] | None = None,
    extra_columns: pa.Table | None = None,
    first: int | Positions = 0,
) -> pa.Table:
    """Explain the rows of a frame.

    Parameters
    ----------
    explainer : FasterCE
        A fitted explainer.
    frame : DataFrame
        The explainer's columns.
    options : mapping, optional
        Arguments of `explain`.
    extra_columns : Arrow table, optional
        One value per row (ids, columns kept), repeated on every line of the row.
    first : int or array of int, default=0
        Position of the first row in the whole input, or the positions of all rows.

    Returns
    -------
    Arrow table
        One line per counterfactual, with the columns of `schema`.
    """
    return to_lines(explainer, explain(explainer, frame, options or {}), extra_columns, first)


def explain(explainer: "FasterCE", frame: pd.DataFrame, options: Mapping[str, Any]) -> Explanation:
    """Explain a chunk, with reasons that do not depend on the position of a row in the chunk."""
    return explainer.explain(_as_fitted(explainer.state_.table, frame), **options).take(0, len(frame))


def check_options(explainer: "FasterCE", options: Mapping[str, Any]) -> None:
    """Raise what `explain` would raise for these options, before a row is read."""
    explainer._check_fitted()
    check_known(options, list(defaults()))
    table = explainer.state_.table
    explainer.explain(table.frame(np.zeros((0, len(table.schema)))), **options)


def schema(explainer: "FasterCE", options: Mapping[str, object] | None = None, extra: pa.Schema | None = None) -> pa.Schema:
    """Return the columns of the lines, which do not depend on the rows.

    Parameters
    ----------
    explainer : FasterCE
        A fitted explainer.
    options : mapping, optional
        Arguments of `explain`.
    extra : Arrow schema, optional
        The ids and columns kept; an underscore is added to a name that the lines use.

    Returns
    -------
    Arrow schema
    """
    given = options or {}
    prediction = pa.float64() if explainer.state_.numbers is not None else _type_of(explainer.classes_)
    features = [
        pa.field(PREFIX + str(feature.name), _feature_type(feature, dtype))
        for feature, dtype in zip(explainer.state_.table.schema.features, explainer.state_.table.dtypes, strict=True)
    ]
    ours = [
        pa.field("row", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("prediction", prediction),
        pa.field("score", pa.float64()),
        pa.field("target", _target_type(explainer, given, prediction)),
        pa.field("rank", pa.int32()),
        pa.field("method", pa.string()),
        pa.field("new_prediction", prediction),
        pa.field("n_changed", pa.int32()),
        *(pa.field(name, pa.float64()) for name in MEASURES),
        pa.field("changes", pa.string()),
        *features,
    ]
    kept = _renamed(extra or pa.schema([]), {field.name for field in ours})
    return pa.schema([ours[0], *kept, *ours[1:]])


def to_lines(explainer: "FasterCE", found: Explanation, extra_columns: pa.Table | None, first: int | Positions) -> pa.Table:
    """Return an explanation as lines."""
    fields = schema(explainer, found.options, None if extra_columns is None else extra_columns.schema)
    rows, chosen = _places(found)
    arrays, table = found.arrays, found.table
    columns: list[pa.Array] = [pa.array(rows + first if isinstance(first, int) else first[rows], pa.int64())]
    if extra_columns is not None and extra_columns.num_columns:
        columns += [column.combine_chunks() for column in extra_columns.take(pa.array(rows)).columns]
    per_row = {
        "status": found.status,
        "reason": [reason or None for reason in found.reason],
        "prediction": _rounded(found.prediction.to_numpy()),
        "score": np.full(len(found), np.nan) if found.score is None else _rounded(found.score.to_numpy()),
        "target": [_target(value) for value in found.target],
    }
    per_counterfactual = {
        "rank": arrays.rank,
        "method": arrays.method,
        "new_prediction": _rounded(np.array(found.new_prediction)) if not found.classes else found.new_prediction,
        "n_changed": arrays.changed.sum(axis=1),
        "distance": arrays.distance,
        "new_score": _rounded(found.new_score),
        "nn_ratio": arrays.nn_ratio,
        "robust": arrays.robust,
        "ensemble_agreement": arrays.ensemble_agreement,
        "changes": [_json_text(changes) for changes in found.all_changes()],
        **{PREFIX + str(name): table.column(j, arrays.codes[:, j]) for j, name in enumerate(table.schema.names)},
    }
    columns += [_array(values, fields.field(name).type).take(pa.array(rows)) for name, values in per_row.items()]
    # Null on the lines without a counterfactual.
    places = pa.array(chosen, mask=chosen < 0)
    columns += [_array(values, fields.field(name).type).take(places) for name, values in per_counterfactual.items()]
    return pa.Table.from_arrays(columns, schema=fields)


def _as_fitted(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return numbers in the precision of training, so that the model evaluates what is written."""
    finer = [
        name
        for name, dtype in zip(table.schema.names, table.dtypes, strict=True)
        if is_single(dtype) and name in frame.columns and frame[name].dtype == np.float64
    ]
    return frame.astype(dict.fromkeys(finer, np.float32)) if finer else frame


def _places(found: Explanation) -> tuple[Indices, Indices]:
    """Return the row and the counterfactual (-1 for none) of every line, row by row, best first."""
    count = np.bincount(found.arrays.query, minlength=len(found))
    rows = np.repeat(np.arange(len(found), dtype=np.intp), np.maximum(count, 1))
    chosen = np.full(len(rows), -1, dtype=np.intp)
    chosen[count[rows] > 0] = np.argsort(found.arrays.query, kind="stable")
    return rows, chosen


def _rounded(values: Objects) -> Objects:
    if values.dtype != np.float64:
        return values
    return np.array([float(f"{value:.{DIGITS}g}") for value in values])


def _json_text(changes: Sequence[Change]) -> str:
    """Return what a counterfactual changes as JSON: [{"feature": …, "from": …, "to": …}, …]."""
    return json.dumps([change.to_dict() for change in changes], ensure_ascii=False, default=_plain)


def _plain(value: object) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)


def _array(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    """Return an Arrow array of a given type, with null for missing values."""
    if pa.types.is_string(kind):
        return pa.array([None if pd.isna(value) else str(value) for value in values], kind)
    if pa.types.is_temporal(kind) or (pa.types.is_float64(kind) and getattr(values, "dtype", None) == np.dtype(object)):
        given = pd.Series(list(values))
        return pa.array(given.astype(float) if pa.types.is_floating(kind) else given, from_pandas=True).cast(kind, safe=False)
    return pa.array(values, kind, from_pandas=True)


def _target(value: object) -> object:
    """Return a target class, or a target interval as JSON."""
    return json.dumps([bound if np.isfinite(bound) else None for bound in value]) if isinstance(value, tuple) else value


def _type_of(values: Sequence[Any]) -> pa.DataType:
    """Return the narrowest Arrow type for plain values: text where they are mixed."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _feature_type(feature: Feature, dtype: Dtype) -> pa.DataType:
    if not feature.numeric:
        return _type_of(feature.categories)
    if feature.value_type != value_types.NUMBER:
        return _time_type(feature.value_type, dtype)
    if is_integer(dtype):
        return pa.int64()
    return pa.float32() if is_single(dtype) else pa.float64()


def _time_type(value_type: str, dtype: Dtype) -> pa.DataType:
    """Return the Arrow type of dates, times, durations and decimals; a period is text."""
    if value_types.is_datetime(value_type):
        tz = getattr(dtype, "tz", None)
        return pa.timestamp("us", value_types.zone(value_type) if tz is None else str(tz))
    known = {
        value_types.DECIMAL: pa.float64(),
        value_types.DATE: pa.date32(),
        value_types.DAYS: pa.duration("us"),
        value_types.SECONDS: pa.duration("us"),
    }
    return known.get(value_type, pa.string())


def _target_type(explainer: "FasterCE", options: Mapping[str, object], prediction: pa.DataType) -> pa.DataType:
    target = options.get("target")
    any_other = isinstance(target, str) and target == ANY_OTHER and target not in explainer.classes_
    if explainer.state_.numbers is not None or (any_other and len(explainer.classes_) > 2):
        return pa.string()
    return prediction


def _renamed(extra: pa.Schema, taken: set[str]) -> list[pa.Field]:
    """Return the columns kept; one named like a column of the lines gets an underscore."""
    fields = []
    for field in extra:
        while field.name in taken:
            field = field.with_name(field.name + "_")  # noqa: PLW2901
        taken.add(field.name)
        fields.append(field)
    return fields
