"""Which columns are no features."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fasterce.data import detect

RNG = np.random.default_rng(0)
ROWS = 200


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("customer_id", RNG.permutation(ROWS) * 7 + 1000, "id"),
        ("PassengerId", np.arange(1, ROWS + 1), "id"),
        ("Unnamed: 0", np.arange(ROWS), "id"),
        ("key", [f"K{k:05d}" for k in range(ROWS)], "id"),
        ("serial", RNG.permutation(ROWS).astype(float) * 3, "id"),
        ("token", np.arange(ROWS) + 2**60, "too_large"),
        ("comment", [f"this is what customer {k} wrote to us" for k in range(ROWS)], "text"),
        (
            "notes",
            ["a rather long remark that is the same for quite a few of the rows " * 2 + str(k // 2) for k in range(ROWS)],
            "text",
        ),
        ("blank", [None] * ROWS, "empty"),
        ("nan", [np.nan] * ROWS, "empty"),
        ("country", ["DE"] * ROWS, "constant"),
        ("rate", [1.5] * ROWS, "constant"),
    ],
)
def test_what_is_no_feature(name: str, values: Any, reason: str) -> None:
    assert detect.reason(pd.Series(values, name=name)) == reason


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", RNG.permutation(ROWS) * 37 + 900),
        ("pay", np.arange(ROWS)),
        ("year", np.arange(1900, 1900 + ROWS)),
        ("product_id", RNG.integers(0, 9, ROWS)),
        ("paid", RNG.random(ROWS) < 0.5),
        ("city", RNG.choice([f"city {k}" for k in range(60)], ROWS)),
        ("grade", pd.Categorical(["a"] * ROWS)),
        ("score", RNG.normal(size=ROWS)),
        ("gap", [1.0] * (ROWS - 1) + [np.nan]),
        ("when", pd.date_range("2020-01-01", periods=ROWS)),
    ],
)
def test_what_is_a_feature(name: str, values: Any) -> None:
    assert detect.reason(pd.Series(values, name=name)) is None


def test_few_rows_say_nothing() -> None:
    assert detect.reason(pd.Series([1, 2, 3], name="id")) is None
    assert detect.reason(pd.Series(["a", "b", "c"], name="key")) is None
    assert detect.reason(pd.Series([], dtype=float)) is None


def test_names_are_cut_into_words() -> None:
    assert detect.words("PassengerId") == ["passenger", "id"]
    assert detect.words("customer_id 2") == ["customer", "id"]
    assert not detect.has_word("width", detect.ID_WORDS)
