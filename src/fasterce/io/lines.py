"""Rows in, lines out: the one function that explains a chunk, on a pandas frame in and an Arrow table out.

Long form: one line a counterfactual, and exactly one line (rank null) for a row that has none. The columns and their types
depend on the explainer, the target and the columns kept, never on what a chunk holds.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from fasterce.explanation import Explanation
from fasterce.profile import Floats
from fasterce.schema import Feature
from fasterce.table import Table, is_single
from fasterce.targets import ANY_OTHER

if TYPE_CHECKING:
    from fasterce.explainer import FasterCE

PREFIX = "cf_"
DIGITS = 9
MEASURES = ("distance", "new_score", "nn_ratio", "robust", "survived")
Indices = NDArray[np.intp]
Positions = NDArray[np.int64]


def explain_chunk(
    explainer: "FasterCE",
    frame: pd.DataFrame,
    options: Mapping[str, Any] | None = None,
    extra_columns: pa.Table | None = None,
    first: int | Positions = 0,
) -> pa.Table:
    """Explain the rows of a frame and give them back as lines, with `schema(...)`.

    `extra_columns` (a value a row: ids, columns kept) are repeated on every line of their row; `first` is the position of
    the first row in the whole, or an array of the positions of all.
    """
    return to_lines(explainer, explain(explainer, frame, options or {}), extra_columns, first)


def explain(explainer: "FasterCE", frame: pd.DataFrame, options: Mapping[str, Any]) -> Explanation:
    """The explanation of a chunk, with reasons that do not depend on where in the chunk a row stands."""
    found = explainer.explain(_as_fitted(explainer.table_, frame), **options)
    reasons = [_anywhere(reason, place) for place, reason in enumerate(found.reason)]
    return replace(found, reason=pd.Series(reasons, index=found.reason.index, dtype=object, name="reason"))


def schema(explainer: "FasterCE", options: Mapping[str, Any] | None = None, extra: pa.Schema | None = None) -> pa.Schema:
    """The columns of the lines, whatever the rows hold."""
    given = options or {}
    answer = pa.float64() if explainer.numbers_ is not None else _type_of(explainer.classes_)
    features = [
        pa.field(PREFIX + str(feature.name), _feature_type(feature, dtype))
        for feature, dtype in zip(explainer.table_.schema.features, explainer.table_.dtypes, strict=True)
    ]
    ours = [
        pa.field("row", pa.int64()),
        pa.field("status", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("prediction", answer),
        pa.field("score", pa.float64()),
        pa.field("target", _target_type(explainer, given, answer)),
        pa.field("rank", pa.int32()),
        pa.field("method", pa.string()),
        pa.field("n_changed", pa.int32()),
        *(pa.field(name, pa.float64()) for name in MEASURES),
        pa.field("changes", pa.string()),
        *features,
    ]
    kept = _renamed(extra or pa.schema([]), {field.name for field in ours})
    return pa.schema([ours[0], *kept, *ours[1:]])


def to_lines(explainer: "FasterCE", found: Explanation, extra_columns: pa.Table | None, first: int | Positions) -> pa.Table:
    """An explanation as lines."""
    fields = schema(explainer, found.options, None if extra_columns is None else extra_columns.schema)
    rows, answer = _places(found)
    has = answer >= 0
    at = answer[has]
    columns: list[Any] = [pa.array(rows + first if isinstance(first, int) else first[rows], pa.int64())]
    if extra_columns is not None and extra_columns.num_columns:
        columns += [column.combine_chunks() for column in extra_columns.take(pa.array(rows)).columns]
    about = {
        "status": found.status.to_numpy()[rows],
        "reason": [reason or None for reason in found.reason.to_numpy()[rows]],
        "prediction": _steady(found.prediction.to_numpy())[rows],
        "score": np.full(len(rows), np.nan) if found.score is None else _steady(found.score.to_numpy())[rows],
        "target": _spread_target(found, rows),
    }
    answers = {
        "rank": found.answers.rank,
        "method": found.answers.method,
        "n_changed": found.answers.changed.sum(axis=1),
        **dict(zip(MEASURES, (found.answers.distance, *_measured(found)), strict=True)),
        "changes": _changes(found),
    }
    columns += [_array(values, fields.field(name).type) for name, values in about.items()]
    columns += [_spread(values[at], has, fields.field(name).type) for name, values in answers.items()]
    for j, feature in enumerate(found.table.schema.features):
        values = _plain_values(found.table, j, found.answers.codes[at, j])
        columns.append(_spread(values, has, fields.field(PREFIX + str(feature.name)).type))
    return pa.Table.from_arrays(columns, schema=fields)


def _as_fitted(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers as coarse as the model saw them in training, so that an answer is written as the model was asked."""
    finer = [
        name
        for name, dtype in zip(table.schema.names, table.dtypes, strict=True)
        if is_single(dtype) and name in frame.columns and frame[name].dtype == np.float64
    ]
    return frame.astype(dict.fromkeys(finer, np.float32)) if finer else frame


def _anywhere(reason: str, place: int) -> str:
    """A sentence without the position of its row among those asked about."""
    before, said, after = reason.rpartition(f" (row {place})")
    return before + after if said else reason


def _places(found: Explanation) -> tuple[Indices, Indices]:
    """For every line its row and its answer (-1 for none), row by row, best first."""
    order = np.argsort(found.answers.query, kind="stable")
    count = np.bincount(found.answers.query, minlength=len(found))
    lines = np.maximum(count, 1)
    answer = np.full(int(lines.sum()), -1, dtype=np.intp)
    rows = np.repeat(np.arange(len(found), dtype=np.intp), lines)
    answer[count[rows] > 0] = order
    return rows, answer


def _measured(found: Explanation) -> list[Floats]:
    answers = found.answers
    return [_steady(answers.score), answers.nn_ratio, answers.robust, answers.survived]


def _steady(values: NDArray[Any]) -> NDArray[Any]:
    """A model's numbers to nine digits: the last bits of its sums may depend on how many rows it is asked about at once."""
    if values.dtype != np.float64:
        return values
    return np.array([float(f"{value:.{DIGITS}g}") for value in values])


def _changes(found: Explanation) -> NDArray[Any]:
    """What each answer changes, as JSON: [{"feature": …, "from": …, "to": …}, …]."""
    table, answers = found.table, found.answers
    texts: list[list[dict[str, Any]]] = [[] for _ in range(len(answers))]
    for k, j in zip(*(places.tolist() for places in np.nonzero(answers.changed)), strict=True):
        before, after = table.value(j, answers.before[k, j]), table.value(j, answers.codes[k, j])
        texts[k].append({"feature": table.schema.names[j], "from": before, "to": after})
    written = np.empty(len(texts), dtype=object)
    written[:] = [json.dumps(changes, ensure_ascii=False, default=str) for changes in texts]
    return written


def _plain_values(table: Table, j: int, codes: Floats) -> Any:
    """A counterfactual's column, missing values as None."""
    feature = table.schema.features[j]
    absent = codes == feature.absent if feature.gappy else np.zeros(len(codes), dtype=bool)
    if feature.numeric:
        values = codes.astype(object)
    else:
        categories = np.empty(len(feature.categories) + 1, dtype=object)
        categories[:] = [*feature.categories, None]
        values = categories[np.where(absent, len(feature.categories), codes).astype(np.intp)]
    values[absent] = None
    return values


def _spread(values: Any, has: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Values on the lines that have an answer, null elsewhere."""
    every = np.full(len(has), None, dtype=object)
    every[has] = values
    return _array(every, kind)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    """An Arrow array of a given type; NaN is null, and text is made of what is none."""
    if pa.types.is_string(kind):
        return pa.array([None if value is None else str(value) for value in values], kind)
    if pa.types.is_integer(kind):
        return pa.array([None if value is None else int(value) for value in values], kind)
    return pa.array(values, kind, from_pandas=True)


def _spread_target(found: Explanation, rows: Indices) -> NDArray[Any]:
    """The wanted class, or as JSON the wanted range of a number."""
    wanted = found.target.to_numpy()
    shown = np.empty(len(wanted), dtype=object)
    shown[:] = [_range(value) if isinstance(value, tuple) else value for value in wanted]
    return shown[rows]


def _range(bounds: Sequence[float]) -> str:
    return json.dumps([bound if np.isfinite(bound) else None for bound in bounds])


def _type_of(values: Sequence[Any]) -> pa.DataType:
    """The narrowest Arrow type for plain values: text where they are mixed."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values):
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _feature_type(feature: Feature, dtype: Any) -> pa.DataType:
    if not feature.numeric:
        return _type_of(feature.categories)
    if pd.api.types.is_integer_dtype(dtype):
        return pa.int64()
    return pa.float32() if is_single(dtype) else pa.float64()


def _target_type(explainer: "FasterCE", options: Mapping[str, Any], answer: pa.DataType) -> pa.DataType:
    target = options.get("target")
    any_other = isinstance(target, str) and target == ANY_OTHER and target not in explainer.classes_
    if explainer.numbers_ is not None or (any_other and len(explainer.classes_) > 2):
        return pa.string()
    return answer


def _renamed(extra: pa.Schema, taken: set[str]) -> list[pa.Field]:
    """The columns kept; one named like a column of ours gets an underscore."""
    fields = []
    for field in extra:
        name = field.name
        while name in taken:
            name += "_"
        taken.add(name)
        fields.append(field.with_name(name))
    return fields
