"""Edges of splits: the last number on one side, in the number type of the column and of the model."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce import Schema
from fasterce.data.table import Table
from fasterce.models.compiled.columns import Columns, last_rounded, single_threshold
from fasterce.models.compiled.preprocessing import learn_preprocessor

RNG = np.random.default_rng(0)
SINGLES = np.concatenate([RNG.normal(0, scale, 500).astype(np.float32) for scale in (1e-30, 1e-3, 1.0, 1e6)] + [np.zeros(1)])


def test_the_last_double_that_rounds_to_a_single_precision_number() -> None:
    found = last_rounded(SINGLES.astype(np.float64))
    assert (found.astype(np.float32) == SINGLES).all()
    assert (np.nextafter(found, np.inf).astype(np.float32) > SINGLES).all()


@pytest.mark.parametrize("strict", [True, False])
def test_thresholds_of_single_precision_comparisons(strict: bool) -> None:
    thresholds = np.concatenate([SINGLES.astype(np.float64), RNG.normal(size=500)])
    found = single_threshold(thresholds, strict)
    above = np.nextafter(found, np.inf)
    left = [np.less if strict else np.less_equal][0]
    assert left(found.astype(np.float32).astype(np.float64), thresholds).all()
    assert not left(above.astype(np.float32).astype(np.float64), thresholds).any()
    assert single_threshold(np.array([np.inf]), strict).tolist() == [np.inf]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "Int64", "Float32"])
@pytest.mark.parametrize("factor", [1.0, -0.7, 1e-9, 3e7])
def test_both_sides_of_an_edge(dtype: str, factor: float) -> None:
    values = RNG.normal(0, 20, 300).round().clip(-100, 100)
    frame = pd.DataFrame({"x": pd.Series(values).astype(dtype), "other": RNG.normal(size=300)})
    table = Table.like(frame, Schema.infer(frame))
    codes = table.read(frame).codes

    def steps(rows: pd.DataFrame) -> Any:
        return np.column_stack([(rows["x"].to_numpy(dtype=np.float64) - 3.3) / factor, rows["other"]])

    columns = Columns(steps, table, learn_preprocessor(steps, table, codes, False), codes[0])
    at = np.append(RNG.normal(0, 15, 59).round(1), 0.0)
    thresholds = (at - 3.3) / factor
    edges = columns.edges(np.zeros(60, dtype=np.intp), thresholds)
    assert np.isfinite(edges).all()
    small = factor > 0
    for side, expected in ((edges, small), (np.nextafter(edges, np.inf), not small)):
        column = steps(table.frame(np.column_stack([side, np.zeros(60)])))[:, 0]
        assert ((column <= thresholds) == expected).all()
    assert columns.edges(np.zeros(2, dtype=np.intp), np.array([np.inf, -np.inf])).tolist() == (
        [np.inf, -np.inf] if small else [-np.inf, np.inf]
    )
