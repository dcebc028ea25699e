"""Explanations built by hand: what is shown must not depend on what can be found."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.data.schema import Schema
from fasterce.data.table import Table
from fasterce.explanation import CounterfactualArrays, Explanation
from fasterce.models.predictor import ModelUsage

Build = Callable[..., Explanation]


def build_explanation(
    rows: pd.DataFrame,
    counterfactuals: Sequence[tuple[int, str, dict[Any, Any], float]] = (),
    *,
    training: pd.DataFrame | None = None,
    prediction: Any = "refused",
    target: Any = "granted",
    verdicts: dict[int, tuple[str, str]] | None = None,
    notes: tuple[str, ...] = (),
    score: Sequence[float] | None = None,
    preferred: dict[str, Any] | None = None,
    **measured: Sequence[float],
) -> Explanation:
    """`counterfactuals` are (row, method, changes, distance), best first; `verdicts` the status and reason of other rows,
    `score` the model's score of each row where a number was the target, `preferred` the
    directions in people's interest, `measured` what was measured of every counterfactual."""
    seen = training if training is not None else rows
    schema = Schema.infer(seen).declare({name: {"preferred": way} for name, way in (preferred or {}).items()})
    table = Table.like(seen, schema)
    before = table.read(rows).codes
    queries = [position for position, *_ in counterfactuals]
    codes = before[queries]
    for line, (_, _, changes, _) in enumerate(counterfactuals):
        for name, value in changes.items():
            feature = schema[name]
            code = value if feature.numeric else feature.categories.index(value)
            codes[line, schema.position(name)] = code
    status, reason = ["found"] * len(rows), [""] * len(rows)
    for position, (word, sentence) in (verdicts or {}).items():
        status[position], reason[position] = word, sentence

    def series(values: list[Any]) -> pd.Series:
        return pd.Series(values, index=rows.index, dtype=object)

    return Explanation(
        rows=rows,
        status=series(status),
        reason=series(reason),
        prediction=series([prediction] * len(rows)),
        target=series([target] * len(rows)),
        arrays=CounterfactualArrays(
            query=np.array(queries, dtype=np.intp),
            rank=np.array([queries[:k].count(query) for k, query in enumerate(queries)], dtype=np.intp),
            method=np.array([method for _, method, _, _ in counterfactuals], dtype=object),
            before=before[queries],
            codes=codes,
            distance=np.array([distance for *_, distance in counterfactuals], dtype=float),
            **{{"scores": "score"}.get(name, name): np.array(values, dtype=float) for name, values in measured.items()},
        ),
        table=table,
        usage=ModelUsage(calls=7, rows=90 * len(rows)),
        seconds=0.004 * len(rows),
        notes=notes,
        score=None if score is None else pd.Series(score, index=rows.index, dtype=float),
    )


@pytest.fixture
def build() -> Build:
    return build_explanation


@pytest.fixture
def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [31, 45, 62],
            "income": [9000, 48000, 120000],
            "rate": [0.5, 2.25, 1.75],
            "job": ["clerk", "nurse", "smith"],
            "city": ["Rome", "Oslo", "Bonn"],
        },
        index=["ann", "bob", "cat"],
    )


@pytest.fixture
def loans(build: Build, people: pd.DataFrame) -> Explanation:
    """Two answers for ann, one for bob, none for cat; the city never changes."""
    return build(
        people,
        [
            (0, "line", {"income": 52000, "rate": 1.75}, 0.3125),
            (0, "tree", {"job": "nurse"}, 0.5),
            (1, "line", {"age": 47}, 0.0625),
        ],
        verdicts={2: ("none_found", "No way led to granted within 500 rows.")},
        notes=("The model gave no scores.",),
    )
